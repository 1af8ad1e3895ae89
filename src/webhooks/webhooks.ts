/**
 * The webhooks of a service. A single process files and sends the events of a webhook: it holds the webhook for a
 * while, and another takes over when it ends.
 */
import { v4 } from 'uuid';
import { ChangeLog } from '../changes/change-log.ts';
import { FeedRules, loggedShapesOf } from '../changes/logged-schema.ts';
import type { Database } from '../database/contract.ts';
import { inRounds } from '../in-rounds.ts';
import { asCaller, SERVICE } from '../queued-caller.ts';
import { type AccessContext, Store } from '../records/access-context.ts';
import type { Schema, Webhook } from '../schema/model/model.ts';
import { EventFiling, type Filed } from './event-filing.ts';
import { EventSending, type WebhookObserver } from './event-sending.ts';
import { Poster } from './posting.ts';
import { fileEvents, holdWebhooks, pruneGivenUp, type ReachedPlace, releaseWebhooks } from './webhook-rows.ts';

/** Milliseconds. */
const GATHER_NEWS = 50;
/** Finds webhooks whose holder has ended. */
const TAKE_EVERY = 2_000;
/** Finds the writes of other programs. */
const LOG_READ_EVERY = 1_000;
const PRUNE_EVERY = 3_600_000;
/** How long what a key may see is remembered. */
const ACCESS_REMEMBERED = 1_000;
/** Seconds. */
const HELD_FOR = 30;
const LEAST_HELD_FOR = 3;

export interface WebhookParts {
  readonly db: Database;
  readonly schema: Schema;
  readonly allowsPrivate: boolean;
  readonly userAgent: string;
  /** The present access of the key of a webhook. Undefined: the key is missing, or may list nothing. */
  readonly accessOf: (webhook: Webhook) => Promise<AccessContext | undefined>;
  readonly observer: WebhookObserver;
  readonly warn: (message: string) => void;
  readonly onError: (what: string, error: unknown) => void;
}

interface Held {
  readonly webhook: Webhook;
  readonly filing: EventFiling;
  readonly sending: EventSending;
  reached: ReachedPlace | undefined;
  /** The place that the database knows. */
  saved: ReachedPlace | undefined;
}

