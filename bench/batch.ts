/**
 * Compares 100 creates in one batch with 100 requests. A single client sends them one after the
 * other over a single connection; PostgreSQL has its default settings, commits to disk included.
 * Rounds in turn; the second pair creates records with a reference, which is looked up for each.
 */
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isolatedUrl, startPostgres } from '../test/support/postgres.ts';
import { call } from './movies/client.ts';
import type { Bench } from './support/bench.ts';
import { median } from './support/measure.ts';
import { startBylaw } from './support/server.ts';

const RECORDS = 100;
const LEAST = 3;
const SCHEMA = fileURLToPath(new URL('./servers/batch.yaml', import.meta.url));

class Api {
  readonly #url: string;
  #token: string | undefined;

  constructor(url: string) {
    this.#url = url;
  }

  async signIn(): Promise<void> {
    const user = { email: 'bench@example.com', password: 'seven-samurai-1954' };
    await this.post('/api/auth/register', user, 201);
    this.#token = (await this.post('/api/auth/login', user, 200)).access_token;
  }

  // biome-ignore lint/suspicious/noExplicitAny: the shape is the API's
  async post(path: string, body: unknown, expected: number): Promise<any> {
    const token = this.#token === undefined ? {} : { token: this.#token };
    const answer = await call(this.#url + path, { method: 'POST', body, ...token });
    if (answer.status !== expected) throw new Error(`${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  }
}

/** Milliseconds for 100 records, one by one and in a batch. */
async function round(api: Api, data: object): Promise<readonly [number, number]> {
  const start = performance.now();
  for (let i = 0; i < RECORDS; i++) await api.post('/api/tasks', { data }, 201);
  const between = performance.now();
  const operations = Array.from({ length: RECORDS }, () => ({ op: 'create', collection: 'tasks', data }));
  await api.post('/api/batch', { operations }, 200);
  return [between - start, performance.now() - between];
}

async function compare(api: Api, label: string, { data, seconds }: Work): Promise<void> {
  const rounds: (readonly [number, number])[] = [];
  // The first two warm up.
  for (let i = 0; i < 2; i++) await round(api, data);
  const end = performance.now() + seconds * 1000;
  do rounds.push(await round(api, data));
  while (performance.now() < end);
  const rate = (i: 0 | 1) => ((RECORDS * 1000) / median(rounds.map((each) => each[i]))).toFixed(0);
  const ratio = median(rounds.map(([single, batch]) => single / batch));
  const held = ratio >= LEAST;
  console.log(`${label}: ${rate(0)} creates/s one by one, ${rate(1)} in batches of ${RECORDS}`);
  console.log(`${held ? 'held  ' : 'MISSED'} ${label}: ${ratio.toFixed(2)} × (at least ${LEAST})`);
  if (!held) process.exitCode = 1;
}

interface Work {
  readonly data: object;
  readonly seconds: number;
}

async function run({ seconds }: { readonly seconds: number }): Promise<void> {
  const postgres = await startPostgres();
  if (postgres === undefined) throw new Error('it needs PostgreSQL');
  const folder = mkdtempSync(join(tmpdir(), 'bylaw-bench-'));
  const children: ChildProcess[] = [];
  try {
    const databaseUrl = await isolatedUrl(postgres.url);
    const bylaw = await startBylaw({ schema: SCHEMA, databaseUrl, data: folder });
    children.push(bylaw.process);
    const api = new Api(bylaw.url);
    await api.signIn();
    const project = (await api.post('/api/projects', { data: { name: 'p' } }, 201)).data.id;
    await compare(api, 'plain', { data: { title: 'a task', due_at: '2026-01-01T00:00:00Z' }, seconds: seconds / 2 });
    await compare(api, 'with a reference', { data: { title: 'a task', project }, seconds: seconds / 2 });
  } finally {
    for (const child of children) child.kill('SIGTERM');
    await postgres.stop();
    rmSync(folder, { recursive: true, force: true });
  }
}

export default { name: 'batch', question: 'how much faster are 100 creates in one batch?', run } satisfies Bench;
