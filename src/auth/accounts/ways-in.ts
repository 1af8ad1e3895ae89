/** The ways into an account. A proof of its address ends those of a stranger who registered it. */
import { namedCells } from '../../database/cells.ts';
import type { Transaction } from '../../database/contract.ts';
import { empty, param, sql, text, uuid } from '../../sql.ts';
import { deleteFactors } from '../factors/factor-rows.ts';
import { dropProofs } from '../mail/email-tokens.ts';

/** A reader of the mailbox alone must not pass a second factor, which ends only with the ways of an unproved address. */
interface Ending {
  readonly keepsFactor: boolean;
  /** An account without a password keeps its first identity, which made it. Default: false. */
  readonly keepsFirstIdentity?: boolean;
}

/**
 * Marks the account as its owner's. Returns false if it was before, or if a second factor has to confirm the sign-in
 * first.
 */
export async function claimBySignIn(tx: Transaction, userId: string): Promise<boolean> {
  const changed = await tx.run(sql`
    UPDATE "_auth_accounts"
       SET unclaimed = false
     WHERE user_id = ${uuid(userId)}
       AND unclaimed
       AND NOT EXISTS (SELECT 1 FROM "_auth_totp" WHERE user_id = ${uuid(userId)} AND confirmed_at IS NOT NULL)`);
  return changed > 0;
}

/** A reset of the password claims the account beside a second factor, too. Returns false if the account was claimed before. */
export async function claimByReset(tx: Transaction, userId: string): Promise<boolean> {
  const changed = await tx.run(sql`
    UPDATE "_auth_accounts" SET unclaimed = false WHERE user_id = ${uuid(userId)} AND unclaimed`);
  return changed > 0;
}

/**
 * Notes who has proved the address: its owner in a session of the account (`isClaimed`), or a reader of the mailbox
 * alone. Then the next proof by the mailbox ends what a stranger may have added.
 */
export async function markClaim(tx: Transaction, userId: string, isClaimed: boolean): Promise<void> {
  await tx.run(sql`
    UPDATE "_auth_accounts" SET unclaimed = ${param('bool', !isClaimed)} WHERE user_id = ${uuid(userId)}`);
}

/** Ends every way in. Sessions end apart. */
export async function dropAllWaysIn(tx: Transaction, userId: string): Promise<void> {
  // First, so that a change of address that is being mailed ends, too.
  await tx.run(sql`
    UPDATE "_auth_accounts"
       SET password_hash = NULL,
           password_changed_at = now()
     WHERE user_id = ${uuid(userId)}`);
  await dropWaysIn(tx, userId, { keepsFactor: false });
}

/** Ends the ways besides the password, with their sessions: a stranger may have held the account. */
export async function dropWaysIn(
  tx: Transaction,
  userId: string,
  { keepsFactor, keepsFirstIdentity }: Ending,
): Promise<void> {
  if (!keepsFactor) await deleteFactors(tx, userId);
  // An enrolment that was not confirmed is not a factor yet.
  await tx.run(sql`DELETE FROM "_auth_totp" WHERE user_id = ${uuid(userId)} AND confirmed_at IS NULL`);
  await tx.run(sql`DELETE FROM "_auth_passkey_challenges" WHERE user_id = ${uuid(userId)}`);
  await tx.run(sql`DELETE FROM "_auth_passkeys" WHERE user_id = ${uuid(userId)}`);
  const kept = keepsFirstIdentity ? await onlyWayIn(tx, userId) : undefined;
  await tx.run(sql`
    DELETE FROM "_auth_identities"
     WHERE user_id = ${uuid(userId)}
       ${kept === undefined ? empty : sql`AND NOT (issuer = ${text(kept.issuer)} AND subject = ${text(kept.subject)})`}`);
  await tx.run(sql`DELETE FROM "_auth_former_guests" WHERE user_id = ${uuid(userId)}`);
  await tx.run(sql`DELETE FROM "_auth_api_keys" WHERE created_by = ${uuid(userId)}`);
  await tx.run(sql`DELETE FROM "_auth_oauth_codes" WHERE user_id = ${uuid(userId)}`);
  await tx.run(sql`DELETE FROM "_auth_sessions" WHERE user_id = ${uuid(userId)} AND method <> 'password'`);
  // The stranger's own mailbox may hold a token that changes the address.
  await dropProofs(tx, 'change_email', userId);
}

/** The first identity of an account without a password. */
async function onlyWayIn(tx: Transaction, userId: string) {
  const [cells] = await tx.rows(sql`
    SELECT i.issuer, i.subject
      FROM "_auth_identities" i
      LEFT JOIN "_auth_accounts" a ON a.user_id = i.user_id
     WHERE i.user_id = ${uuid(userId)}
       AND a.password_hash IS NULL
     ORDER BY i.created_at
     LIMIT 1`);
  return cells && namedCells(cells, 'issuer', 'subject');
}
