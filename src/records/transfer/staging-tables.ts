/** The temporary tables of an import, and conditions on their rows. */
import type { Queryable } from '../../database/contract.ts';
import type { Scalar } from '../../policy/values.ts';
import { ident, join, raw, type Sql, type SqlType, sql, text } from '../../sql.ts';
import { keyColumns, type StoredMember } from './members.ts';
import type { ImportError } from './read-record.ts';

/**
 * The staged records: `_line`, `_given`, `_is_stored`, and a column for each member. A stored record
 * keeps its values of the members that the file leaves out.
 */
export const STAGE = raw('"bylaw_import"');
/** `line`, `relation`, `source` and `target` of each link. */
export const LINKS = raw('"bylaw_import_links"');

/** A column, and its value in each row. */
/** The column, its values, and the type that each is cast to. */
export type StagedValues = readonly [Sql, SqlType, readonly (Scalar | null)[], string?];

export const comma = (parts: readonly Sql[]): Sql => join(parts, ', ');

/** The condition that the file gives the member of the record `alias`. */
export const isGiven = (name: string, alias = 's'): Sql =>
  sql`${text(name)} = ANY(string_to_array(${ident(alias, '_given')}, ','))`;

/** The condition that the file gives the value, or the relation that it is unique within. */
export function isKeyGiven({ name, uniqueWithin }: StoredMember, alias = 's'): Sql {
  if (uniqueWithin === undefined) return isGiven(name, alias);
  return sql`(${isGiven(name, alias)} OR ${isGiven(uniqueWithin.name, alias)})`;
}

/** The rows `a` and `b` cannot both have their values of the member. */
export const haveSameKey = (member: StoredMember, a: string, b: string): Sql =>
  join(
    keyColumns(member).map((column) => sql`${ident(a, column)} = ${ident(b, column)}`),
    ' AND ',
  );

/** A query of the lines that have an error, and of what the message is about. */
export type ImportCheck = readonly [query: Sql, message: (cell: string) => string];

export async function findErrors(q: Queryable, checks: readonly ImportCheck[]): Promise<readonly ImportError[]> {
  const errors: ImportError[] = [];
  for (const [query, message] of checks) {
    const rows = await q.rows(query);
    errors.push(...rows.map(([line, cell]) => ({ line: Number(line), message: message(cell ?? '') })));
  }
  return errors;
}
