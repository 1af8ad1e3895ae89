/** Reads the change log for a webhook and files its events, with the place in the log that they lead to. */
import { v7 } from 'uuid';
import { Audience } from '../changes/audience.ts';
import type { ChangeLog, LogPage } from '../changes/change-log.ts';
import { changeBatchOf, laterThan } from '../changes/commits.ts';
import { CollectionChanges, type FeedEvent, type ResetReason, resetOf } from '../changes/events.ts';
import { Snapshot } from '../changes/snapshot.ts';
import { present } from '../invariant.ts';
import { compileFilter } from '../policy/filters/filter.ts';
import type { AccessContext, Store } from '../records/access-context.ts';
import type { Webhook } from '../schema/model/model.ts';
import { shortDigest } from '../schema/model/stored-names.ts';
import type { NewEvent, ReachedPlace } from './webhook-rows.ts';

export interface FilingParts {
  readonly store: Store;
  readonly log: ChangeLog;
  readonly shapes: ReadonlyMap<string, string>;
  /** A digest of what the feed of the collection depends on. */
  readonly rules: string;
}
export interface Filed {
  readonly reached: ReachedPlace;
  readonly events: readonly NewEvent[];
}

export class EventFiling {
  readonly #parts: FilingParts;
  readonly #webhook: Webhook;

  constructor(parts: FilingParts, webhook: Webhook) {
    this.#parts = parts;
    this.#webhook = webhook;
  }

  /** The events since a place. @param from undefined: the webhook begins now */
  async next(from: ReachedPlace | undefined, access: AccessContext): Promise<Filed> {
    const { log, shapes } = this.#parts;
    const rules = this.#rulesFor(access);
    const page = await log.read(from && Snapshot.of(from.position), 'slow');
    const { now, life } = page;
    const reached = { life, position: now.snapshot.text, at: now.at, rules };
    if (from === undefined) return { reached, events: [] };
    const lost = lostReason(from, page);
    const events: FeedEvent[] = lost === undefined ? [] : [resetOf(lost)];
    if (lost === undefined && from.rules !== rules) events.push(resetOf('schema'));
    if (lost === undefined && page.entries.length > 0) {
      const moment = { snapshot: Snapshot.of(from.position), at: from.at };
      events.push(...(await this.#eventsOf(changeBatchOf(moment, page, shapes), access)));
    }
    const timestamp = new Date(now.at).toISOString();
    return { reached, events: events.map((event) => this.#filed(event, timestamp)) };
  }

  async #eventsOf(batch: ReturnType<typeof changeBatchOf>, access: AccessContext): Promise<readonly FeedEvent[]> {
    const { store } = this.#parts;
    const { filter: text, events: wanted } = this.#webhook;
    const { collection } = access;
    const place = { catalog: store.schema, collection: collection.name, params: {} };
    const filter = text === undefined ? undefined : compileFilter(text, place).filter;
    if (text !== undefined && filter === undefined) throw new Error('the filter of the webhook does not compile');
    const audience = new Audience(store, access, { filters: filter === undefined ? [] : [filter], isOfSchema: true });
    const { rowsThen } = laterThan(this.#parts, batch);
    const changes = await CollectionChanges.of(store, batch, { collection, audiencesOf: () => [audience], rowsThen });
    const reason = changes.resetOf(audience);
    // A related change opens or closes other records; those of the batch are known.
    const isKnown = reason === undefined || reason === 'related';
    const events = isKnown
      ? present(changes.eventsFor(audience), 'events under a filter of the schema').filter(({ type }) =>
          wanted.some((each) => each === type),
        )
      : [];
    return reason === undefined ? events : [...events, resetOf(reason)];
  }

  #filed({ type, data, record }: FeedEvent, timestamp: string): NewEvent {
    const named = `${this.#webhook.collection}.${type}`;
    const body = `{"type":${JSON.stringify(named)},"timestamp":"${timestamp}","data":{${data}}}`;
    return { id: v7(), record: record ?? null, type, body };
  }

  /** Events before and after a change of it show different records. */
  #rulesFor({ kind, auth, limit }: AccessContext): string {
    const { filter, events, collection } = this.#webhook;
    return shortDigest(JSON.stringify([this.#parts.rules, kind, auth, limit, filter ?? null, events, collection]));
  }
}

function lostReason(from: ReachedPlace, { life, prunedAt, isCut }: LogPage): ResetReason | undefined {
  if (life !== from.life || from.at < prunedAt) return 'position';
  return isCut ? 'bulk' : undefined;
}
