/**
 * The resident memory of the service on the sample schema: after its first start and after a later one with many
 * documents, after 24 requests at a time, and when it has rested. Both databases.
 */
import { pause } from './crowd/member.ts';
import { type CrowdKind, CrowdWorld } from './crowd/world.ts';
import { call } from './movies/client.ts';
import type { Bench, BenchOptions } from './support/bench.ts';
import { record } from './support/figures.ts';
import { type LoadRequest, load } from './support/load.ts';
import { residentMiB } from './support/processor-time.ts';

const DOCUMENTS = 100_000;
const CONNECTIONS = 24;
/** MiB, at each moment. */
const GOALS: Readonly<Record<CrowdKind, number>> = { postgres: 200, embedded: 300 };
const SETTLE_MS = 1_000;
const REST_MS = 5_000;
/** Documents of the caller, which the load reads and patches. */
const OWN = 48;
const MOMENTS = ['after the start', 'after the load', `${REST_MS / 1000} s later`];

async function run({ seconds, rows }: BenchOptions): Promise<void> {
  const kinds = ['postgres', 'embedded'] as const;
  for (const kind of kinds) {
    const starts = [
      { name: 'first start', documents: 0 },
      { name: `later start, ${Math.min(rows, DOCUMENTS)} documents`, documents: Math.min(rows, DOCUMENTS) },
    ];
    const all: (readonly number[])[] = [];
    for (const { documents } of starts) all.push(await memoryOf(kind, documents, seconds));
    const notes = starts.map(({ name }, i) => verdictOf(`${kind}, ${name}`, all[i]!, GOALS[kind]));
    const series = starts.map(({ name }, i) => ({ name, values: all[i]!.map(Math.round) }));
    record({ bench: 'memory', title: `${kind}: memory`, unit: 'MiB', kind: 'bars', labels: MOMENTS, series, notes });
  }
}

/** The MiB at each moment. */
async function memoryOf(kind: CrowdKind, documents: number, seconds: number): Promise<readonly number[]> {
  const world = await CrowdWorld.open({ kind, documents });
  try {
    const { url, pid, member } = world;
    await pause(SETTLE_MS);
    const started = residentMiB(pid);
    const { token } = member;
    const made = Array.from({ length: OWN }, () =>
      call(`${url}/api/documents`, { method: 'POST', token, body: { data: NEW } }),
    );
    const ids = (await Promise.all(made)).map(({ body }) => body.data.id);
    const headers = { authorization: `Bearer ${token}` };
    const { statuses } = await load({ url, request: requestsOf(ids), headers, connections: CONNECTIONS, seconds });
    const loaded = residentMiB(pid);
    const failed = [...statuses.keys()].filter((status) => status >= 300);
    if (failed.length > 0) throw new Error(`the load got ${failed.join(', ')}`);
    await pause(REST_MS);
    return [started, loaded, residentMiB(pid)];
  } finally {
    await world.close();
  }
}

const NEW = { title: 'a new document', body: 'lorem ipsum '.repeat(12), score: 7 };

/** Two lists, a read, a query, a patch and a create in turn. */
const requestsOf =
  (ids: readonly string[]) =>
  (n: number): LoadRequest => {
    const path = `/api/documents/${ids[n % ids.length]}`;
    const turns: readonly LoadRequest[] = [
      { path: `/api/documents?offset=${(n % 10) * 20}` },
      { path },
      { method: 'PATCH', path, body: { data: { score: n % 100 } } },
      { method: 'POST', path: '/api/documents/query', body: { filter: 'score > 50', limit: 20 } },
      { path: '/api/documents?status=published' },
      { method: 'POST', path: '/api/documents', body: { data: NEW } },
    ];
    return turns[n % turns.length]!;
  };

function verdictOf(label: string, values: readonly number[], atMost: number): string {
  const isHeld = Math.max(...values) <= atMost;
  if (!isHeld) process.exitCode = 1;
  const moments = values.map((value, i) => `${value.toFixed(0)} MiB ${MOMENTS[i]}`).join(', ');
  const line = `${isHeld ? 'HELD  ' : 'MISSED'} ${label}: ${moments} (at most ${atMost})`;
  console.log(`  ${line}`);
  return line;
}

const bench: Bench = { name: 'memory', question: 'in what memory does the service start, work and rest?', run };
export default bench;
