/** Runs one attack as a process of its own, so that what it reads costs the measuring program nothing. Prints the answers by status. */
import { Agent, request } from 'node:http';
import type { Prepared } from './attacks.ts';

interface Order {
  readonly url: string;
  readonly token: string;
  readonly loops: number;
  readonly isBurst: boolean;
  readonly seconds: number;
  readonly prepared: Prepared;
}

const { url, token, loops, isBurst, seconds, prepared } = JSON.parse(
  await new Response(process.stdin as never).text(),
) as Order;
const agent = new Agent({ keepAlive: true, maxSockets: loops });
const body = prepared.text ?? (prepared.body === undefined ? undefined : JSON.stringify(prepared.body));
const headers = {
  authorization: `Bearer ${token}`,
  ...(body === undefined ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) }),
  ...prepared.headers,
};
const statuses: Record<string, number> = {};

const send = (): Promise<number> =>
  new Promise((resolve) => {
    const sent = request(url + prepared.path, { agent, method: prepared.method ?? 'GET', headers }, (answer) => {
      answer.resume();
      answer.on('end', () => resolve(answer.statusCode ?? 0));
      answer.on('error', () => resolve(0));
    });
    sent.on('error', () => resolve(0));
    sent.end(body);
  });

const until = performance.now() + seconds * 1000;
async function loop(): Promise<void> {
  do {
    const status = await send();
    statuses[status] = (statuses[status] ?? 0) + 1;
    // A refused attacker tries again at once, but not in an empty loop.
    if (status === 0 || status === 429) await new Promise((resolve) => setTimeout(resolve, 20));
  } while (!isBurst && performance.now() < until);
}
await Promise.race([
  Promise.all(Array.from({ length: loops }, loop)),
  new Promise((resolve) => setTimeout(resolve, (seconds + 2) * 1000)),
]);
process.stdout.write(JSON.stringify(statuses), () => process.exit(0));
