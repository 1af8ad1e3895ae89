/** Sends one subscriber the events since its position, at the pace of its reader. */
import type { Store } from '../records/access-context.ts';
import type { ChangeLog, LogPage } from './change-log.ts';
import { type ChangeBatch, changeBatchOf, laterThan } from './commits.ts';
import { type AskedChanges, CollectionChanges, type FeedEvent, type ResetReason } from './events.ts';
import type { FeedGroups } from './feed-groups.ts';
import type { FeedSender, ReachedMoment } from './feed-sender.ts';
import type { FeedPosition } from './position.ts';
import type { Snapshot } from './snapshot.ts';
import type { Subscriber } from './subscriber.ts';
import type { Turns } from './turns.ts';
import { whenServed } from './when-served.ts';

/** Milliseconds for which a decision holds while its events wait for the reader. */
const DECIDED_FOR = 250;

export interface ReplayParts {
  readonly log: ChangeLog;
  readonly store: Store;
  readonly groups: FeedGroups;
  readonly sender: FeedSender;
  readonly shapes: ReadonlyMap<string, string>;
  /** The decisions of all replays: the queue of the database would refuse those of thousands. */
  readonly turns: Turns;
}

/** Events up to `seq` that `to` sees were sent. */
type Sent = Pick<FeedPosition, 'to' | 'seq'>;

export type ReplayStart = Omit<FeedPosition, 'nth' | 'caller' | 'rules'>;

export class Replay {
  readonly #parts: ReplayParts;
  readonly #subscriber: Subscriber;
  readonly #isWanted = (): boolean => !this.#subscriber.isEnded;

  constructor(parts: ReplayParts, subscriber: Subscriber) {
    this.#parts = parts;
    this.#subscriber = subscriber;
  }

  after({ life, moment: { snapshot, at } }: ReachedMoment): Promise<ReachedMoment | ResetReason> {
    return this.since({ life, from: snapshot, at, to: snapshot, seq: 0 });
  }

  /** → the moment that was reached, or why the subscriber has to list again. */
  async since(position: ReplayStart): Promise<ReachedMoment | ResetReason> {
    const { log, shapes } = this.#parts;
    const retention = this.#subscriber.request.collection.feed!.retention * 1000;
    const from = { snapshot: position.from, at: position.at };
    let reached: ReachedMoment | undefined;
    const batchOf = (page: LogPage): ChangeBatch => changeBatchOf(from, page, shapes);
    for await (const page of log.pages(position.from, { isWanted: this.#isWanted })) {
      const { life, prunedAt, readAt, now } = page;
      if (life !== position.life || position.at < Math.max(prunedAt, readAt - retention)) return 'position';
      const isFirstOfMany = reached === undefined && page.isCut;
      const isOfMany = isFirstOfMany || reached !== undefined;
      const reason =
        (isFirstOfMany ? await this.#relatedReset(position.from, batchOf) : undefined) ??
        (await this.#send(batchOf(page), position, isOfMany));
      if (reason !== undefined) return reason;
      reached = { life, moment: now };
      if (this.#subscriber.isEnded) break;
    }
    return reached!;
  }

  /** No page may show what a related change in a later one has opened. */
  async #relatedReset(from: Snapshot, batchOf: (page: LogPage) => ChangeBatch): Promise<ResetReason | undefined> {
    const { groups, log } = this.#parts;
    const audience = groups.audienceNow(this.#subscriber);
    if (audience.related.size === 0) return undefined;
    const { collection } = audience;
    for await (const page of log.pages(from, { sources: [...audience.related], isWanted: this.#isWanted })) {
      const changes = await this.#decided(batchOf(page), { collection, audiencesOf: () => [] });
      const reason = changes.resetOf(audience);
      if (reason !== undefined) return reason;
    }
    return undefined;
  }

  #decided(batch: ChangeBatch, asked: AskedChanges): Promise<CollectionChanges> {
    const { store, turns } = this.#parts;
    return turns.run(() => whenServed(() => CollectionChanges.of(store, batch, asked), this.#isWanted));
  }

  /** Decides again after a wait: nothing is sent that is hidden meanwhile. */
  async #send(batch: ChangeBatch, sent: Sent, isOfMany: boolean): Promise<ResetReason | undefined> {
    const { groups } = this.#parts;
    const subscriber = this.#subscriber;
    const { collection } = subscriber.request;
    const laterOf = laterThan(this.#parts, batch);
    let reached = sent;
    while (!subscriber.isEnded) {
      const audience = groups.audienceNow(subscriber);
      const isReplay = isOfMany || reached !== sent;
      const asked = { collection, audiencesOf: () => [audience], isReplay, laterOf };
      const changes = await this.#decided(batch, asked);
      const reason = changes.resetOf(audience);
      if (reason !== undefined) return reason;
      const events = changes.eventsFor(audience).filter((event) => !isSent(event, sent) && !isSent(event, reached));
      const seq = await this.#sendUntil(performance.now() + DECIDED_FOR, events, batch);
      if (seq === undefined) return undefined;
      reached = { to: batch.to.snapshot, seq };
    }
    return undefined;
  }

  /** → the place of the last event that was sent, if others are left. */
  async #sendUntil(end: number, events: readonly FeedEvent[], batch: ChangeBatch): Promise<number | undefined> {
    for (const together of Map.groupBy(events, ({ seq }) => seq).values()) {
      this.#parts.sender.send(this.#subscriber, together, batch);
      await this.#subscriber.sink.drained();
      const { seq } = together[0]!;
      if (performance.now() > end && seq !== events.at(-1)!.seq) return seq;
    }
    return undefined;
  }
}

const isSent = ({ seq, xid }: FeedEvent, { to, seq: last }: Sent): boolean =>
  xid !== undefined && seq <= last && to.sees(xid);
