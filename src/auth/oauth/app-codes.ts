/**
 * Codes that a native app exchanges for a session. A code is opaque, works once within a minute, and only with the
 * verifier of the app that started the sign-in (RFC 7636): another app that sees it has nothing.
 */
import { createHash } from 'node:crypto';
import { namedCells } from '../../database/cells.ts';
import type { Queryable } from '../../database/contract.ts';
import { seconds, sql, text, uuid } from '../../sql.ts';
import { hashSecret, isSecret, newSecret } from '../sessions/secrets.ts';

const CODE_SECONDS = 60;

/** The form of a challenge: SHA-256 in base64url. */
export const isChallenge = isSecret;

export async function keepCode(db: Queryable, userId: string, challenge: string): Promise<string> {
  const code = newSecret();
  await db.run(sql`
    INSERT INTO "_auth_oauth_codes" (hash, user_id, challenge, expires_at)
    VALUES (${text(hashSecret(code))}, ${uuid(userId)}, ${text(challenge)}, now() + ${seconds(CODE_SECONDS)})`);
  return code;
}

export interface FoundCode {
  readonly userId: string;
  /** The verifier is that of the app that started the sign-in. */
  readonly isOwn: boolean;
}

/** Undefined: the code is unknown, has expired, or was spent before. */
export async function findCode(db: Queryable, code: string, verifier: string): Promise<FoundCode | undefined> {
  if (!isSecret(code)) return undefined;
  const [cells] = await db.rows(sql`
    SELECT c.user_id, c.challenge
      FROM "_auth_oauth_codes" c
      JOIN "users" u ON u.id = c.user_id
     WHERE c.hash = ${text(hashSecret(code))}
       AND c.expires_at > now()
       AND u.disabled IS NOT TRUE`);
  if (cells === undefined) return undefined;
  const { userId, challenge } = namedCells(cells, 'userId', 'challenge');
  return { userId, isOwn: challenge === createHash('sha256').update(verifier).digest('base64url') };
}

/** Returns false if the code was spent, or voided, meanwhile. */
export async function spendAppCode(db: Queryable, code: string): Promise<boolean> {
  const spent = await db.run(sql`DELETE FROM "_auth_oauth_codes" WHERE hash = ${text(hashSecret(code))}`);
  return spent > 0;
}
