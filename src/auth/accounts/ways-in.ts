/** The ways into an account besides its password. */
import type { Transaction } from '../../database/contract.ts';
import { sql, uuid } from '../../sql.ts';
import { deleteFactors } from '../factors/factor-rows.ts';
import { dropProofs } from '../mail/email-tokens.ts';

/** Runs at the first proof of an address: a stranger who held the account before it loses every way in. */
export async function dropWaysIn(tx: Transaction, userId: string): Promise<void> {
  await deleteFactors(tx, userId);
  // An enrolment that was not confirmed is not a factor yet.
  await tx.run(sql`DELETE FROM "_auth_totp" WHERE user_id = ${uuid(userId)}`);
  await tx.run(sql`DELETE FROM "_auth_passkey_challenges" WHERE user_id = ${uuid(userId)}`);
  await tx.run(sql`DELETE FROM "_auth_passkeys" WHERE user_id = ${uuid(userId)}`);
  await tx.run(sql`DELETE FROM "_auth_identities" WHERE user_id = ${uuid(userId)}`);
  await tx.run(sql`DELETE FROM "_auth_former_guests" WHERE user_id = ${uuid(userId)}`);
  await tx.run(sql`DELETE FROM "_auth_api_keys" WHERE created_by = ${uuid(userId)}`);
  // The stranger's own mailbox may hold a token that changes the address.
  await dropProofs(tx, 'change_email', userId);
}
