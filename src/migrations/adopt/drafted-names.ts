/** The names of a draft, where those of the database cannot be names of collections and members. */
import { STAMPS } from '../../policy/types.ts';
import { collectionNameIssue, memberNameIssue, type NameIssue } from '../../schema/model/names.ts';
import { type ExistingTable, holdsReference } from './existing-tables.ts';

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

/** The collection of each table. */
export function draftedCollections(tables: readonly ExistingTable[]): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  const usual = tables.filter(({ name }) => collectionNameIssue(name) === undefined);
  const taken = new Set(usual.map(({ name }) => name));
  for (const { name } of usual) names.set(name, name);
  for (const { name } of tables) {
    if (names.has(name)) continue;
    const free = freeNameFor({ name, suffix: 'table', taken, issueOf: collectionNameIssue });
    names.set(name, free);
    taken.add(free);
  }
  return names;
}

/** The member of each column of a table. A belongs_to has the name of its column without `_id`. */
export function draftedMembers(table: ExistingTable): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  const taken = new Set(['id', ...STAMPS, ...(table.name === 'users' ? ['password'] : [])]);
  const isForeign = (column: string): boolean => holdsReference(table, column);
  const wanted = table.columns.map(({ name }) => ({
    column: name,
    name: isForeign(name) ? name.replace(/_id$/, '') : name,
  }));
  const isUsual = ({ column, name }: (typeof wanted)[number]): boolean =>
    memberNameIssue(name) === undefined && (column === name || !table.columns.some((other) => other.name === name));
  for (const each of [...wanted.filter(isUsual), ...wanted.filter((one) => !isUsual(one))]) {
    const { column, name } = each;
    const isBuiltIn = column === name && taken.has(column);
    const suffix = isForeign(column) ? 'reference' : 'value';
    const free = isBuiltIn ? name : freeNameFor({ name, suffix, taken, issueOf: memberNameIssue });
    names.set(column, free);
    // A belongs_to is known by its name and `_id` too.
    for (const used of isForeign(column) ? [free, `${free}_id`] : [free]) taken.add(used);
  }
  return names;
}
