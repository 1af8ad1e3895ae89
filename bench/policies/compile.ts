/** Parse, check and lower policies of about 100 characters; and the memory that a compiled one keeps. */
import { LIMITS } from '../../grammar/limits.ts';
import { parse } from '../../grammar/parser.ts';
import { checkExpr, examine } from '../../src/policy/check/checker.ts';
import { compileChecked, compilePolicy } from '../../src/policy/compile.ts';
import { NO_RELATED, type Policy, type PolicyRequest } from '../../src/policy/types.ts';
import { ACCEPTED, REJECTED } from '../../test/policy/largest-texts.ts';
import { SAMPLE } from '../../test/policy/sample-catalog.ts';
import type { Bench, BenchOptions } from '../support/bench.ts';
import { COLLECTION, catalog, P3 } from '../support/documents.ts';
import { measure, verdict } from '../support/measure.ts';

const POLICIES: readonly string[] = [
  P3.slice(P3.indexOf('@record')),
  '@record.status = "published" or @record.owner = @request.auth.id and @record.title starts with "RFC "',
  'any(@record.team.memberships as m, m.user = @request.auth.id and m.role in ["owner", "editor"]) and @record.pinned',
  'not (@record.score >= 10 or @record.rating < 1.5) and @record.pinned and @record.due_at > @now - 24h',
  '@record.team.lead = @request.auth.id and @record.title contains @request.query.q and @record.score is null',
];
const REQUEST: PolicyRequest = {
  auth: { id: '00000000-0000-4000-8000-000000000001', roles: ['member'] },
  query: { q: 'a' },
  now: '2024-06-01T12:00:00.000000Z',
};
const ROW = { id: REQUEST.auth!.id, status: 'draft', title: 'a', score: 1, rating: 2, pinned: true };
/** With a caller and without, with a text to look for, without, with several, and with an empty one. */
const KINDS_OF_REQUESTS: readonly PolicyRequest[] = [REQUEST.auth!, { id: null, roles: [] }].flatMap((auth) =>
  [{ q: 'a' }, {}, { q: ['a', 'b'] }, { q: '' }].map((query) => ({ ...REQUEST, auth, query }) as PolicyRequest),
);
const PLACE = { catalog, collection: COLLECTION, action: 'read' } as const;
const SAMPLE_PLACE = { catalog: SAMPLE, collection: 'documents', action: 'list' } as const;
const KEPT = 2000;

async function run({ seconds }: BenchOptions): Promise<void> {
  const lengths = POLICIES.map((policy) => policy.length);
  console.log(`${POLICIES.length} policies of ${Math.min(...lengths)} to ${Math.max(...lengths)} characters`);
  const trees = POLICIES.map((text) => ({ text, expr: parse(text).expr! }));
  const [parsing, checking, whole] = measure(
    [
      { name: 'parse', run: over((i) => parse(POLICIES[i]!).expr) },
      { name: 'check', run: over((i) => checkExpr(trees[i]!.expr, { ...PLACE, text: trees[i]!.text }).checked) },
      // Lowering is part of the first request's residual, and so is in this figure; generated code is made when first called.
      {
        name: 'parse, check and lower',
        run: over((i) => compilePolicy(POLICIES[i]!, PLACE).specialise(REQUEST).verdict),
      },
    ],
    seconds,
  );
  for (const { name, median } of [parsing!, checking!, whole!])
    console.log(`${name.padEnd(26)} ${(median / 1000).toFixed(1)} µs`);
  verdict('parse, check and lower 100 characters', whole!.median / 1000, { limit: 40, unit: 'µs' });
  verdict('memory of a compiled policy', bytesKept() / 1024, { limit: 8, unit: 'KiB' });
  const largest = measure(
    [...ACCEPTED, ...REJECTED].map(([name, text]) => ({ name, run: (times: number) => wholly(text, times) })),
    seconds,
  );
  const [slowest] = largest.toSorted((a, b) => b.median - a.median);
  const label = `parse, check, try the fixes of and lower ${LIMITS.bytes} bytes (${slowest!.name})`;
  verdict(label, slowest!.median / 1e6, { limit: 5, unit: 'ms' });
}

/** With every error, warning and fix. */
function wholly(text: string, times: number): unknown {
  let last: unknown;
  for (let i = 0; i < times; i++) {
    const { checked, issues } = examine(text, SAMPLE_PLACE);
    last = issues;
    if (checked !== undefined) last = compileChecked({ checked, text, ...SAMPLE_PLACE }).specialise(REQUEST).verdict;
  }
  return last;
}

const over = (work: (i: number) => unknown) => (times: number) => {
  let last: unknown;
  for (let i = 0; i < times; i++) last = work(i % POLICIES.length);
  return last;
};

/**
 * The memory of a policy in a service: with residuals of several kinds of requests, their SQL and
 * their predicates. It includes the memory that all policies share.
 */
function bytesKept(): number {
  const gc = globalThis.gc;
  if (gc === undefined) throw new Error('run node with --expose-gc');
  const policies: Policy[] = [];
  // Texts that differ, so that nothing of one can serve another.
  const textOf = (i: number) => `${POLICIES[i % POLICIES.length]!} and @record.score != ${i}`;
  const make = (i: number) => {
    const policy = compilePolicy(textOf(i), PLACE);
    for (const request of KINDS_OF_REQUESTS) {
      const residual = policy.specialise(request);
      residual.test(ROW, NO_RELATED);
      if (residual.where('r').text === '') throw new Error('a condition has a text');
    }
    return policy;
  };
  // Few, so that the shapes that all policies share are made, and counted, after this.
  for (let i = 0; i < 10; i++) make(i);
  gc();
  const before = process.memoryUsage().heapUsed;
  for (let i = 0; i < KEPT; i++) policies.push(make(i));
  gc();
  const bytes = (process.memoryUsage().heapUsed - before) / KEPT;
  if (policies.length !== KEPT) throw new Error('the policies were not kept');
  return bytes;
}

const bench: Bench = {
  name: 'compile',
  question: 'how long until a policy text can decide, and how much memory does it keep?',
  run,
};
export default bench;
