/** A subscriber of one feed: what it asks for, who asks, and where its events go. */
import { hash } from 'node:crypto';
import type { AccessContext } from '../records/access-context.ts';
import type { Collection } from '../schema/model/model.ts';
import type { Audience, Watched } from './audience.ts';
import type { Moment } from './change-log.ts';
import type { ChangeBatch } from './commits.ts';
import type { FeedEvent } from './events.ts';

export interface EventSink {
  /** Takes an event with its position. */
  send(event: Pick<FeedEvent, 'type' | 'data'>, position: string): void;
  /** Takes a position without an event; undefined: a replay has none yet. */
  beat(position: string | undefined): void;
  /** The reader has not taken most of what was sent. */
  lags(): boolean;
  /** Resolves when the reader has taken most of what was sent. */
  drained(): Promise<void>;
  end(reason: string): void;
}

/** The present state of the caller who subscribed. */
export type CallerState = 'same' | 'changed' | 'ended';

export interface FeedRequest extends Watched {
  readonly collection: Collection;
  /** The access at this instant. */
  readonly access: () => AccessContext;
  /** Looks for the end of the session, and for other roles or own fields. */
  readonly recheck: () => CallerState | Promise<CallerState>;
  /** The filter, its params and the fields in one spelling. */
  readonly query: string;
  /** The values that rules read of the request besides its caller, in one spelling. Default: none. */
  readonly request?: string;
  /** A position. */
  readonly since?: string | undefined;
  /** Earlier feeds of the same response with this collection and query: the ids of a response differ. Default: none. */
  readonly equalBefore?: number;
}

/** Subscribers who share an audience. */
export interface FeedGroup {
  readonly key: string;
  readonly members: Set<Subscriber>;
  /** A rule or the filter names the time: each batch has an audience of its own. */
  readonly isTimed: boolean;
  audience: Audience;
}

export class Subscriber {
  readonly request: FeedRequest;
  readonly sink: EventSink;
  /** Undefined: earlier changes are replayed, and it takes no batch. */
  group: FeedGroup | undefined;
  /** The subscriber has everything that this moment sees. */
  floor: Moment | undefined;
  isEnded = false;
  /** Made when it is needed first: thousands of subscribers wait for their turn. */
  #access: AccessContext | undefined;
  /** The first part of its positions. Undefined: the copy that its events keep has not begun. */
  mark: string | undefined;
  /** Resolves when a reset is sent, which waits for the other nodes. */
  pendingReset: Promise<void> | undefined;
  /** Positions that it was given at the end of a batch. */
  ends = 0;

  constructor(request: FeedRequest, sink: EventSink) {
    this.request = request;
    this.sink = sink;
  }

  get access(): AccessContext {
    this.#access ??= this.request.access();
    return this.#access;
  }

  /** Reads the caller anew. */
  renew(): void {
    this.#access = this.request.access();
  }

  /** A digest of the caller's present state, and of what rules read of the request. */
  get caller(): string {
    const { kind, auth, limit } = this.access;
    const state = JSON.stringify([kind, auth, limit, this.request.request]);
    return hash('sha256', state, 'base64url').slice(0, 12);
  }

  /** Positions are bound to it. */
  get scope(): string {
    const { collection, query } = this.request;
    return JSON.stringify([collection.name, query, this.access.principal]);
  }

  /** The events of a batch that the subscriber did not have before it. */
  missing(events: readonly FeedEvent[], { from }: ChangeBatch): readonly FeedEvent[] {
    const { floor } = this;
    if (floor === undefined) return events;
    if (from.at > floor.at) this.floor = undefined;
    return events.filter(({ xid }) => xid === undefined || !floor.snapshot.sees(xid));
  }

  /** The moment from which on the subscriber takes the events of a batch. */
  startIn({ from }: ChangeBatch): Moment {
    const { floor } = this;
    return floor !== undefined && floor.at > from.at ? floor : from;
  }

  /** The subscriber has everything that the moment sees. */
  has({ snapshot }: Moment): boolean {
    return this.floor?.snapshot.covers(snapshot) === true;
  }

  end(reason: string): void {
    if (this.isEnded) return;
    this.isEnded = true;
    this.sink.end(reason);
  }
}
