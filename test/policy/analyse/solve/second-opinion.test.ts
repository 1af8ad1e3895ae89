/** The solver beside Z3: both decide the same pairs of policies about the members of one record. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type Bool, type Context, type Expr, init, type Solver } from 'z3-solver';
import { compareRules } from '../../../../src/policy/analyse/solve/solve.ts';
import { compilePolicy } from '../../../../src/policy/compile.ts';
import type { Checked, CheckedOperand, LiteralOperand } from '../../../../src/policy/types.ts';
import { parseSchema } from '../../../../src/schema/load.ts';
import { Random } from '../../../fuzz/random.ts';

const KINDS = ['draft', 'published', 'archived'];
const { schema } = parseSchema(`
collections:
  notes:
    fields:
      size: int
      level: { type: int, required: true, min: 0, max: 9 }
      kind: { type: string, required: true, enum: [${KINDS.join(', ')}] }
      open: { type: bool, required: true }
      name: string
`);
const place = { catalog: schema!, collection: 'notes', action: 'read' } as const;
const PAIRS = 40;

// -------------------------------------------------------------- random policies

const LEAVES: readonly ((random: Random) => string)[] = [
  (random) => `@record.size ${random.pick(ORDERS)} ${random.below(5) - 1}`,
  (random) => `@record.level ${random.pick(ORDERS)} ${random.pick([0, 1, 8, 9])}`,
  (random) => `@record.size ${random.pick(ORDERS)} @record.level`,
  (random) => `@record.kind ${random.pick(['=', '!='])} "${random.pick(KINDS)}"`,
  (random) => `@record.kind ${random.pick(['in', 'not in'])} ["draft", "${random.pick(KINDS)}"]`,
  () => '@record.open',
  (random) =>
    `@record.name ${random.pick(['starts with', 'ends with', 'contains', '=', '!='])} "${random.pick(TEXTS)}"`,
  (random) => `@record.${random.pick(['size', 'name'])} is ${random.pick(['', 'not '])}null`,
];
const ORDERS = ['=', '!=', '<', '<=', '>', '>='];
const TEXTS = ['a', 'ab', 'b', 'ba'];

function policy(random: Random, depth = 3): string {
  if (depth === 0 || random.chance(0.25)) return random.pick(LEAVES)(random);
  if (random.chance(0.2)) return `not (${policy(random, depth - 1)})`;
  const word = random.pick([' and ', ' or ']);
  return `(${Array.from({ length: 2 }, () => policy(random, depth - 1)).join(word)})`;
}

/** Another policy, the same with one side more, or the same in other words. */
function other(random: Random, old: string): string {
  const roll = random.next();
  if (roll < 0.4) return policy(random);
  if (roll < 0.8) return `(${old})${random.pick([' and ', ' or '])}(${policy(random, 1)})`;
  const more = policy(random, 1);
  return `not (not (${old}) and (not (${old}) or ${more}))`;
}

// -------------------------------------------------------------- policies for Z3

type Z3 = Context<'main'>;
type Term = Expr<'main'>;
type Test = Bool<'main'>;

class Opinion {
  readonly #z3: Z3;
  readonly #solver: Solver<'main'>;
  readonly #members: Readonly<Record<string, { readonly value: Term; readonly isPresent: Test }>>;

