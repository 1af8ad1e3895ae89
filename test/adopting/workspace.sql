-- A workspace product: uuid keys, a schema of accounts, row security, jsonb, generated columns.
CREATE SCHEMA accounts;
CREATE SCHEMA workspace;
CREATE TABLE accounts.users (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  email varchar(255) NOT NULL UNIQUE,
  encrypted_password varchar(255),
  raw_meta jsonb,
  created_at timestamptz NOT NULL DEFAULT now());
CREATE FUNCTION accounts.uid() RETURNS uuid STABLE LANGUAGE sql AS
  $$ SELECT nullif(current_setting('request.sub', true), '')::uuid $$;

SET search_path = workspace;
CREATE TYPE seat AS ENUM ('owner', 'member', 'viewer');
CREATE TABLE profiles (
  id uuid PRIMARY KEY REFERENCES accounts.users ON DELETE CASCADE,
  handle text UNIQUE,
  updated_at timestamptz);
CREATE TABLE organizations (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  name text NOT NULL,
  plan text NOT NULL DEFAULT 'free' CHECK (plan IN ('free', 'team')),
  created_at timestamptz NOT NULL DEFAULT now());
CREATE TABLE members (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  organization_id uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
  user_id uuid NOT NULL REFERENCES accounts.users ON DELETE CASCADE,
  seat seat NOT NULL DEFAULT 'member',
  UNIQUE (organization_id, user_id));
CREATE TABLE projects (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  organization_id uuid NOT NULL REFERENCES organizations ON DELETE CASCADE,
  slug text NOT NULL,
  settings jsonb NOT NULL DEFAULT '{}',
  tags text[] NOT NULL DEFAULT '{}',
  archived_at timestamptz,
  created_at timestamptz NOT NULL DEFAULT now(),
  UNIQUE (organization_id, slug));
CREATE TABLE tasks (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(),
  project_id uuid NOT NULL REFERENCES projects ON DELETE CASCADE,
  assignee uuid REFERENCES accounts.users ON DELETE SET NULL,
  title text NOT NULL CHECK (length(title) > 0),
  title_length integer GENERATED ALWAYS AS (length(title)) STORED,
  estimate interval,
  place point,
  done boolean NOT NULL DEFAULT false,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now());
CREATE VIEW open_tasks AS SELECT id, project_id, title FROM tasks WHERE NOT done;

ALTER TABLE projects ENABLE ROW LEVEL SECURITY;
CREATE POLICY members_read ON projects FOR SELECT USING (
  EXISTS (SELECT 1 FROM members m WHERE m.organization_id = projects.organization_id AND m.user_id = accounts.uid()));
CREATE POLICY owners_write ON projects FOR UPDATE
  USING (organization_id IN (SELECT organization_id FROM members WHERE user_id = accounts.uid() AND seat = 'owner'))
  WITH CHECK (archived_at IS NULL);
ALTER TABLE tasks ENABLE ROW LEVEL SECURITY;

INSERT INTO accounts.users (id, email, raw_meta) VALUES
  ('00000000-0000-4000-8000-0000000000a1', 'ann@example.com', '{"name": "Ann"}'),
  ('00000000-0000-4000-8000-0000000000b1', 'bob@example.com', NULL),
  ('00000000-0000-4000-8000-0000000000c1', 'cem@example.com', NULL);
INSERT INTO profiles (id, handle) SELECT id, split_part(email, '@', 1) FROM accounts.users;
INSERT INTO organizations (id, name) VALUES
  ('00000000-0000-4000-8000-000000000001', 'Acme'), ('00000000-0000-4000-8000-000000000002', 'Bolt');
INSERT INTO members (organization_id, user_id, seat) VALUES
  ('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-0000000000a1', 'owner'),
  ('00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-0000000000b1', 'viewer'),
  ('00000000-0000-4000-8000-000000000002', '00000000-0000-4000-8000-0000000000c1', 'owner');
INSERT INTO projects (id, organization_id, slug, settings, tags) VALUES
  ('00000000-0000-4000-8000-000000000011', '00000000-0000-4000-8000-000000000001', 'rocket', '{"color": "red"}', '{urgent}'),
  ('00000000-0000-4000-8000-000000000012', '00000000-0000-4000-8000-000000000002', 'secret', '{}', '{}');
INSERT INTO tasks (project_id, title, assignee) VALUES
  ('00000000-0000-4000-8000-000000000011', 'Fuel', '00000000-0000-4000-8000-0000000000b1'),
  ('00000000-0000-4000-8000-000000000011', 'Launch', NULL),
  ('00000000-0000-4000-8000-000000000012', 'Hide', NULL);
