/** The names of a draft, where those of the database cannot be names of collections and members. */
import { STAMPS } from '../../policy/types.ts';
import { BUILT_IN } from '../../schema/model/model.ts';
import { collectionNameIssue, memberNameIssue, type NameIssue } from '../../schema/model/names.ts';
import type { ExistingTable } from './existing-tables.ts';

const MOST_LETTERS = 40;

/** `Total Amount` → `Total_Amount`; `Größe` → `Grosse`; `2nd` → `x_2nd`. */
function cleaned(name: string): string {
  const words = name
    .replaceAll('ß', 'ss')
    .normalize('NFKD')
    .replaceAll(/\p{M}+/gu, '')
    .split(/[^A-Za-z0-9]+/)
    .filter((word) => word !== '')
    .join('_');
  return (/^[A-Za-z]/.test(words) ? words : `x_${words}`).slice(0, MOST_LETTERS).replace(/_$/, '');
}

interface Wanted {
  readonly name: string;
  /** Appended to a name that is reserved. */
  readonly suffix: string;
  readonly taken: ReadonlySet<string>;
  issueOf(name: string): NameIssue | undefined;
}

function freeNameFor({ name, suffix, taken, issueOf }: Wanted): string {
  const base = cleaned(name);
  const isFree = (each: string): boolean => !taken.has(each) && issueOf(each) === undefined;
  const found = [name, base, `${base}_${suffix}`].find(isFree);
  for (let n = 2; ; n++) {
    if (found !== undefined) return found;
    const next = `${base}_${n}`;
    if (isFree(next)) return next;
  }
}

/**
 * The collection of each table. The names `users` and `files` are those of the service's own tables: a table of
 * another schema gets its schema's name before its own, as one does whose name another table has. Addresses are in
 * lower case.
 */
export function draftedCollections(tables: readonly ExistingTable[]): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  const taken = new Set<string>();
  const take = (table: ExistingTable, name: string): void => {
    names.set(table.table, name);
    taken.add(name);
  };
  const isUsual = (table: ExistingTable): boolean =>
    collectionNameIssue(table.name) === undefined &&
    table.name === table.name.toLowerCase() &&
    (!BUILT_IN.includes(table.name) || isOfCurrentSchema(table));
  for (const table of tables) if (isUsual(table) && !taken.has(table.name)) take(table, table.name);
  for (const table of tables) {
    if (names.has(table.table)) continue;
    const isOfOther = !isOfCurrentSchema(table) && collectionNameIssue(table.name) === undefined;
    const name = isOfOther ? `${table.schema}_${table.name}` : table.name;
    take(table, freeNameFor({ name: name.toLowerCase(), suffix: 'table', taken, issueOf: collectionNameIssue }));
  }
  return names;
}

export const isOfCurrentSchema = ({ table, name }: ExistingTable): boolean => table === name;

export const KEY_SUFFIX = /_(?:id|no|code|key)$/i;

interface MemberNaming {
  /** The columns that become a belongs_to, which has the name of its column without `_id`, `_no`, `_code` or `_key`. */
  readonly references: ReadonlySet<string>;
  /** The columns that have their names in every record: `id`, `created_at`, `updated_at`. */
  readonly builtIn: ReadonlySet<string>;
}

/** The member of each column of a table. */
export function draftedMembers(
  table: ExistingTable,
  { references, builtIn }: MemberNaming,
): ReadonlyMap<string, string> {
  const names = new Map<string, string>([...builtIn].map((column) => [column, column]));
  const taken = new Set(['id', ...STAMPS, ...(table.table === 'users' ? ['password'] : [])]);
  const wanted = table.columns
    .filter(({ name }) => !builtIn.has(name))
    .map(({ name }) => ({ column: name, name: references.has(name) ? name.replace(KEY_SUFFIX, '') : name }));
  const isUsual = ({ column, name }: (typeof wanted)[number]): boolean =>
    memberNameIssue(name) === undefined && (column === name || !table.columns.some((other) => other.name === name));
  for (const { column, name } of [...wanted.filter(isUsual), ...wanted.filter((one) => !isUsual(one))]) {
    const suffix = references.has(column) ? 'reference' : 'value';
    const free = freeNameFor({ name, suffix, taken, issueOf: memberNameIssue });
    names.set(column, free);
    // A belongs_to is known by its name and `_id` too.
    for (const used of references.has(column) ? [free, `${free}_id`] : [free]) taken.add(used);
  }
  return names;
}
