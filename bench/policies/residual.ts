/** From a request to what it leaves of a policy, with its SQL: a shape that is known, and one that is new. */
import { compilePolicy } from '../../src/policy/compile.ts';
import type { PolicyRequest } from '../../src/policy/types.ts';
import type { Bench, BenchOptions } from '../support/bench.ts';
import { COLLECTION, catalog, P3 } from '../support/documents.ts';
import { measure, verdict } from '../support/measure.ts';

const PLACE = { catalog, collection: COLLECTION, action: 'list' } as const;
const MEMBER = `any(@record.team.memberships as m, m.user = @request.auth.id and m.role in ["owner", "editor"])`;
const POLICIES = [
  P3,
  `${P3} or ${MEMBER}`,
  `@record.title contains @request.query.q and @record.owner = @request.auth.id`,
];

const requests: readonly PolicyRequest[] = Array.from({ length: 64 }, (_, i) => ({
  auth: { id: `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`, roles: ['member'] },
  query: { q: `text ${i}` },
  now: '2024-06-01T12:00:00.000000Z',
}));

async function run({ seconds }: BenchOptions): Promise<void> {
  const policies = POLICIES.map((text) => compilePolicy(text, PLACE));
  for (const policy of policies) {
    const { verdict } = policy.specialise(requests[0]!);
    if (verdict !== 'depends') throw new Error(`${policy.text} leaves nothing to measure`);
  }
  const known = (i: number) => policies[i % policies.length]!.specialise(requests[i % requests.length]!);
  // The first request to a policy just compiled lowers; compiling alone is measured beside it and taken off.
  const fresh = (i: number) => compilePolicy(POLICIES[i % POLICIES.length]!, PLACE);
  const [bound, filled, compiled, first] = measure(
    [
      { name: 'known shape', run: over(known) },
      { name: 'known shape, with its SQL', run: over((i) => known(i).where('r').values) },
      { name: 'compile', run: over(fresh) },
      { name: 'compile, new shape', run: over((i) => fresh(i).specialise(requests[0]!)) },
    ],
    seconds,
  );
  for (const { name, median } of [bound!, filled!, compiled!, first!])
    console.log(`${name.padEnd(26)} ${(median / 1000).toFixed(2)} µs`);
  verdict('residual of a known shape', filled!.median / 1000, { limit: 2, unit: 'µs' });
  verdict('residual of a new shape', (first!.median - compiled!.median) / 1000, { limit: 20, unit: 'µs' });
}

const over = (work: (i: number) => unknown) => (times: number) => {
  let last: unknown;
  for (let i = 0; i < times; i++) last = work(i);
  return last;
};

const bench: Bench = {
  name: 'residual',
  question: 'what does a request cost before the first record is looked at?',
  run,
};
export default bench;
