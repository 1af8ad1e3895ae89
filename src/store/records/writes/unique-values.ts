/** The values of a write that no other record of the collection may have. */
import { randomInt } from 'node:crypto';
import { datetimeOf } from '../../../policy/values.ts';
import { newRecordId } from '../../../record-id.ts';
import type { BelongsTo, Collection, Field } from '../../../schema/model.ts';
import type { ColumnValue } from './input.ts';

/** In the whole collection, or within a relation. */
export const isUnique = ({ unique, uniqueWithin }: Pick<Field, 'unique' | 'uniqueWithin'>): boolean =>
  unique || uniqueWithin !== undefined;

function uniqueMember({ fields, relations }: Collection, column: string): Field | BelongsTo | undefined {
  for (const member of [...fields.values(), ...relations.values()])
    if ('column' in member && member.column === column) return isUnique(member) ? member : undefined;
  return undefined;
}

export const setsUnique = (collection: Collection, values: readonly ColumnValue[]): boolean =>
  values.some(({ column, value }) => value !== null && uniqueMember(collection, column) !== undefined);

/** For an update: those that stay are as they are stored. */
export const withoutUniques = (collection: Collection, values: readonly ColumnValue[]): readonly ColumnValue[] =>
  values.filter(({ column }) => uniqueMember(collection, column) === undefined);

/** For a create: null, or, where that is not allowed, values that no record has. */
export const withFreeUniques = (collection: Collection, values: readonly ColumnValue[]): readonly ColumnValue[] =>
  values.map((each) => {
    const member = uniqueMember(collection, each.column);
    if (member === undefined || each.value === null) return each;
    return { ...each, value: member.required ? freeValue(each) : null };
  });

const RANDOM_RANGE = 2 ** 48 - 1;

/** A random value of the type; of bools and references there may be none that is free, so these stay. */
function freeValue({ type, value }: ColumnValue): ColumnValue['value'] {
  if (type === 'text') return newRecordId();
  if (type === 'int8') return randomInt(RANDOM_RANGE);
  if (type === 'float8') return randomInt(RANDOM_RANGE) / 1024;
  return type === 'timestamptz' ? datetimeOf(new Date(randomInt(RANDOM_RANGE))) : value;
}
