/** The events that a batch gives the subscribers of an audience, without their positions. */
import type { Cells } from '../database/contract.ts';
import type { Need, Related, Row } from '../policy/types.ts';
import { TooMuchWork } from '../policy/work-budget.ts';
import type { Store } from '../records/access-context.ts';
import { recordKeyOf } from '../records/record-key.ts';
import { loadBounded, type RequestedRecords } from '../records/relations/related.ts';
import { everyTenant } from '../records/scope.ts';
import { keyKindOf } from '../schema/fields/index.ts';
import type { Collection, HasOne, ManyToMany } from '../schema/model/model.ts';
import { sql } from '../sql.ts';
import type { Audience, AudienceRow, Listing } from './audience.ts';
import type { ChangeBatch, RecordChange } from './commits.ts';
import { RelatedChanges } from './related-changes.ts';

export type ResetReason = 'position' | 'caller' | 'related' | 'schema' | 'bulk';
export type EventType = 'ready' | 'enter' | 'change' | 'leave' | 'reset';

export interface FeedEvent {
  readonly type: EventType;
  /** The members of the data, as JSON without braces. */
  readonly data: string;
  /** The place in the batch. */
  readonly seq: number;
  /** The transaction, of a change. */
  readonly xid?: number;
  /** The id of the record, as the database prints it. */
  readonly record?: string;
}

/** The last of all places. */
export const END_OF_BATCH = Number.MAX_SAFE_INTEGER;

export const resetOf = (reason: ResetReason): FeedEvent => ({
  type: 'reset',
  data: `"reason":"${reason}"`,
  seq: END_OF_BATCH,
});

/** A change with its rows as policies see them. */
interface SeenChange {
  readonly seq: number;
  readonly xid: number;
  readonly id: string;
  readonly before: AudienceRow | undefined;
  readonly after: AudienceRow | undefined;
}

interface LoadedChanges {
  readonly collection: Collection;
  readonly changes: readonly SeenChange[];
  /** The newest state of each record. */
  readonly newest: ReadonlyMap<string, AudienceRow | undefined>;
  /** The rows that decisions read besides the record. */
  readonly rows: Related;
  /** The records with too many such rows for a filter, by the spelling of the need. */
  readonly excess: ReadonlyMap<string, ReadonlySet<unknown>>;
  /** The changes of such rows: those of the batch, and those that came until the rows were loaded. */
  readonly related: readonly RelatedChanges[];
}

/** The changes of a collection for some audiences. */
interface AskedChanges {
  readonly collection: Collection;
  /** The audiences that may see these states of records. */
  readonly audiencesOf: (rows: readonly Row[]) => readonly Audience[];
  /** The newest state of a record is that of the table, which later batches may have changed. Default: that of the batch. */
  readonly isReplay?: boolean;
  /** The changes of these sources that the snapshot of the batch does not see. */
  readonly laterOf?: (sources: readonly string[]) => Promise<ChangeBatch>;
  /** Rows as that snapshot sees them, of those that have changed since. */
  readonly rowsThen?: (source: string, ids: readonly string[]) => Promise<ReadonlyMap<string, Cells>>;
}

/** The changes of one collection in a batch, with the rows that its audiences need. */
export class CollectionChanges {
  readonly #batch: ChangeBatch;
  readonly #changes: readonly SeenChange[];
  readonly #newest: LoadedChanges['newest'];
  readonly #rows: Related;
  readonly #excess: LoadedChanges['excess'];
  readonly #related: readonly RelatedChanges[];
  readonly #key: ReturnType<typeof keyKindOf>;

  private constructor(batch: ChangeBatch, loaded: LoadedChanges) {
    const { collection, changes, newest, rows, excess, related } = loaded;
    this.#batch = batch;
    this.#changes = changes;
    this.#newest = newest;
    this.#rows = rows;
    this.#excess = excess;
    this.#related = related;
    this.#key = keyKindOf(collection);
  }

