/** A process that serves keeps its heap small. */
import { execFileSync } from 'node:child_process';
import { expect, test } from 'vitest';

const MODULE = new URL('../../src/cli/server/heap-limits.ts', import.meta.url);

/** Objects that survive let the young generation grow; each round ends in a turn of the event loop. */
const PROGRAM = `
  import { getHeapSpaceStatistics } from 'node:v8';
  import { setImmediate } from 'node:timers/promises';
  if (process.argv[1] !== '') (await import(process.argv[1])).limitHeap();
  const kept = [];
  const sizes = [];
  for (let i = 0; i < 6_000_000; i++) {
    kept[i % 200_000] = { i, list: [i] };
    if (i % 10_000 !== 0) continue;
    sizes.push(getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space').space_size);
    await setImmediate();
  }
  console.log(sizes.sort((a, b) => a - b)[sizes.length >> 1] / 1_048_576);
`;
/** The usual size: a collection of everything may add some pages for a while. */
const youngMiB = (module: string): number =>
  Number(execFileSync(process.execPath, ['--input-type=module', '-e', PROGRAM, module], { encoding: 'utf8' }));

test('a process that serves bounds its young generation', () => {
  expect(youngMiB(MODULE.href)).toBeLessThanOrEqual(32);
});
