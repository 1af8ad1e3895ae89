/** Sends hostile requests and looks at every response: no 5xx, no hang, no leak. */
import { Agent, request as httpRequest } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { type HostileRequest, hostileRequest, type World } from './requests.ts';

interface Failure {
  readonly what: string;
  readonly request: HostileRequest;
  readonly said: string;
}

interface Counts {
  readonly statuses: Map<number, number>;
  slowestMs: number;
  bytes: number;
}

export interface Attack {
  readonly url: string;
  readonly world: World;
  readonly seed: number;
  readonly from: number;
  readonly requests: number;
  readonly lanes: number;
  /** When a session seems to be over. */
  readonly renew: () => Promise<void>;
  /** After each request. */
  readonly progress?: (sent: number) => Promise<void> | undefined;
}

export interface Outcome {
  readonly counts: Counts;
  readonly failures: readonly Failure[];
}

/** Milliseconds. */
const SLOW = 1_000;
const HANG = 15_000;
const MOST_FAILURES = 10;
/** Requests between two new sessions, at least. */
const RENEW_EVERY = 100;

interface Said {
  readonly status: number;
  readonly text: string;
  readonly ms: number;
}

export async function attack({ url, world, seed, from, requests, lanes, renew, progress }: Attack): Promise<Outcome> {
  const counts: Counts = { statuses: new Map(), slowestMs: 0, bytes: 0 };
  const failures: Failure[] = [];
  const agent = new Agent({ keepAlive: true, maxSockets: lanes });
  let next = from;
  let renewedAt = from;
  const lane = async (): Promise<void> => {
    while (next < from + requests && failures.length < MOST_FAILURES) {
      const request = hostileRequest(world, seed, next++);
      const said = await send(url, request, agent);
      counts.statuses.set(said.status, (counts.statuses.get(said.status) ?? 0) + 1);
      counts.bytes += said.text.length;
      const ms = said.ms > SLOW ? await fairTime(request, (each) => send(url, each, agent)) : said.ms;
      counts.slowestMs = Math.max(counts.slowestMs, ms);
      const what = faultOf(request, said, ms);
      if (what !== undefined) failures.push({ what, request, said: said.text.slice(0, 1_000) });
      remember(world, request, said);
      if (said.status === 401 && request.isSignedIn && next - renewedAt > RENEW_EVERY) {
        renewedAt = next;
        await renew();
      }
      await progress?.(next - from);
    }
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  agent.destroy();
  return { counts, failures };
}

const ATTEMPTS = 8;

/** A busy machine makes anything slow; what is slow by itself is slower than a plain request at the same moment, every time. */
async function fairTime(request: HostileRequest, sendOne: (request: HostileRequest) => Promise<Said>): Promise<number> {
  const path = request.path.startsWith('/readyz') ? '/healthz' : '/readyz';
  const plain = { ...request, method: 'GET', path, headers: {}, body: undefined };
  let least = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < ATTEMPTS && least > SLOW; attempt++) {
    await sleep(100 * attempt);
    const [{ ms: usual }, { ms }] = await Promise.all([sendOne(plain), sendOne(request)]);
    least = Math.min(least, Math.max(0, ms - usual));
  }
  return least;
}

function faultOf(request: HostileRequest, { status, text }: Said, ms: number): string | undefined {
  if (status === 0) return mayBeCutOff(request) && CUT_OFF.test(text) ? undefined : `no response: ${text}`;
  if (status >= 500) return `status ${status}`;
  if (ms > SLOW) return `${Math.round(ms)} ms, again and again`;
  const leak = LEAKS.find((pattern) => pattern.test(text));
  if (leak === undefined || isDocument(request)) return undefined;
  const found = leak.exec(text)![0];
  return isEcho(found, request) ? undefined : `a leak: ${found.slice(0, 200)}`;
}

/** The connection closes behind an expectation that is not met, because a body may or may not follow (RFC 9110, 10.1.1). */
const mayBeCutOff = ({ headers, body }: HostileRequest): boolean => headers.Expect !== undefined && body !== undefined;
const CUT_OFF = /EPIPE|ECONNRESET|socket hang up/;

/** Stacks, paths, SQL, and names of what is inside. */
const LEAKS: readonly RegExp[] = [
  /\n\s+at .{1,200}:\d+:\d+/,
  /node_modules|node:internal|file:\/\/\//,
  /\/(?:src|home|root|tmp|usr|var)\/[\w.-]+\/[\w./-]+/,
  /\b(?:SELECT|INSERT INTO|DELETE FROM|UPDATE)\s+"?\w+"?\s.{0,200}\b(?:FROM|VALUES|SET|WHERE)\b/,
  /\b(?:pg_catalog|information_schema|_auth_\w+|password_hash)\b/,
  /syntax error at|violates \w+|relation "|ECONNREFUSED|\$argon2|-----BEGIN/,
  /"(?:privateKey|d|private_jwk)":/,
];

/** Their text is the same for everybody, and holds examples. */
const isDocument = ({ path }: HostileRequest): boolean => /^\/(?:docs|openapi\.json)/.test(path);

/** Messages and records repeat the values of the caller. */
const isEcho = (found: string, { path, headers, body }: HostileRequest): boolean => {
  const sent = `${path}\n${decoded(path)}\n${Object.values(headers).join('\n')}\n${body?.toString() ?? ''}`;
  return sent.includes(found) || /etc\/passwd|dev\/null/.test(found);
};

function decoded(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/** Records that were made are the targets of later requests. */
function remember({ ids }: World, { method, path }: HostileRequest, { status, text }: Said): void {
  if (method !== 'POST' || status !== 201) return;
  const name = /^\/api\/(\w+)\/?(?:\?|$)/.exec(path)?.[1];
  const known = name === undefined ? undefined : ids.get(name);
  const id = (JSON.parse(text) as { data?: { id?: string } }).data?.id;
  if (known === undefined || id === undefined) return;
  known.push(id);
  if (known.length > 50) known.splice(5, 1);
}

function send(url: string, { method, path, headers, body }: HostileRequest, agent: Agent): Promise<Said> {
  const start = performance.now();
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const done = (status: number, text: string): void => {
      clearTimeout(late);
      resolve({ status, text, ms: performance.now() - start });
    };
    const sending = httpRequest(
      {
        agent,
        host: hostname,
        port,
        method,
        path,
        headers: { ...headers, ...(body === undefined ? {} : { 'Content-Length': body.length }) },
      },
      (response) => {
        const chunks: Buffer[] = [];
        response.on('data', (chunk: Buffer) => chunks.push(chunk));
        response.on('end', () => done(response.statusCode!, Buffer.concat(chunks).toString()));
        response.on('error', (error) => done(0, `cut off: ${error.message}`));
      },
    );
    const late = setTimeout(() => {
      sending.destroy();
      done(0, `nothing within ${HANG / 1_000} s`);
    }, HANG);
    sending.on('error', (error) => done(0, error.message));
    sending.end(body);
  });
}
