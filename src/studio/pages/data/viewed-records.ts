/** Records as another caller may see them, of those that the administrator sees. */
import { askMatrix } from '../../data/matrix-question.ts';
import type { ServedCollection } from '../../data/schema-answer.ts';
import { type GridColumn, gridColumnsOf, type StudioRecord } from './record-query.ts';

/** In place of a value that the caller may read, and that rules hide from the administrator. */
export const WITHHELD = Symbol('withheld');

/** A question takes so many cells: one for the record, and one for each member with rules of its own. */
const MOST_CELLS = 2_000;

interface ViewedPlace {
  readonly collection: ServedCollection;
  /** Left out: every column. */
  readonly columns?: readonly GridColumn[];
  readonly action: 'list' | 'read';
}

/**
 * The records that the caller may list or read, with the shown members that the caller may read. Related records are
 * left out: the caller may not be able to read these.
 */
export async function recordsSeenBy(
  caller: string,
  { collection, columns = gridColumnsOf(collection), action }: ViewedPlace,
  records: readonly StudioRecord[],
): Promise<readonly StudioRecord[]> {
  if (records.length === 0) return records;
  const question = { collection: collection.name, action, callers: [caller], ids: records.map(({ id }) => id) };
  const ruled = ruledMembers(collection);
  const asked = columns.flatMap(({ name }) => (ruled.has(name) ? [name] : []));
  const groups = memberGroups(asked, Math.floor(MOST_CELLS / records.length) - 1);
  const rows = await Promise.all(groups.map(async (members) => (await askMatrix({ ...question, members }))[0]!));
  const isReadable = (name: string, at: number): boolean =>
    rows.some(({ members }) => members?.[name]?.[at] === 'allowed');
  const seen = ({ expand, ...record }: StudioRecord, at: number): StudioRecord => {
    const readable = asked.filter((name) => isReadable(name, at));
    const known = Object.entries(record).filter(([name]) => !ruled.has(name) || readable.includes(name));
    return {
      ...Object.fromEntries(readable.map((name) => [name, WITHHELD])),
      ...Object.fromEntries(known),
    } as StudioRecord;
  };
  return records.flatMap((record, at) => (rows[0]!.outcomes[at] === 'allowed' ? [seen(record, at)] : []));
}

/** The names of the members that have rules of their own for reading. */
const ruledMembers = ({ fields, relations }: ServedCollection): ReadonlySet<string> =>
  new Set([...fields, ...relations].flatMap(({ name, rules }) => (rules?.read === undefined ? [] : [name])));

/** At least one group, which may be empty. */
function memberGroups(names: readonly string[], size: number): readonly (readonly string[])[] {
  const count = Math.max(1, Math.ceil(names.length / size));
  return Array.from({ length: count }, (_, i) => names.slice(i * size, (i + 1) * size));
}
