/**
 * Koa without endpoints: the list of routes comes in, a server comes out. A request passes, in this order, request id → log and metrics →
 * the error door → Host and Expect → CORS → the route → the gate → Accept → the handler.
 */
import { createServer as createHttpServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import Koa, { type Context, type Next } from 'koa';
import { StorageUnavailable } from '../files/storage.ts';
import { Problem } from '../problem.ts';
import { StoreError } from '../store/database/contract.ts';
import { Refusal } from '../store/refusal.ts';
import type { App } from './app.ts';
import { ARRIVAL_LIMITS, type ArrivalLimits, limitArrivals, MAX_REQUEST_MS } from './arrival.ts';
import { errorDoor } from './errors.ts';
import { authorize, forbidden, notFound } from './gate.ts';
import { logRequests } from './log.ts';
import { answerMalformedRequests } from './malformed-requests.ts';
import { answerOrigins } from './origins.ts';
import { protect } from './protective-headers.ts';
import { giveRequestId } from './request-id.ts';
import type { Route } from './route.ts';
import { type Match, RouteTable } from './route-table.ts';

/** Not listening yet. */
export function createServer(app: App, routes: readonly Route[], arrival: ArrivalLimits = ARRIVAL_LIMITS): Server {
  const table = new RouteTable(routes);
  const koa = new Koa();
  koa.silent = true;
  koa
    .use(giveRequestId)
    .use(logRequests(app.log, (ctx) => app.addressOf(ctx.req)))
    .use(app.metrics.measure)
    .use(protect(app.config))
    .use(errorDoor({ log: app.log, translate }))
    .use(checkHead)
    .use(answerOrigins(app.schema.origins))
    .use(async (ctx) => answer(ctx, app, table.match(ctx.method, ctx.path)));
  const handle = koa.callback();
  const server = createHttpServer({
    requestTimeout: MAX_REQUEST_MS,
    headersTimeout: 30_000,
    keepAliveTimeout: 65_000,
    // Node would answer it without a word; checkHead does.
    requireHostHeader: false,
  });
  for (const event of ['request', 'checkExpectation']) {
    server.on(event, (request: IncomingMessage, response: ServerResponse) => {
      // Koa resolves after the answer; what it could still throw has been answered by the door.
      void handle(request, response);
    });
  }
  answerMalformedRequests(server, app.log);
  limitArrivals(server, arrival);
  server.maxConnections = app.config.maxConnections;
  return server;
}

async function answer(ctx: Context, app: App, match: Match): Promise<void> {
  ctx.params = match.params;
  const route = await authorize({ ctx, app, match });
  ctx.state.route = route;
  if (route.accepts !== 'any') checkAccept(ctx);
  await route.handle(ctx, app);
}

function checkAccept(ctx: Context): void {
  if (ctx.accepts('application/json', 'application/problem+json') === false) {
    throw new Problem('not_acceptable', 'this address answers with application/json; let Accept include it');
  }
}

/** What HTTP asks of a head, and Node would answer without problem details (RFC 9112 § 3.2, RFC 9110 § 10.1.1). */
async function checkHead(ctx: Context, next: Next): Promise<void> {
  const { headers, httpVersion, rawHeaders } = ctx.req;
  const close = { headers: { Connection: 'close' } };
  // Node keeps the first; a proxy in front may have gone by the second.
  if (rawHeaders.filter((name, i) => i % 2 === 0 && name.toLowerCase() === 'host').length > 1) {
    throw new Problem('malformed_request', 'a request has one Host header', close);
  }
  if (httpVersion !== '1.1') return next();
  if (headers.host === undefined) {
    throw new Problem('malformed_request', 'a request of HTTP/1.1 has a Host header', close);
  }
  if (headers.expect !== undefined && !/^100-continue$/i.test(headers.expect)) {
    throw new Problem('expectation_failed', 'the only expectation that can be met is 100-continue', close);
  }
  await next();
}

/** Errors of other rooms as problems. */
function translate(error: unknown): Problem | undefined {
  if (error instanceof Refusal) return problemOf(error);
  if (error instanceof StoreError && error.kind === 'unavailable') {
    return new Problem('unavailable', 'the database cannot be reached; try again shortly', { cause: error });
  }
  if (error instanceof StorageUnavailable) {
    return new Problem('unavailable', 'the storage of files cannot be reached; try again shortly', { cause: error });
  }
  if (error instanceof URIError) return notFound();
  return undefined;
}

function problemOf({ code, message, errors }: Refusal): Problem {
  switch (code) {
    case 'not_found':
      return notFound();
    case 'forbidden':
      return forbidden();
    case 'idempotency_lost':
      return new Problem('unavailable', message);
    case 'validation_failed':
    case 'unique_violation':
    case 'still_referenced':
    case 'changed':
    case 'last_admin':
    case 'idempotency_mismatch':
      return new Problem(code, message, { errors });
  }
}
