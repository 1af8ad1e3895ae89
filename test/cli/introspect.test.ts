/** `bylaw introspect`: a draft that passes `bylaw check`, and whose migration of that database only adds. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { parse } from 'yaml';
import { isolatedUrl } from '../support/postgres.ts';
import { run } from '../support/process.ts';

const TABLES = `
CREATE TYPE mood AS ENUM ('happy', 'sad');
CREATE TABLE users (
  id uuid PRIMARY KEY DEFAULT gen_random_uuid(), email text NOT NULL UNIQUE, nickname text, active boolean NOT NULL DEFAULT true,
  created_at timestamptz NOT NULL DEFAULT now());
CREATE TABLE teams (id uuid PRIMARY KEY, title text COLLATE "C" NOT NULL UNIQUE, seats bigint NOT NULL DEFAULT 5, "null" text COLLATE "C");
CREATE TABLE projects (
  id uuid PRIMARY KEY, team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE, lead_id uuid REFERENCES users ON DELETE SET NULL,
  parent_id uuid REFERENCES projects, name text COLLATE "C" NOT NULL DEFAULT 'it''s new',
  state text COLLATE "C" NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'it''s done')),
  rating double precision CHECK (rating > 0), starts_at timestamptz DEFAULT now(), updated_at timestamptz NOT NULL DEFAULT now());
CREATE INDEX ON projects (name);
CREATE UNIQUE INDEX ON projects (team_id, name);
CREATE TABLE badges (id uuid PRIMARY KEY, user_id uuid NOT NULL UNIQUE REFERENCES users ON DELETE CASCADE);
CREATE TABLE "Regions" (id uuid PRIMARY KEY, code text COLLATE "C");
CREATE TABLE project_members (project_id uuid REFERENCES projects, user_id uuid REFERENCES users, PRIMARY KEY (project_id, user_id));
CREATE TABLE orders (id uuid PRIMARY KEY, name varchar(80) NOT NULL, quantity integer, feeling mood, placed timestamp, meta jsonb, tags text[],
  rate numeric);
CREATE TABLE lines (id uuid PRIMARY KEY, order_id uuid NOT NULL REFERENCES orders);
CREATE TABLE zones (id uuid PRIMARY KEY, code text COLLATE "C" NOT NULL UNIQUE);
CREATE TABLE parcels (id uuid PRIMARY KEY, zone_id text REFERENCES zones (code));
CREATE TABLE seats (id uuid PRIMARY KEY, room bigint, place bigint, UNIQUE (room, place));
CREATE TABLE stalls (id uuid PRIMARY KEY, row bigint NOT NULL, place bigint, team_id uuid NOT NULL REFERENCES teams ON DELETE CASCADE,
  name text COLLATE "C", UNIQUE (row, team_id, place), UNIQUE (team_id, name));
CREATE TABLE reserved (id uuid PRIMARY KEY, "limit" bigint, expand text, owner uuid REFERENCES users);
CREATE TABLE legacy (id serial PRIMARY KEY, note text);
CREATE TABLE rates (region text, day date, rate numeric, PRIMARY KEY (region, day));
CREATE TABLE kinds (
  id uuid PRIMARY KEY, born date NOT NULL DEFAULT CURRENT_DATE, ended date DEFAULT '9999-12-31', opens time DEFAULT '09:30', code uuid, data bytea,
  price numeric(12,2) NOT NULL DEFAULT 0.50);
CREATE TABLE heap (note text);
ALTER TABLE teams ENABLE ROW LEVEL SECURITY;
CREATE POLICY fit ON teams FOR SELECT USING (seats > 0);
CREATE TABLE auth (id uuid PRIMARY KEY);
CREATE TABLE "Sales ""orders""" (
  id uuid PRIMARY KEY, "Total Amount" bigint NOT NULL UNIQUE, "Größe" double precision, "2nd note" text COLLATE "C", "a.b" bigint, a_b bigint,
  team uuid REFERENCES teams ON DELETE CASCADE, team_id uuid REFERENCES teams ON DELETE CASCADE);
CREATE TABLE "Sales lines" (id uuid PRIMARY KEY, "order" uuid NOT NULL REFERENCES "Sales ""orders""" ON DELETE CASCADE, _own bigint);
CREATE VIEW open_projects AS SELECT * FROM projects WHERE state = 'open';
INSERT INTO users VALUES ('00000000-0000-4000-8000-000000000001', 'ada@example.com', 'ada');
INSERT INTO teams VALUES ('00000000-0000-4000-8000-000000000002', 'Engines');
INSERT INTO projects (id, team_id) VALUES ('00000000-0000-4000-8000-000000000003', '00000000-0000-4000-8000-000000000002');
`;

const nothing = { access: {} };
/** The declarations of the draft. */
const DECLARED = {
  regions: { table: 'Regions', fields: { code: { type: 'string' } }, ...nothing },
  auth_table: { table: 'auth', ...nothing },
  sales_orders: {
    table: 'Sales "orders"',
    fields: {
      Total_Amount: { type: 'int', required: true, unique: true, column: 'Total Amount' },
      Grosse: { type: 'float', column: 'Größe' },
      x_2nd_note: { type: 'string', column: '2nd note' },
      a_b_value: { type: 'int', column: 'a.b' },
      a_b: { type: 'int' },
    },
    relations: {
      team: { kind: 'belongs_to', collection: 'teams', on_delete: 'cascade', column: 'team' },
      team_reference: { kind: 'belongs_to', collection: 'teams', on_delete: 'cascade', column: 'team_id' },
    },
    ...nothing,
  },
  reserved: {
    fields: { limit_value: { type: 'int', column: 'limit' }, expand_value: { type: 'string', column: 'expand' } },
    relations: { owner: { kind: 'belongs_to', collection: 'users', on_delete: 'restrict', column: 'owner' } },
    ...nothing,
  },
  badges: {
    relations: {
      user: { kind: 'belongs_to', collection: 'users', required: true, unique: true, on_delete: 'cascade' },
    },
    ...nothing,
  },
  kinds: {
    fields: {
      born: { type: 'date', required: true, default: '@today' },
      ended: { type: 'date', default: '9999-12-31' },
      opens: { type: 'time', default: '09:30:00' },
      code: { type: 'uuid' },
      data: { type: 'bytes' },
      price: { type: 'decimal', required: true, precision: 12, scale: 2, default: '0.50' },
    },
    ...nothing,
  },
  projects: {
    fields: {
      name: { type: 'string', required: true, index: true, default: "it's new" },
      state: { type: 'string', required: true, enum: ['open', "it's done"], default: 'open' },
      rating: { type: 'float' },
      starts_at: { type: 'datetime', default: '@now' },
    },
    relations: {
      team: { kind: 'belongs_to', collection: 'teams', required: true, on_delete: 'cascade' },
      lead: { kind: 'belongs_to', collection: 'users', on_delete: 'set_null' },
      parent: { kind: 'belongs_to', collection: 'projects', on_delete: 'restrict' },
      projects: { kind: 'has_many', collection: 'projects', via: 'parent' },
    },
    ...nothing,
  },
  teams: {
    fields: {
      title: { type: 'string', required: true, unique: true },
      seats: { type: 'int', required: true, default: 5 },
      null: { type: 'string' },
    },
    relations: {
      sales_orders: { kind: 'has_many', collection: 'sales_orders', via: 'team' },
      sales_orders_by_team_reference: { kind: 'has_many', collection: 'sales_orders', via: 'team_reference' },
      projects: { kind: 'has_many', collection: 'projects', via: 'team' },
      stalls: { kind: 'has_many', collection: 'stalls', via: 'team' },
    },
    ...nothing,
  },
  stalls: {
    fields: {
      row: { type: 'int', required: true },
      place: { type: 'int', unique: { within: ['row', 'team'] } },
      name: { type: 'string', unique: 'within_team' },
    },
    relations: { team: { kind: 'belongs_to', collection: 'teams', required: true, on_delete: 'cascade' } },
    ...nothing,
  },
  users: {
    fields: { nickname: { type: 'string' }, active: { type: 'bool', required: true, default: true } },
    relations: {
      badges: { kind: 'has_one', collection: 'badges', via: 'user' },
      projects: { kind: 'has_many', collection: 'projects', via: 'lead' },
      reserved: { kind: 'has_many', collection: 'reserved', via: 'owner' },
    },
    ...nothing,
  },
  zones: { fields: { code: { type: 'string', required: true, unique: true } }, ...nothing },
};

