// @module-tag long
/** The end of a server: no connection that the kernel has accepted is reset. */
import { spawn } from 'node:child_process';
import { get } from 'node:http';
import { text } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { openLog } from '../../src/http/observe/log.ts';
import { type Service, startService } from '../../src/service/start-service.ts';
import { temporaryFolder } from '../files/sending.ts';
import { openEmbeddedDatabase } from '../support/embedded/embedded.ts';
import { cheapPasswords, schemaFrom } from '../support/service.ts';

const CONNECTIONS = 30;
/** Connects, and sends a request on each connection after so many milliseconds; prints the outcomes. */
const CLIENT = `
const [port, delay] = process.argv.slice(1).map(Number);
const outcomes = {};
const count = (outcome) => { outcomes[outcome] = (outcomes[outcome] ?? 0) + 1; };
const ask = () => new Promise((resolve) => {
  let answer = '';
  const socket = require('node:net').connect(port, '127.0.0.1', () => setTimeout(
    () => socket.write('GET /healthz HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n'), delay));
  socket.on('data', (data) => { answer += data; });
  socket.on('error', ({ code }) => { count(code); resolve(); });
  socket.on('end', () => { count(answer.slice(9, 12)); resolve(); });
});
process.stdout.write('begun\\n');
Promise.all(Array.from({ length: ${CONNECTIONS} }, ask)).then(() => console.log(JSON.stringify(outcomes)));
`;

async function started(): Promise<Service> {
  return startService({
    config: readConfig({ port: '0' }, { BYLAW_RATE_LIMIT: 'off', BYLAW_DATA: temporaryFolder() }),
    schema: schemaFrom('roles: { admin: {} }\n'),
    db: await openEmbeddedDatabase(),
    log: openLog('error'),
    passwords: cheapPasswords(),
  });
}

/** Sends a request on a connection of its own. */
const ask = (url: string, headers: Record<string, string> = {}): Promise<number> =>
  new Promise((resolve, reject) => {
    const sent = get(url, { agent: false, headers }, (answer) => {
      answer.resume();
      answer.once('end', () => resolve(answer.statusCode!));
    });
    sent.once('error', reject);
  });

test('a quiet server behind a balancer serves on, while its readiness is 503', async () => {
  const service = await started();
  expect(await ask(`${service.url}/healthz`, { 'X-Forwarded-For': '192.0.2.1' })).toBe(200);
  const since = performance.now();
  const stopped = service.stop(1_000);
  await sleep(300);
  expect([await ask(`${service.url}/readyz`), await ask(`${service.url}/healthz`)]).toEqual([503, 200]);
  await stopped;
  expect(performance.now() - since).toBeGreaterThan(900);
});

test('a server that only this machine has asked stops at once', async () => {
  const service = await started();
  expect(await ask(`${service.url}/healthz`)).toBe(200);
  const stopped = service.stop(60_000);
  await expect(stopped).resolves.toBeUndefined();
  await expect(ask(`${service.url}/healthz`)).rejects.toMatchObject({ code: 'ECONNREFUSED' });
}, 20_000);

test.each([
  ['requests that came with their connections', 0],
  ['requests that come soon after', 300],
])('a server that stops answers %s', async (_, delay) => {
  const service = await started();
  const client = spawn(process.execPath, ['-e', CLIENT, new URL(service.url).port, String(delay)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  await new Promise((resolve) => client.stdout.once('readable', resolve));
  // The connections arrive while this process does not look: the kernel accepts them.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 250);
  const [said] = await Promise.all([text(client.stdout), service.stop(1)]);
  expect(JSON.parse(said.trim().split('\n').at(-1)!)).toEqual({ 200: CONNECTIONS });
});
