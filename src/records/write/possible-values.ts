/** The values that can follow the stored one, for the error of a transition: callers see them who may read the stored value. */
import { isText } from '../../policy/scalar-types.ts';
import type { Check } from '../../schema/model/model.ts';
import { ident, join, sql } from '../../sql.ts';
import { type Reading, readable } from '../access-context.ts';
import { recordKeyIn } from '../record-key.ts';
import { scopeOf } from '../scope.ts';
import { STORED } from './written-row.ts';

export interface Following {
  readonly from: string | number;
  readonly to: readonly (string | number)[];
}
/** Without the fields that the caller may not read. */
export type PossibleValues = ReadonlyMap<Check, Following>;

interface StoredRecord {
  readonly collection: string;
  readonly id: string;
}

/** Reads a record that this transaction has locked. */
export async function possibleValues(
  reading: Reading,
  { collection: name, id }: StoredRecord,
  failed: readonly Check[],
): Promise<PossibleValues> {
  const { store, q, access } = reading;
  const { fields } = store.shape(name).collection;
  const asked = failed.flatMap((check) => {
    const field = check.transitions && fields.get(check.transitions.field);
    return field === undefined ? [] : [{ check, field }];
  });
  if (asked.length === 0) return new Map();
  const columns = asked.map(({ field }) => {
    const own = access.member(name, field.name, 'read');
    const isShown = own === undefined ? sql`TRUE` : own.where(STORED);
    return sql`CASE WHEN ${isShown} THEN ${ident(STORED, field.column)}::text END`;
  });
  const [cells = []] = await q.rows(sql`
    SELECT ${join(columns, ', ')}
      FROM ${scopeOf(reading)
        .from(name, STORED)
        .where(recordKeyIn(store.schema, name).is(STORED, id), readable(access, name, STORED))}`);
  const found = asked.flatMap(({ check, field }, i) => {
    const cell = cells[i] ?? undefined;
    if (cell === undefined) return [];
    const from = isText(field.type) ? cell : Number(cell);
    return [[check, { from, to: check.transitions?.possible.get(String(from)) ?? [] }] as const];
  });
  return new Map(found);
}
