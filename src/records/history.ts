/**
 * The history of a record: who changed it, when, and what was before and after. Each side of an entry is shown as the
 * record was then, and as it is now: what the caller may not read of either is left out.
 */
import { SEQUENTIAL_SHARDS } from '../database/citus.ts';
import type { Cells, Database } from '../database/contract.ts';
import type { Permit } from '../policy/access.ts';
import type { Related, Row } from '../policy/types.ts';
import { notFound } from '../refusal.ts';
import { NOT_IN_HISTORY, RECORD_HISTORY_TABLE } from '../schema/model/kept/history-names.ts';
import type { Schema } from '../schema/model/model.ts';
import { apiTime, ident, join, param, raw, type Sql, seconds, sql, text } from '../sql.ts';
import { type AccessContext, type Reading, readable, type Store } from './access-context.ts';
import { type MemberMask, memberMasksOf, recordNeeds, requestedNeeds } from './member-masks.ts';
import { type ReadBudget, readWithinBudget } from './read-budget.ts';
import { recordKeyOf } from './record-key.ts';
import type { RecordShape } from './record-shape.ts';
import { loadRelatedRows } from './relations/related.ts';
import { everyTenant, inTenantOf, scopeOf } from './scope.ts';

export const historyTables: readonly Sql[] = [
  // `before` and `after`: the columns of the row and their texts; null: the row did not exist.
  raw(`CREATE TABLE IF NOT EXISTS "${RECORD_HISTORY_TABLE}" (
  seq bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  collection text COLLATE "C" NOT NULL,
  record text COLLATE "C" NOT NULL,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  by text COLLATE "C",
  before jsonb,
  after jsonb
)`),
  raw(
    `CREATE INDEX IF NOT EXISTS "${RECORD_HISTORY_TABLE}_record" ON "${RECORD_HISTORY_TABLE}" (collection, record, seq)`,
  ),
  raw(`CREATE INDEX IF NOT EXISTS "${RECORD_HISTORY_TABLE}_at" ON "${RECORD_HISTORY_TABLE}" (collection, at)`),
];

export interface HistoryRequest {
  readonly id: string;
  /** Only entries before the one of this number. */
  readonly before?: number | undefined;
  readonly limit: number;
}

interface ReadImage {
  readonly cells: Cells;
  /** Undefined: a cell does not fit its field, whose type was another one. No rule can decide about such a state. */
  readonly row: Row | undefined;
  /** The columns whose values in the state are unknown, as of fields that were declared later. */
  readonly unknown: ReadonlySet<string>;
}
interface KeptEntry<Image = ReadImage> {
  readonly seq: string;
  readonly at: string;
  readonly by: string | null;
  readonly before: Image | undefined;
  readonly after: Image | undefined;
}
type StoredImage = Pick<ReadImage, 'cells' | 'unknown'>;

export interface HistoryAnswer {
  /** The texts of the entries, the newest first. */
  readonly entries: readonly string[];
  /** Continues behind the page; undefined: it is the last. */
  readonly next: number | undefined;
}

/** Throws `not_found`, `query_too_expensive`. */
export const history = (store: Store, access: AccessContext, request: HistoryRequest): Promise<HistoryAnswer> =>
  readWithinBudget({ schema: store.schema, reader: store.db }, (budget) =>
    historyWithin({ store, budget }, access, request),
  );

interface BudgetedStore {
  readonly store: Store;
  readonly budget: ReadBudget;
}

async function historyWithin(
  { store, budget }: BudgetedStore,
  access: AccessContext,
  request: HistoryRequest,
): Promise<HistoryAnswer> {
  const { name } = access.collection;
  const shape = store.shape(name);
  const reading = await inTenantOf({ store, q: store.readerFor(access), access }, request.id, 'read');
  const isRecord = recordKeyOf(access.collection).is('t', request.id);
  const [cells] = await reading.q.rows(sql`
    SELECT ${shape.columns('t')}
      FROM ${scopeOf(reading)
        .from(name, 't')
        .where(isRecord, readable(reading.access, name, 't'))}`);
  if (cells === undefined) throw notFound();
  const present = { row: shape.row(cells), unknown: ALL_KNOWN };
  const kept = await readEntries(reading, { shape, budget }, request);
  const found = kept.map((entry, i) => timedEntry(entry, kept[i + 1], shape));
  const shown = found.slice(0, request.limit);
  const images = shown.flatMap(({ before, after }) => [before, after]);
  const rows = [present.row, ...images.flatMap((image) => (image?.row === undefined ? [] : [image.row]))];
  const sight = await HistorySight.of(reading, rows);
  const hidden = sight.hiddenOf(present);
  return {
    entries: budget.fitting(printedEntries(shown, { shape, sight, hidden })),
    next: found.length > request.limit ? Number(shown.at(-1)!.seq) : undefined,
  };
}

