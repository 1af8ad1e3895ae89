import { raw, type Sql } from '../sql.ts';

/** Answers kept under idempotency keys. Earlier builds kept theirs in `bylaw_idempotency`, which nothing reads. */
export const IDEMPOTENCY_TABLES: readonly Sql[] = [
  raw(`CREATE TABLE IF NOT EXISTS "bylaw_kept_answers" (
  user_id uuid NOT NULL REFERENCES "users" (id) ON DELETE CASCADE,
  path text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  body_hash text NOT NULL,
  answer text,
  created_at timestamptz NOT NULL DEFAULT now(),
  PRIMARY KEY (user_id, path, key)
)`),
  raw('CREATE INDEX IF NOT EXISTS "bylaw_kept_answers_created_at" ON "bylaw_kept_answers" (created_at)'),
];
