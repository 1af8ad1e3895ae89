/**
 * Hooks for updates and deletes of records of `users` by the collection routes: they write the audit
 * trail and protect the last admin.
 */
import { namedCells, readStrings } from '../../database/cells.ts';
import type { Queryable, Transaction } from '../../database/contract.ts';
import { present } from '../../invariant.ts';
import type { Hooks } from '../../records/access-context.ts';
import { Refusal } from '../../refusal.ts';
import { effectiveRoles } from '../../schema/model/effective-roles.ts';
import type { Schema } from '../../schema/model/model.ts';
import { param, type Sql, sql, uuid } from '../../sql.ts';
import { recordAudit } from '../audit-trail.ts';
import type { Authenticator } from '../sessions/authenticator.ts';
import { recordRoles } from './role-history.ts';

export type UserHooks = Required<Pick<Hooks, 'onUserChanged' | 'onUsersDeleted' | 'afterUsersChanged'>>;

/** 'admin' in ASCII. Transactions that could leave the service without an admin run one at a time. */
const LAST_ADMIN_LOCK = 0x61_64_6d_69_6e;

export function userHooks(schema: Schema, authenticator: Authenticator): UserHooks {
  const isAdmin = (roles: readonly string[]): boolean => effectiveRoles(schema, roles).includes('admin');
  return {
    async onUserChanged({ id, rolesBefore, rolesAfter, by }, tx) {
      if (isAdmin(rolesBefore) && !isAdmin(rolesAfter)) await requireOtherAdmin(tx, schema, [id]);
      await recordRoles(tx, id, by);
    },

    async onUsersDeleted({ ids, cause, by }, tx) {
      const users = await tx.rows(sql`
        SELECT id, email, array_to_json(roles)::text
          FROM "users"
         WHERE id = ANY(${param('uuid[]', ids)})`);
      const admins = users.filter(([, , roles]) => isAdmin(readStrings(roles)));
      if (admins.length > 0) await requireOtherAdmin(tx, schema, ids);
      for (const cells of users) {
        const { id, email } = namedCells(cells, 'id', 'email');
        const cascadedFrom = cause.collection === 'users' && cause.id === id ? undefined : cause;
        await recordAudit(tx, {
          event: 'user_deleted',
          userId: id,
          ...by,
          detail: { email, cascaded_from: cascadedFrom },
        });
      }
    },

    async afterUsersChanged(ids) {
      for (const id of ids) await authenticator.userChanged(id);
    },
  };
}

/**
 * Called when the users `ids` stop being admins. The lock makes a concurrent transaction of this
 * kind wait for this one to end, and then see its result. Throws `last_admin`.
 */
export async function requireOtherAdmin(tx: Transaction, schema: Schema, ids: readonly string[]): Promise<void> {
  await tx.rows(sql`SELECT pg_advisory_xact_lock(${param('int8', LAST_ADMIN_LOCK)})`);
  const own = param('uuid[]', ids);
  const [cells] = await tx.rows(sql`
    SELECT EXISTS (SELECT 1 FROM "users" WHERE id = ANY(${own}) AND NOT disabled),
           EXISTS (SELECT 1 FROM "users" WHERE id <> ALL(${own}) AND NOT disabled
                                           AND roles && ${param('text[]', adminRoles(schema))})`);
  const [wasEnabled, hasOther] = present(cells, 'a row of the two').map((cell) => cell === 't');
  if (wasEnabled && !hasOther) {
    const detail = 'no enabled admin would be left; make another user an admin first';
    throw new Refusal('last_admin', detail);
  }
}

/** Locks as `requireOtherAdmin` does: of transactions that make a first admin, one succeeds. */
export async function hasOtherAdmin(tx: Transaction, schema: Schema, id: string): Promise<boolean> {
  await tx.rows(sql`SELECT pg_advisory_xact_lock(${param('int8', LAST_ADMIN_LOCK)})`);
  return hasAdmin(tx, schema, sql`id <> ${uuid(id)}`);
}

/** Returns true if an enabled admin exists. `where`: a condition on the row of `users`. */
export async function hasAdmin(db: Queryable, schema: Schema, where: Sql = sql`true`): Promise<boolean> {
  const [cells] = await db.rows(sql`
    SELECT EXISTS (SELECT 1 FROM "users" WHERE NOT disabled
                                           AND roles && ${param('text[]', adminRoles(schema))}
                                           AND ${where})`);
  return cells?.[0] === 't';
}

const adminRoles = (schema: Schema): readonly string[] =>
  [...schema.roles.keys()].filter((name) => effectiveRoles(schema, [name]).includes('admin'));