/** The entries of a collection that is divided by tenant have a table of their own; earlier ones can be in the shared one. */
async function readEntries(
  reading: Reading,
  read: EntryReader,
  request: HistoryRequest,
): Promise<readonly KeptEntry<StoredImage>[]> {
  const { name, history: kept } = reading.access.collection;
  const ofRecord = sql`h.record = ${text(request.id)}`;
  const shared = sql`${ident(RECORD_HISTORY_TABLE)} AS h
     WHERE h.collection = ${text(name)}
       AND ${ofRecord}`;
  if (kept?.table === undefined) return entriesIn(read, { ...request, rows: shared });
  const own = await entriesIn(read, { ...request, rows: scopeOf(reading).past(name, 'h').where(ofRecord) });
  const missing = request.limit - own.length;
  return missing < 0 ? own : [...own, ...(await entriesIn(read, { ...request, limit: missing, rows: shared }))];
}

interface EntryReader {
  readonly shape: RecordShape;
  readonly budget: ReadBudget;
}

async function entriesIn(
  { shape, budget }: EntryReader,
  { before, limit, rows }: HistoryRequest & { readonly rows: Sql },
): Promise<readonly KeptEntry<StoredImage>[]> {
  const columns = [...shape.storedColumns];
  const image = (side: string): Sql =>
    join(
      columns.map((column) => sql`${ident('h', side)} ->> ${text(column)}`),
      ', ',
    );
  /** Null: the record did not exist. */
  const unknown = (side: string): Sql => sql`(
             SELECT to_jsonb(array_agg(c.name))
               FROM unnest(${param('text[]', columns)}) AS c (name)
              WHERE NOT jsonb_exists(${ident('h', side)}, c.name))::text`;
  const found = await budget.rows(sql`
    SELECT h.seq::text, ${apiTime(sql`h.at`)}, h.by,
           h.before IS NOT NULL, h.after IS NOT NULL, ${unknown('before')}, ${unknown('after')},
           ${image('before')}, ${image('after')}
      FROM ${rows}
       AND h.seq < ${param('int8', before ?? Number.MAX_SAFE_INTEGER)}
     ORDER BY h.seq DESC
     LIMIT ${param('int8', limit + 1)}`);
  return found.map(([seq, at, by, hasBefore, hasAfter, unknownBefore, unknownAfter, ...cells]) => {
    const imageOf = (own: Cells, names: string | null | undefined): StoredImage => ({
      cells: own,
      unknown: new Set(JSON.parse(names ?? '[]') as readonly string[]),
    });
    return {
      seq: seq!,
      at: at!,
      by: by ?? null,
      before: hasBefore === 't' ? imageOf(cells.slice(0, columns.length), unknownBefore) : undefined,
      after: hasAfter === 't' ? imageOf(cells.slice(columns.length), unknownAfter) : undefined,
    };
  });
}

/**
 * The entry with its states as rules see them. No state has `updated_at`: it is the time of the entry that wrote the state.
 *
 * @param earlier undefined: nothing is kept of the write before it
 */
function timedEntry(
  entry: KeptEntry<StoredImage>,
  earlier: KeptEntry<StoredImage> | undefined,
  shape: RecordShape,
): KeptEntry {
  const timed = (image: StoredImage | undefined, at: string | undefined): ReadImage | undefined => {
    if (image === undefined || !shape.fits(image.cells)) return image && { ...image, row: undefined };
    const row = shape.row(image.cells);
    if (at === undefined) return { ...image, row };
    const times = [...NOT_IN_HISTORY].map((name) => [name, at] as const);
    const timeColumns = times.map(([name]) => shape.columnOf(name)!);
    const unknown = image.unknown.difference(new Set(timeColumns));
    return { ...image, unknown, row: { ...row, ...Object.fromEntries(times) } };
  };
  return { ...entry, before: timed(entry.before, earlier?.at), after: timed(entry.after, entry.at) };
}

/** Decides what the caller may read of a record in any of its states. */
class HistorySight {
  readonly #permit: Permit;
  readonly #masks: readonly MemberMask[];
  readonly #related: Related;

  private constructor(permit: Permit, masks: readonly MemberMask[], related: Related) {
    this.#permit = permit;
    this.#masks = masks;
    this.#related = related;
  }

