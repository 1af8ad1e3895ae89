/** How much a user may keep: the largest quota of the user's roles. */
import { Problem } from '../problem.ts';
import type { Uploads } from '../schema/model.ts';
import { param, sql } from '../sql.ts';
import type { Queryable, Transaction } from '../store/database/contract.ts';

/** Undefined: without limit. Bytes. */
export function quotaOf({ quota }: Uploads, roles: readonly string[]): number | undefined {
  const sizes = ['default', ...roles].flatMap((role) => quota.get(role) ?? []);
  return sizes.length === 0 ? undefined : Math.max(...sizes);
}

export interface Claim {
  readonly userId: string;
  readonly quota: number;
  /** Bytes that come on top. */
  readonly size: number;
}

async function usedBy(q: Queryable, userId: string): Promise<number> {
  const [row] = await q.rows(
    sql`SELECT coalesce(sum(size), 0)::text FROM "files" WHERE owner_id = ${param('uuid', userId)}`,
  );
  return Number(row![0]);
}

/** Before the bytes are read, so that they need not be sent for nothing. */
export async function checkQuota(q: Queryable, { userId, quota, size }: Claim): Promise<void> {
  if ((await usedBy(q, userId)) + size > quota) throw overQuota(quota);
}

/** In the transaction that adds the record. Uploads of one user come here one after the other, so that together they cannot take more than one could alone. */
export async function takeQuota(tx: Transaction, claim: Claim): Promise<void> {
  await tx.rows(sql`SELECT 1 FROM "users" WHERE id = ${param('uuid', claim.userId)} FOR NO KEY UPDATE`);
  await checkQuota(tx, claim);
}

function overQuota(quota: number): Problem {
  const detail = `with this file you would keep more than your ${quota} bytes; delete others first`;
  return new Problem('too_large', detail, { errors: [{ pointer: '/file', code: 'quota_exceeded', detail }] });
}
