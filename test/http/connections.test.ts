/** Which connection goes where there are too many: real sockets, and a server that holds what it is asked to. */
import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Connections } from '../../src/http/server/client-limits.ts';
import { openSocket } from '../security/raw.ts';
import { until } from '../support/until.ts';

const MOST = 3;
const REQUEST = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';

let server: Server;
let url: string;
/** Responses that are not ended yet, the oldest first. */
let held: ServerResponse[];
let accepted: number;
const sockets: Socket[] = [];

beforeEach(() => serve(MOST));
afterEach(end);

async function serve(most: number): Promise<void> {
  held = [];
  accepted = 0;
  server = createServer();
  const connections = new Connections(server, most, 5_000);
  server.on('connection', () => accepted++);
  server.on('request', (request, response) => {
    connections.serve(request, response);
    held.push(response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function end(): void {
  for (const socket of sockets.splice(0)) socket.destroy();
  server.closeAllConnections();
  server.close();
}

/** Opened one after the other, so that their order is known. */
async function open(...sent: readonly string[]): Promise<readonly Socket[]> {
  const opened: Socket[] = [];
  for (const bytes of sent) {
    const before = accepted;
    const heldBefore = held.length;
    const socket = openSocket(url).resume();
    sockets.push(socket);
    opened.push(socket);
    socket.write(bytes);
    await until('it is accepted', () => accepted > before);
    if (bytes === REQUEST) await until('it is asked', () => held.length > heldBefore || socket.destroyed);
  }
  return opened;
}

const areOpen = (opened: readonly Socket[]): readonly boolean[] => opened.map(({ destroyed }) => !destroyed);

test('the connection that has waited longest for its first request is closed', async () => {
  const [silent, slow, other] = await open('', 'GET / HTTP/1.1\r\nX-Never: ', '');
  await open(REQUEST);
  await until('the first is closed', () => silent!.destroyed);
  await open(REQUEST);
  await until('the second is closed', () => slow!.destroyed);
  expect(areOpen([other!])).toEqual([true]);
});

test('a served connection stays, and waits again after its answer', async () => {
  const [served, silent] = await open(REQUEST, '', REQUEST);
  await open(REQUEST);
  await until('a connection without a request is closed', () => silent!.destroyed);
  held.shift()!.end('done');
  await once(served!, 'data');
  await open(REQUEST);
  await until('a connection that waits for its next request is closed', () => served!.destroyed);
});

test('a new connection is closed if all others are served', async () => {
  const served = await open(REQUEST, REQUEST, REQUEST);
  const [late] = await open('');
  await until('the new one is closed', () => late!.destroyed);
  expect(areOpen(served)).toEqual([true, true, true]);
  served[0]!.destroy();
  await until('the server has seen it', () => held[0]!.destroyed || held[0]!.closed);
  const [next] = await open(REQUEST);
  expect(areOpen([next!])).toEqual([true]);
});

test('requests behind each other on one connection count as long as one of them is served', async () => {
  const [pipelined] = await open(REQUEST + REQUEST);
  await until('both are asked', () => held.length === 2);
  held.shift()!.end('first');
  await once(pipelined!, 'data');
  const [silent] = await open('', '', '');
  await until('a connection without a request is closed', () => silent!.destroyed);
  expect(areOpen([pipelined!])).toEqual([true]);
});

/** Connections that were answered once and are kept. */
async function openIdle(count: number): Promise<readonly Socket[]> {
  const idle = await open(...Array<string>(count).fill(REQUEST));
  // The server sees the end of its response a little later than the client.
  const closed = held.map((response) => once(response, 'close'));
  for (const response of held.splice(0)) response.end('done');
  await Promise.all([...closed, ...idle.map((socket) => once(socket, 'data'))]);
  return idle;
}

test('silent clients do not cut off a client that keeps its connection', async () => {
  const kept = await openIdle(2);
  const silent = await open('', 'GET / HTTP/1.1\r\nX-Never: ', '', '', '');
  await until('all but the last that are silent are closed', () =>
    silent.slice(0, -1).every(({ destroyed }) => destroyed),
  );
  expect(areOpen([...kept, silent.at(-1)!])).toEqual([true, true, true]);
  kept[0]!.write(REQUEST);
  await until('the next request is asked', () => held.length === 1);
});

test('new clients have the time to send their request while others are idle', async () => {
  end();
  await serve(16);
  const idle = await openIdle(16);
  const [first, second] = await open('', '');
  await until('the idle that wait longest are closed', () => idle[1]!.destroyed);
  const [third] = await open('');
  await until('the first without a request is closed', () => first!.destroyed);
  expect(areOpen([second!, third!, ...idle])).toEqual([true, true, false, false, ...Array(14).fill(true)]);
  second!.write(REQUEST);
  await until('it is asked', () => held.length === 1);
});
