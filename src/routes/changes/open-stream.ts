/** Opens the stream of one feed or several, for the caller of the request as long as its session lasts. Not a route. */
import type { Context } from 'koa';
import type { Caller } from '../../auth/caller.ts';
import type { LinkSigner } from '../../auth/sessions/authenticator.ts';
import { requestReadBy } from '../../changes/audience.ts';
import type { ChangeFeeds } from '../../changes/change-feeds.ts';
import type { CallerState, EventSink, FeedRequest, Subscriber } from '../../changes/subscriber.ts';
import type { App } from '../../http/app.ts';
import { EventStream } from '../../http/event-stream.ts';
import { callerOf, notFoundProblem, receivedFrom, renewalOf } from '../../http/gate.ts';
import { credentialsOf } from '../../http/request.ts';
import { Problem } from '../../problem.ts';
import type { AskedFeed } from './feed-request.ts';

/** With the time between two looks and that of a look, a session that ended unannounced is noticed within the second. */
const MOST_AGE_MS = 400;

/** @param feeds by their names; a feed without a name is the only one */
export async function openStream(ctx: Context, app: App, feeds: ReadonlyMap<string, AskedFeed>): Promise<void> {
  const service = app.feeds;
  if (service === undefined) throw notFoundProblem();
  const leave = await service.admit(ctx.state.share ?? '', feeds.size);
  if (ctx.res.destroyed) return leave();
  ctx.res.once('close', leave);
  const streams = new CallerStreams(ctx, app, service);
  for (const [name, feed] of feeds) streams.add(name, feed);
  streams.open();
}

/** The feeds of one response. */
class CallerStreams {
  readonly #ctx: Context;
  readonly #service: ChangeFeeds;
  readonly #renew: ReturnType<typeof renewalOf>;
  readonly #auth: App['auth'];
  readonly #requests = new Map<string, FeedRequest>();
  readonly #subscribers: Subscriber[] = [];
  #caller: Caller;
  readonly #opener: LinkSigner;
  readonly #schema: App['schema'];
  readonly #received: ReturnType<typeof receivedFrom>;

  constructor(ctx: Context, app: App, service: ChangeFeeds) {
    this.#ctx = ctx;
    this.#service = service;
    this.#auth = app.auth;
    this.#schema = app.schema;
    this.#received = receivedFrom(ctx);
    this.#renew = renewalOf(ctx, app, this.#received);
    this.#caller = callerOf(ctx);
    this.#opener = app.auth.authenticator.openerOf(this.#caller, credentialsOf(ctx));
  }

  add(name: string, { collection, ...asked }: AskedFeed): void {
    // A caller per feed: each feed learns of a change by itself.
    let known = this.#caller;
    const recheck = async (): Promise<CallerState> => {
      const caller = await this.#present();
      if (caller === undefined) return 'ended';
      if (caller === known || isSameCaller(caller, known)) return 'same';
      try {
        this.#renew(caller, collection);
        known = caller;
      } catch (error) {
        if (error instanceof Problem) return 'ended';
        throw error;
      }
      return 'changed';
    };
    const access = () => this.#renew(known, collection).access();
    const equal = [...this.#requests.values()].filter(
      (each) => each.collection === collection && each.query === asked.query,
    );
    const request = requestReadBy(this.#received, { ...asked, collection, schema: this.#schema });
    this.#requests.set(name, { ...asked, collection, access, recheck, request, equalBefore: equal.length });
  }

  open(): void {
    const last = this.#ctx.get('Last-Event-ID');
    const onClose = (reason: string): void => {
      for (const each of this.#subscribers) this.#service.leave(each, reason);
    };
    const stream = new EventStream(this.#ctx, onClose);
    for (const [name, request] of this.#requests) {
      const since = last === '' || name !== '' ? request.since : last;
      const subscriber = this.#service.subscribe({ ...request, since }, sinkOf(stream, name));
      this.#subscribers.push(subscriber);
    }
  }

  /** Undefined: the session has ended. */
  async #present(): Promise<Caller | undefined> {
    try {
      return await this.#auth.authenticator.callerOfLink(this.#opener, MOST_AGE_MS);
    } catch (error) {
      if (error instanceof Problem && error.status === 401) return undefined;
      // The database does not answer: it sends no events either.
      return this.#caller;
    }
  }
}

function sinkOf(stream: EventStream, name: string): EventSink {
  const named = name === '' ? '' : `"feed":${JSON.stringify(name)}`;
  return {
    send: ({ type, data }, id) => {
      const members = named === '' || data === '' ? `${named}${data}` : `${named},${data}`;
      stream.send({ id, type, data: `{${members}}` });
    },
    beat: (id) => void stream.beat(id),
    lags: () => stream.lags(),
    drained: () => stream.drained(),
    end: (reason) => stream.end(reason === 'restart'),
  };
}

const isSameCaller = (a: Caller, b: Caller): boolean => callerState(a) === callerState(b);

/** All that decides what a caller may read. */
const callerState = ({ auth, kind, bounds }: Caller): string => JSON.stringify([auth, kind, bounds?.limitText]);