  static async of({ store, access, tenant }: Reading, rows: readonly Row[]): Promise<HistorySight> {
    const { name } = access.collection;
    const permit = access.permit(name, 'read');
    const masks = memberMasksOf(access);
    const deciding = [permit, ...masks.map((mask) => mask.permit)];
    const needs = deciding.flatMap(recordNeeds);
    const requested = deciding.flatMap(requestedNeeds);
    const source = { store, q: store.db, tenant };
    return new HistorySight(
      permit,
      masks,
      await loadRelatedRows(source, [{ collection: name, rows, needs }], requested),
    );
  }

  shows(state: KnownState): boolean {
    return this.#allows(this.#permit, state);
  }

  hiddenOf(state: KnownState): ReadonlySet<string> {
    return new Set(this.#masks.flatMap(({ name, permit }) => (this.#allows(permit, state) ? [] : [name])));
  }

  /** A rule that reads a value which is unknown does not hold: the value is not known to be null either. */
  #allows({ rules }: Permit, { row, unknown }: KnownState): boolean {
    return rules.some(({ residual }) => !residual.readsAny(unknown) && residual.test(row, this.#related));
  }
}

const ALL_KNOWN: ReadonlySet<string> = new Set();

interface KnownState extends Pick<ReadImage, 'unknown'> {
  readonly row: Row;
}

interface HistoryPrinting {
  readonly shape: RecordShape;
  readonly sight: HistorySight;
  /** Members that the caller may not read of the present record. */
  readonly hidden: ReadonlySet<string>;
}

/** The texts one after the other: those beyond the budget are not made. */
function* printedEntries(entries: readonly KeptEntry[], printing: HistoryPrinting): Iterable<string> {
  for (const entry of entries) {
    const text = printedEntry(entry, printing);
    if (text !== undefined) yield text;
  }
}

/** Undefined: the caller may read neither side. */
function printedEntry(
  { seq, at, by, before, after }: KeptEntry,
  { shape, sight, hidden }: HistoryPrinting,
): string | undefined {
  const stored = shape.names
    .slice(0, shape.width)
    .filter((name) => name !== 'id' && !NOT_IN_HISTORY.has(name) && !hidden.has(name));
  const visible = (image: ReadImage | undefined): ReadonlySet<string> | undefined => {
    if (image?.row === undefined) return undefined;
    const state = { row: image.row, unknown: image.unknown };
    return sight.shows(state) ? new Set(stored).difference(sight.hiddenOf(state)) : undefined;
  };
  const [was, is] = [visible(before), visible(after)];
  if (was === undefined && is === undefined) return undefined;
  const differs = (name: string): boolean => before?.cells[shape.place(name)] !== after?.cells[shape.place(name)];
  // A hidden side is not compared: an equal value would be known by its absence.
  const isOneHidden = (name: string): boolean =>
    before !== undefined && after !== undefined && was?.has(name) !== is?.has(name);
  const isShown = (name: string): boolean => was?.has(name) === true || is?.has(name) === true;
  const changed = stored.filter((name) => isShown(name) && (isOneHidden(name) || differs(name)));
  if (changed.length === 0 && before !== undefined && after !== undefined) return undefined;
  const text = (image: ReadImage | undefined, seen: ReadonlySet<string> | undefined): string =>
    image === undefined || seen === undefined
      ? 'null'
      : `${shape.open(image.cells, 0, new Set(changed).intersection(seen))}}`;
  const action = before === undefined ? 'create' : after === undefined ? 'delete' : 'update';
  const head = JSON.stringify({ entry: Number(seq), at, by, action, changed });
  return `${head.slice(0, -1)},"before":${text(before, was)},"after":${text(after, is)}}`;
}

/** Deletes what is older than its collection keeps. */
export async function pruneHistory(db: Database, schema: Schema): Promise<void> {
  for (const { name, history: kept } of schema.collections.values()) {
    if (kept?.keep === undefined) continue;
    const isOld = sql`h.at < now() - ${seconds(kept.keep)}`;
    await db.transaction(async (tx) => {
      if (kept.table !== undefined && db.isCluster) await tx.run(SEQUENTIAL_SHARDS);
      if (kept.table !== undefined) await tx.run(sql`DELETE FROM ${everyTenant(schema).past(name, 'h').where(isOld)}`);
      await tx.run(
        sql`DELETE FROM ${ident(RECORD_HISTORY_TABLE)} AS h WHERE h.collection = ${text(name)} AND ${isOld}`,
      );
    });
  }
}
