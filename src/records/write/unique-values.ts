/** The values of a write that no other record of the collection may have. */
import { randomInt } from 'node:crypto';
import { datetimeOf } from '../../policy/values.ts';
import { newRecordId } from '../../record-id.ts';
import { FIELD_KINDS } from '../../schema/fields/index.ts';
import type { BelongsTo, Collection, Field } from '../../schema/model/model.ts';
import type { SqlType } from '../../sql.ts';
import type { ColumnValue } from './input.ts';

/** In the whole collection, or within a relation. */
const isUnique = ({ unique, uniqueWithin }: Pick<Field, 'unique' | 'uniqueWithin'>): boolean =>
  unique || uniqueWithin !== undefined;

type KeyMember = Field | BelongsTo;

const keyMembersOf = ({ fields, relations }: Collection): readonly KeyMember[] =>
  [...fields.values(), ...relations.values()].filter((member) => 'column' in member);

const uniqueMembers = (collection: Collection): readonly KeyMember[] => keyMembersOf(collection).filter(isUnique);

/** The values that are unique within the relation. */
const valuesWithin = (collection: Collection, relation: string): readonly KeyMember[] =>
  uniqueMembers(collection).filter(({ uniqueWithin }) => uniqueWithin === relation);

/** What may be taken by another record: unique members, and relations with values that are unique within them. */
export function contestedMembers(collection: Collection): readonly KeyMember[] {
  const within = new Set(uniqueMembers(collection).map(({ uniqueWithin }) => uniqueWithin));
  return keyMembersOf(collection).filter((member) => isUnique(member) || within.has(member.name));
}

export function setsUnique(collection: Collection, values: readonly ColumnValue[]): boolean {
  const contested = new Set(contestedMembers(collection).map(({ column }) => column));
  return values.some(({ column, value }) => value !== null && contested.has(column));
}

/**
 * For an update: unique values stay as stored. Where the update sets the relation that they are
 * unique within, they become null or free, because rules of other records may ask about the
 * relation; if no value is free, the relation stays too.
 */
export function withoutUniques(collection: Collection, values: readonly ColumnValue[]): readonly ColumnValue[] {
  const written = new Map(values.map((each) => [each.column, each]));
  for (const member of contestedMembers(collection)) {
    if (isUnique(member)) written.delete(member.column);
  }
  const freed: ColumnValue[] = [];
  for (const { name, column } of keyMembersOf(collection)) {
    const inside = valuesWithin(collection, name);
    if (inside.length === 0 || !written.has(column)) continue;
    if (inside.every(canBeFree)) freed.push(...inside.map(freeOf));
    else written.delete(column);
  }
  return [...written.values(), ...freed];
}

/** For a create: null, or, where that is not allowed, values that no record has. */
export function withFreeUniques(collection: Collection, values: readonly ColumnValue[]): readonly ColumnValue[] {
  const members = new Map(uniqueMembers(collection).map((member) => [member.column, member]));
  return values.map((each) => {
    const member = members.get(each.column);
    return member === undefined || each.value === null || !canBeFree(member) ? each : freeOf(member);
  });
}

/** A bool or a reference may have no free value. */
const canBeFree = (member: KeyMember): boolean => !member.required || FREE_BY_TYPE[typeOf(member)] !== undefined;

function freeOf(member: KeyMember): ColumnValue {
  const type = typeOf(member);
  return { column: member.column, type, value: member.required ? (FREE_BY_TYPE[type]?.() ?? null) : null };
}

const typeOf = (member: KeyMember): SqlType => ('kind' in member ? 'uuid' : FIELD_KINDS[member.type].sqlType);

const RANDOM_RANGE = 2 ** 48 - 1;

/** Random values. */
const FREE_BY_TYPE: Readonly<Partial<Record<SqlType, () => ColumnValue['value']>>> = {
  text: newRecordId,
  int8: () => randomInt(RANDOM_RANGE),
  float8: () => randomInt(RANDOM_RANGE) / 1024,
  timestamptz: () => datetimeOf(new Date(randomInt(RANDOM_RANGE))),
};
