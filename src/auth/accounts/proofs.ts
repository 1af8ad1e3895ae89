/** Proofs that users gave. An account may change before a transaction uses the proof. */
import type { Transaction } from '../../database/contract.ts';
import { empty, sql, text, uuid } from '../../sql.ts';
import { METHODS, readMethods, type SecondFactorMethod } from '../factors/factor-rows.ts';

export interface Proof {
  readonly userId: string;
  /** The stored hash that a password matched. */
  readonly passwordHash?: string | undefined;
  /** The address that was given, or that a code was mailed to. */
  readonly email?: string | undefined;
  /** The identity at a provider. */
  readonly identity?: LinkedIdentity | undefined;
}

interface LinkedIdentity {
  readonly issuer: string;
  readonly subject: string;
}

/**
 * Locks the account until the transaction ends, and returns the user's methods of a second factor. Undefined: since the
 * proof, the account was deleted or disabled, or it has another password or address, or has lost the identity.
 * INVARIANT: a transaction that disables an account, or changes the subject of a proof, ends the sessions after that change.
 * So either this transaction waits for the change and finds it, or the change waits and ends the session of this one.
 */
export async function lockProved(
  tx: Transaction,
  { userId, passwordHash, email, identity }: Proof,
): Promise<readonly SecondFactorMethod[] | undefined> {
  const byPassword = passwordHash !== undefined;
  const ofAccount = sql`JOIN "_auth_accounts" a ON a.user_id = u.id AND a.password_hash = ${text(passwordHash ?? null)}`;
  const ofIdentity = sql`
      JOIN "_auth_identities" i
        ON i.user_id = u.id
       AND i.issuer = ${text(identity?.issuer ?? null)}
       AND i.subject = ${text(identity?.subject ?? null)}`;
  const [cells] = await tx.rows(sql`
    SELECT ${METHODS}
      FROM "users" u
      ${byPassword ? ofAccount : empty}
      ${identity === undefined ? empty : ofIdentity}
      LEFT JOIN "_auth_totp" t ON t.user_id = u.id AND t.confirmed_at IS NOT NULL
     WHERE u.id = ${uuid(userId)}
       AND NOT u.disabled
       ${email === undefined ? empty : sql`AND u.email = ${text(email)}`}
       FOR SHARE OF u
       ${byPassword ? sql`FOR NO KEY UPDATE OF a` : empty}
       ${identity === undefined ? empty : sql`FOR SHARE OF i`}`);
  return cells && readMethods(cells[0]);
}
