/** A change of the factors of a user, written with its notice and its audit entry. */
import type { Transaction } from '../../database/contract.ts';
import type { Users } from '../accounts/users.ts';
import { type AuditEntry, recordAudit } from '../audit-trail.ts';
import type { Outbox } from '../mail/outbox.ts';

interface NoticeParts {
  readonly users: Users;
  readonly outbox: Outbox;
}

/** The caller wakes the outbox after the commit. */
export async function recordFactorChange(
  tx: Transaction,
  { users, outbox }: NoticeParts,
  entry: AuditEntry & { readonly userId: string },
): Promise<void> {
  const { email: address } = await users.known(tx, entry.userId);
  await outbox.insert(tx, {
    kind: 'second_factor_changed',
    address,
    detail: { client: entry.client, change: entry.event },
  });
  await recordAudit(tx, entry);
}
