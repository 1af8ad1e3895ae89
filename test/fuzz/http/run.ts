/**
 * `npm run fuzz -- http --seed 1 --requests 200000 [--from n] [--lanes n] [--embedded]`: hostile requests against a
 * service in another process. Exits with 1 on a 5xx, a crash, a hang over a second, a leak, or memory that grows.
 */
import { fork } from 'node:child_process';
import { join } from 'node:path';
import { isolatedUrl, startPostgres } from '../../support/postgres.ts';
import { readOptions } from '../../support/run-options.ts';
import { printShortfalls } from '../floor.ts';
import { attack } from './attack.ts';
import type { ChildMessage } from './child.ts';
import { makeWorld, signIn, temporaryFolder } from './service.ts';

const SAMPLES = 20;
const MiB = 1024 * 1024;
/** Memory may grow by caches until this part of the run; then it has to stay. */
const WARM = 0.5;
const MOST_GROWTH = 1.15;
const SLACK = 24 * MiB;
/** The shares of the requests that must be answered, and answered with success: hostile ones are refused. */
const LEAST_SENT = 0.9;
const LEAST_SUCCEEDED = 0.02;

interface Sample {
  readonly sent: number;
  readonly rss: number;
  readonly used: number;
}

export async function fuzzHttp(args: readonly string[]): Promise<number> {
  const { values } = readOptions('npm run fuzz -- http', {
    args: [...args],
    options: {
      seed: { type: 'string', default: String(Date.now() % 1_000_000) },
      requests: { type: 'string', default: '20000' },
      from: { type: 'string', default: '0' },
      lanes: { type: 'string', default: '8' },
      embedded: { type: 'boolean', default: false },
    },
  });
  const [seed, requests] = [Number(values.seed), Number(values.requests)];
  const postgres = values.embedded ? undefined : await startPostgres();
  const folder = await temporaryFolder();
  const child = fork(
    join(import.meta.dirname, 'child.ts'),
    [
      JSON.stringify({
        databaseUrl: postgres === undefined ? undefined : await isolatedUrl(postgres.url),
        data: folder.path,
        schemaFile: join(import.meta.dirname, '../../support/bylaw.yaml'),
      }),
    ],
    { execArgv: ['--expose-gc'], stdio: ['ignore', 'inherit', 'pipe', 'ipc'] },
  );
  child.setMaxListeners(0);
  const defects: string[] = [];
  child.stderr!.setEncoding('utf8').on('data', (text: string) => defects.push(...text.split('\n').filter(isDefect)));
  const ended = { code: undefined as number | null | undefined };
  child.once('exit', (code) => {
    ended.code = code;
  });
  const hear = <Kind extends ChildMessage['kind']>(kind: Kind) =>
    new Promise<Extract<ChildMessage, { kind: Kind }>>((resolve, reject) => {
      const onMessage = (message: ChildMessage): void => {
        if (message.kind !== kind) return;
        child.off('message', onMessage);
        resolve(message as Extract<ChildMessage, { kind: Kind }>);
      };
      child.on('message', onMessage);
      child.once('exit', () => reject(new Error(`the service ended:\n${defects.join('\n')}`)));
    });

  const samples: Sample[] = [];
  try {
    const { url, collections } = await hear('ready');
    const world = await makeWorld(url, collections);
    const every = Math.max(1, Math.floor(requests / SAMPLES));
    let asked = 0;
    const sample = async (sent: number): Promise<void> => {
      asked++;
      const answer = hear('memory');
      child.send('memory');
      const { rss, used } = await answer;
      asked--;
      samples.push({ sent, rss, used });
      const mib = (bytes: number) => `${Math.round(bytes / MiB)} MiB`;
      console.log(`${sent} requests, ${mib(rss)} resident, ${mib(used)} in use`);
    };
    console.log(`seed ${seed}, ${requests} requests, ${postgres === undefined ? 'embedded database' : 'PostgreSQL'}`);
    const began = performance.now();
    const { counts, failures } = await attack({
      url,
      world,
      seed,
      from: Number(values.from),
      requests,
      lanes: Number(values.lanes),
      renew: () => signIn(url, world.credentials as unknown as Record<string, Record<string, string>>),
      progress: (sent) => (sent >= every * (samples.length + asked + 1) ? sample(sent) : undefined),
    });
    const seconds = (performance.now() - began) / 1_000;
    for (const { what, request, said } of failures) {
      const { body, ...rest } = request;
      console.log(
        `FAILURE: ${what}\n  ${JSON.stringify(rest)}\n  body ${JSON.stringify(body?.toString().slice(0, 2_000))}`,
      );
      console.log(`  said ${said}\n  again: npm run fuzz -- http --seed ${seed} --from ${request.number} --requests 1`);
    }
    const statuses = [...counts.statuses].sort(([a], [b]) => a - b);
    const sent = statuses.reduce((sum, [, count]) => sum + count, 0);
    const growth = growthOf(samples);
    console.log(`requests   ${sent} in ${Math.round(seconds)} s`);
    console.log(`statuses   ${statuses.map(([status, count]) => `${status}: ${count}`).join(', ')}`);
    console.log(
      `slowest    ${Math.round(counts.slowestMs)} ms (beyond a plain request at the same moment, where it took over 1 s)`,
    );
    console.log(`memory     ${growth.text}`);
    console.log(`defects    ${defects.length} lines in the log of errors`);
    for (const line of defects.slice(0, 5)) console.log(`  ${line.slice(0, 1_500)}`);
    console.log(`failures   ${failures.length} (seed ${seed})`);
    const succeeded = statuses.reduce((sum, [status, count]) => sum + (status < 300 ? count : 0), 0);
    const shortfalls = printShortfalls([
      { what: 'requests', count: sent, least: Math.max(1, Math.floor(requests * LEAST_SENT)) },
      { what: 'successful requests', count: succeeded, least: Math.floor(requests * LEAST_SUCCEEDED) },
    ]);
    return failures.length + defects.length + shortfalls > 0 || growth.isTooMuch || ended.code !== undefined ? 1 : 0;
  } finally {
    child.kill();
    await postgres?.stop();
    await folder.remove();
  }
}

/** Warnings of the start, such as that mails are written as files, are none. */
const isDefect = (line: string): boolean => line !== '' && !line.includes('"level":"warn"');

/** The median of the last samples against the median of those in the middle. */
function growthOf(samples: readonly Sample[]): { readonly text: string; readonly isTooMuch: boolean } {
  if (samples.length < SAMPLES) return { text: 'not judged: too few requests', isTooMuch: false };
  const middle = samples.slice(Math.floor(samples.length * WARM), Math.floor(samples.length * 0.75));
  const last = samples.slice(Math.floor(samples.length * 0.75));
  const median = (of: readonly Sample[], key: 'rss' | 'used'): number =>
    of.map((sample) => sample[key]).sort((a, b) => a - b)[Math.floor(of.length / 2)]!;
  const pairs = (['rss', 'used'] as const).map((key) => [median(middle, key), median(last, key)] as const);
  const isTooMuch = pairs.some(([before, after]) => after > before * MOST_GROWTH + SLACK);
  const [rss, used] = pairs.map(([before, after]) => `${Math.round(before / MiB)} → ${Math.round(after / MiB)} MiB`);
  return { text: `resident ${rss}, in use ${used}, from the third quarter to the last`, isTooMuch };
}
