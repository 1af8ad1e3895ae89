/**
 * Tokens in mails prove an address: each works once, within an hour, for the address it was sent to.
 * Only their hashes are stored.
 */
import { namedCells } from '../../database/cells.ts';
import type { Queryable } from '../../database/contract.ts';
import { seconds, sql, text, uuid } from '../../sql.ts';
import { hashSecret, isSecret, newSecret } from '../sessions/secrets.ts';

export type Purpose = 'verify_email' | 'reset_password' | 'change_email';

export interface MailProof {
  readonly userId: string;
  readonly email: string;
}

/** Seconds. */
export const PROOF_LIFETIME = 3600;

/** `newEmail`: the address that a change gives. */
export async function issueProof(
  db: Queryable,
  purpose: Purpose,
  { userId, email }: MailProof,
  newEmail: string | null = null,
): Promise<string> {
  const token = newSecret();
  await db.run(sql`
    INSERT INTO "_auth_email_tokens" (hash, user_id, purpose, email, new_email, expires_at)
    VALUES (${text(hashSecret(token))}, ${uuid(userId)}, ${text(purpose)}, ${text(email)},
            ${text(newEmail)}, now() + ${seconds(PROOF_LIFETIME)})`);
  return token;
}

/** Tests the rows `t` and `u`. */
export const isValidProof = (purpose: Purpose, token: string) => sql`
          t.hash = ${text(hashSecret(token))}
      AND t.purpose = ${text(purpose)}
      AND t.expires_at > now()
      AND u.id = t.user_id
      AND u.email = t.email
      AND NOT u.disabled`;

/** Reads the proof without using the token up. */
export async function findProof(db: Queryable, purpose: Purpose, token: string): Promise<MailProof | undefined> {
  if (!isSecret(token)) return undefined;
  const [cells] = await db.rows(sql`
    SELECT u.id, u.email
      FROM "_auth_email_tokens" t, "users" u
     WHERE ${isValidProof(purpose, token)}`);
  return cells && namedCells(cells, 'userId', 'email');
}

/** Uses the token up; the second of two concurrent uses gets undefined. */
export async function useProof(db: Queryable, purpose: Purpose, token: string): Promise<MailProof | undefined> {
  if (!isSecret(token)) return undefined;
  const [cells] = await db.rows(sql`
    DELETE FROM "_auth_email_tokens" t
     USING "users" u
     WHERE ${isValidProof(purpose, token)}
 RETURNING u.id, u.email`);
  return cells && namedCells(cells, 'userId', 'email');
}

export async function dropProofs(db: Queryable, purpose: Purpose, userId: string): Promise<void> {
  await db.run(sql`
    DELETE FROM "_auth_email_tokens"
     WHERE user_id = ${uuid(userId)}
       AND purpose = ${text(purpose)}`);
}
