/** Which connection goes where there are too many: real sockets, and a server that holds what it is asked to. */
import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Connections } from '../../src/http/connections.ts';
import { until } from '../auth/people.ts';
import { openSocket } from '../security/raw.ts';

const MOST = 3;
const REQUEST = 'GET / HTTP/1.1\r\nHost: x\r\n\r\n';

let server: Server;
let url: string;
/** Responses that are not ended yet, the oldest first. */
let held: ServerResponse[];
let accepted: number;
const sockets: Socket[] = [];

beforeEach(async () => {
  held = [];
  accepted = 0;
  server = createServer();
  const connections = new Connections(server, MOST);
  server.on('connection', () => accepted++);
  server.on('request', ({ socket }, response) => {
    connections.begin(socket);
    response.once('close', () => connections.end(socket));
    held.push(response);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
  server.closeAllConnections();
  server.close();
});

const whenever = (what: string, holds: () => boolean) => until(what, async () => holds(), 5_000);

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
    await whenever('it is accepted', () => accepted > before);
    if (bytes === REQUEST) await whenever('it is asked', () => held.length > heldBefore || socket.destroyed);
  }
  return opened;
}

const areOpen = (opened: readonly Socket[]): readonly boolean[] => opened.map(({ destroyed }) => !destroyed);

test('the one that has waited longest for its first request goes', async () => {
  const [silent, slow, other] = await open('', 'GET / HTTP/1.1\r\nX-Never: ', '');
  await open(REQUEST);
  await whenever('the first is closed', () => silent!.destroyed);
  await open(REQUEST);
  await whenever('the second is closed', () => slow!.destroyed);
  expect(areOpen([other!])).toEqual([true]);
});

test('one that is served stays, and waits again after its answer', async () => {
  const [served, silent] = await open(REQUEST, '', REQUEST);
  await open(REQUEST);
  await whenever('who asked nothing is closed', () => silent!.destroyed);
  held.shift()!.end('done');
  await once(served!, 'data');
  await open(REQUEST);
  await whenever('who waits for its next request is closed', () => served!.destroyed);
});

test('where all are served, the new one is closed', async () => {
  const served = await open(REQUEST, REQUEST, REQUEST);
  const [late] = await open('');
  await whenever('the new one is closed', () => late!.destroyed);
  expect(areOpen(served)).toEqual([true, true, true]);
  served[0]!.destroy();
  await whenever('the server has seen it', () => held[0]!.destroyed || held[0]!.closed);
  const [next] = await open(REQUEST);
  expect(areOpen([next!])).toEqual([true]);
});

test('requests behind each other on one connection count as long as one of them is served', async () => {
  const [pipelined] = await open(REQUEST + REQUEST);
  await whenever('both are asked', () => held.length === 2);
  held.shift()!.end('first');
  await once(pipelined!, 'data');
  const [silent] = await open('', '', '');
  await whenever('who asked nothing is closed', () => silent!.destroyed);
  expect(areOpen([pipelined!])).toEqual([true]);
});
