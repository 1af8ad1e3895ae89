/** Posts the filed events of a webhook: those of a record one after the other, those of several at once. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '../database/contract.ts';
import { inRounds } from '../in-rounds.ts';
import { asCaller, SERVICE } from '../queued-caller.ts';
import type { Webhook } from '../schema/model/model.ts';
import type { Poster, PostResult } from './posting.ts';
import { signedHeaders } from './signature.ts';
import { type DueEvent, dueEvents, nextAttempt, noteFailure, removeEvent } from './webhook-rows.ts';

const EVENTS_AT_ONCE = 10;
/** Milliseconds. Finds what the command line made due. */
const LOOK_EVERY = 5_000;
const CLOSE_PATIENCE = 5_000;
/** Seconds between attempts, then the longest. */
const RETRY_PAUSES = [5, 30, 120, 600, 1_800, 3_600, 7_200];
const LONGEST_PAUSE = 14_400;
/** Seconds after which an event is given up, at its next failure. */
const TRIED_FOR = 86_400;
/** After so many failures in a row, one event at a time finds out whether the receiver is back. */
const FAILURES_OF_AN_OUTAGE = 5;
const OUTAGE_PAUSE = 60;

export interface WebhookObserver {
  readonly onSent: (webhook: string, result: 'sent' | 'failed' | 'given_up') => void;
}

interface SendingParts {
  readonly db: Database;
  readonly webhook: Webhook;
  readonly poster: Poster;
  /** The key is in force. */
  readonly mayPost: () => Promise<boolean>;
  readonly observer: WebhookObserver;
  readonly userAgent: string;
  readonly onError: (what: string, error: unknown) => void;
}

export class EventSending {
  readonly #parts: SendingParts;
  readonly #posts = new Map<string, Promise<void>>();
  /** Events that ended since the last read began, which may have found them. */
  readonly #ended = new Set<string>();
  #timer: NodeJS.Timeout | undefined;
  #isClosed = false;
  /** Failures in a row, of any event. */
  #failures = 0;
  /** No post begins before, by the clock of the process. */
  #pausedUntil = 0;
  readonly #send = inRounds(() => asCaller(SERVICE, () => this.#sendDue()));

  constructor(parts: SendingParts) {
    this.#parts = parts;
    this.wake();
  }

  wake(): void {
    if (!this.#isClosed) void this.#send();
  }

  /** Waits for posts under way, a while. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    await this.#send();
    await Promise.race([Promise.allSettled(this.#posts.values()), sleep(CLOSE_PATIENCE, undefined, { ref: false })]);
  }

  async #sendDue(): Promise<void> {
    if (this.#isClosed) return;
    clearTimeout(this.#timer);
    const { db, webhook, mayPost, onError } = this.#parts;
    let pause = LOOK_EVERY;
    try {
      const places = (this.#failures < FAILURES_OF_AN_OUTAGE ? EVENTS_AT_ONCE : 1) - this.#posts.size;
      const paused = this.#pausedUntil - performance.now();
      if (paused > 0) pause = Math.min(paused, LOOK_EVERY);
      else if (places > 0 && (await mayPost())) {
        this.#ended.clear();
        const due = await dueEvents(db, webhook.name, places + this.#posts.size);
        const fresh = due.filter(({ id }) => !this.#posts.has(id) && !this.#ended.has(id)).slice(0, places);
        for (const event of fresh) this.#begin(event);
        const next = await nextAttempt(db, [webhook.name]);
        if (next !== undefined && this.#posts.size === 0) pause = Math.min(LOOK_EVERY, Math.max(100, next));
      }
    } catch (error) {
      onError('the events of a webhook could not be read', error);
    }
    if (this.#isClosed) return;
    this.#timer = setTimeout(() => this.wake(), pause);
    this.#timer.unref();
  }

  #begin(event: DueEvent): void {
    const post = this.#post(event)
      .catch((error: unknown) => this.#parts.onError('the result of a post could not be noted', error))
      .finally(() => {
        this.#posts.delete(event.id);
        this.#ended.add(event.id);
        this.wake();
      });
    this.#posts.set(event.id, post);
  }

  async #post(event: DueEvent): Promise<void> {
    const { db, webhook, poster, observer, userAgent } = this.#parts;
    const { id, body } = event;
    const headers = { ...signedHeaders(webhook.secrets, id, body), 'user-agent': userAgent };
    const result = await poster.post({ url: webhook.url, headers, body });
    if (result.error === undefined) {
      this.#failures = 0;
      await removeEvent(db, id);
      return observer.onSent(webhook.name, 'sent');
    }
    const again = pauseAfter(event, result);
    this.#noteOutage(result);
    await noteFailure(db, id, { error: result.error, again });
    observer.onSent(webhook.name, again === undefined ? 'given_up' : 'failed');
  }

  #noteOutage({ retryAfter }: PostResult): void {
    this.#failures++;
    if (this.#failures < FAILURES_OF_AN_OUTAGE && retryAfter === undefined) return;
    const growing = this.#failures < FAILURES_OF_AN_OUTAGE ? 0 : 2 ** (this.#failures - FAILURES_OF_AN_OUTAGE);
    const seconds = Math.min(OUTAGE_PAUSE, Math.max(growing, retryAfter ?? 0));
    this.#pausedUntil = performance.now() + seconds * 1000;
  }
}

/** Seconds until the next attempt; undefined: there is none. */
function pauseAfter({ attempts, age }: DueEvent, { isFinal, retryAfter = 0 }: PostResult): number | undefined {
  if (isFinal === true || age > TRIED_FOR * 1000) return undefined;
  const pause = RETRY_PAUSES[attempts] ?? LONGEST_PAUSE;
  // Spread, so that the events of one moment do not come back in one.
  const spread = pause * (0.9 + Math.random() * 0.2);
  const left = TRIED_FOR - age / 1000;
  // The last attempt is at the end of the time, not long before it.
  return Math.min(LONGEST_PAUSE, Math.max(retryAfter, Math.min(spread, Math.max(left, 1))));
}
