/**
 * Makes a server of the list of routes, on Koa. A request passes, in this order, request id → log
 * and metrics → the error door → Host and Expect → CORS → the route → the gate → Accept → the body
 * → the handler.
 */
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { Server as NetServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import Koa, { type Context } from 'koa';
import { Problem } from '../../problem.ts';
import { asCaller, type QueuedCaller } from '../../queued-caller.ts';
import { withDeadline } from '../../with-deadline.ts';
import { compressBody } from '../answer/compression.ts';
import { answerError } from '../answer/errors.ts';
import type { App } from '../app.ts';
import { authorize } from '../gate.ts';
import { logRequest } from '../observe/request-record.ts';
import { assignRequestId, isLocal } from '../request.ts';
import type { Route } from '../route.ts';
import { RouteTable } from '../route-table.ts';
import { answerOrigin, setProtectiveHeaders } from './browser-security.ts';
import { ARRIVAL_LIMITS, type ArrivalLimits, Connections, MAX_REQUEST_MS } from './client-limits.ts';
import { LostCookies } from './lost-cookies.ts';
import { answerMalformedRequests } from './malformed-requests.ts';

/** An import would load all of `node:http`, its client of WebSockets too: 20 ms of the startup. */
const { createServer } = process.getBuiltinModule('node:http');

/** Requests of other machines and of proxies: a balancer sends more of them until it has seen `/readyz` answer 503. */
class RemoteRequests {
  #lastAt = Number.NEGATIVE_INFINITY;

  see(ctx: Context): void {
    if (!isLocal(ctx)) this.#lastAt = performance.now();
  }

  get areExpected(): boolean {
    return performance.now() - this.#lastAt < EXPECTED_MS;
  }
}
/** Milliseconds: balancers look at `/readyz` more often. */
const EXPECTED_MS = 60_000;

/** Serves the requests of one app, until the last of them is answered. */
class Generation {
  /** Resolves after the answer; the error door has answered every error before. */
  readonly serve: (request: IncomingMessage, response: ServerResponse) => Promise<void>;
  readonly #lostCookies = new LostCookies();
  #running = 0;
  readonly #waiting: (() => void)[] = [];

  constructor(app: App, routes: readonly Route[], remote: RemoteRequests) {
    const table = new RouteTable(routes);
    const koa = new Koa();
    koa.silent = true;
    // A single function runs all stages: each middleware would cost a kilobyte a request.
    koa.use(async (ctx) => {
      this.#watch(ctx, app);
      remote.see(ctx);
      assignRequestId(ctx);
      setProtectiveHeaders(ctx, app);
      try {
        checkHead(ctx);
        if (answerOrigin(ctx, app)) return;
        const match = table.match(ctx.method, ctx.path);
        ctx.params = match.params;
        const route = await authorize({ ctx, app, match });
        ctx.state.route = route;
        if (route.accepts !== 'any') checkAccept(ctx);
        await asCaller(queueCallerOf(ctx, route), async () => {
          const body = route.body && (await route.body.read(ctx, app));
          await route.handle(ctx, app, body as never);
        });
      } catch (error) {
        answerError(ctx, error, app.log);
      }
      // A route that sends by itself has compressed its answer.
      if (ctx.respond !== false) await compressBody(ctx);
    });
    this.serve = koa.callback();
  }

  idle(): Promise<void> {
    return this.#running === 0 ? Promise.resolve() : new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** Logs and counts the request when its response is closed. */
  #watch(ctx: Context, { addressOf, config, log, metrics }: App): void {
    const start = performance.now();
    this.#running++;
    // Read at the arrival: a closed socket no longer knows its peer.
    ctx.state.address = addressOf(ctx.req);
    ctx.res.on('close', () => {
      const ms = performance.now() - start;
      logRequest(log, ctx, ms);
      if (config.isDevelopment) this.#lostCookies.see(ctx, log);
      if (ctx.state.route?.isStream !== true) metrics.durations.observe(ctx, ms / 1000);
      this.#running--;
      if (this.#running === 0) for (const resolve of this.#waiting.splice(0)) resolve();
    });
  }
}

/** The routes of an app: its schema names the path of some. */
type RoutesOf = (app: App) => readonly Route[];

/** A server whose app can be replaced while it listens, without losing a request. */
export class HttpServer {
  /** The server does not listen yet. */
  readonly server: Server;
  readonly #routesOf: RoutesOf;
  readonly #connections: Connections;
  readonly #remote = new RemoteRequests();
  #current: Generation;
  #isDraining = false;
  /** If given, requests that arrive wait for it. */
  #pause: Promise<void> | undefined;

  constructor(app: App, routesOf: RoutesOf, arrival: ArrivalLimits = ARRIVAL_LIMITS) {
    this.#routesOf = routesOf;
    this.#current = new Generation(app, routesOf(app), this.#remote);
    this.server = createServer({
      requestTimeout: MAX_REQUEST_MS,
      headersTimeout: 30_000,
      connectionsCheckingInterval: 5_000,
      keepAliveTimeout: 65_000,
      // Node would answer without problem details; checkHead answers with them.
      requireHostHeader: false,
      // Requests without a body get no stream for it.
      optimizeEmptyRequests: true,
    });
    this.#connections = new Connections(this.server, app.config.maxConnections, arrival.lingerMs);
    for (const event of ['request', 'checkContinue', 'checkExpectation']) this.server.on(event, this.#serve);
    answerMalformedRequests(this.server, this.#connections, app.log);
  }

  /** Serves requests that arrive from now on by `app`. Resolves when the earlier ones are answered. */
  replace(app: App): Promise<void> {
    const before = this.#current;
    this.#current = new Generation(app, this.#routesOf(app), this.#remote);
    return before.idle();
  }

  /**
   * Lets requests that arrive wait until the returned function is called. Resolves when the earlier
   * ones are answered, and after `patience` milliseconds in any case: a download may take an hour.
   */
  async pause(patience: number): Promise<() => void> {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#pause = promise;
    await withDeadline(this.#current.idle(), patience, () => undefined);
    return () => {
      this.#pause = undefined;
      resolve();
    };
  }

  /**
   * Serves on for `farewellMs`, or until no client is connected and no balancer is expected to send more, and lets every answer close its
   * connection: a client that keeps one would lose the next request. Then accepts no more
   * connections, and finishes running requests; after `mostMs` in all, connections are cut.
   */
  async drain(farewellMs: number, mostMs: number): Promise<void> {
    this.#isDraining = true;
    const end = performance.now() + farewellMs;
    while (performance.now() < end && (this.#remote.areExpected || (await connectionsOf(this.server)) > 0))
      await sleep(20);
    await this.#acceptPending();
    const closed = new Promise<void>((resolve) => {
      // Unlike `close` of an HTTP server, it keeps connections on which a request may be arriving.
      NetServer.prototype.close.call(this.server, () => resolve());
    });
    if (farewellMs > 0) await this.#takeLastRequests();
    this.server.closeIdleConnections();
    const idle = setInterval(() => this.server.closeIdleConnections(), 20);
    const late = setTimeout(() => this.server.closeAllConnections(), Math.max(0, mostMs - farewellMs));
    await closed;
    clearInterval(idle);
    clearTimeout(late);
    // Ends the timers of the HTTP server.
    this.server.close(() => undefined);
  }

  /**
   * A listener that closes resets the connections that the kernel has accepted for it. So it closes
   * after a turn of the event loop without a new connection.
   */
  async #acceptPending(): Promise<void> {
    const end = performance.now() + LAST_ARRIVALS_MS;
    let accepted: number;
    do {
      accepted = this.#connections.accepted;
      await pollOnce();
    } while (this.#connections.accepted > accepted && performance.now() < end);
  }

  /** Waits for requests that may be arriving on new connections. */
  async #takeLastRequests(): Promise<void> {
    const end = performance.now() + LAST_ARRIVALS_MS;
    while (this.#connections.awaitsRequests && performance.now() < end) await sleep(10);
  }

  readonly #serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    // Counted while it waits, too: its client has sent the whole request.
    this.#connections.serve(request, response);
    while (this.#pause !== undefined) await this.#pause;
    if (this.#isDraining) response.shouldKeepAlive = false;
    // The request may have been aborted while it waited.
    if (!response.closed) void this.#current.serve(request, response);
  };
}

/** Milliseconds for which a request may be arriving on a new connection. */
const LAST_ARRIVALS_MS = 1_000;

/** Resolves after the event loop has looked for events of sockets. */
const pollOnce = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)));

/** Whose turn it is in the queues: a principal's, or an address's where there is none. */
const queueCallerOf = ({ state, req, res }: Context, { isKept }: Route): QueuedCaller => ({
  id: state.share ?? state.address,
  isKept: isKept === true,
  hasLeft: () => req.socket.destroyed && !res.writableFinished,
});

const connectionsOf = (server: Server): Promise<number> =>
  new Promise((resolve) => server.getConnections((error, count) => resolve(error === null ? count : 0)));

/** The ranges of Accept that include an answer in JSON. */
const JSON_RANGES = ['application/json', 'application/problem+json', 'application/*', '*/*'];

function checkAccept(ctx: Context): void {
  const { accept } = ctx.req.headers;
  if (!accept || JSON_RANGES.includes(accept)) return;
  // Without the parameters of the ranges: a charset, or a version of a format, excludes no JSON.
  const accepted = ctx.accepts() as string[];
  if (!accepted.some((range) => JSON_RANGES.includes(range.toLowerCase()))) {
    throw new Problem('not_acceptable', 'this address answers with application/json; let Accept include it');
  }
}

/**
 * Checks the head where Node would answer without problem details (RFC 9112 § 3.2, RFC 9110
 * § 10.1.1).
 */
function checkHead(ctx: Context): void {
  const { headers, httpVersion, rawHeaders } = ctx.req;
  const close = { headers: { Connection: 'close' } };
  const twice = singleHeaderGivenTwice(rawHeaders);
  if (twice !== undefined) throw new Problem('malformed_request', `a request has one ${twice} header`, close);
  const coding = headers['transfer-encoding'];
  // RFC 9112 § 6.1: a coding that no one here decodes, and one that HTTP/1.0 does not have.
  if (coding !== undefined && !/^chunked$/i.test(coding)) {
    throw new Problem('not_implemented', 'the only Transfer-Encoding that is read is `chunked`', close);
  }
  if (coding !== undefined && httpVersion !== '1.1') {
    throw new Problem('malformed_request', 'a request of HTTP/1.0 has no Transfer-Encoding', close);
  }
  if (httpVersion !== '1.1') return;
  if (headers.host === undefined) {
    throw new Problem('malformed_request', 'a request of HTTP/1.1 has a Host header', close);
  }
  if (headers.expect !== undefined && !/^100-continue$/i.test(headers.expect)) {
    throw new Problem('expectation_failed', 'the only expectation that can be met is 100-continue', close);
  }
}

/** Node keeps the first of each; a proxy in front may have used the second. */
const SINGLE = ['host', 'content-type', 'authorization', 'transfer-encoding'];
const SINGLE_LENGTHS = new Set(SINGLE.map(({ length }) => length));

function singleHeaderGivenTwice(rawHeaders: readonly string[]): string | undefined {
  let seen = '';
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!;
    if (!SINGLE_LENGTHS.has(name.length)) continue;
    const lower = name.toLowerCase();
    if (!SINGLE.includes(lower)) continue;
    if (seen.includes(`,${lower},`)) return lower;
    seen += `,${lower},`;
  }
  return undefined;
}