/** The comments of the draft, in their order. */
const COMMENTS = [
  'left out: column Sales lines._own: names that begin with `_` or end with `~folded` belong to the service',
  '  # bylaw cannot own it: its primary key is `id` of type integer; expected `id` of type uuid',
  '  # bylaw cannot own it: it is a view',
  '      # bylaw cannot own it: it is character varying(80): ALTER TABLE "orders" ALTER COLUMN "name" TYPE text COLLATE "C"\n' +
    '      name: { type: string, required: true, max: 80 }',
  'it is integer: ALTER TABLE "orders" ALTER COLUMN "quantity" TYPE bigint',
  'TYPE text COLLATE "C" USING "feeling"::text\n      feeling: { type: string, enum: [ happy, sad ] }',
  `TYPE timestamptz USING "placed" AT TIME ZONE 'UTC'\n      placed: { type: datetime, stored_as: timestamp }`,
  'meta: { type: json }',
  'a decimal has at most 38 digits: change it to numeric(p,s)',
  'zone: { kind: belongs_to, collection: zones, on_delete: restrict, references: code }',
  '  # PostgreSQL also holds CHECK ((rating > (0)::double precision))',
  '  # PostgreSQL also holds unique (team_id, name)',
  '  # bylaw cannot own it: a value is unique within required members, and by one key, so UNIQUE (room, place) would be dropped',
  '  # its owner has row security with one policy; they do not hold for the user of this URL',
  '  #   fit for SELECT using (seats > 0)',
  '  # users sign in by the lower-case form of `email`',
  '#   table heap: it has no primary key, and no unique column that is never null',
  'id: [ region, day ]',
];
const NOT_OWNED = [
  'sales_lines',
  'legacy',
  'lines',
  'open_projects',
  'orders',
  'parcels',
  'project_members',
  'rates',
  'seats',
];

