/** What a mail proves: tokens of one use, for an hour, for the address that they were sent to. Only their hashes are kept. */
import { param, sql } from '../sql.ts';
import type { Queryable } from '../store/database/contract.ts';
import { hashSecret, isSecret, newSecret } from './secrets.ts';

export type Purpose = 'verify_email' | 'reset_password';
export interface Proof {
  readonly userId: string;
  readonly email: string;
}

const HOURS = 1;

export async function issueProof(db: Queryable, purpose: Purpose, proof: Proof): Promise<string> {
  const token = newSecret();
  await db.run(
    sql`INSERT INTO "_auth_email_tokens" (hash, user_id, purpose, email, expires_at) VALUES (${param('text', hashSecret(token))}, ${param('uuid', proof.userId)}, ${param('text', purpose)}, ${param('text', proof.email)}, now() + ${param('float8', HOURS)} * interval '1 hour')`,
  );
  return token;
}

const valid = (purpose: Purpose, token: string) =>
  sql`t.hash = ${param('text', hashSecret(token))} AND t.purpose = ${param('text', purpose)} AND t.expires_at > now() AND u.id = t.user_id AND u.email = t.email AND NOT u.disabled`;

/** Does not use it up. */
export async function lookAtProof(db: Queryable, purpose: Purpose, token: string): Promise<Proof | undefined> {
  if (!isSecret(token)) return undefined;
  const [cells] = await db.rows(
    sql`SELECT u.id, u.email FROM "_auth_email_tokens" t, "users" u WHERE ${valid(purpose, token)}`,
  );
  return cells && { userId: cells[0]!, email: cells[1]! };
}

/** Of two that use the same token at once, one gets nothing. */
export async function useProof(db: Queryable, purpose: Purpose, token: string): Promise<Proof | undefined> {
  if (!isSecret(token)) return undefined;
  const [cells] = await db.rows(
    sql`DELETE FROM "_auth_email_tokens" t USING "users" u WHERE ${valid(purpose, token)} RETURNING u.id, u.email`,
  );
  return cells && { userId: cells[0]!, email: cells[1]! };
}

export async function dropProofs(db: Queryable, purpose: Purpose, userId: string): Promise<void> {
  await db.run(
    sql`DELETE FROM "_auth_email_tokens" WHERE user_id = ${param('uuid', userId)} AND purpose = ${param('text', purpose)}`,
  );
}
