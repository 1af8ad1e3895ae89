/**
 * Koa without endpoints: the list of routes comes in, a server comes out. A request passes, in this
 * order, request id → log and metrics → the error door → Host and Expect → CORS → the route → the
 * gate → Accept → the handler.
 */

import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Server as NetServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import Koa, { type Context } from 'koa';
import { QueueFull, StoreError } from '../../database/contract.ts';
import { StorageUnavailable } from '../../files/storage/storage.ts';
import { Problem } from '../../problem.ts';
import { Refusal } from '../../refusal.ts';
import { errorDoor } from '../answer/errors.ts';
import { problemOf } from '../answer/problem-of.ts';
import { protect } from '../answer/protective-headers.ts';
import type { App } from '../app.ts';
import { authorize, notFound } from '../gate.ts';
import { logRequest } from '../observe/log.ts';
import { giveRequestId } from '../observe/request-id.ts';
import type { Route } from '../route.ts';
import { RouteTable } from '../route-table.ts';
import { ARRIVAL_LIMITS, type ArrivalLimits, limitArrivals, MAX_REQUEST_MS } from './arrival.ts';
import { Connections } from './connections.ts';
import { answerMalformedRequests } from './malformed-requests.ts';
import { createServer } from './node-http.ts';
import { answerOrigins } from './origins.ts';

type Handler = (request: IncomingMessage, response: ServerResponse) => Promise<void>;

/** The requests of one app, until the last of them is answered. */
class Generation {
  readonly #handle: Handler;
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(handle: Handler) {
    this.#handle = handle;
  }

  take(request: IncomingMessage, response: ServerResponse): void {
    // It was aborted while it waited.
    if (response.closed) return;
    this.#running++;
    response.on('close', () => {
      this.#running--;
      if (this.#running === 0) for (const resolve of this.#waiting.splice(0)) resolve();
    });
    // Koa resolves after the answer; what it could still throw has been answered by the door.
    void this.#handle(request, response);
  }

  idle(): Promise<void> {
    return this.#running === 0 ? Promise.resolve() : new Promise((resolve) => this.#waiting.push(resolve));
  }
}

/** A server whose app can be replaced while it listens, without losing a request. */
export class HttpServer {
  /** Not listening yet. */
  readonly server: Server;
  readonly #routes: readonly Route[];
  readonly #connections: Connections;
  #current: Generation;
  #isDraining = false;
  /** While it is given, requests that arrive wait for it. */
  #pause: Promise<void> | undefined;

