-- A film rental: int keys, composite keys, an enum type, a domain, views, triggers, arrays, partitions.
CREATE SCHEMA rental;
SET search_path = rental;
CREATE TYPE audience AS ENUM ('all', '12', '16', '18');
CREATE DOMAIN release_year AS integer CHECK (VALUE BETWEEN 1890 AND 2200);

CREATE FUNCTION stamp() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.last_update := now();
  RETURN NEW;
END $$;

CREATE TABLE language (
  language_id serial PRIMARY KEY,
  name character(20) NOT NULL,
  last_update timestamptz NOT NULL DEFAULT now());
CREATE TABLE film (
  film_id serial PRIMARY KEY,
  title varchar(120) NOT NULL,
  description text,
  made_in release_year,
  language_id integer NOT NULL REFERENCES language ON UPDATE CASCADE ON DELETE RESTRICT,
  rental_days smallint NOT NULL DEFAULT 3,
  rental_rate numeric(4,2) NOT NULL DEFAULT 4.99,
  rating audience DEFAULT 'all',
  extras text[],
  words tsvector NOT NULL,
  last_update timestamptz NOT NULL DEFAULT now());
CREATE INDEX film_title ON film (title);
CREATE TRIGGER film_stamp BEFORE UPDATE ON film FOR EACH ROW EXECUTE FUNCTION stamp();
CREATE TRIGGER film_words BEFORE INSERT OR UPDATE ON film
  FOR EACH ROW EXECUTE FUNCTION tsvector_update_trigger('words', 'pg_catalog.english', 'title', 'description');
CREATE TABLE actor (
  actor_id serial PRIMARY KEY,
  first_name varchar(45) NOT NULL,
  last_name varchar(45) NOT NULL,
  last_update timestamptz NOT NULL DEFAULT now());
CREATE TABLE film_actor (
  actor_id integer NOT NULL REFERENCES actor,
  film_id integer NOT NULL REFERENCES film ON DELETE CASCADE,
  part text,
  PRIMARY KEY (actor_id, film_id));
CREATE TABLE customer (
  customer_id serial PRIMARY KEY,
  email text NOT NULL UNIQUE,
  name text NOT NULL,
  active boolean NOT NULL DEFAULT true,
  since date NOT NULL DEFAULT CURRENT_DATE);
CREATE TABLE inventory (
  inventory_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  film_id integer NOT NULL REFERENCES film);
CREATE TABLE rental (
  rental_id serial PRIMARY KEY,
  rented_at timestamptz NOT NULL DEFAULT now(),
  returned_at timestamptz,
  inventory_id bigint NOT NULL REFERENCES inventory,
  customer_id integer NOT NULL REFERENCES customer,
  CHECK (returned_at >= rented_at));
CREATE UNIQUE INDEX one_open_rental ON rental (inventory_id) WHERE returned_at IS NULL;
CREATE TABLE payment (
  payment_id bigint NOT NULL,
  paid_on date NOT NULL,
  rental_id integer NOT NULL REFERENCES rental,
  amount numeric(5,2) NOT NULL CHECK (amount > 0),
  PRIMARY KEY (paid_on, payment_id)) PARTITION BY RANGE (paid_on);
CREATE TABLE payment_2026 PARTITION OF payment FOR VALUES FROM ('2026-01-01') TO ('2027-01-01');
CREATE TABLE payment_later PARTITION OF payment DEFAULT;

CREATE VIEW film_list AS
  SELECT f.film_id, f.title, l.name AS language, f.rating, count(i.inventory_id) AS copies
    FROM film f
    JOIN language l USING (language_id)
    LEFT JOIN inventory i USING (film_id)
   GROUP BY f.film_id, f.title, l.name, f.rating;
CREATE VIEW active_customer AS SELECT customer_id, email, name FROM customer WHERE active;

INSERT INTO language (name) VALUES ('English'), ('Dutch');
INSERT INTO film (title, description, made_in, language_id, rating, extras) VALUES
  ('Academy Dinosaur', 'A drama of a teacher', 2006, 1, '12', '{trailers,"deleted scenes"}'),
  ('Zorro Ark', NULL, 2011, 2, '16', NULL),
  ('Silent Hours', 'A quiet night', NULL, 1, 'all', '{}');
INSERT INTO actor (first_name, last_name) VALUES ('Penelope', 'Guiness'), ('Nick', 'Wahlberg');
INSERT INTO film_actor VALUES (1, 1, 'the teacher'), (2, 1, NULL), (2, 3, 'the night');
INSERT INTO customer (email, name, active) VALUES
  ('ann@example.com', 'Ann', true), ('bob@example.com', 'Bob', true), ('old@example.com', 'Old', false);
INSERT INTO inventory (film_id) VALUES (1), (1), (2);
INSERT INTO rental (inventory_id, customer_id, rented_at, returned_at) VALUES
  (1, 1, '2026-01-02T10:00Z', '2026-01-05T10:00Z'), (1, 2, '2026-02-01T10:00Z', NULL);
INSERT INTO payment VALUES (1, '2026-01-05', 1, 4.99), (2, '2027-02-01', 2, 2.00);
