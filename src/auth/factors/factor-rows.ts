/** The rows of second factors. A code is spent by the statement that compares it. */
import type { Queryable, Transaction } from '../../database/contract.ts';
import { join, param, raw, type Sql, sql, text, uuid } from '../../sql.ts';

export type SecondFactorMethod = 'totp' | 'recovery';

/** A code that was right when it was read, and is not spent yet. */
export type MatchedCode =
  | { readonly method: 'totp'; readonly step: number }
  | { readonly method: 'recovery'; readonly hash: string };

export interface StoredTotp {
  /** Wrapped. */
  readonly secret: string;
  readonly isConfirmed: boolean;
}

/** Seconds in which an enrolment is confirmed. */
const ENROLMENT_SECONDS = 3_600;

export async function storedTotp(db: Queryable, userId: string): Promise<StoredTotp | undefined> {
  const [cells] = await db.rows(sql`
    SELECT secret, confirmed_at IS NOT NULL
      FROM "_auth_totp"
     WHERE user_id = ${uuid(userId)}
       AND (confirmed_at IS NOT NULL OR created_at > now() - ${param('float8', ENROLMENT_SECONDS)} * interval '1 second')`);
  return cells === undefined ? undefined : { secret: cells[0]!, isConfirmed: cells[1] === 't' };
}

/** Begins an enrolment, or begins it anew. Returns false if the user has a second factor. */
export async function insertTotp(db: Queryable, userId: string, secret: string): Promise<boolean> {
  const changed = await db.run(sql`
    INSERT INTO "_auth_totp" AS t (user_id, secret, created_at)
    VALUES (${uuid(userId)}, ${text(secret)}, now())
        ON CONFLICT (user_id) DO UPDATE
       SET secret = EXCLUDED.secret,
           created_at = EXCLUDED.created_at
     WHERE t.confirmed_at IS NULL`);
  return changed > 0;
}

/** Returns false if another enrolment was begun or confirmed meanwhile. */
export async function storeConfirmedTotp(
  tx: Transaction,
  userId: string,
  { secret }: StoredTotp,
  step: number,
): Promise<boolean> {
  const changed = await tx.run(sql`
    UPDATE "_auth_totp"
       SET confirmed_at = now(),
           last_step = ${param('int8', step)}
     WHERE user_id = ${uuid(userId)}
       AND secret = ${text(secret)}
       AND confirmed_at IS NULL`);
  return changed > 0;
}

/** `used`: the code, or a later one, was spent before. `void`: the sign-in that it finishes has ended. */
type Spending = 'spent' | 'used' | 'void';

/** A sign-in that a code finishes. */
export interface FinishedSignIn {
  /** Ends the challenge, if the condition holds. */
  readonly closing: (isSpent: Sql) => Sql;
  /** Parts of the statement that store the session. @param from the part without whose row they store nothing */
  readonly storing: (from: Sql) => Sql;
}

/** Spends the code, ends the challenge and stores the session by one statement: each costs a way to the database and back. */
export async function spendCode(
  tx: Transaction,
  userId: string,
  code: MatchedCode,
  finished?: FinishedSignIn,
): Promise<Spending> {
  const spending = code.method === 'totp' ? spentStep(userId, code.step) : spentHash(userId, code.hash);
  if (finished === undefined) return (await tx.run(spending)) > 0 ? 'spent' : 'used';
  const [cells] = await tx.rows(sql`
      WITH "spent" AS (${spending}
                       RETURNING 1),
           "closed" AS (${finished.closing(sql`EXISTS (SELECT 1 FROM "spent")`)}
                        RETURNING 1),
           ${finished.storing(raw('"closed"'))}
    SELECT EXISTS (SELECT 1 FROM "spent"), EXISTS (SELECT 1 FROM "closed")`);
  if (cells?.[0] !== 't') return 'used';
  return cells[1] === 't' ? 'spent' : 'void';
}

const spentStep = (userId: string, step: number): Sql => sql`
  UPDATE "_auth_totp"
     SET last_step = ${param('int8', step)}
   WHERE user_id = ${uuid(userId)}
     AND confirmed_at IS NOT NULL
     AND last_step < ${param('int8', step)}`;

const spentHash = (userId: string, hash: string): Sql => sql`
  DELETE FROM "_auth_recovery_codes"
   WHERE user_id = ${uuid(userId)}
     AND hash = ${text(hash)}`;

export async function replaceRecoveryCodes(tx: Transaction, userId: string, hashes: readonly string[]): Promise<void> {
  await tx.run(sql`DELETE FROM "_auth_recovery_codes" WHERE user_id = ${uuid(userId)}`);
  const rows = hashes.map((hash) => sql`(${uuid(userId)}, ${text(hash)})`);
  await tx.run(sql`INSERT INTO "_auth_recovery_codes" (user_id, hash) VALUES ${join(rows, ', ')}`);
}

/** The methods by which the user finishes a sign-in; empty: the user has no second factor. */
export async function factorMethods(db: Queryable, userId: string): Promise<readonly SecondFactorMethod[]> {
  const [cells] = await db.rows(sql`
    SELECT ${METHODS}
      FROM "_auth_totp" t
     WHERE t.user_id = ${uuid(userId)}
       AND t.confirmed_at IS NOT NULL`);
  return readMethods(cells?.[0]);
}

/** A column of the row `t` of `_auth_totp`, for `readMethods`. NULL: the user has no second factor. */
export const METHODS = raw(`
  CASE WHEN t.user_id IS NOT NULL
       THEN EXISTS (SELECT 1 FROM "_auth_recovery_codes" c WHERE c.user_id = t.user_id) END`);

export function readMethods(hasRecovery: string | null | undefined): readonly SecondFactorMethod[] {
  if (hasRecovery == null) return [];
  return hasRecovery === 't' ? ['totp', 'recovery'] : ['totp'];
}

/** Returns false if there was none. Only sessions by passkeys keep the mark of a second factor. */
export async function deleteFactors(tx: Transaction, userId: string): Promise<boolean> {
  const deleted = await tx.run(
    sql`DELETE FROM "_auth_totp" WHERE user_id = ${uuid(userId)} AND confirmed_at IS NOT NULL`,
  );
  await tx.run(sql`DELETE FROM "_auth_recovery_codes" WHERE user_id = ${uuid(userId)}`);
  await tx.run(sql`DELETE FROM "_auth_challenges" WHERE user_id = ${uuid(userId)}`);
  await tx.run(sql`
    UPDATE "_auth_sessions"
       SET second_factor = false
     WHERE user_id = ${uuid(userId)}
       AND method <> 'passkey'`);
  return deleted > 0;
}
