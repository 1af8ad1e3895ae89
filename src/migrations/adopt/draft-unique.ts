/** `UNIQUE (team_id, slug)` of an existing table → `unique: { within: [team] }` of the last column's member. */
import type { DraftMember, DraftTable } from './draft-table.ts';
import { type ExistingConstraint, type ExistingTable, isUniqueColumn } from './existing-tables.ts';

const compositeKeys = ({ constraints }: ExistingTable): readonly ExistingConstraint[] =>
  constraints.filter(({ kind, columns }) => kind === 'u' && columns.length > 1);

/** The keys that no schema can declare. */
export function undeclarableKeys(table: ExistingTable): readonly ExistingConstraint[] {
  const required = new Set(table.columns.filter((column) => column.required).map(({ name }) => name));
  const all = compositeKeys(table);
  return all.filter(({ columns }, i) => {
    const last = columns.at(-1)!;
    const isRepeated = all.findIndex((other) => other.columns.at(-1) === last) !== i;
    return isRepeated || isUniqueColumn(table, last) || !columns.slice(0, -1).every((column) => required.has(column));
  });
}

export function withCompositeKeys({ existing, fields, relations, ...draft }: DraftTable): DraftTable {
  const names = new Map([...fields, ...relations].map(({ name, column }) => [column, name]));
  const within = new Map(
    compositeKeys(existing).map(({ columns }) => [
      columns.at(-1),
      columns.slice(0, -1).map((column) => names.get(column)),
    ]),
  );
  const keyed = (member: DraftMember): DraftMember => {
    const [first, ...more] = within.get(member.column ?? '') ?? [];
    if (first === undefined) return member;
    const isRelation = more.length === 0 && relations.some(({ name }) => name === first);
    return {
      ...member,
      declared: { ...member.declared, unique: isRelation ? `within_${first}` : { within: [first, ...more] } },
    };
  };
  return { ...draft, existing, fields: fields.map(keyed), relations: relations.map(keyed) };
}
