/** Policies as the filters of clients: bare names, `@me`, and params in place of what a policy reads from the request. */
import { parse } from '../../../grammar/parser.ts';
import { print } from '../../../grammar/printer.ts';
import type { Elements, Expr, Operand, Path } from '../../../grammar/syntax.ts';
import type { Filter, FilterPlace } from '../../../src/policy/filters/filter.ts';
import type { Checked, Params } from '../../../src/policy/types.ts';
import { SPAN } from '../policies/policies.ts';
import {
  BIGINTS,
  BYTES,
  DATES,
  DATETIME_SPELLINGS,
  DECIMAL_INPUTS,
  FLOATS,
  INTS,
  TEXTS,
  TIME_SPELLINGS,
  UUID_SPELLINGS,
} from '../policies/values.ts';
import type { Random } from '../random.ts';
import type { QueryCompiler } from './store-modules.ts';

export interface ClientFilter {
  readonly text: string;
  /** The names of its params. */
  readonly params: readonly string[];
}

/** Undefined where the record has a name that a filter cannot say there. */
export function filterOf(expr: Expr): ClientFilter | undefined {
  const writer = new FilterWriter();
  try {
    return { text: print(writer.expr(expr, new Set())), params: [...writer.params.keys()] };
  } catch (error) {
    if (error instanceof Unsayable) return undefined;
    throw error;
  }
}

class Unsayable extends Error {}

class FilterWriter {
  /** The names of the params, by their values. */
  readonly params = new Map<string, string>();

  expr(expr: Expr, bound: ReadonlySet<string>): Expr {
    switch (expr.kind) {
      case 'and':
      case 'or':
        return { ...expr, items: expr.items.map((item) => this.expr(item, bound)) };
      case 'not':
        return { ...expr, item: this.expr(expr.item, bound) };
      case 'compare':
        // No param is a circle.
        if (expr.op === 'within') return { ...expr, left: this.#operand(expr.left, bound) };
        return { ...expr, left: this.#operand(expr.left, bound), right: this.#operand(expr.right, bound) };
      case 'is null':
        return { ...expr, operand: this.#operand(expr.operand, bound) };
      case 'truth':
        return { ...expr, operand: this.#operand(expr.operand, bound) };
      case 'quantified': {
        const inner = new Set(bound).add(expr.variable.name);
        return { ...expr, path: this.#elements(expr.path, bound), condition: this.expr(expr.condition, inner) };
      }
      case 'call':
        throw new Unsayable();
    }
  }

  #operand(operand: Operand, bound: ReadonlySet<string>): Operand {
    if (operand.kind === 'path') return this.#path(operand, bound);
    if (operand.kind !== 'count') return operand;
    const path = this.#elements(operand.path, bound);
    if (operand.condition === undefined) return { ...operand, path };
    const inner = new Set(bound).add(operand.variable!.name);
    return { ...operand, path, condition: this.expr(operand.condition, inner) };
  }

  /** A variable takes a name from the record. */
  #path(path: Path, bound: ReadonlySet<string>): Operand {
    if (path.root === 'variable') return path;
    if (path.root === 'record') return this.#records(path, bound);
    const name = path.steps[0]!.name;
    if (path.root === 'auth' && name === 'id')
      return { kind: 'path', root: 'variable', variable: { name: '@me', span: SPAN }, steps: [], span: SPAN };
    const param = `p_${path.root}_${name}`.replaceAll(/[^A-Za-z0-9_]/g, '_');
    this.params.set(param, param);
    return { kind: 'param', name: param, span: SPAN };
  }

  #elements(elements: Elements, bound: ReadonlySet<string>): Elements {
    if (elements.kind === 'path') return this.#records(elements, bound);
    return { ...elements, path: this.#records(elements.path, bound) };
  }

  #records(path: Path, bound: ReadonlySet<string>): Path {
    if (path.root === 'variable') return path;
    const [first, ...steps] = path.steps;
    if (path.root !== 'record' || bound.has(first!.name) || isWord(first!.name)) throw new Unsayable();
    return { kind: 'path', root: 'variable', variable: first!, steps, span: SPAN };
  }
}

/** A word of the language where a name is expected. */
const isWord = (name: string): boolean => parse(`${name} is null`, 'filter').expr === undefined;

const KINDS: readonly ((random: Random, ids: readonly string[]) => unknown)[] = [
  (random) => random.pick(TEXTS),
  (random) => random.pick(INTS),
  (random) => random.pick(FLOATS),
  (random) => random.chance(0.5),
  (random) => random.pick(DATETIME_SPELLINGS),
  (random) => random.pick(DATES),
  (random) => random.pick(UUID_SPELLINGS),
  (random) => random.pick(BYTES),
  (random) => random.pick(BIGINTS),
  (random) => random.pick(DECIMAL_INPUTS),
  (random) => random.pick(TIME_SPELLINGS),
  (random, ids) => (random.chance(0.5) ? random.pick(ids) : String(random.pick(ids)).toUpperCase()),
  () => null,
];

/** A value, null, or a list of values of one kind, nulls among them. */
function randomParam(random: Random, ids: readonly string[]): unknown {
  const kind = random.pick(KINDS);
  if (random.chance(0.7)) return kind(random, ids);
  return Array.from({ length: random.below(4) }, () => (random.chance(0.15) ? null : kind(random, ids)));
}

interface Fitting {
  readonly random: Random;
  readonly ids: readonly string[];
  readonly compiler: Pick<QueryCompiler, 'compileFilter' | 'examine'>;
  readonly place: Omit<FilterPlace, 'params'>;
}
interface FittedFilter {
  readonly text: string;
  readonly params: Params;
  readonly filter: Filter;
  readonly checked: Checked;
}
const PARAM_TRIES = 24;

/** With params that their places can take; undefined where none was found. */
export function fitted({ text, params: names }: ClientFilter, fitting: Fitting): FittedFilter | undefined {
  const { random, ids, compiler } = fitting;
  const params: Record<string, unknown> = {};
  for (const name of names) params[name] = randomParam(random, ids);
  const place = { ...fitting.place, params };
  for (let i = 0; i < PARAM_TRIES; i++) {
    const { filter } = compiler.compileFilter(text, place);
    if (filter === undefined && names.length === 0) return undefined;
    const faults = filter?.issues ?? names.map((name) => ({ name }));
    if (filter !== undefined && faults.length === 0) {
      const { checked } = compiler.examine(text, { ...place, action: 'list' });
      return { text, filter, checked: checked!, params: { ...params } };
    }
    for (const { name } of faults) params[name] = randomParam(random, ids);
  }
  return undefined;
}