  constructor(app: App, routes: readonly Route[], arrival: ArrivalLimits = ARRIVAL_LIMITS) {
    this.#routes = routes;
    this.#current = new Generation(handlerOf(app, routes));
    this.server = createServer({
      requestTimeout: MAX_REQUEST_MS,
      headersTimeout: 30_000,
      connectionsCheckingInterval: 5_000,
      keepAliveTimeout: 65_000,
      // Node would answer it without a word; checkHead does.
      requireHostHeader: false,
      // Requests without a body get no stream for it.
      optimizeEmptyRequests: true,
    });
    for (const event of ['request', 'checkExpectation']) {
      this.server.on(event, (request: IncomingMessage, response: ServerResponse) => this.#take(request, response));
    }
    answerMalformedRequests(this.server, app.log);
    limitArrivals(this.server, arrival);
    this.#connections = new Connections(this.server, app.config.maxConnections);
  }

  /** Requests that arrive from now on are for `app`. Resolves when those before are answered. */
  replace(app: App): Promise<void> {
    const before = this.#current;
    this.#current = new Generation(handlerOf(app, this.#routes));
    return before.idle();
  }

  /**
   * Requests that arrive wait until the returned function is called. Resolves when those before are
   * answered, and after `patience` milliseconds in any case: a download may take an hour.
   */
  async pause(patience: number): Promise<() => void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#pause = promise;
    const { promise: late, resolve: onLate } = Promise.withResolvers<void>();
    const timer = setTimeout(onLate, patience);
    await Promise.race([this.#current.idle(), late]);
    clearTimeout(timer);
    return () => {
      this.#pause = undefined;
      resolve();
    };
  }

  /**
   * Serves on for `farewellMs`, or until nobody is connected, and lets every answer close its
   * connection: a client that keeps one would lose the next request. Then accepts no more, and
   * finishes what runs; after `mostMs` in all, connections are cut.
   */
  async drain(farewellMs: number, mostMs: number): Promise<void> {
    this.#isDraining = true;
    const end = performance.now() + farewellMs;
    while (performance.now() < end && (await connectionsOf(this.server)) > 0) await sleep(20);
    const closed = new Promise<void>((resolve) => {
      // Unlike that of an HTTP server, it leaves connections alone on which a request may be
      // arriving.
      NetServer.prototype.close.call(this.server, () => resolve());
    });
    if (farewellMs > 0) await Promise.race([closed, sleep(LAST_ARRIVALS_MS)]);
    this.server.closeIdleConnections();
    const idle = setInterval(() => this.server.closeIdleConnections(), 20);
    const late = setTimeout(() => this.server.closeAllConnections(), Math.max(0, mostMs - farewellMs));
    await closed;
    clearInterval(idle);
    clearTimeout(late);
    // Ends the timers of the HTTP server.
    this.server.close(() => undefined);
  }

  #take(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    // Counted while it waits, too: its client has sent the whole request.
    this.#connections.begin(socket);
    response.on('close', () => this.#connections.end(socket));
    this.#handOn(request, response);
  }

  #handOn(request: IncomingMessage, response: ServerResponse): void {
    if (this.#isDraining) response.shouldKeepAlive = false;
    if (this.#pause === undefined) this.#current.take(request, response);
    else void this.#pause.then(() => this.#handOn(request, response));
  }
}

/** Milliseconds for which a request may be under way on a connection that was just made. */
const LAST_ARRIVALS_MS = 100;

const connectionsOf = (server: Server): Promise<number> =>
  new Promise((resolve) => server.getConnections((error, count) => resolve(error === null ? count : 0)));

function handlerOf(app: App, routes: readonly Route[]): Handler {
  const table = new RouteTable(routes);
  const protectResponse = protect(app.config);
  const answerError = errorDoor({ log: app.log, translate });
  const isAnsweredByOrigin = answerOrigins(app);
  const koa = new Koa();
  koa.silent = true;
  // One function for all: each that waits for the next would cost a kilobyte a request.
  koa.use(async (ctx) => {
    giveRequestId(ctx);
    watch(ctx, app);
    protectResponse(ctx);
    try {
      checkHead(ctx);
      if (isAnsweredByOrigin(ctx)) return;
      const match = table.match(ctx.method, ctx.path);
      ctx.params = match.params;
      const route = await authorize({ ctx, app, match });
      ctx.state.route = route;
      if (route.accepts !== 'any') checkAccept(ctx);
      await route.handle(ctx, app);
    } catch (error) {
      answerError(ctx, error);
    }
  });
  return koa.callback();
}

/** Logs and counts the request when its response is closed. */
function watch(ctx: Context, app: App): void {
  const start = performance.now();
  const address = app.addressOf(ctx.req);
  ctx.res.on('close', () => {
    const ms = performance.now() - start;
    logRequest(app.log, ctx, { ms, address });
    app.metrics.observe(ctx, ms / 1000);
  });
}

function checkAccept(ctx: Context): void {
  const { accept } = ctx.req.headers;
  if (accept === undefined || accept === '*/*' || accept === 'application/json') return;
  if (ctx.accepts('application/json', 'application/problem+json') === false) {
    throw new Problem('not_acceptable', 'this address answers with application/json; let Accept include it');
  }
}

/**
 * What HTTP asks of a head, and Node would answer without problem details (RFC 9112 § 3.2, RFC 9110
 * § 10.1.1).
 */
function checkHead(ctx: Context): void {
  const { headers, httpVersion, rawHeaders } = ctx.req;
  const close = { headers: { Connection: 'close' } };
  // Node keeps the first; a proxy in front may have gone by the second.
  if (hasTwoHosts(rawHeaders)) {
    throw new Problem('malformed_request', 'a request has one Host header', close);
  }
  if (httpVersion !== '1.1') return;
  if (headers.host === undefined) {
    throw new Problem('malformed_request', 'a request of HTTP/1.1 has a Host header', close);
  }
  if (headers.expect !== undefined && !/^100-continue$/i.test(headers.expect)) {
    throw new Problem('expectation_failed', 'the only expectation that can be met is 100-continue', close);
  }
}

function hasTwoHosts(rawHeaders: readonly string[]): boolean {
  let count = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!;
    if (name.length === 4 && name.toLowerCase() === 'host') count++;
  }
  return count > 1;
}

/** Errors of other rooms as problems. */
function translate(error: unknown): Problem | undefined {
  if (error instanceof Refusal) return problemOf(error);
  if (error instanceof QueueFull) {
    const headers = { 'Retry-After': String(error.retryAfter) };
    return new Problem('unavailable', `too many requests wait for the database; try again in ${error.retryAfter} s`, {
      headers,
      cause: error,
    });
  }
  if (error instanceof StoreError && isOfUnavailable(error)) {
    return new Problem('unavailable', 'the database cannot be reached; try again shortly', { cause: error });
  }
  // An exclusion of an adopted table that is checked at the commit, which no write of a record waits for.
  if (error instanceof StoreError && error.kind === 'unique')
    return new Problem('unique_violation', 'a value must be unique, and another record has it', { cause: error });
  if (error instanceof StorageUnavailable) {
    return new Problem('unavailable', 'the storage of files cannot be reached; try again shortly', { cause: error });
  }
  if (error instanceof URIError) return notFound();
  return undefined;
}

/** A time limit that no route turned into an error of its own is one of the service. */
const isOfUnavailable = ({ kind }: StoreError): boolean => kind === 'unavailable' || kind === 'time_limit';