const DIFFERENCES = `kinds.code: \`type\` is uuid in the file, and text in the database
kinds.price: \`scale\` is 2 in the file, and 3 in the database
kinds.twice: the file lacks the column \`twice\` of kinds: { type: decimal, precision: 12, scale: 2, read_only: true }
open_projects: the database lacks the table open_projects
parcels: the database lacks the table parcels
projects.name: \`required\` is true in the file, and false in the database
projects.state: \`enum\` is [ open, it's done ] in the file, and [ open, shut ] in the database
projects.rating: the database lacks the column \`rating\` of projects
projects.starts_at: \`unique\` is false in the file, and true in the database
projects.team: \`references\` is teams in the file, and not given in the database
projects.due_on: the file lacks the column \`due on\` of projects: { type: date, column: due on }
zones: the database lacks the table zones

the file lacks 2, the database lacks 4, 6 differ
`;

/** The schema that `isolatedUrl` made. */
const schemaOf = (url: string): string => /search_path(?:=|%3D)(\w+)/.exec(url)![1]!;

describe.skipIf(inject('postgresUrl') === '')('a database of twenty-three tables', () => {
  let url: string;
  let client: pg.Client;
  let folder: string;
  let schema: string;
  beforeAll(async () => {
    url = await isolatedUrl(inject('postgresUrl'));
    client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query(TABLES);
    folder = await mkdtemp(join(tmpdir(), 'bylaw-introspect-'));
    schema = join(folder, 'bylaw.yaml');
  });
  afterAll(async () => {
    await client.end();
    await rm(folder, { recursive: true, force: true });
  });
  const bylaw = (...args: readonly string[]) => run({ args });
  const introspect = (...flags: readonly string[]) => bylaw('introspect', url, schemaOf(url), ...flags);
  const migrate = (step: string) => bylaw('migrate', step, '--schema', schema, '--database-url', url);
  const columns = async (): Promise<readonly string[]> => {
    const { rows } = await client.query(`
      SELECT table_name || '.' || column_name || ' ' || data_type || ' ' || is_nullable AS text
        FROM information_schema.columns WHERE table_schema = current_schema() ORDER BY 1`);
    return rows.map(({ text }) => text);
  };

  test('the draft declares fitting columns, and gives reasons for the others', async () => {
    const { code, stdout, stderr } = await introspect('--managed');
    const owned = '20 collections; bylaw owns 11 of them; 1 table with row security of the owner';
    expect([code, stderr]).toEqual([0, `${owned}; left out: 1 table, 1 column\n`]);
    const { collections } = parse(stdout);
    expect(collections).toMatchObject(DECLARED);
    const unmanaged = Object.keys(collections).filter((name) => collections[name].managed === false);
    expect([Object.keys(DECLARED).filter((name) => unmanaged.includes(name)), unmanaged.sort()]).toEqual([
      [],
      NOT_OWNED.sort(),
    ]);
    const places = COMMENTS.map((text) => stdout.indexOf(text));
    expect(COMMENTS.filter((_, i) => places[i] === -1)).toEqual([]);
    await writeFile(schema, stdout);
    expect(await bylaw('check', '--schema', schema)).toMatchObject({ code: 0 });
  });

  test('the migration to the draft drops nothing, and is complete', async () => {
    const before = await columns();
    const { stdout } = await migrate('plan');
    const ofCollections = stdout
      .split(';\n')
      .filter((statement) => !/^(?:ALTER|CREATE) TABLE (?:IF NOT EXISTS )?"(?:_auth|bylaw)_/.test(statement));
    expect(ofCollections.join('\n')).not.toMatch(/DESTRUCTIVE|DROP (?:TABLE|COLUMN|NOT NULL)|\bTYPE\b|SET NOT NULL/i);
    // NO ACTION comes back as RESTRICT.
    const dropped = [...stdout.matchAll(/DROP CONSTRAINT "(\w+)"/g)].map(([, name]) => name);
    expect(dropped).toEqual(['projects_parent_id_fkey', 'reserved_owner_fkey']);
    expect(dropped.filter((name) => !stdout.toLowerCase().includes(`add constraint "${name}"`))).toEqual([]);
    expect(await migrate('apply')).toMatchObject({ code: 0 });
    const after = await columns();
    expect(before.filter((column) => !after.includes(column))).toEqual([]);
    const { rows } = await client.query(`
      SELECT nickname, title, name, state, email_verified, u.created_at = t.created_at AS stamped
        FROM users u, teams t, projects`);
    expect(rows).toEqual([
      {
        nickname: 'ada',
        title: 'Engines',
        name: "it's new",
        state: 'open',
        email_verified: false,
        stamped: expect.any(Boolean),
      },
    ]);
    expect((await migrate('plan')).stdout).toContain('-- nothing to do: the database matches the schema\n');
  });

  test('--diff names what the file lacks, what the database lacks, and what differs', async () => {
    const left = await introspect('--diff', schema, '--json');
    expect([left.code, JSON.parse(left.stdout)]).toEqual([0, []]);
    const same = await introspect('--diff', schema);
    expect(same).toMatchObject({ code: 0, stdout: 'no difference\n' });
    await client.query(`
      DROP VIEW open_projects;
      ALTER TABLE projects DROP COLUMN rating, ALTER name DROP NOT NULL, ADD UNIQUE (starts_at), DROP CONSTRAINT projects_team_id_fkey,
        DROP CONSTRAINT projects_state_check, ADD CHECK (state IN ('open', 'shut')), ADD "due on" date;
      ALTER TABLE kinds ALTER price TYPE numeric(12,3), ALTER code TYPE text, ADD twice numeric(12,2) GENERATED ALWAYS AS (price * 2) STORED;
      DROP TABLE parcels, zones`);
    const { code, stdout } = await introspect('--diff', schema);
    expect([code, stdout]).toEqual([1, DIFFERENCES]);
  });

  test('a file with an error is not compared', async () => {
    const broken = join(folder, 'broken.yaml');
    await writeFile(broken, 'collections: { a: { fields: { b: text } } }');
    const { code, stdout, stderr } = await introspect('--diff', broken);
    expect([code, stdout]).toEqual([1, '']);
    expect(stderr).toContain('did you mean `string`?');
  });
});

describe.skipIf(inject('postgresUrl') === '')('a database whose users do not fit', () => {
  test('the draft reports the clash at the top, and adopts no table that references users', async () => {
    const url = await isolatedUrl(inject('postgresUrl'));
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query(`
      CREATE TABLE users (id uuid PRIMARY KEY, email varchar(80) NOT NULL UNIQUE, password text);
      CREATE TABLE notes (id uuid PRIMARY KEY, author_id uuid REFERENCES users);`);
    await client.end();
    const { code, stdout } = await run({ args: ['introspect', url, schemaOf(url), '--managed'] });
    expect([code, Object.keys(parse(stdout).collections)]).toEqual([0, ['notes']]);
    expect(stdout).toContain('#   table users: the service has a table of that name in its schema: ');
    expect(stdout).toContain('`email` of users is text to the service, but character varying(80) here');
    expect(stdout).toContain('users.password: its name is that of a secret');
    expect(stdout).toContain('left out: foreign key notes (author_id): it references users, which is not in the draft');
  });
});

describe.skipIf(inject('postgresUrl') === '')('a table whose times have fewer decimals', () => {
  test('the draft is served as it is, and the database rounds finer values', async () => {
    const url = await isolatedUrl(inject('postgresUrl'));
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query(`
      CREATE TABLE visits (id uuid PRIMARY KEY, planned timestamp(6), due timestamptz(3), opens time(0),
        created_at timestamptz(0) NOT NULL DEFAULT now(), updated_at timestamptz(3) NOT NULL DEFAULT now())`);
    await client.end();
    const { code, stdout } = await run({ args: ['introspect', url, schemaOf(url)] });
    const { visits } = parse(stdout).collections;
    expect([code, visits.timestamps, visits.fields]).toEqual([
      0,
      undefined,
      { planned: { type: 'datetime', stored_as: 'timestamp' }, due: { type: 'datetime' }, opens: { type: 'time' } },
    ]);
    const folder = await mkdtemp(join(tmpdir(), 'bylaw-introspect-'));
    try {
      const [schema, source] = [join(folder, 'bylaw.yaml'), join(folder, 'visits.ndjson')];
      await writeFile(schema, stdout);
      const instant = '2026-01-02T03:04:05.678912Z';
      const id = '00000000-0000-4000-8000-000000000001';
      await writeFile(source, JSON.stringify({ id, planned: instant, due: instant, opens: '09:30:00.6' }));
      const bylaw = (...args: readonly string[]) => run({ args: [...args, '--schema', schema, '--database-url', url] });
      expect(await bylaw('migrate', 'apply')).toMatchObject({ code: 0 });
      expect(await bylaw('import', 'visits', source)).toMatchObject({ code: 0 });
      expect(JSON.parse((await bylaw('export', 'visits')).stdout)).toMatchObject({
        planned: instant,
        due: '2026-01-02T03:04:05.679000Z',
        opens: '09:30:01',
      });
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  });
});

describe.skipIf(inject('postgresUrl') === '')('a table with secrets', () => {
  test('the draft leaves out a secret in any way of writing its name', async () => {
    const secrets = ['passwordHash', 'passwordhash', 'pwd', 'userPwd', 'APIKey', 'Reset Token', 'client-secret'];
    const others = ['passwordless', 'saltine', 'keyApi', 'title'];
    const url = await isolatedUrl(inject('postgresUrl'));
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    const columns = [...secrets, ...others].map((name) => `"${name}" text`);
    await client.query(`CREATE TABLE accounts (id uuid PRIMARY KEY, ${columns.join(', ')})`);
    await client.end();
    const { code, stdout } = await run({ args: ['introspect', url, schemaOf(url)] });
    expect([code, Object.keys(parse(stdout).collections.accounts.fields)]).toEqual([0, others]);
    expect(secrets.filter((name) => !stdout.includes(`accounts.${name}: its name is that of a secret`))).toEqual([]);
  });
});

test.each([
  [['introspect'], 2],
  [['introspect', 'mysql://x'], 2],
])('a wrong call is reported: %j', async (args, code) => {
  const ended = await run({ args });
  expect([ended.code, ended.stdout]).toEqual([code, '']);
  expect(ended.stderr).toMatch(/URL/);
});
