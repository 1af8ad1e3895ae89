/**
 * Creates and patches a second of two services, one with a feed that nobody reads and one without, which write in turn: what
 * disturbs the machine disturbs both.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isolatedUrl } from '../../test/support/postgres.ts';
import { call } from '../movies/client.ts';
import { signUp } from './documents-world.ts';
import { type LoadRequest, load } from './load.ts';
import { median } from './measure.ts';
import { type Server, startBylaw } from './server.ts';

const CONNECTIONS = 64;
const ROUNDS = 40;
const ROUND_SECONDS = 0.5;
/** The first rounds warm up. */
const WARM_UP = 3;
/** Records to change: more than there are requests at a time. */
const PATCHED = 97;

interface FeedService {
  readonly server: Server;
  readonly headers: Readonly<Record<string, string>>;
  readonly data: { readonly title: string; readonly owner: string };
  readonly ids: readonly string[];
}

/** With a feed ÷ without, median of the paired rounds. */
export interface FeedRatios {
  readonly creates: number;
  readonly patches: number;
}

/** @param url of a PostgreSQL. Undefined: the embedded database */
export async function requestsWith(schemaOf: (changes: boolean) => string, url?: string): Promise<FeedRatios> {
  const folder = mkdtempSync(join(tmpdir(), 'bylaw-bench-'));
  const services: FeedService[] = [];
  try {
    for (const changes of [false, true]) services.push(await open({ folder, text: schemaOf(changes), url }));
    const creates: number[] = [];
    const patches: number[] = [];
    for (let round = 0; round < WARM_UP + ROUNDS; round++) {
      const created = await ratioOf(services, round, createIn);
      const patched = await ratioOf(services, round, patchIn);
      if (round < WARM_UP) continue;
      creates.push(created);
      patches.push(patched);
    }
    return { creates: median(creates), patches: median(patches) };
  } finally {
    const ended = services.map(({ server: { process } }) => new Promise((resolve) => process.once('exit', resolve)));
    for (const { server } of services) server.process.kill('SIGTERM');
    await Promise.all(ended);
    rmSync(folder, { recursive: true, force: true });
  }
}

const createIn: RequestOf = (_, { data }) => ({ method: 'POST', path: '/api/notes', body: { data } });
const patchIn: RequestOf = (n, { ids }) => ({
  method: 'PATCH',
  path: `/api/notes/${ids[n % PATCHED]}`,
  body: { data: { title: 'y' } },
});

type RequestOf = (n: number, service: FeedService) => LoadRequest;

interface ServiceFiles {
  readonly folder: string;
  readonly text: string;
  readonly url: string | undefined;
}

async function open({ folder, text, url }: ServiceFiles): Promise<FeedService> {
  const data = mkdtempSync(join(folder, 'data-'));
  const schema = `${data}.yaml`;
  writeFileSync(schema, text);
  const database = url === undefined ? {} : { databaseUrl: await isolatedUrl(url) };
  const server = await startBylaw({ schema, data, ...database });
  const { token, userId } = await signUp(server.url);
  const body = { data: { title: 'x', owner: userId } };
  const ids: string[] = [];
  while (ids.length < PATCHED) {
    const made = await call(`${server.url}/api/notes`, { method: 'POST', token, body });
    ids.push(made.body.data.id);
  }
  return { server, headers: { authorization: `Bearer ${token}` }, data: body.data, ids };
}

/** Each begins in turn. */
async function ratioOf(services: readonly FeedService[], round: number, requestOf: RequestOf): Promise<number> {
  const rates = [0, 0];
  for (const i of round % 2 === 0 ? [0, 1] : [1, 0]) {
    const service = services[i]!;
    const { requestsPerSecond, statuses } = await load({
      url: service.server.url,
      headers: service.headers,
      request: (n) => requestOf(n, service),
      connections: CONNECTIONS,
      seconds: ROUND_SECONDS,
    });
    const wrong = [...statuses.keys()].find((status) => status >= 300);
    if (wrong !== undefined) throw new Error(`a service answered ${wrong}`);
    rates[i] = requestsPerSecond;
  }
  const [without, withFeed] = rates;
  return withFeed! / without!;
}
