/** The accounts as administrators see them: who may sign in, and how. */
import { namedCells, readStrings } from '../../database/cells.ts';
import type { Cells, Queryable } from '../../database/contract.ts';
import { normalEmail } from '../../schema/model/normal-email.ts';
import { empty, join, param, sql, text, uuid } from '../../sql.ts';

export interface AccountQuery {
  /** The beginning of the address. */
  readonly email?: string | undefined;
  readonly userId?: string | undefined;
  /** An address: only later ones. */
  readonly after?: string | undefined;
  readonly limit: number;
}
export interface ListedAccount {
  readonly id: string;
  readonly email: string;
  readonly email_verified: boolean;
  /** As assigned, without included ones. */
  readonly roles: readonly string[];
  readonly disabled: boolean;
  readonly second_factor: boolean;
}

/** The accounts in the order of their addresses. */
export async function readAccounts(
  db: Queryable,
  { email, userId, after, limit }: AccountQuery,
): Promise<readonly ListedAccount[]> {
  const conditions = [
    ...(email === undefined ? [] : [sql`starts_with(u.email, ${text(normalEmail(email))})`]),
    ...(userId === undefined ? [] : [sql`u.id = ${uuid(userId)}`]),
    ...(after === undefined ? [] : [sql`u.email > ${text(normalEmail(after))}`]),
  ];
  const where = conditions.length === 0 ? empty : sql`WHERE ${join(conditions, ' AND ')}`;
  const rows = await db.rows(sql`
    SELECT u.id, u.email, u.email_verified, u.disabled, t.user_id IS NOT NULL, array_to_json(u.roles)::text
      FROM "users" u
      LEFT JOIN "_auth_totp" t ON t.user_id = u.id AND t.confirmed_at IS NOT NULL
     ${where}
     ORDER BY u.email
     LIMIT ${param('int8', limit)}`);
  return rows.map(listedAccount);
}

function listedAccount(cells: Cells): ListedAccount {
  const [, , isVerified, isDisabled, hasFactor, roles] = cells;
  return {
    ...namedCells(cells, 'id', 'email'),
    email_verified: isVerified === 't',
    roles: readStrings(roles),
    disabled: isDisabled === 't',
    second_factor: hasFactor === 't',
  };
}