  /** Loads, once for all audiences, the related rows as they are now. */
  static async of(
    store: Store,
    batch: ChangeBatch,
    { collection, audiencesOf, isReplay = false, laterOf, rowsThen }: AskedChanges,
  ): Promise<CollectionChanges> {
    const { name } = collection;
    const shape = store.shape(name);
    const seen = (cells: Cells | null): AudienceRow | undefined =>
      cells === null ? undefined : { cells, row: shape.row(cells) };
    const own = batch.changes.get(name) ?? [];
    const holders = await holderChanges(store, batch, { collection, rowsThen });
    const all = [...own, ...holders].toSorted((a, b) => a.seq - b.seq);
    const changes = all.map(({ before, after, ...change }) => ({
      ...change,
      before: seen(before),
      after: seen(after),
    }));
    const ids = new Set(changes.map(({ id }) => id));
    const stored = isReplay ? await storedCells(store, collection, ids) : undefined;
    const newest = new Map<string, AudienceRow | undefined>(
      stored === undefined
        ? changes.map(({ id, after }) => [id, after])
        : [...ids].map((id) => [id, seen(stored.get(id) ?? null)]),
    );
    const states = [...changes.flatMap(({ before, after }) => [before, after]), ...newest.values()];
    const rows = states.flatMap((each) => (each === undefined ? [] : [each.row]));
    const audiences = audiencesOf(rows);
    const asking = changes.length === 0 ? [] : audiences.filter(({ verdict }) => verdict !== 'deny');
    const loaded = await rowsForAudiences(store, asking, { collection: name, rows });
    // A record as it was must not meet a related row as it is since: no list has shown both.
    const sources = new Set(asking.flatMap((audience) => [...audience.related]));
    const later = sources.size === 0 ? undefined : await laterOf?.([...sources]);
    const related = [batch, ...(later === undefined ? [] : [later])].map((each) => new RelatedChanges(store, each));
    return new CollectionChanges(batch, { collection, changes, newest, ...loaded, related });
  }

  /** The events, or why the audience has to list again. */
  decidedFor(audience: Audience): readonly FeedEvent[] | ResetReason {
    return this.resetOf(audience) ?? this.eventsFor(audience) ?? 'related';
  }

  /** Without those of an audience that has to list again. Undefined: its filters take too much work. */
  eventsFor(audience: Audience): readonly FeedEvent[] | undefined {
    if (audience.verdict === 'deny') return [];
    try {
      return this.#eventsFor(audience);
    } catch (error) {
      if (error instanceof TooMuchWork) return undefined;
      throw error;
    }
  }

  #eventsFor(audience: Audience): readonly FeedEvent[] {
    const lists = audience.listing(this.#rows, this.#excessOf(audience));
    const events: FeedEvent[] = [];
    for (const change of this.#changes) {
      const event = this.#eventOf(change, audience, lists);
      if (event !== undefined) events.push(event);
    }
    return events.length < 2 ? events : withLastLeaves(events);
  }

