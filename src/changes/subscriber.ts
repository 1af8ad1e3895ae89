/** A subscriber of one feed: what it asks for, who asks, and where its events go. */
import { createHash } from 'node:crypto';
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
  /** A position. */
  readonly since?: string | undefined;
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
  /** Positions are bound to it. */
  readonly scope: string;
  access: AccessContext;
  /** A digest of the caller's present state. */
  caller: string;
  /** Undefined: earlier changes are replayed, and it takes no batch. */
  group: FeedGroup | undefined;
  /** The subscriber has everything that this moment sees. */
  floor: Moment | undefined;
  isEnded = false;
  /** The first part of its positions. Undefined: the copy that its events keep has not begun. */
  mark: string | undefined;
  /** Positions that it was given at the end of a batch. */
  ends = 0;

  constructor(request: FeedRequest, sink: EventSink) {
    this.request = request;
    this.sink = sink;
    this.access = request.access();
    this.caller = callerDigest(this.access);
    this.scope = JSON.stringify([request.collection.name, request.query, this.access.principal]);
  }

  /** Reads the caller anew. */
  renew(): void {
    this.access = this.request.access();
    this.caller = callerDigest(this.access);
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

const callerDigest = ({ kind, auth }: AccessContext): string =>
  createHash('sha256')
    .update(JSON.stringify([kind, auth]))
    .digest('base64url')
    .slice(0, 12);
