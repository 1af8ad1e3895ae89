/** `table` and `column` of the file: names in the database that are not those of the collection and its members. */
import { keyOf, STAMPS } from '../../policy/types.ts';
import type { DocumentPath, Report } from '../file/issue.ts';
import type { CollectionShape } from '../file/shape.ts';
import type { Collection } from './model.ts';
import { SYSTEM_COLUMNS } from './names.ts';

/** PostgreSQL truncates a longer name. A folded copy appends to the name of its column. */
const MOST_NAME_BYTES = { table: 63, column: 56 };

interface NamedCollection extends Pick<Collection, 'name' | 'kind' | 'key' | 'fields' | 'relations'> {
  readonly shape: CollectionShape;
  readonly path: DocumentPath;
}

const ISSUE = 'invalid_stored_name';

export const tableOf = ({ name, shape }: Pick<NamedCollection, 'name' | 'shape'>): string => shape.table ?? name;

export function checkTables(declared: ReadonlyMap<string, NamedCollection>, report: Report): void {
  // A table without a name of its own has that of its collection, so it is the other one that has to change.
  const inOrder = [...declared.values()].toSorted(
    (a, b) => Number(b.shape.table !== undefined) - Number(a.shape.table !== undefined),
  );
  const taken = new Map(inOrder.map((each) => [tableOf(each), each.name]));
  for (const each of declared.values())
    for (const relation of each.relations.values())
      if (relation.kind === 'many_to_many') taken.set(relation.linkTable, `${each.name}.${relation.name}`);
  for (const { name, kind, shape, path } of declared.values()) {
    const { table, timestamps, managed } = shape;
    const ofService = `\`${kind}\` is a table of the service, which has its names in every database`;
    if (kind !== 'plain' && timestamps !== undefined)
      report({ code: ISSUE, message: ofService, path: [...path, 'timestamps'] });
    if (kind !== 'plain' && managed === false) report({ code: ISSUE, message: ofService, path: [...path, 'managed'] });
    if (table === undefined) continue;
    const invalid = (message: string): void => report({ code: ISSUE, message, path: [...path, 'table'] });
    const holder = taken.get(table);
    const issue = tableNameIssue(table, shape);
    if (kind !== 'plain') invalid(ofService);
    else if (holder !== name) invalid(`\`${table}\` is the table of \`${holder}\` already`);
    else if (issue !== undefined) invalid(issue);
  }
}

/** Why a column of this name cannot be that of a member. */
export function columnNameIssue(column: string, managed = true): string | undefined {
  if (SYSTEM_COLUMNS.includes(column)) return 'PostgreSQL gives every table that column';
  if (managed && /^_|~folded$/.test(column))
    return 'names that begin with `_` or end with `~folded` belong to the service';
  return storedNameIssue('column', column);
}

export function checkColumns({ key, fields, relations, path, shape }: NamedCollection, report: Report): void {
  const { column: own } = keyOf({ key });
  const ownIssue = columnNameIssue(own);
  if (ownIssue !== undefined) report({ code: ISSUE, message: ownIssue, path: [...path, 'id', 'column'] });
  const holders = new Map<string, string>([[own, 'id']]);
  for (const [part, members] of [
    ['fields', fields],
    ['relations', relations],
  ] as const) {
    for (const member of members.values()) {
      if (!('column' in member) || isOfSeveral(shape, member.name)) continue;
      const { name, column } = member;
      const place = STAMPS.includes(name) ? ['timestamps', name] : [part, name, 'column'];
      const invalid = (message: string): void => report({ code: ISSUE, message, path: [...path, ...place] });
      const holder = holders.get(column);
      holders.set(column, name);
      const issue =
        holder === undefined
          ? columnNameIssue(column, shape.managed)
          : `\`${column}\` is the column of \`${holder}\` already`;
      if (issue !== undefined) invalid(issue);
    }
  }
}

/** The members of the reference have the columns. */
function isOfSeveral({ relations }: CollectionShape, name: string): boolean {
  const relation = relations?.[name];
  return relation?.kind === 'belongs_to' && relation.fields !== undefined;
}

function tableNameIssue(table: string, { distribute, managed = true }: CollectionShape): string | undefined {
  const parts = table.split('.');
  if (parts.length > 2) return 'expected the name of a table, or `schema.table`';
  if (parts.length > 1 && distribute !== undefined)
    return 'a collection with `distribute` has its table in the current schema; expected the name of a table alone';
  if ((managed ? /^(?:_|bylaw_)/i : /^bylaw_/i).test(parts.at(-1)!))
    return 'names that begin with `_` or `bylaw_` belong to the service';
  return parts.map((part) => storedNameIssue('table', part)).find((issue) => issue !== undefined);
}

function storedNameIssue(kind: keyof typeof MOST_NAME_BYTES, name: string): string | undefined {
  const most = MOST_NAME_BYTES[kind];
  const isStored =
    name !== '' && new TextEncoder().encode(name).length <= most && !name.includes('\0') && name.isWellFormed();
  return isStored ? undefined : `expected the name of a ${kind}, of 1 to ${most} bytes`;
}
