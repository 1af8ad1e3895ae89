/** `history: true`: each change of a record is kept, with who made it, and what was before and after. */
import type { DocumentPath, Report } from '../../file/issue.ts';
import type { CollectionShape } from '../../file/shape.ts';
import { secondsOf } from '../../file/units.ts';
import { type LoggedTable, ReachedTables } from '../logged-tables.ts';
import type { Collection, RecordHistory, Schema } from '../model.ts';
import { historyTableOf } from '../stored-names.ts';
import { NOT_IN_HISTORY } from './history-names.ts';

/** The columns of one `jsonb_build_object`: a function of PostgreSQL takes a hundred arguments. */
export const COLUMNS_OF_A_CALL = 40;

interface HistoryDeclaration {
  readonly shape: CollectionShape;
  readonly path: DocumentPath;
  readonly kind: Collection['kind'];
  readonly table: string;
}

export function historyOf(
  { shape, path, kind, table }: HistoryDeclaration,
  report: Report,
): { readonly history?: RecordHistory } {
  const { history = false } = shape;
  if (history === false) return {};
  const reason = whyNoHistory(shape, kind);
  const message = `${reason}; remove \`history\``;
  if (reason !== undefined) report({ code: 'history', message, path: [...path, 'history'], at: 'key' });
  const keep = history === true ? undefined : history.keep;
  const own = typeof shape.distribute === 'object' ? { table: historyTableOf(table) } : {};
  return { history: keep === undefined ? own : { ...own, keep: secondsOf(keep) } };
}

function whyNoHistory({ managed }: CollectionShape, kind: Collection['kind']): string | undefined {
  if (kind !== 'plain') return `\`${kind}\` have no history; the audit trail has the events of accounts`;
  if (managed === false) return 'the table is not managed, so the service adds no trigger that would write its history';
  return undefined;
}

interface HistoryColumns {
  /** The column of the ids. */
  readonly id: string;
  readonly columns: LoggedTable['columns'];
}

/** The columns that an entry has, of each side. */
export function historyColumnsOf(
  schema: Schema,
  { name, fields }: Pick<Collection, 'name' | 'fields'>,
): HistoryColumns {
  const reached = new ReachedTables(schema);
  reached.addRecords(name);
  const [{ columns }] = reached.tables as [LoggedTable];
  const left = [...fields.values()].filter((field) => NOT_IN_HISTORY.has(field.name)).map(({ column }) => column);
  return { id: columns[0]!.name, columns: columns.filter((column) => !left.includes(column.name)) };
}

/** A write of a record of the collection may change one with a history: itself, a partner, or one that refers to it. */
export function reachesHistory({ collections }: Schema, collection: string): boolean {
  const reached = new Set([collection]);
  for (const name of reached) {
    const { history, relations } = collections.get(name)!;
    if (history !== undefined) return true;
    for (const relation of relations.values()) if (relation.kind === 'has_one') reached.add(relation.collection);
    for (const other of collections.values())
      for (const relation of other.relations.values())
        if (relation.kind === 'belongs_to' && relation.collection === name) reached.add(other.name);
  }
  return false;
}
