/**
 * Sign-ins that wait for the second factor. Its token names the first step that was passed; it is opaque, works
 * once, and only its hash is stored.
 */
import { namedCells } from '../../database/cells.ts';
import type { Database, Queryable } from '../../database/contract.ts';
import { param, type Sql, seconds, sql, text, uuid } from '../../sql.ts';
import type { User, Users } from '../accounts/users.ts';
import { auditing, type RequestClient } from '../audit-trail.ts';
import { hashSecret, isSecret, newSecret } from '../sessions/secrets.ts';
import { NOT_DISABLED, type SessionStart } from '../sessions/sessions.ts';
import type { SecondFactorMethod } from './factor-rows.ts';

/** Given in place of tokens. */
export interface Challenged {
  readonly challenge: string;
  readonly methods: readonly SecondFactorMethod[];
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

/** Opens and records a challenge. `methods`: those of the user. */
export async function openChallenge(
  db: Queryable,
  { userId, method, guest }: FirstStep,
  { methods, client }: { readonly methods: readonly SecondFactorMethod[]; readonly client: RequestClient },
): Promise<Challenged> {
  const challenge = newSecret();
  await db.run(sql`
    WITH "noted" AS (${auditing({ event: 'second_factor_asked', userId, client })})
    INSERT INTO "_auth_challenges" (hash, user_id, method, guest_session, expires_at)
    VALUES (${text(hashSecret(challenge))}, ${uuid(userId)}, ${text(method)}, ${uuid(guest ?? null)},
            now() + ${seconds(CHALLENGE_SECONDS)})`);
  return { challenge, methods };
}

/** A challenge as it was read. */
export interface ReadChallenge extends FirstStep {
  readonly hash: string;
  readonly user: User;
  /** The wrapped secret of the user's second factor. */
  readonly totpSecret: string | undefined;
  /** The wrong answers before. */
  readonly tries: number;
}

/** Undefined: the challenge is unknown, has expired, or has no try left. */
export async function readChallenge(db: Database, users: Users, challenge: string): Promise<ReadChallenge | undefined> {
  if (!isSecret(challenge)) return undefined;
  const hash = hashSecret(challenge);
  const [cells] = await db.rows(sql`
    SELECT c.method, c.tries, c.guest_session, t.secret, ${users.columns('u')}
      FROM "_auth_challenges" c
      JOIN "users" u ON u.id = c.user_id
      LEFT JOIN "_auth_totp" t ON t.user_id = c.user_id AND t.confirmed_at IS NOT NULL
     WHERE c.hash = ${text(hash)}
       AND c.expires_at > now()
       AND c.tries < ${param('int8', MAX_TRIES)}
       AND ${NOT_DISABLED}`);
  if (cells === undefined) return undefined;
  const { method, tries } = namedCells(cells, 'method', 'tries');
  const [guest, totpSecret] = [cells[2] ?? undefined, cells[3] ?? undefined];
  const user = users.read(cells, 4);
  const first = { userId: user.id, method: method as SessionStart['method'], guest };
  return { ...first, hash, user, tries: Number(tries), totpSecret };
}

/** Counts a wrong answer, before it is reported. */
export async function countWrongAnswer(db: Database, { hash }: ReadChallenge): Promise<void> {
  await db.run(sql`
    UPDATE "_auth_challenges"
       SET tries = tries + 1
     WHERE hash = ${text(hash)}
       AND tries < ${param('int8', MAX_TRIES)}`);
}

/**
 * Deletes the challenge, unless it was finished or voided meanwhile, or another answer was counted: of answers that
 * arrive at once, none is checked beyond the tries that answers one by one would have.
 */
export const closingChallenge = ({ hash, tries }: ReadChallenge, condition: Sql): Sql => sql`
    DELETE FROM "_auth_challenges"
     WHERE hash = ${text(hash)}
       AND tries = ${param('int8', tries)}
       AND expires_at > now()
       AND ${condition}`;