  constructor(z3: Z3) {
    const { Bool, Int, String: Text, And, Or } = z3;
    const [size, level, kind, open] = [Int.const('size'), Int.const('level'), Text.const('kind'), Bool.const('open')];
    const always = Bool.val(true);
    this.#z3 = z3;
    this.#members = {
      size: { value: size, isPresent: Bool.const('has size') },
      level: { value: level, isPresent: always },
      kind: { value: kind, isPresent: always },
      open: { value: open, isPresent: always },
      name: { value: Text.const('name'), isPresent: Bool.const('has name') },
    };
    this.#solver = new z3.Solver();
    this.#solver.add(And(level.ge(0), level.le(9)), Or(...KINDS.map((each) => kind.eq(Text.val(each)))));
  }

  async verdict(old: Checked, changed: Checked): Promise<string> {
    const wider = await this.#isPossible(changed, old);
    const narrower = await this.#isPossible(old, changed);
    return wider ? (narrower ? 'both' : 'wider') : narrower ? 'narrower' : 'same';
  }

  async #isPossible(allowing: Checked, denying: Checked): Promise<boolean> {
    this.#solver.push();
    this.#solver.add(this.#isValue(allowing, true), this.#z3.Not(this.#isValue(denying, true)));
    const answer = await this.#solver.check();
    this.#solver.pop();
    if (answer === 'unknown') throw new Error('Z3 has no opinion');
    return answer === 'sat';
  }

  /** The node is definitely true, or definitely false. */
  #isValue(node: Checked, truth: boolean): Test {
    const { And, Or, Not, Bool } = this.#z3;
    switch (node.kind) {
      case 'const':
        return Bool.val(node.value === truth);
      case 'not':
        return this.#isValue(node.item, !truth);
      case 'and':
      case 'or': {
        const items = node.items.map((item) => this.#isValue(item, truth));
        return (node.kind === 'and') === truth ? And(...items) : Or(...items);
      }
      case 'is null': {
        const { isPresent } = this.#side(node.operand);
        return node.negated === truth ? isPresent : Not(isPresent);
      }
      case 'compare': {
        const [left, right] = [this.#side(node.left), this.#side(node.right)];
        const test = this.#compared(node.op, left.value, right.value);
        return And(left.isPresent, right.isPresent, truth ? test : Not(test));
      }
      default:
        throw new TypeError(`${node.kind} is not for Z3`);
    }
  }

  #side(operand: CheckedOperand): { readonly value: Term | readonly Term[]; readonly isPresent: Test } {
    const isPresent = this.#z3.Bool.val(true);
    if (operand.kind === 'column' && operand.column.kind === 'field') return this.#members[operand.column.field.name]!;
    if (operand.kind !== 'literal') throw new TypeError(`${operand.kind} is not for Z3`);
    const { value } = operand as LiteralOperand;
    return { value: Array.isArray(value) ? value.map((each) => this.#literal(each)) : this.#literal(value), isPresent };
  }

  #literal(value: unknown): Term {
    const { Bool, Int, String: Text } = this.#z3;
    if (typeof value === 'boolean') return Bool.val(value);
    return typeof value === 'number' ? Int.val(value) : Text.val(String(value));
  }

  #compared(op: string, left: Term | readonly Term[], right: Term | readonly Term[]): Test {
    const { Or, Not } = this.#z3;
    const [a, b] = [left, right] as never as [ReturnType<Z3['Int']['const']>, ReturnType<Z3['Int']['const']>];
    const [text, part] = [left, right] as never as [
      ReturnType<Z3['String']['const']>,
      ReturnType<Z3['String']['const']>,
    ];
    switch (op) {
      case '=':
        return a.eq(b);
      case '!=':
        return Not(a.eq(b));
      case '<':
        return a.lt(b);
      case '<=':
        return a.le(b);
      case '>':
        return a.gt(b);
      case '>=':
        return a.ge(b);
      case 'in':
        return Or(...(right as readonly Term[]).map((each) => a.eq(each as never)));
      case 'not in':
        return Not(this.#compared('in', left, right));
      case 'starts with':
        return part.prefixOf(text);
      case 'ends with':
        return part.suffixOf(text);
      case 'contains':
        return text.contains(part);
      default:
        throw new TypeError(`${op} is not for Z3`);
    }
  }
}

let opinion: Opinion;
let stop: () => void;
beforeAll(async () => {
  const { Context, em } = await init();
  opinion = new Opinion(new Context('main'));
  stop = () => em.PThread.terminateAllThreads();
});
afterAll(() => stop());

it('the solver and Z3 decide random pairs alike', async () => {
  const random = new Random(20_260_301);
  const verdicts = new Set<string>();
  for (let i = 0; i < PAIRS; i++) {
    const old = policy(random);
    const changed = other(random, old);
    const [before, after] = [compilePolicy(old, place), compilePolicy(changed, place)];
    const { verdict } = compareRules(place, [[before], [after]]);
    expect(`${old} → ${changed}: ${verdict}`).toBe(
      `${old} → ${changed}: ${await opinion.verdict(before.checked, after.checked)}`,
    );
    verdicts.add(verdict);
  }
  expect([...verdicts].toSorted()).toEqual(['both', 'narrower', 'same', 'wider']);
});
