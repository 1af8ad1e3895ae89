/** The bytes that a user may store: the largest quota of the user's roles. */
import { namedCells } from '../../database/cells.ts';
import type { Queryable, Transaction } from '../../database/contract.ts';
import { Problem } from '../../problem.ts';
import type { Uploads } from '../../schema/model/model.ts';
import { sql, uuid } from '../../sql.ts';

/** Returns bytes. Undefined: no limit. */
export function quotaOf({ quota }: Uploads, roles: readonly string[]): number | undefined {
  const sizes = ['default', ...roles].flatMap((role) => quota.get(role) ?? []);
  return sizes.length === 0 ? undefined : Math.max(...sizes);
}

export interface Claim {
  readonly userId: string;
  readonly quota: number;
  /** Bytes to add. */
  readonly size: number;
}

/** Returns the bytes of the files that the user uploaded. */
export async function usedBy(q: Queryable, userId: string): Promise<number> {
  const [row] = await q.rows(sql`
    SELECT coalesce(sum(size), 0)::text
      FROM "files"
     WHERE owner_id = ${uuid(userId)}`);
  return Number(namedCells(row, 'bytes').bytes);
}

/** Checks the quota before the bytes are read, so that a client need not send them in vain. */
export async function checkQuota(q: Queryable, { userId, quota, size }: Claim): Promise<void> {
  if ((await usedBy(q, userId)) + size > quota) throw overQuota(quota);
}

/**
 * Runs in the transaction that creates the record. The lock puts the uploads of a user in a row, so that
 * together they stay within the quota.
 */
export async function takeQuota(tx: Transaction, claim: Claim): Promise<void> {
  await tx.rows(sql`
    SELECT 1
      FROM "users"
     WHERE id = ${uuid(claim.userId)}
       FOR NO KEY UPDATE`);
  await checkQuota(tx, claim);
}

function overQuota(quota: number): Problem {
  const detail = `this file would exceed your quota of ${quota} bytes; delete other files first`;
  return new Problem('too_large', detail, { errors: [{ pointer: '/file', code: 'quota_exceeded', detail }] });
}