  #excessOf({ filterNeeds }: Audience): ReadonlySet<unknown> | undefined {
    if (this.#excess.size === 0) return undefined;
    return new Set(filterNeeds.flatMap((need) => [...(this.#excess.get(spellingOf(need)) ?? [])]));
  }

  /** Why the audience has to list again. */
  resetOf(audience: Audience): ResetReason | undefined {
    const { bulk, foreign } = this.#batch;
    const shown = shownSources(audience.collection);
    if (shown.some((source) => foreign.has(source))) return 'schema';
    if (shown.some((source) => bulk.has(source))) return 'bulk';
    return this.#related.some((changes) => changes.concern(audience)) ? 'related' : undefined;
  }

  /**
   * An earlier state is sent only if the newest one is listed too: nothing old is shown that is hidden now. The commit that
   * hides a record gives its `leave`.
   */
  #eventOf(change: SeenChange, audience: Audience, lists: Listing): FeedEvent | undefined {
    const { seq, xid, id, before, after } = change;
    const wasListed = before !== undefined && lists(before);
    const isListed = after !== undefined && lists(after);
    if (!wasListed && !isListed) return undefined;
    const newest = this.#newest.get(id);
    const isShown = isListed && newest !== undefined && (after === newest || lists(newest));
    if (isShown) {
      const data = `"record":${audience.text(after, newest, this.#rows)}`;
      return { type: wasListed ? 'change' : 'enter', data, seq, xid, record: id };
    }
    return wasListed && !isListed
      ? { type: 'leave', data: `"id":${this.#key.toJson(id)}`, seq, xid, record: id }
      : undefined;
  }
}

/**
 * Leaves out a `leave` that the next event of the record repeats: their number would be that of commits that nothing shows.
 * The last one has to stay: a position between them is behind the first.
 */
function withLastLeaves(events: readonly FeedEvent[]): readonly FeedEvent[] {
  const next = new Map<string | undefined, EventType>();
  const isKept = ({ type, record }: FeedEvent): boolean => {
    const isRepeated = type === 'leave' && next.get(record) === 'leave';
    next.set(record, type);
    return !isRepeated;
  };
  return events.toReversed().filter(isKept).reverse();
}

/** The sources of the changes that are changes of a record. */
export const shownSources = ({ name, relations }: Collection): readonly string[] => [
  name,
  ...[...relations.values()].flatMap((relation) => {
    if (relation.kind === 'has_one') return [relation.collection];
    return relation.kind === 'many_to_many' ? [relation.linkTable] : [];
  }),
];

/** A has_one that moves, and a member that joins or leaves, change their records, though not the rows of these. */
async function holderChanges(
  store: Store,
  batch: ChangeBatch,
  { collection, rowsThen }: Pick<AskedChanges, 'collection' | 'rowsThen'>,
): Promise<readonly RecordChange[]> {
  const own = batch.changes.get(collection.name) ?? [];
  const moves = [...collection.relations.values()].flatMap((relation) => {
    if (relation.kind === 'has_one') return movesOf(store, batch, relation);
    return relation.kind === 'many_to_many' ? linkMovesOf(batch, relation) : [];
  });
  // The record's own change shows the partner too.
  const changed = new Set(own.map(({ id, xid }) => `${xid} ${id}`));
  const left = moves.filter(({ holder, xid }) => !changed.has(`${xid} ${holder}`));
  if (left.length === 0) return [];
  const byId = Map.groupBy(own, ({ id }) => id);
  const unknown = new Set(left.map(({ holder }) => holder).filter((holder) => !byId.has(holder)));
  const stored = await storedCells(store, collection, unknown);
  // Asked after the rows were read: a later change that they show is in the log by now.
  const then = unknown.size === 0 ? undefined : await rowsThen?.(collection.name, [...unknown]);
  const changes = new Map<string, RecordChange>();
  for (const { holder, seq, xid } of left) {
    const known = byId.get(holder) ?? [];
    const last = known.at(-1);
    const next = known.find((change) => change.seq > seq);
    const cells = last === undefined ? (then?.get(holder) ?? stored.get(holder)) : (next?.before ?? last.after);
    if (cells != null && last?.after !== null)
      changes.set(`${xid} ${holder}`, { seq, xid, id: holder, before: cells, after: cells });
  }
  return [...changes.values()];
}

/** The records as they are now. */
async function storedCells(
  store: Store,
  collection: Collection,
  ids: ReadonlySet<string>,
): Promise<ReadonlyMap<string, Cells>> {
  if (ids.size === 0) return new Map();
  const isAsked = recordKeyOf(collection).isAmong('t', [...ids]);
  const rows = await store.db.rows(sql`
    SELECT ${store.shape(collection.name).columns('t')}
      FROM ${everyTenant(store.schema).from(collection.name, 't').where(isAsked)}`);
  return new Map(rows.map((cells) => [cells[0]!, cells]));
}

/** A record that another one has joined or left, as a partner or as a member. */
interface PartnerMove {
  readonly holder: string;
  readonly seq: number;
  readonly xid: number;
}

function movesOf(store: Store, batch: ChangeBatch, { collection, via }: HasOne): readonly PartnerMove[] {
  const place = store.shape(collection).place(via);
  return (batch.changes.get(collection) ?? []).flatMap(({ before, after, seq, xid }) => {
    const [from, to] = [before?.[place] ?? null, after?.[place] ?? null];
    if (from === to && (before === null) === (after === null)) return [];
    return [from, to].flatMap((holder) => (holder === null ? [] : [{ holder, seq, xid }]));
  });
}

/** The first cell of a link is the id of the record that has the member. */
const linkMovesOf = ({ changes }: ChangeBatch, { linkTable }: ManyToMany): readonly PartnerMove[] =>
  (changes.get(linkTable) ?? []).flatMap(({ before, after, seq, xid }) =>
    [before, after].flatMap((link) => (link === null ? [] : [{ holder: link[0]!, seq, xid }])),
  );

/** The related rows of records that audiences read. Rows that rules read have no limit, also where filters read them. */
async function rowsForAudiences(
  store: Store,
  audiences: readonly Audience[],
  records: { readonly collection: string; readonly rows: readonly Row[] },
): Promise<Pick<LoadedChanges, 'rows' | 'excess'>> {
  const needs = bySpelling(audiences.flatMap((audience) => audience.needs));
  const ofFilters = bySpelling(audiences.flatMap(({ filterNeeds }) => filterNeeds));
  for (const known of needs.keys()) ofFilters.delete(known);
  const { related, excess } = await loadBounded(
    { store, q: store.db, tenant: undefined },
    {
      all: [{ ...records, needs: [...needs.values()] }],
      requested: together(audiences.flatMap(({ requested }) => requested)),
      ofFilters: [{ ...records, needs: [...ofFilters.values()] }],
    },
  );
  return { rows: related, excess: new Map([...excess].map(([need, ids]) => [spellingOf(need), ids])) };
}

const spellingOf = (need: Need): string => JSON.stringify(need);

const bySpelling = (needs: readonly Need[]): Map<string, Need> =>
  new Map(needs.map((need) => [spellingOf(need), need]));

/** Records that are named with the same needs are loaded together. */
function together(all: readonly RequestedRecords[]): readonly RequestedRecords[] {
  const byNeeds = Map.groupBy(all, ({ collection, needs }) => JSON.stringify([collection, needs]));
  return [...byNeeds.values()].map((group) => ({
    ...group[0]!,
    ids: [...new Set(group.flatMap(({ ids }) => ids))],
  }));
}
