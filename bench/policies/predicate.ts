/**
 * P3, a policy of four clauses (a role, a list, an instant, an owner), decided for 256 records of 16 callers by what a person would write, by the generated
 * code, by the closures, and by the libraries that answer the same question. All contenders must decide alike before they are timed.
 */
import { createMongoAbility, subject } from '@casl/ability';
import { Environment } from '@marcbachmann/cel-js';
import jexl from 'jexl';
import jsonLogic from 'json-logic-js';
import { compile } from '../../src/policy/compile.ts';
import { NO_RELATED, type PolicyRequest, type Row } from '../../src/policy/types.ts';
import { Random } from '../../test/fuzz/random.ts';
import type { Bench, BenchOptions } from '../support/bench.ts';
import { COLLECTION, catalog, P3 } from '../support/documents.ts';
import { type Contender, measure, ratio, verdict } from '../support/measure.ts';

// As many as stay in the cache: the question is what deciding costs, not what fetching costs.
const RECORDS = 256;
const CALLERS = 16;
const NOW = '2024-06-01T12:00:00.000000Z';
const STATUSES = ['draft', 'published', 'review', 'archived'];

interface Decision {
  readonly row: Row;
  readonly request: PolicyRequest;
}
type Decide = (decision: number) => boolean;
interface Made {
  readonly name: string;
  readonly decide: Decide;
}

async function run({ seconds, seed }: BenchOptions): Promise<void> {
  const decisions = madeUp(new Random(seed));
  const handwritten: Made = { name: 'handwritten', decide: byHand(decisions) };
  const contenders = [
    handwritten,
    generatedCode(decisions),
    closuresOnly(decisions),
    casl(decisions),
    cel(decisions),
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

function madeUp(random: Random): readonly Decision[] {
  const ids = Array.from({ length: CALLERS }, () => random.uuid());
  const callers = ids.map(
    (id): PolicyRequest => ({
      auth: { id, roles: random.pick([['admin'], ['member'], ['editor', 'member'], []]) },
      query: {},
      now: NOW,
    }),
  );
  return Array.from({ length: RECORDS }, () => {
    const request = random.pick(callers);
    const day = String(1 + random.below(28)).padStart(2, '0');
    const row: Row = {
      id: random.uuid(),
      status: random.pick(STATUSES),
      due_at: random.chance(0.2) ? null : `2024-0${5 + random.below(3)}-${day}T10:00:00.000000Z`,
      owner: random.chance(0.2) ? null : random.chance(0.3) ? request.auth!.id : random.pick(ids),
    };
    return { row, request };
  });
}

const looped = ({ name, decide }: Made): Contender => ({
  name,
  run(times) {
    let allowed = 0;
    for (let i = 0; i < times; i++) if (decide(i % RECORDS)) allowed++;
    return allowed;
  },
});

function agree(contenders: readonly Made[]): void {
  let allowed = 0;
  for (let i = 0; i < RECORDS; i++) {
    const answers = contenders.map(({ decide }) => decide(i));
    if (answers[0]) allowed++;
    const other = answers.findIndex((answer) => answer !== answers[0]);
    if (other > 0)
      throw new Error(
        `${contenders[other]!.name} decides record ${i} as ${answers[other]}, by hand it is ${answers[0]}`,
      );
  }
  if (allowed === 0 || allowed === RECORDS) throw new Error('the records do not distinguish the contenders');
  console.log(`${RECORDS} records, ${((100 * allowed) / RECORDS).toFixed(0)} % allowed, all contenders agree`);
}

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
  const policy = compile(P3, { catalog, collection: COLLECTION, action: 'read' }, { codegen });
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

function casl(decisions: readonly Decision[]): Made {
  const abilityOf = ({ auth, now }: PolicyRequest) =>
    createMongoAbility(
      (auth!.roles as string[]).includes('admin')
        ? [{ action: 'read', subject: 'documents' }]
        : [
            {
              action: 'read',
              subject: 'documents',
              conditions: {
                status: { $in: ['published', 'review'] },
                due_at: { $lt: now, $ne: null },
                owner: auth!.id,
              },
            },
          ],
    );
  const known = new Map(
    [...new Set(decisions.map(({ request }) => request))].map((request) => [request, abilityOf(request)]),
  );
  const bound = decisions.map(({ row, request }) => ({
    row: subject('documents', { ...row }),
    ability: known.get(request)!,
  }));
  const decide: Decide = (i) => {
    const { row, ability } = bound[i]!;
    return ability.can('read', row);
  };
  return { name: '@casl/ability', decide };
}

/** P3 in the language that cel-js and jexl share. */
const P3_CEL =
  `'admin' in auth.roles || (record.status in ['published', 'review'] && record.due_at != null && record.due_at < now` +
  ` && record.owner != null && record.owner == auth.id)`;

function cel(decisions: readonly Decision[]): Made {
  const environment = new Environment({ unlistedVariablesAreDyn: true });
  const program = environment.parse(P3_CEL);
  const contexts = contextsOf(decisions);
  return { name: '@marcbachmann/cel-js', decide: (i) => program(contexts[i]!) === true };
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

const contextsOf = (decisions: readonly Decision[]): Record<string, unknown>[] =>
  decisions.map(({ row, request: { auth, now } }) => ({ record: row, auth: auth!, now }));

const bench: Bench = {
  name: 'predicate',
  question: 'what does a decision cost, next to a predicate written by hand and to other libraries?',
  run,
};
export default bench;
