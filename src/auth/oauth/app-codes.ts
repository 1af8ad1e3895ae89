/**
 * Codes that a native app exchanges for a session. A code is opaque, works once within a minute, and only with the
 * verifier of the app that started the sign-in (RFC 7636): another app that sees it has nothing.
 */
import { createHash } from 'node:crypto';
import { namedCells } from '../../database/cells.ts';
import type { Database } from '../../database/contract.ts';
import { seconds, sql, text, uuid } from '../../sql.ts';
import { hashSecret, isSecret, newSecret } from '../sessions/secrets.ts';

const CODE_SECONDS = 60;

/** The form of a challenge: SHA-256 in base64url. */
export const isChallenge = isSecret;

export async function keepCode(db: Database, userId: string, challenge: string): Promise<string> {
  const code = newSecret();
  await db.run(sql`
    INSERT INTO "_auth_oauth_codes" (hash, user_id, challenge, expires_at)
    VALUES (${text(hashSecret(code))}, ${uuid(userId)}, ${text(challenge)}, now() + ${seconds(CODE_SECONDS)})`);
  return code;
}

export interface TakenCode {
  readonly userId: string;
  /** The verifier is that of the app that started the sign-in. */
  readonly isOwn: boolean;
}

/** Spends the code, also with a wrong verifier. Undefined: it is unknown, has expired, or was spent before. */
export async function takeCode(db: Database, code: string, verifier: string): Promise<TakenCode | undefined> {
  if (!isSecret(code)) return undefined;
  const [cells] = await db.write(sql`
    DELETE FROM "_auth_oauth_codes" c
     USING "users" u
     WHERE c.hash = ${text(hashSecret(code))}
       AND c.expires_at > now()
       AND u.id = c.user_id
       AND u.disabled IS NOT TRUE
 RETURNING c.user_id, c.challenge`);
  if (cells === undefined) return undefined;
  const { userId, challenge } = namedCells(cells, 'userId', 'challenge');
  return { userId, isOwn: challenge === createHash('sha256').update(verifier).digest('base64url') };
}
