/**
 * From the start of a process to the line that says it is ready, and to its first answer, on PostgreSQL with local files: bylaw as it is
 * published (compiled), and two servers written by hand.
 */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { isolatedUrl, startPostgres } from '../test/support/postgres.ts';
import { call } from './movies/client.ts';
import type { Bench } from './support/bench.ts';
import { nameOf, SCHEMA, type SignedIn, server, signUp } from './support/documents-world.ts';
import { record } from './support/figures.ts';
import { judgeRounds, median } from './support/measure.ts';
import { residentMiB } from './support/processor-time.ts';
import { type Answered, mustBeAlike } from './support/race/alike.ts';
import { type Server, serveArguments, startServer } from './support/server.ts';

const ROUNDS = 9;

interface Started {
  readonly name: string;
  readonly file: string;
  readonly args: readonly string[];
  readonly env?: NodeJS.ProcessEnv;
}

/** The first request of every server, and what it must return. */
interface First {
  readonly token: string;
  readonly answer: Answered;
}

async function run(): Promise<void> {
  const postgres = await startPostgres();
  if (postgres === undefined) throw new Error('it needs PostgreSQL');
  const folder = await mkdtemp(join(tmpdir(), 'bylaw-start-'));
  try {
    const url = await isolatedUrl(postgres.url);
    const [main, ...args] = serveArguments({ schema: SCHEMA, databaseUrl: url, data: folder });
    const serve = { file: main!, args };
    const { signedIn, answer } = await prepare(serve);
    const { token, userId } = signedIn;
    const byHand = [url, token, userId];
    const servers = [
      { name: 'bylaw', ...serve },
      { name: 'bylaw, compile cache', ...serve, env: { NODE_COMPILE_CACHE: join(folder, 'compiled') } },
      { name: nameOf('bylaw', 2), ...serve, args: [...args, '--workers', '2'] },
      { name: 'usual', file: server('handwritten'), args: byHand },
      { name: 'best', file: server('best'), args: byHand },
    ];
    await compare(servers, { token, answer });
  } finally {
    await rm(folder, { recursive: true, force: true });
    await postgres.stop();
  }
}

interface Prepared {
  readonly signedIn: SignedIn;
  readonly answer: Answered;
}

/** A first start of bylaw makes the tables, with one document in them. */
async function prepare({ file, args }: Omit<Started, 'name'>): Promise<Prepared> {
  const bylaw = await startServer(file, args);
  const signedIn = await signUp(bylaw.url);
  const { token } = signedIn;
  const body = { data: { title: 'a document' } };
  const made = await call(`${bylaw.url}/api/documents`, { method: 'POST', token, body });
  if (made.status !== 201) throw new Error(`no document could be made: ${JSON.stringify(made)}`);
  const answer = await list(bylaw, token);
  await stop(bylaw);
  return { signedIn, answer };
}

const list = ({ url }: Server, token: string): Promise<Answered> => call(`${url}/api/documents`, { token });

async function stop({ process }: Server): Promise<void> {
  const ended = once(process, 'exit');
  process.kill('SIGTERM');
  await ended;
}

interface Start {
  /** Milliseconds until it says that it listens, and until it has answered. */
  readonly listens: number;
  readonly answers: number;
  readonly mib: number;
}

async function compare(servers: readonly Started[], first: First): Promise<void> {
  const starts = servers.map((): Start[] => []);
  // The first reads the disk.
  for (let round = 0; round <= ROUNDS; round++) {
    for (const [i, each] of servers.entries()) {
      const started = await start(each, first);
      if (round > 0) starts[i]!.push(started);
    }
  }
  const of = (key: keyof Start) => starts.map((all) => Math.round(median(all.map((each) => each[key]))));
  const [listens, answers, mib] = [of('listens'), of('answers'), of('mib')];
  for (const [i, { name }] of servers.entries())
    console.log(
      `  ${name.padEnd(20)} listens after ${listens[i]} ms, has answered after ${answers[i]} ms   ${mib[i]} MiB resident a second later`,
    );
  const values = starts[0]!.map((each) => each.answers);
  const note = judgeRounds({ label: 'ms until the first answer of bylaw', values, atMost: 600 });
  const bars = { bench: 'start', kind: 'bars', labels: servers.map(({ name }) => name) } as const;
  const series = [
    { name: 'until it listens', values: listens },
    { name: 'until its first answer', values: answers },
  ];
  record({ ...bars, title: 'from the start to the first answer', unit: 'ms', series, notes: [note] });
  const resident = [{ name: 'resident', values: mib }];
  record({ ...bars, title: 'memory after the start', unit: 'MiB', series: resident, notes: [] });
}

/** Throws where the answer is not that of the others. */
async function start({ file, args, env }: Started, { token, answer }: First): Promise<Start> {
  const began = performance.now();
  const started = await startServer(file, args, env);
  const listens = performance.now() - began;
  const own = await list(started, token);
  const answers = performance.now() - began;
  mustBeAlike([answer, own]);
  await sleep(1_000);
  const mib = residentMiB(started.process.pid!);
  await stop(started);
  return { listens, answers, mib };
}

const bench: Bench = {
  name: 'start',
  question: 'how long until the service listens and answers, and in what memory?',
  run,
};
export default bench;
