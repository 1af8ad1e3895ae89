/** Bodies that arrive slowly hold up those of their own caller alone. */
import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import Koa from 'koa';
import { afterEach, expect, test } from 'vitest';
import { jsonBodyReader } from '../../src/http/body.ts';
import { Problem } from '../../src/problem.ts';
import { asCaller } from '../../src/queued-caller.ts';
import { until } from '../support/until.ts';

const RUNNING = 4;
const TEXT = JSON.stringify('x'.repeat(200_000));
const closing: (() => void)[] = [];
afterEach(() => {
  for (const close of closing.splice(0)) close();
});

/** Answers with the length of the body's value, for the caller of the headers, once `handled` has ended. */
async function serving(
  ms?: number,
  handled: (ctx: Koa.Context) => Promise<unknown> = async () => {},
  began: (ctx: Koa.Context) => void = () => {},
): Promise<number> {
  const read = jsonBodyReader(1 << 20, ms);
  const app = new Koa();
  app.use(async (ctx) => {
    const caller = { id: ctx.get('x-caller'), isKept: ctx.get('x-kept') !== '' };
    began(ctx);
    try {
      ctx.body = { length: String(await asCaller(caller, () => read(ctx))).length };
      await handled(ctx);
    } catch (error) {
      if (!(error instanceof Problem)) throw error;
      ctx.status = error.status;
    }
  });
  const server = app.listen(0, '127.0.0.1');
  closing.push(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, 'listening');
  return (server.address() as AddressInfo).port;
}

interface Sent {
  readonly client: ClientRequest;
  /** Undefined until it is answered. */
  status?: number | undefined;
  readonly answered: Promise<number | undefined>;
}

function begin(port: number, caller: string, more: Record<string, string> = {}): Sent {
  const headers = { 'Content-Type': 'application/json', 'Content-Length': TEXT.length, 'x-caller': caller, ...more };
  const client = request({ port, method: 'POST', headers });
  const { promise, resolve } = Promise.withResolvers<number | undefined>();
  const sent: Sent = { client, answered: promise };
  client.on('error', () => resolve(undefined));
  client.on('response', (response: IncomingMessage) => {
    response.resume();
    sent.status = response.statusCode;
    resolve(response.statusCode);
  });
  client.write(TEXT.slice(0, 100_000));
  return sent;
}

const finish = ({ client }: Sent): unknown => client.end(TEXT.slice(100_000));

test('a caller whose bodies stay unfinished waits with the next one, and no other caller does', async () => {
  let begun = 0;
  const port = await serving(undefined, undefined, () => void begun++);
  const slow = Array.from({ length: RUNNING }, () => begin(port, 'ann'));
  await until('the service reads the slow bodies', () => begun === RUNNING);

  const late = begin(port, 'ann');
  finish(late);
  const [other, kept] = [begin(port, 'bob'), begin(port, 'ann', { 'x-kept': 'yes' })];
  for (const each of [other, kept]) finish(each);
  expect(await Promise.all([other.answered, kept.answered])).toEqual([200, 200]);
  expect(late.status).toBeUndefined();

  finish(slow[0]!);
  expect(await Promise.all([slow[0]!.answered, late.answered])).toEqual([200, 200]);
});

test('a caller with too many bodies under way gets a 429', async () => {
  const port = await serving();
  const all = Array.from({ length: RUNNING + 129 }, () => begin(port, 'ann'));
  expect(await Promise.race(all.map(({ answered }) => answered))).toBe(429);
  expect(all.filter(({ status }) => status !== undefined).map(({ status }) => status)).toEqual([429]);
});

test('a caller with four long bodies in hand waits with the next one until a request is answered', async () => {
  const begun = Promise.withResolvers<void>();
  const ends: (() => void)[] = [];
  const port = await serving(undefined, (ctx) => {
    if (ctx.get('x-caller') === 'bob') return Promise.resolve();
    return new Promise<void>((resolve) => {
      if (ends.push(resolve) === RUNNING) begun.resolve();
    });
  });
  const held = Array.from({ length: RUNNING }, () => begin(port, 'ann'));
  for (const each of held) finish(each);
  await begun.promise;
  const late = begin(port, 'ann');
  finish(late);
  const other = begin(port, 'bob');
  finish(other);
  expect(await other.answered).toBe(200);
  expect(ends.length).toBe(RUNNING);

  ends[0]!();
  expect(await Promise.race(held.map(({ answered }) => answered))).toBe(200);
  await until('the next request has its body', () => ends.length > RUNNING);
  for (const end of ends) end();
  expect(await late.answered).toBe(200);
});

test('the memory of a long body is free before its request is answered', async () => {
  const pieces: Buffer[] = [];
  const lengths: number[] = [];
  const port = await serving(
    undefined,
    async ({ request }) => lengths.push(...[...pieces, request.body as unknown as Buffer].map(({ length }) => length)),
    ({ req }) => {
      const push = req.push.bind(req);
      req.push = (piece) => {
        if (piece !== null) pieces.push(piece);
        return push(piece);
      };
    },
  );
  const sent = begin(port, 'ann');
  finish(sent);
  expect(await sent.answered).toBe(200);
  expect(pieces.length).toBeGreaterThan(0);
  expect(lengths.filter((length) => length > 0)).toEqual([]);
});
