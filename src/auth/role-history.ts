/** Roles change by several doors; what the trail tells is found by comparing with what it told last. */
import { param, sql } from '../sql.ts';
import type { Database, Queryable } from '../store/database/contract.ts';
import { type Client, record } from './audit.ts';

export async function beginRoleTrail(db: Queryable, userId: string): Promise<void> {
  await db.run(
    sql`INSERT INTO "_auth_role_trail" (user_id, roles) SELECT id, roles FROM "users" WHERE id = ${param('uuid', userId)} ON CONFLICT (user_id) DO NOTHING`,
  );
}

/** Tells of the roles of a user where they are others than before. */
export async function tellRoles(
  db: Database,
  userId: string,
  by: { readonly actorId?: string; readonly client?: Client } = {},
): Promise<void> {
  const id = param('uuid', userId);
  await db.transaction(async (tx) => {
    const [cells] = await tx.rows(
      sql`UPDATE "_auth_role_trail" t SET roles = u.roles FROM "users" u, (SELECT roles FROM "_auth_role_trail" WHERE user_id = ${id} FOR UPDATE) old WHERE t.user_id = ${id} AND u.id = ${id} AND t.roles IS DISTINCT FROM u.roles RETURNING array_to_json(old.roles)::text, array_to_json(u.roles)::text`,
    );
    if (cells === undefined) return;
    const [from, to] = cells.map((cell) => JSON.parse(cell!) as string[]);
    await record(tx, { event: 'roles_changed', userId, ...by, detail: { from, to } });
  });
}
