-- A trading company: keys of letters, composite keys, a tree of employees, names with spaces, views.
CREATE SCHEMA trading;
SET search_path = trading;
CREATE TABLE categories (category_id smallint PRIMARY KEY, category_name varchar(15) NOT NULL, picture bytea);
CREATE TABLE customers (
  customer_id varchar(5) PRIMARY KEY,
  company_name varchar(40) NOT NULL,
  country varchar(15));
CREATE TABLE employees (
  employee_id smallint PRIMARY KEY,
  last_name varchar(20) NOT NULL,
  birth_date date,
  reports_to smallint REFERENCES employees);
CREATE TABLE products (
  product_id smallint PRIMARY KEY,
  product_name varchar(40) NOT NULL,
  sku text NOT NULL UNIQUE,
  category_id smallint REFERENCES categories,
  unit_price real,
  discontinued integer NOT NULL DEFAULT 0);
CREATE TABLE orders (
  order_id integer PRIMARY KEY,
  customer_id varchar(5) REFERENCES customers,
  employee_id smallint REFERENCES employees,
  ordered_on timestamp,
  freight numeric(10,2) DEFAULT 0,
  legacy money);
CREATE TABLE order_details (
  order_id integer NOT NULL REFERENCES orders ON DELETE CASCADE,
  product_id smallint NOT NULL REFERENCES products,
  quantity smallint NOT NULL CHECK (quantity > 0),
  discount numeric(4,3) NOT NULL DEFAULT 0 CHECK (discount BETWEEN 0 AND 1),
  PRIMARY KEY (order_id, product_id));
CREATE TABLE deliveries (
  delivery_no serial PRIMARY KEY,
  order_id integer NOT NULL,
  product_id smallint NOT NULL,
  sku text REFERENCES products (sku),
  FOREIGN KEY (order_id, product_id) REFERENCES order_details);
CREATE TABLE gift_notes (
  gift_no serial PRIMARY KEY,
  order_id integer,
  product_id smallint,
  note text,
  UNIQUE (product_id, order_id),
  FOREIGN KEY (order_id, product_id) REFERENCES order_details);
CREATE TABLE "Price Notes" ("Note No" integer PRIMARY KEY, "Unit" text, product_id smallint REFERENCES products);
CREATE TABLE samples (
  sample_id serial PRIMARY KEY,
  code char(6),
  weight real,
  measured timestamp,
  exact numeric,
  raw json,
  doc jsonb DEFAULT '{}',
  names varchar[],
  short_names varchar(3)[],
  marks text[]);
CREATE TABLE audit_lines (at timestamptz, line text);
CREATE VIEW order_totals AS
  SELECT order_id, sum(quantity)::bigint AS pieces FROM order_details GROUP BY order_id;
CREATE VIEW dutch_customers AS SELECT * FROM customers WHERE country = 'NL';
CREATE VIEW headcount AS SELECT count(*) AS people FROM employees;

INSERT INTO samples (code, weight, measured, exact, raw, names, marks) VALUES
  ('ab', 0.1, '2026-01-31 09:30:00.5', 12.345, '{"b":1, "a": [true]}', '{x,"y z"}', '{m,NULL}'),
  (NULL, NULL, NULL, NULL, NULL, NULL, '{}');
INSERT INTO categories VALUES (1, 'Beverages'), (2, 'Seafood');
INSERT INTO customers VALUES ('ALFKI', 'Alfreds Futterkiste', 'DE'), ('DUTCH', 'Kaas & Co', 'NL');
INSERT INTO employees VALUES (1, 'Davolio', '1968-12-08', NULL), (2, 'Fuller', '1972-02-19', 1), (3, 'King', NULL, 2);
INSERT INTO products VALUES (1, 'Chai', 'CH-1', 1, 18, 0), (2, 'Konbu', 'KO-2', 2, 6.5, 1);
INSERT INTO orders VALUES (10248, 'ALFKI', 2, '1996-07-04', 32.38, 1), (10249, 'DUTCH', 3, '1996-07-05', 11.61, NULL);
INSERT INTO order_details VALUES (10248, 1, 12, 0.05), (10248, 2, 10, 0), (10249, 1, 9, 0);
INSERT INTO deliveries (order_id, product_id, sku) VALUES (10248, 1, 'CH-1');
INSERT INTO gift_notes (order_id, product_id, note) VALUES (10248, 2, 'for you');
INSERT INTO "Price Notes" VALUES (7, 'box', 1);