export class Webhooks {
  readonly #parts: WebhookParts;
  readonly #holder = v4();
  readonly #log: ChangeLog;
  readonly #store: Store;
  readonly #poster: Poster;
  readonly #held = new Map<string, Held>();
  readonly #warned = new Set<string>();
  readonly #access = new Map<string, { readonly at: number; readonly access: AccessContext | undefined }>();
  readonly #timers: NodeJS.Timeout[];
  readonly #heldFor: number;
  #heldAt = Number.NEGATIVE_INFINITY;
  #gathering: NodeJS.Timeout | undefined;
  #isClosed = false;
  /** Files what the log has now. */
  readonly look = inRounds(() => asCaller(SERVICE, () => this.#fileAll()));

  /** The schema has webhooks. */
  constructor(parts: WebhookParts) {
    const { db, schema } = parts;
    this.#parts = parts;
    this.#log = new ChangeLog(db);
    this.#store = new Store(db, schema, { statisticsOf: () => undefined });
    this.#poster = new Poster(parts.allowsPrivate);
    // The place in the log is saved before its entries can be pruned.
    const retentions = [...schema.webhooks.values()].map(
      ({ collection }) => schema.collections.get(collection)!.feed!.retention,
    );
    this.#heldFor = Math.min(HELD_FOR, Math.max(LEAST_HELD_FOR, Math.min(...retentions) / 2));
    this.#timers = [
      setInterval(() => void this.look(), LOG_READ_EVERY),
      setInterval(() => void pruneGivenUp(db).catch(() => undefined), PRUNE_EVERY),
    ];
    for (const timer of this.#timers) timer.unref();
    void this.look();
  }

  /** Call it when the log may have news. */
  wake(): void {
    if (this.#isClosed) return;
    this.#gathering ??= setTimeout(() => {
      this.#gathering = undefined;
      void this.look();
    }, GATHER_NEWS);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const timer of this.#timers) clearInterval(timer);
    clearTimeout(this.#gathering);
    await this.look();
    await Promise.all([...this.#held.values()].map(({ sending }) => sending.close()));
    this.#poster.close();
    await releaseWebhooks(this.#parts.db, this.#holder).catch(() => undefined);
  }

  async #fileAll(): Promise<void> {
    await this.#reported(async () => {
      if (!this.#isClosed) await this.#hold();
    });
    for (const held of this.#held.values()) await this.#reported(() => this.#file(held));
  }

  /** Errors of a webhook never stop another. */
  async #reported(work: () => Promise<void>): Promise<void> {
    try {
      await work();
    } catch (error) {
      this.#parts.onError('events of webhooks could not be filed', error);
    }
  }

  /** Renews the lease after a third of its time, and takes free webhooks. */
  async #hold(): Promise<void> {
    const { db, schema } = this.#parts;
    const isComplete = this.#held.size === schema.webhooks.size;
    const every = isComplete ? (this.#heldFor * 1000) / 3 : TAKE_EVERY;
    if (performance.now() - this.#heldAt < every) return;
    for (const held of this.#held.values()) await this.#save(held, { reached: held.reached!, events: [] });
    const at = performance.now();
    const found = await holdWebhooks(db, [...schema.webhooks.keys()], {
      holder: this.#holder,
      forSeconds: this.#heldFor,
    });
    this.#heldAt = at;
    const names = new Set(found.map(({ name }) => name));
    for (const [name, { sending }] of this.#held) {
      if (names.has(name)) continue;
      this.#held.delete(name);
      void sending.close();
    }
    for (const { name, reached } of found) if (!this.#held.has(name)) this.#take(schema.webhooks.get(name)!, reached);
  }

  #take(webhook: Webhook, reached: ReachedPlace | undefined): void {
    const { db, schema, observer, userAgent, onError } = this.#parts;
    const shapes = loggedShapesOf(schema);
    const collection = schema.collections.get(webhook.collection)!;
    // Its filter names members of the record alone.
    const rules = new FeedRules(schema, shapes).digestOf({ collection, filters: [] });
    const filing = new EventFiling({ store: this.#store, log: this.#log, shapes, rules }, webhook);
    const mayPost = async (): Promise<boolean> => (await this.#accessOf(webhook)) !== undefined;
    const sending = new EventSending({ db, webhook, poster: this.#poster, mayPost, observer, userAgent, onError });
    this.#held.set(webhook.name, { webhook, filing, sending, reached, saved: reached });
  }

  async #file(held: Held): Promise<void> {
    const { webhook, filing, sending } = held;
    const access = await this.#accessOf(webhook);
    if (access === undefined) return this.#warnOfKey(webhook);
    this.#warned.delete(webhook.name);
    const filed = await filing.next(held.reached, access);
    const isKept = held.reached !== undefined && filed.events.length === 0;
    if (isKept) held.reached = filed.reached;
    else await this.#save(held, filed);
    if (filed.events.length > 0) sending.wake();
  }

  /** Another process may hold the webhook meanwhile: then it files the events. */
  async #save(held: Held, { reached, events }: Filed): Promise<void> {
    if (reached === undefined || (events.length === 0 && reached === held.saved)) return;
    const { name } = held.webhook;
    const isHeld = await this.#parts.db.transaction((tx) =>
      fileEvents(tx, { name, holder: this.#holder, reached, events }),
    );
    if (isHeld) {
      held.reached = reached;
      held.saved = reached;
    } else {
      this.#held.delete(name);
      this.#heldAt = Number.NEGATIVE_INFINITY;
      void held.sending.close();
    }
  }

  async #accessOf(webhook: Webhook): Promise<AccessContext | undefined> {
    const known = this.#access.get(webhook.name);
    if (known !== undefined && performance.now() - known.at < ACCESS_REMEMBERED) return known.access;
    const at = performance.now();
    const access = await this.#parts.accessOf(webhook);
    this.#access.set(webhook.name, { at, access });
    return access;
  }

  #warnOfKey({ name, as, collection }: Webhook): void {
    if (this.#warned.has(name)) return;
    this.#warned.add(name);
    this.#parts.warn(
      `webhook ${name}: no API key \`${as}\` in force may list \`${collection}\`, so nothing is sent; make one, ` +
        `such as by \`bylaw api-key create ${as}\``,
    );
  }
}
