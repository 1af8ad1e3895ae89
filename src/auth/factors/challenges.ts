/**
 * Sign-ins that wait for the second factor. Its token names the first step that was passed; it is opaque, works
 * once, and only its hash is stored.
 */
import { namedCells } from '../../database/cells.ts';
import type { Database, Transaction } from '../../database/contract.ts';
import { param, raw, seconds, sql, text, uuid } from '../../sql.ts';
import { hashSecret, isSecret, newSecret } from '../sessions/secrets.ts';
import type { SessionStart } from '../sessions/sessions.ts';
import { type FactorMethod, factorMethods } from './factor-rows.ts';

/** Given in place of tokens. */
export interface Challenged {
  readonly challenge: string;
  readonly methods: readonly FactorMethod[];
}

/** The first step that was passed. */
export interface FirstStep {
  readonly userId: string;
  readonly method: SessionStart['method'];
  /** The session of a guest, which the sign-in ends. */
  readonly guest: string | undefined;
}

const CHALLENGE_SECONDS = 300;
const MAX_TRIES = 5;

/** Undefined: the user has no second factor. */
export async function openChallenge(tx: Transaction, first: FirstStep): Promise<Challenged | undefined> {
  const { userId, method, guest } = first;
  const methods = await factorMethods(tx, userId);
  if (methods.length === 0) return undefined;
  const challenge = newSecret();
  await tx.run(sql`
    INSERT INTO "_auth_challenges" (hash, user_id, method, guest_session, expires_at)
    VALUES (${text(hashSecret(challenge))}, ${uuid(userId)}, ${text(method)}, ${uuid(guest ?? null)},
            now() + ${seconds(CHALLENGE_SECONDS)})`);
  return { challenge, methods };
}

/** Counts a try, before it is checked. Undefined: the challenge is unknown, has expired, or has no try left. */
export async function tryChallenge(db: Database, challenge: string): Promise<FirstStep | undefined> {
  if (!isSecret(challenge)) return undefined;
  const [cells] = await db.write(sql`
    UPDATE "_auth_challenges" c
       SET tries = c.tries + 1
      FROM "users" u
     WHERE c.hash = ${text(hashSecret(challenge))}
       AND c.expires_at > now()
       AND c.tries < ${param('int8', MAX_TRIES)}
       AND u.id = c.user_id
       AND ${NOT_DISABLED}
 RETURNING c.user_id, c.method, c.guest_session`);
  if (cells === undefined) return undefined;
  const { userId, method } = namedCells(cells, 'userId', 'method');
  return { userId, method: method as SessionStart['method'], guest: cells[2] ?? undefined };
}

const NOT_DISABLED = raw('u.disabled IS NOT TRUE');

/** Returns false if it was finished or voided meanwhile. */
export async function closeChallenge(tx: Transaction, challenge: string): Promise<boolean> {
  return (await tx.run(sql`DELETE FROM "_auth_challenges" WHERE hash = ${text(hashSecret(challenge))}`)) > 0;
}
