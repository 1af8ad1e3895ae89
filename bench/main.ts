/**
 * `npm run bench -- [names] [--seconds 10] [--rounds 5] [--seed 1] [--rows 1000000] [--before FOLDER]`: without a name, all of
 * them. Races also run the service of another checkout, which must be built, where `--before` names its folder. README.md says what each figure means.
 */
import { cpus } from 'node:os';
import { readOptions } from '../test/support/run-options.ts';
import type { Bench } from './support/bench.ts';

const FILES: Readonly<Record<string, () => Promise<{ readonly default: Bench }>>> = {
  predicate: () => import('./policies/predicate.ts'),
  policies: () => import('./policies/beside-peers.ts'),
  compile: () => import('./policies/compile.ts'),
  residual: () => import('./policies/residual.ts'),
  where: () => import('./policies/where.ts'),
  list: () => import('./races/list.ts'),
  read: () => import('./races/read.ts'),
  create: () => import('./races/create.ts'),
  patch: () => import('./races/patch.ts'),
  delete: () => import('./races/delete.ts'),
  mixed: () => import('./races/mixed.ts'),
  workers: () => import('./races/workers.ts'),
  embedded: () => import('./races/embedded.ts'),
  scale: () => import('./scale.ts'),
  pages: () => import('./pages.ts'),
  query: () => import('./query.ts'),
  batch: () => import('./batch.ts'),
  auth: () => import('./auth.ts'),
  accounts: () => import('./accounts.ts'),
  files: () => import('./files.ts'),
  profile: () => import('./profile.ts'),
  tail: () => import('./tail.ts'),
  fairness: () => import('./fairness.ts'),
  start: () => import('./start.ts'),
  memory: () => import('./memory.ts'),
  distribute: () => import('./distribute.ts'),
  cluster: () => import('./cluster.ts'),
  workbench: () => import('./workbench.ts'),
  changes: () => import('./changes.ts'),
  studio: () => import('./studio.ts'),
};

const { values, positionals } = readOptions(
  'npm run bench --',
  {
    allowPositionals: true,
    options: {
      seconds: { type: 'string', default: '10' },
      rounds: { type: 'string', default: '5' },
      seed: { type: 'string', default: '1' },
      rows: { type: 'string', default: '1000000' },
      before: { type: 'string' },
    },
  },
  [`the names: ${Object.keys(FILES).join(', ')}; bench/README.md says what each measures`],
);
const names = positionals.length > 0 ? positionals : Object.keys(FILES);
const unknown = names.filter((name) => !Object.hasOwn(FILES, name));
if (unknown.length > 0) {
  console.error(`no bench ${unknown.join(', ')}; there are ${Object.keys(FILES).join(', ')}`);
  process.exit(1);
}
console.log(`Node ${process.version}, ${cpus().length} × ${cpus()[0]?.model ?? 'unknown processor'}`);
for (const name of names) {
  const { default: bench } = await FILES[name]!();
  console.log(`\n${name}: ${bench.question}`);
  const { seconds, rounds, seed, rows, before } = values;
  await bench.run({
    seconds: Number(seconds),
    rounds: Number(rounds),
    seed: Number(seed),
    rows: Number(rows),
    before,
  });
}
