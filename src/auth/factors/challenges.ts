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

/** A challenge as it was read. */
export interface ReadChallenge extends FirstStep {
  readonly hash: string;
  /** The wrong answers before. */
  readonly tries: number;
}

/** Undefined: the challenge is unknown, has expired, or has no try left. */
export async function readChallenge(db: Database, challenge: string): Promise<ReadChallenge | undefined> {
  if (!isSecret(challenge)) return undefined;
  const hash = hashSecret(challenge);
  const [cells] = await db.rows(sql`
    SELECT c.user_id, c.method, c.tries, c.guest_session
      FROM "_auth_challenges" c
      JOIN "users" u ON u.id = c.user_id
     WHERE c.hash = ${text(hash)}
       AND c.expires_at > now()
       AND c.tries < ${param('int8', MAX_TRIES)}
       AND ${NOT_DISABLED}`);
  if (cells === undefined) return undefined;
  const { userId, method, tries } = namedCells(cells, 'userId', 'method', 'tries');
  return { hash, userId, method: method as SessionStart['method'], tries: Number(tries), guest: cells[3] ?? undefined };
}

const NOT_DISABLED = raw('u.disabled IS NOT TRUE');

/** Counts a wrong answer, before it is reported. */
export async function countWrongAnswer(db: Database, { hash }: ReadChallenge): Promise<void> {
  await db.run(sql`
    UPDATE "_auth_challenges"
       SET tries = tries + 1
     WHERE hash = ${text(hash)}
       AND tries < ${param('int8', MAX_TRIES)}`);
}

/**
 * Returns false if the challenge was finished or voided meanwhile, or another answer was counted: of answers that
 * arrive at once, none is checked beyond the tries that answers one by one would have.
 */
export async function closeChallenge(tx: Transaction, { hash, tries }: ReadChallenge): Promise<boolean> {
  const closed = await tx.run(sql`
    DELETE FROM "_auth_challenges"
     WHERE hash = ${text(hash)}
       AND tries = ${param('int8', tries)}
       AND expires_at > now()`);
  return closed > 0;
}
