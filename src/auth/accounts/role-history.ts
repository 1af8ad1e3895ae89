/**
 * Records changes of roles, which happen in several places: the audit entry is the difference from
 * the roles that were recorded last.
 */
import { namedCells, readTextArray } from '../../database/cells.ts';
import type { Queryable, Transaction } from '../../database/contract.ts';
import { sql, uuid } from '../../sql.ts';
import { type RequestClient, recordAudit } from '../audit-trail.ts';

export async function beginRoleHistory(db: Queryable, userId: string): Promise<void> {
  await db.run(sql`
    INSERT INTO "_auth_role_trail" (user_id, roles)
    SELECT id, roles FROM "users" WHERE id = ${uuid(userId)}
        ON CONFLICT (user_id) DO NOTHING`);
}

export interface RoleActor {
  readonly actorId?: string | undefined;
  readonly client?: RequestClient | undefined;
}

/** Records the user's roles if they differ. */
export async function recordRoles(tx: Transaction, userId: string, by: RoleActor = {}): Promise<void> {
  const id = uuid(userId);
  const [cells] = await tx.rows(sql`
    UPDATE "_auth_role_trail" t
       SET roles = u.roles
      FROM "users" u,
           (SELECT roles FROM "_auth_role_trail" WHERE user_id = ${id} FOR UPDATE) old
     WHERE t.user_id = ${id}
       AND u.id = ${id}
       AND t.roles IS DISTINCT FROM u.roles
 RETURNING old.roles, u.roles`);
  if (cells === undefined) return;
  const { from, to } = namedCells(cells, 'from', 'to');
  const detail = { from: readTextArray(from), to: readTextArray(to) };
  await recordAudit(tx, { event: 'roles_changed', userId, ...by, detail });
}
