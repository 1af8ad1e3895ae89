/** Finds the values of an import that a unique constraint would reject, with their lines. */
import type { Collection, Schema } from '../../schema/model/model.ts';
import { ident, raw, sql } from '../../sql.ts';
import { type RecordKey, recordKeyOf } from '../record-key.ts';
import { everyTenant, type ScopedRows } from '../scope.ts';
import { isExclusive, keyColumns, type StoredMember } from './members.ts';
import { comma, haveSameKey, type ImportCheck, isKeyGiven, STAGE } from './staging-tables.ts';
import { canSwap, contested } from './swapped-values.ts';

interface CheckedImport {
  readonly schema: Schema;
  readonly collection: Collection;
  readonly members: readonly StoredMember[];
}

export function uniqueChecks({ schema, collection, members }: CheckedImport): readonly ImportCheck[] {
  // The stored records `t` beside the staged records `s`.
  const stored = everyTenant(schema).from(collection.name, 't').beside(sql`${STAGE} AS s`);
  const key = recordKeyOf(collection);
  return members
    .filter(isExclusive)
    .flatMap((member) => [
      twice(member),
      member.name === 'id' ? takenId(key, stored) : taken(member, key, stored),
      ...(canSwap(member, schema, [collection]) ? [] : [stuck(member, collection, stored)]),
    ]);
}

function twice(member: StoredMember): ImportCheck {
  const key = comma(keyColumns(member).map((column) => ident('s', column)));
  // A stored record that keeps its value is found among the stored ones.
  const isNew = member.name === 'id' ? raw('TRUE') : sql`(NOT s._is_stored OR ${isKeyGiven(member)})`;
  const query = sql`
      SELECT _line, _first::text
        FROM (SELECT s._line, min(s._line) OVER (PARTITION BY ${key}) AS _first
                FROM ${STAGE} AS s
               WHERE ${ident('s', member.column)} IS NOT NULL AND ${isNew}) AS s
       WHERE _line > _first`;
  return [query, (line) => `${ruleOf(member)}; line ${line} has the same value`];
}

function takenId(key: RecordKey, stored: ScopedRows): ImportCheck {
  const query = sql`SELECT s._line, NULL FROM ${stored.where(sql`${key.of('t')} = ${key.of('s')}`, raw('NOT s._is_stored'))}`;
  return [query, () => 'a record with this id exists'];
}

/** Values of other records, which this import does not change. */
function taken(member: StoredMember, key: RecordKey, stored: ScopedRows): ImportCheck {
  const others = [
    haveSameKey(member, 't', 's'),
    sql`${key.of('t')} <> ${key.of('s')}`,
    sql`NOT EXISTS (SELECT 1 FROM ${STAGE} AS o WHERE o._is_stored AND ${key.of('o')} = ${key.of('t')} AND ${isKeyGiven(member, 'o')})`,
  ];
  const query = sql`SELECT s._line, ${key.of('t')}::text FROM ${stored.where(...others)}`;
  return [query, (id) => `${ruleOf(member)}; the record ${id} has this value`];
}

function stuck(member: StoredMember, collection: Collection, stored: ScopedRows): ImportCheck {
  const message = `\`${member.name}\`: it must have a value, and there is none to spare: records cannot exchange theirs`;
  return [sql`SELECT s._line, NULL FROM ${stored.where(contested(member, collection))}`, () => message];
}

const ruleOf = ({ name, uniqueWithin }: StoredMember): string =>
  uniqueWithin === undefined
    ? `\`${name}\` must be unique`
    : `\`${name}\` must be unique within \`${uniqueWithin.name}\``;
