/** Gives the subscribers of a process the events of each batch, decided once for each audience. */
import type { Row } from '../policy/types.ts';
import type { Store } from '../records/access-context.ts';
import type { Audience } from './audience.ts';
import type { ChangeLog } from './change-log.ts';
import { type ChangeBatch, changeBatchOf, laterThan } from './commits.ts';
import { CollectionChanges, type FeedEvent, type ResetReason } from './events.ts';
import type { FeedGroups } from './feed-groups.ts';
import { endOf, type FeedObserver, type FeedSender, type ReachedMoment } from './feed-sender.ts';
import type { FeedGroup, Subscriber } from './subscriber.ts';
import { whenServed } from './when-served.ts';
import { LongWork } from './work-pace.ts';

export interface PublisherParts {
  readonly store: Store;
  readonly groups: FeedGroups;
  readonly log: ChangeLog;
  readonly shapes: ReadonlyMap<string, string>;
  readonly sender: FeedSender;
  readonly observer: FeedObserver;
  readonly onError: (what: string, error: unknown) => void;
  /** There are streams. */
  readonly isHeard: () => boolean;
}

const reachedBy = ({ life, to }: ChangeBatch): ReachedMoment => ({ life, moment: to });

export class Publisher {
  readonly #parts: PublisherParts;

  constructor(parts: PublisherParts) {
    this.#parts = parts;
  }

  /** A batch that some have and others miss would be lost for these. @param isOfMany one page of several */
  async publishOrReset(batch: ChangeBatch, isOfMany: boolean): Promise<void> {
    try {
      await this.#publish(batch, isOfMany);
    } catch (error) {
      this.#parts.onError('changes could not be decided on', error);
      this.resetAll('position', reachedBy(batch));
    }
  }

  async #publish(batch: ChangeBatch, isReplay: boolean): Promise<void> {
    const { groups: all, store, observer, isHeard } = this.#parts;
    const began = performance.now();
    const later = laterThan(this.#parts, batch);
    const work = new LongWork();
    for (const name of all.collections) {
      const collection = store.schema.collections.get(name)!;
      let groups: readonly FeedGroup[] = [];
      const audiencesOf = (rows: readonly Row[]): readonly Audience[] => {
        groups = all.of(name, batch, rows);
        return groups.map(({ audience }) => audience);
      };
      const asked = { collection, audiencesOf, isReplay, ...later };
      const changes = await whenServed(() => CollectionChanges.of(store, batch, asked), isHeard);
      for (const { members, audience } of groups) {
        const decided = changes.decidedFor(audience);
        if (typeof decided === 'string') this.#resetMembers(members, decided, batch);
        else if (decided.length > 0) for (const each of members) this.#send(each, decided, batch);
        if (work.isLong) await work.rest();
      }
    }
    observer.onLag((batch.age + performance.now() - began) / 1000);
  }

  #send(subscriber: Subscriber, events: readonly FeedEvent[], batch: ChangeBatch): void {
    const { life, from, to } = batch;
    const start = subscriber.startIn(batch);
    const stretch = start === from ? batch : { life, from: start, to };
    this.#parts.sender.send(subscriber, subscriber.missing(events, batch), stretch);
  }

  /** No page of several may show what a related change in a later one has opened. @param first the first of them */
  async resetAhead(first: ChangeBatch): Promise<void> {
    const { groups, log, shapes, store } = this.#parts;
    const byName = groups.collections.map((name) => [name, groups.allOf(name)] as const);
    const sources = new Set(byName.flatMap(([, found]) => found.flatMap(({ audience }) => [...audience.related])));
    if (sources.size === 0) return;
    for await (const page of log.pages(first.from.snapshot, { sources: [...sources], isLive: true })) {
      const batch = changeBatchOf(first.from, page, shapes);
      for (const [name, found] of byName) {
        const collection = store.schema.collections.get(name)!;
        const changes = await CollectionChanges.of(store, batch, { collection, audiencesOf: () => [] });
        for (const { audience, members } of found) {
          const reason = audience.related.size > 0 ? changes.resetOf(audience) : undefined;
          if (reason !== undefined) this.#resetMembers(members, reason, first);
        }
      }
    }
  }

  #resetMembers(members: Iterable<Subscriber>, reason: ResetReason, batch: ChangeBatch): void {
    const behind = [...members].filter((each) => !each.has(batch.to));
    this.reset(behind, reason, reachedBy(batch));
  }

  resetAll(reason: ResetReason, reached: ReachedMoment): void {
    const { groups } = this.#parts;
    for (const name of groups.collections)
      for (const { members } of groups.allOf(name)) this.reset(members, reason, reached);
  }

  /** Changes that the moment sees concern them no more. */
  reset(subscribers: Iterable<Subscriber>, reason: ResetReason, reached: ReachedMoment): void {
    for (const subscriber of subscribers) {
      subscriber.floor = reached.moment;
      void this.#parts.sender.reset(subscriber, reason, endOf(reached));
    }
  }
}
