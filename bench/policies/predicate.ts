/**
 * P3, a policy of four clauses (a role, a list, an instant, an owner), decided for 256 records of 16 callers by what a person would write, by the generated
 * code, by the closures, and by the libraries that answer the same question. All contenders must decide alike before they are timed.
 */
import jexl from 'jexl';
import jsonLogic from 'json-logic-js';
import { compilePolicy } from '../../src/policy/compile.ts';
import { NO_RELATED, type PolicyRequest, type Row } from '../../src/policy/types.ts';
import { Random } from '../../test/fuzz/random.ts';
import type { Bench, BenchOptions } from '../support/bench.ts';
import { COLLECTION, catalog, P3 } from '../support/documents.ts';
import { type Contender, measure, ratio, verdict } from '../support/measure.ts';
import { agree, contextsOf, type Decide, type Decision, madeDecisions, P3_CEL, RECORDS } from './decisions.ts';
import { casl, cel } from './peers.ts';

interface Made {
  readonly name: string;
  readonly decide: Decide;
}

async function run({ seconds, seed }: BenchOptions): Promise<void> {
  const decisions = madeDecisions(new Random(seed));
  const handwritten: Made = { name: 'handwritten', decide: byHand(decisions) };
  const contenders = [
    handwritten,
    generatedCode(decisions),
    closuresOnly(decisions),
    { name: casl.name, decide: casl.compile(0)(decisions) },
    { name: cel.name, decide: cel.compile(0)(decisions) },
    ...(await jexlOf(decisions)),
    jsonLogicOf(decisions),
  ];
  agree(contenders);
  const measured = measure(contenders.map(looped), seconds);
  const [hand, generated, closures, ...libraries] = measured;
  for (const each of measured) {
    const against = ratio(each, hand!);
    console.log(
      `${each.name.padEnd(26)} ${each.median.toFixed(1).padStart(9)} ns a decision   ${against.toFixed(2)} × handwritten`,
    );
  }
  verdict('generated code', ratio(generated!, hand!), { limit: 1.2, unit: '× handwritten' });
  verdict('closures', ratio(closures!, hand!), { limit: 3, unit: '× handwritten' });
  for (const library of libraries) {
    verdict(`generated code next to ${library.name}`, ratio(generated!, library), { limit: 0.1, unit: 'of its time' });
  }
}

const looped = ({ name, decide }: Made): Contender => ({
  name,
  run(times) {
    let allowed = 0;
    for (let i = 0; i < times; i++) if (decide(i % RECORDS)) allowed++;
    return allowed;
  },
});

// ---------------------------------------------------------------- contenders

/** P3 written by hand, careful with null. */
function allows(row: Row, request: PolicyRequest): boolean {
  const auth = request.auth;
  const roles = auth?.roles as readonly string[] | undefined;
  if (roles?.includes('admin')) return true;
  const status = row.status;
  if (status !== 'published' && status !== 'review') return false;
  const due = row.due_at as string | null;
  if (due == null || due >= request.now) return false;
  return row.owner != null && row.owner === auth?.id;
}

function byHand(decisions: readonly Decision[]): Decide {
  return (i) => {
    const { row, request } = decisions[i]!;
    return allows(row, request);
  };
}

/** A request is specialised once and decides many records, as in a list. */
function bound(decisions: readonly Decision[], codegen: boolean) {
  const policy = compilePolicy(P3, { catalog, collection: COLLECTION, action: 'read' }, { codegen });
  const requests = [...new Set(decisions.map(({ request }) => request))];
  const known = new Map(requests.map((request) => [request, policy.specialise(request)]));
  return decisions.map(({ row, request }) => ({ row, residual: known.get(request)! }));
}

// Each contender has its own function: V8 shares type feedback among all closures of one function.
function generatedCode(decisions: readonly Decision[]): Made {
  const all = bound(decisions, true);
  const decide: Decide = (i) => {
    const { row, residual } = all[i]!;
    return residual.test(row, NO_RELATED);
  };
  return { name: 'generated code', decide };
}

function closuresOnly(decisions: readonly Decision[]): Made {
  const all = bound(decisions, false);
  const decide: Decide = (i) => {
    const { row, residual } = all[i]!;
    return residual.test(row, NO_RELATED);
  };
  return { name: 'closures', decide };
}

async function jexlOf(decisions: readonly Decision[]): Promise<readonly Made[]> {
  const expression = jexl.compile(P3_CEL);
  const contexts = contextsOf(decisions);
  return [{ name: 'jexl', decide: (i) => expression.evalSync(contexts[i]!) === true }];
}

function jsonLogicOf(decisions: readonly Decision[]): Made {
  const of = (name: string) => ({ var: name });
  const rule = {
    or: [
      { in: ['admin', of('auth.roles')] },
      {
        and: [
          { in: [of('record.status'), ['published', 'review']] },
          { '!==': [of('record.due_at'), null] },
          { '<': [of('record.due_at'), of('now')] },
          { '!==': [of('record.owner'), null] },
          { '===': [of('record.owner'), of('auth.id')] },
        ],
      },
    ],
  };
  const contexts = contextsOf(decisions);
  return { name: 'json-logic-js', decide: (i) => jsonLogic.apply(rule, contexts[i]!) === true };
}

const bench: Bench = {
  name: 'predicate',
  question: 'what does a decision cost, next to a predicate written by hand and to other libraries?',
  run,
};
export default bench;
