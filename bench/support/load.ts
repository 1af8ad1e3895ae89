/**
 * Keeps `connections` keep-alive sockets busy for `seconds` and measures each answer. Raw sockets, because a full HTTP client would cost
 * more than the servers under test; answers with a body must carry Content-Length.
 */
import { connect } from 'node:net';

export interface LoadResult {
  readonly requestsPerSecond: number;
  readonly seconds: number;
  /** Milliseconds. */
  readonly p50: number;
  readonly p99: number;
  /** Answers by status. A run with an unexpected status is not a measurement. */
  readonly statuses: ReadonlyMap<number, number>;
}

export interface LoadRequest {
  /** Default: GET. */
  readonly method?: string;
  /** With the query. */
  readonly path: string;
  /** Sent as JSON. */
  readonly body?: unknown;
}

export interface LoadOptions {
  readonly url: string;
  /** The n-th request. */
  readonly request: (n: number) => LoadRequest;
  readonly headers: Readonly<Record<string, string>>;
  readonly connections: number;
  readonly seconds: number;
}

export async function load(options: LoadOptions): Promise<LoadResult> {
  const { hostname, port } = new URL(options.url);
  const head = Object.entries({ host: `${hostname}:${port}`, ...options.headers }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  );
  const tail = ` HTTP/1.1\r\n${head.join('')}`;
  const messageOf = ({ method = 'GET', path, body }: LoadRequest): string => {
    if (body === undefined) return `${method} ${path}${tail}\r\n`;
    const json = JSON.stringify(body);
    const length = Buffer.byteLength(json);
    return `${method} ${path}${tail}content-type: application/json\r\ncontent-length: ${length}\r\n\r\n${json}`;
  };
  const latencies: number[] = [];
  const statuses = new Map<number, number>();
  const started = performance.now();
  const until = started + options.seconds * 1000;
  let sent = 0;

  const run = () =>
    new Promise<void>((resolve, reject) => {
      const socket = connect({ host: hostname, port: Number(port), noDelay: true });
      let at = 0;
      let held = Buffer.alloc(0);
      const send = () => {
        at = performance.now();
        socket.write(messageOf(options.request(sent++)));
      };
      socket.on('connect', send);
      socket.on('error', reject);
      socket.on('data', (chunk) => {
        held = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
        const answer = readAnswer(held);
        if (answer === undefined) return;
        held = held.subarray(answer.length);
        const now = performance.now();
        latencies.push(now - at);
        statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
        if (now < until) send();
        else {
          socket.end();
          resolve();
        }
      });
    });
  await Promise.all(Array.from({ length: options.connections }, run));
  const elapsed = (performance.now() - started) / 1000;
  latencies.sort((a, b) => a - b);
  const at = (share: number) =>
    latencies[Math.min(latencies.length - 1, Math.floor(latencies.length * share))] ?? Number.NaN;
  return { seconds: elapsed, requestsPerSecond: latencies.length / elapsed, p50: at(0.5), p99: at(0.99), statuses };
}

/** The status and whole length of the first answer in `bytes`, once all of it is there. */
function readAnswer(bytes: Buffer): { readonly status: number; readonly length: number } | undefined {
  const end = bytes.indexOf('\r\n\r\n');
  if (end < 0) return undefined;
  const head = bytes.toString('latin1', 0, end);
  const status = Number(head.slice(9, 12));
  if (status === 204) return { status, length: end + 4 };
  const length = /\r\ncontent-length: (\d+)/i.exec(head)?.[1];
  if (length === undefined) throw new Error(`an answer without Content-Length cannot be measured:\n${head}`);
  const whole = end + 4 + Number(length);
  return bytes.length < whole ? undefined : { status, length: whole };
}
