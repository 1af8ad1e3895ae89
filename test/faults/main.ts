/**
 * `npm run test:faults` · `-- --only part-of-a-name` · `--seconds 5` of load in each · `--list`
 * Each scenario has a PostgreSQL and services of its own. Exits with 1 when one does not hold.
 */

import { readOptions } from '../support/run-options.ts';
import { SCENARIOS } from './scenarios/index.ts';
import { FaultWorld } from './world.ts';

const { values } = readOptions('npm run test:faults --', {
  options: {
    only: { type: 'string', default: '' },
    seconds: { type: 'string', default: '4' },
    list: { type: 'boolean', default: false },
  },
});

const chosen = SCENARIOS.filter(({ name }) => name.includes(values.only));
if (chosen.length === 0) {
  console.error(
    `no scenario has \`${values.only}\` in its name; there are: ${SCENARIOS.map(({ name }) => name).join(', ')}`,
  );
  process.exit(2);
}
let failures = 0;
// A scenario that fails leaves requests behind, whose servers end with it.
process.on('unhandledRejection', () => undefined);
for (const { name, holds, skip, run } of chosen) {
  if (values.list) {
    console.log(`${name.padEnd(22)} ${holds}`);
    continue;
  }
  const reason = skip?.();
  if (reason !== undefined) {
    console.log(`skipped  ${name.padEnd(22)} ${reason}`);
    continue;
  }
  const since = performance.now();
  const world = await FaultWorld.open(Number(values.seconds) * 1_000);
  try {
    await run(world);
    console.log(`good     ${name.padEnd(22)} ${((performance.now() - since) / 1_000).toFixed(1)} s  ${holds}`);
  } catch (error) {
    failures++;
    console.log(`FAILED   ${name.padEnd(22)} ${holds}\n${error instanceof Error ? error.stack : String(error)}`);
  } finally {
    await world.close();
  }
}
process.exit(failures === 0 ? 0 : 1);
