/** A million documents of 10,000 users in 1,000 teams, with the indexes that a service gives them. The same rows every time. */
import type pg from 'pg';

const id = (kind: number) => (n: number) => `0000000${kind}-0000-4000-8000-${n.toString(16).padStart(12, '0')}`;
export const ID = { user: id(1), team: id(2), tag: id(3), document: id(4) };
const made = (kind: number, n: string) => `('0000000${kind}-0000-4000-8000-' || lpad(to_hex(${n}), 12, '0'))::uuid`;

export async function fillMillion(client: pg.Client): Promise<void> {
  const statements = [
    'CREATE TABLE users (id uuid PRIMARY KEY, email text COLLATE "C" NOT NULL, email_verified boolean NOT NULL)',
    'CREATE TABLE teams (id uuid PRIMARY KEY, name text COLLATE "C" NOT NULL, open boolean NOT NULL, lead_id uuid, parent_id uuid)',
    'CREATE TABLE memberships (id uuid PRIMARY KEY, role text COLLATE "C" NOT NULL, team_id uuid NOT NULL, user_id uuid NOT NULL)',
    'CREATE TABLE documents_tags (document_id uuid NOT NULL, tag_id uuid NOT NULL)',
    'CREATE EXTENSION pg_trgm',
    `CREATE TABLE documents (id uuid PRIMARY KEY, title text COLLATE "C" NOT NULL, status text COLLATE "C" NOT NULL, score bigint, rating float8,
       pinned boolean NOT NULL, due_at timestamptz, created_at timestamptz NOT NULL, owner_id uuid, team_id uuid)`,
    `INSERT INTO users SELECT ${made(1, 'n')}, 'user' || n || '@example.com', n % 3 > 0 FROM generate_series(1, 10000) n`,
    `INSERT INTO teams SELECT ${made(2, 'n')}, 'team ' || n, n % 4 = 0, ${made(1, 'n % 101 * 43 + 22')},
       CASE WHEN n > 10 THEN ${made(2, 'n / 10')} END FROM generate_series(1, 1000) n`,
    // Three teams a user, so that users are in teams they own nothing of.
    `INSERT INTO memberships
     SELECT gen_random_uuid(), (ARRAY['owner','editor','reader'])[1 + n % 3], ${made(2, '(n * 13 + n / 10000) % 1000 + 1')}, ${made(1, 'n % 10000 + 1')}
       FROM generate_series(1, 30000) n`,
    // A multiplier prime to the count scatters values over the table.
    `INSERT INTO documents SELECT ${made(4, 'n')}, 'document ' || n, (ARRAY['published','draft','review','archived'])[1 + (n::int8 * 7919 % 4)::int],
       CASE WHEN n % 10 = 0 THEN NULL ELSE n::int8 * 7919 % 1000 END, (n::int8 * 104729 % 1000000) / 10000.0, n % 10 = 3,
       CASE WHEN n % 7 = 0 THEN NULL ELSE '2024-01-01T00:00:00Z'::timestamptz + (n::int8 * 7919 % 1000000) * interval '1 minute' END,
       '2023-01-01T00:00:00Z'::timestamptz + n * interval '1 minute',
       CASE WHEN n % 20 = 0 THEN NULL ELSE ${made(1, '(n::int8 * 7919 % 10000)::int + 1')} END,
       CASE WHEN n % 9 = 0 THEN NULL ELSE ${made(2, '(n::int8 * 104729 % 1000)::int + 1')} END
       FROM generate_series(1, 1000000) n`,
    `INSERT INTO documents_tags SELECT ${made(4, 'n')}, ${made(3, '(n::int8 * 7919 % 500)::int + 1')} FROM generate_series(1, 1000000, 2) n`,
    ...['title', 'status', 'score', 'rating', 'due_at', 'created_at', 'owner_id', 'team_id'].map(
      (column) => `CREATE INDEX ON documents (${column}, id)`,
    ),
    'ALTER TABLE documents ADD COLUMN "title~folded" text COLLATE "C" GENERATED ALWAYS AS (lower(title)) STORED',
    'CREATE INDEX ON documents USING gin ("title~folded" gin_trgm_ops)',
    'CREATE INDEX ON teams (parent_id)',
    'CREATE INDEX ON memberships (user_id)',
    'CREATE INDEX ON memberships (team_id)',
    'CREATE INDEX ON teams (lead_id)',
    'CREATE UNIQUE INDEX ON documents_tags (document_id, tag_id)',
    'CREATE INDEX ON documents_tags (tag_id, document_id)',
    'VACUUM ANALYZE',
  ];
  for (const statement of statements) await client.query(statement);
}
