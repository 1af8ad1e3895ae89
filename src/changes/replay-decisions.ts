/** The decisions of replays. Streams that resume at once, as after a restart, share those of the same audience. */
import { asCaller, SERVICE } from '../queued-caller.ts';
import type { Store } from '../records/access-context.ts';
import type { Audience } from './audience.ts';
import type { ChangeLog, LogPage, Moment } from './change-log.ts';
import { type ChangeBatch, changeBatchOf, laterThan } from './commits.ts';
import { CollectionChanges, type FeedEvent, type ResetReason } from './events.ts';

/** Milliseconds after which a decision is made anew. */
const DECISION_SHARED_MS = 100;
/** Audiences of a page whose decisions are kept. */
const KEPT_DECISIONS = 16;

export interface ReplayDecision {
  /** Milliseconds by `performance`: the rows that it read are not older. */
  readonly at: number;
  /** Why the audience has to list again, without events. */
  readonly reason: ResetReason | undefined;
  readonly events: readonly FeedEvent[];
}

interface AskedDecision {
  readonly audience: Audience;
  /** Later batches may have changed the records. */
  readonly isReplay: boolean;
}

interface SharedDecision extends AskedDecision {
  /** The moment, by `performance`, that the decision must not be older than: nothing is sent that was hidden by then. */
  readonly askedAt: number;
}

interface DecisionParts {
  readonly store: Store;
  readonly log: Pick<ChangeLog, 'readOf' | 'rowsAt'>;
  readonly shapes: ReadonlyMap<string, string>;
}

interface KnownDecision {
  readonly at: number;
  readonly decision: Promise<ReplayDecision>;
}

const isSameMoment = (a: Moment, b: Moment): boolean => a.at === b.at && a.snapshot.text === b.snapshot.text;

export class ReplayDecisions {
  readonly #parts: DecisionParts;
  readonly #batches = new WeakMap<LogPage['entries'], ChangeBatch>();
  readonly #known = new WeakMap<ChangeBatch['changes'], Map<string, KnownDecision>>();

  constructor(parts: DecisionParts) {
    this.#parts = parts;
  }

  /** Streams that resume from one place have one batch. */
  batchOf(from: Moment, page: LogPage): ChangeBatch {
    const known = this.#batches.get(page.entries);
    if (known !== undefined && known.to === page.now && isSameMoment(known.from, from)) return known;
    const batch =
      known === undefined
        ? changeBatchOf(from, page, this.#parts.shapes)
        : { ...known, from, to: page.now, life: page.life };
    this.#batches.set(page.entries, batch);
    return batch;
  }

  of(batch: ChangeBatch, asked: SharedDecision): Promise<ReplayDecision> {
    const { audience, isReplay, askedAt } = asked;
    const all = this.#known.get(batch.changes) ?? new Map<string, KnownDecision>();
    this.#known.set(batch.changes, all);
    const key = JSON.stringify([audience.collection.name, isReplay, audience.key]);
    const known = all.get(key);
    const at = performance.now();
    if (known !== undefined && known.at >= askedAt && at - known.at < DECISION_SHARED_MS) return known.decision;
    // The reading belongs to none of the callers who share it.
    const decision = asCaller(SERVICE, () => this.made(batch, asked));
    const made = { at, decision };
    all.delete(key);
    all.set(key, made);
    const [oldest] = all.keys();
    if (all.size > KEPT_DECISIONS) all.delete(oldest!);
    decision.catch(() => all.get(key) === made && all.delete(key));
    return decision;
  }

  /** A decision for one subscriber alone, such as one that depends on the time. */
  async made(batch: ChangeBatch, { audience, isReplay }: AskedDecision): Promise<ReplayDecision> {
    const at = performance.now();
    const { store } = this.#parts;
    const { collection } = audience;
    const asked = { collection, audiencesOf: () => [audience], isReplay, ...laterThan(this.#parts, batch) };
    const changes = await CollectionChanges.of(store, batch, asked);
    const decided = changes.decidedFor(audience);
    return typeof decided === 'string'
      ? { at, reason: decided, events: [] }
      : { at, reason: undefined, events: decided };
  }
}
