/** `npm run lint`: fails where the English of the source and the tests breaks the rules more often than the limits allow. */
import { join } from 'node:path';
import { KINDS, LIMITS, listOfPlaces, readProse } from './figures/prose.ts';
import { readSource } from './figures/source.ts';

const ROOT = join(import.meta.dirname, '..');
const prose = readProse(readSource(ROOT, 'src/**/*.{ts,tsx}', 'grammar/**/*.ts'), readSource(ROOT, 'test/**/*.ts'));
const exceeded = KINDS.filter((kind) => prose[kind].length > LIMITS[kind]);
for (const kind of exceeded) {
  process.stderr.write(listOfPlaces(kind, prose[kind]));
  process.stderr.write(`at most ${LIMITS[kind]} are allowed; CONTRIBUTING.md has the rules\n`);
}
process.exitCode = exceeded.length > 0 ? 1 : 0;
