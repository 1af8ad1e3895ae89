/**
 * The JavaScript of a lowered condition, in two forms that mean the same: generated code, and composed closures for places where code generation
 * is off. INVARIANT: of what enters the code, names come from the schema and are quoted; values, of the policy and of the request, come from arrays.
 */
import {
  type ColumnRef,
  type Condition,
  type Exists,
  invariant,
  NEXT,
  type Operand,
  RECORD,
  type Scalar,
  type Source,
  type Test,
} from '../condition.ts';
import { OPERATORS, rank } from '../operators.ts';
import type { Need, Related, Row } from '../types.ts';

/** `next` and `nextRelated` are looked at only where the condition speaks of the resulting record. */
export type Decision = (record: Row, related: Related, next?: Row, nextRelated?: Related) => boolean;
/** `values`: the request's, by slot. Bound once for a request, and asked of many records. */
export type Predicate = (values: readonly unknown[]) => Decision;

// A list this long is looked up by hash.
const LONG_LIST = 8;

function literalOf(value: Scalar | readonly Scalar[]): unknown {
  if (!Array.isArray(value) || value.length <= LONG_LIST) return value;
  const set = new Set(value);
  return { includes: (element: Scalar) => set.has(element) };
}

/** Absent is undefined, whatever the row's prototype holds. */
export function own(row: Row, name: string): unknown {
  return Object.hasOwn(row, name) ? row[name] : undefined;
}

function oneOf({ relation, from }: Exists, related: Related, key: unknown): Row | undefined {
  if (key === null || key === undefined) return undefined;
  return relation.kind === 'belongs_to'
    ? related.one(relation.collection, key as string)
    : related.many(from, relation.name, key as string)[0];
}

function manyOf({ relation, from }: Exists, related: Related, key: unknown): readonly Row[] {
  return key === null || key === undefined ? [] : related.many(from, relation.name, key as string);
}

const isToOne = ({ relation }: Exists): boolean => relation.kind === 'belongs_to' || relation.kind === 'has_one';

// ---------------------------------------------------------------- generated code

/** Compiled when first called: whoever only asks for SQL does not pay for it. */
export function generated(cond: Condition): Predicate {
  let compiled: Predicate | undefined;
  return (values) => {
    compiled ??= compileCode(cond);
    return compiled(values);
  };
}

function compileCode(cond: Condition): Predicate {
  const { code, constants } = codeOf(cond);
  const make = new Function('constants', 'own', 'rank', 'oneOf', 'manyOf', code) as (...given: unknown[]) => Predicate;
  return make(constants, own, rank, oneOf, manyOf);
}

/** The text of the code and the constants it names, for `explain` and for tests. */
export function codeOf(cond: Condition): { readonly code: string; readonly constants: readonly unknown[] } {
  const writer = new CodeWriter();
  const expression = writer.write(cond);
  const { constants, walked, slots } = writer;
  const names = constants.map((_, i) => `const c${i} = constants[${i}];`).join(' ');
  const values = [...slots].map((slot) => `const v${slot} = values[${slot}];`).join(' ');
  const rows = walked.length > 0 ? `let ${walked.join(', ')}; ` : '';
  // On create the resulting record is the record.
  const given = writer.speaksOfNext ? 'r0, related, r1 = r0, nextRelated = related' : 'r0, related';
  const decision = `(${given}) => { ${rows}return ${expression}; }`;
  const code = `"use strict"; ${names} return (values) => { ${values} return ${decision}; };`;
  return { code, constants };
}

class CodeWriter {
  readonly constants: unknown[] = [];
  /** Variables of to-one rows. */
  readonly walked: string[] = [];
  readonly slots = new Set<number>();
  speaksOfNext = false;

  write(cond: Condition): string {
    switch (cond.kind) {
      case 'const':
        return String(cond.value);
      case 'and':
      case 'or':
        return `(${cond.items.map((item) => this.write(item)).join(cond.kind === 'and' ? ' && ' : ' || ')})`;
      case 'null':
        return `${this.#column(cond.column)} ${cond.negated ? '!=' : '=='} null`;
      case 'test':
        return this.#test(cond);
      case 'exists':
        return cond.negated ? `!${this.#exists(cond)}` : this.#exists(cond);
    }
  }

  #constant(value: unknown): string {
    this.constants.push(value);
    return `c${this.constants.length - 1}`;
  }

  #exists(exists: Exists): string {
    const row = rowName(exists.source);
    const related = exists.source.version === 'record' ? 'related' : 'nextRelated';
    const found = `(${this.#constant(exists)}, ${related}, ${this.#column(exists.key)})`;
    if (!isToOne(exists)) return `manyOf${found}.some((${row}) => ${this.write(exists.condition)})`;
    this.walked.push(row);
    return `((${row} = oneOf${found}) !== undefined && ${this.write(exists.condition)})`;
  }

  #column({ source, name }: ColumnRef): string {
    const property = JSON.stringify(name);
    const row = rowName(source);
    // What hangs on the resulting record is reached by its columns.
    if (source.id === NEXT.id) this.speaksOfNext = true;
    // Only these names are found on a row that does not have them; a plain read is an order faster.
    return name in Object.prototype ? `own(${row}, ${property})` : `${row}[${property}]`;
  }

  #operand(operand: Operand): string {
    switch (operand.kind) {
      case 'column':
        return this.#column(operand);
      case 'literal':
        return this.#constant(literalOf(operand.value));
      case 'slot':
        this.slots.add(operand.slot);
        return `v${operand.slot}`;
    }
  }

  #oneOfFew(left: Operand, elements: readonly Scalar[]): string {
    const side = this.#operand(left);
    return `(${elements.map((element) => `${side} === ${this.#constant(element)}`).join(' || ')})`;
  }

  #test(test: Test): string {
    const { left, right, negated, op } = test;
    if (op === 'in' && !negated && right.kind === 'literal') {
      const elements = right.value as readonly Scalar[];
      if (elements.length <= FEW) return this.#oneOfFew(left, elements);
    }
    const [a, b] = [this.#operand(left), this.#operand(right)];
    const holds = OPERATORS[op].js(a, b, left.type);
    // A present value equals no absent one, so `===` needs no guard beside it.
    const guarded = op === '=' && right.kind !== 'column' ? [] : [left, right].filter((side) => side.kind === 'column');
    const guards = guarded.map((side) => `${this.#column(side)} != null`);
    return `(${[...guards, negated ? `!(${holds})` : holds].join(' && ')})`;
  }
}

/** A few comparisons cost less than a call. */
const FEW = 4;

const rowName = ({ id }: Source): string => `r${id}`;

// ---------------------------------------------------------------- composed closures

interface Frame {
  readonly record: Row;
  readonly next: Row;
  readonly related: Related;
  readonly nextRelated: Related;
  readonly values: readonly unknown[];
  /** The rows that are walked to, by the identifier of their source. */
  readonly bound: Row[];
}
type Closure = (frame: Frame) => boolean;

export function composed(cond: Condition): Predicate {
  const closure = closureOf(cond);
  const binds = bindsRows(cond);
  return (values) =>
    (record, related, next = record, nextRelated = related) =>
      closure({ record, next, related, nextRelated, values, bound: binds ? [] : NOTHING_BOUND });
}

const NOTHING_BOUND: Row[] = [];

function bindsRows(cond: Condition): boolean {
  return cond.kind === 'exists' || ((cond.kind === 'and' || cond.kind === 'or') && cond.items.some(bindsRows));
}

function closureOf(cond: Condition): Closure {
  switch (cond.kind) {
    case 'const':
      return () => cond.value;
    case 'and':
      return allOf(cond.items.map(closureOf));
    case 'or':
      return someOf(cond.items.map(closureOf));
    case 'null': {
      const read = columnReader(cond.column);
      return cond.negated ? (frame) => read(frame) != null : (frame) => read(frame) == null;
    }
    case 'test':
      return testClosure(cond);
    case 'exists': {
      const found = existsClosure(cond);
      return cond.negated ? (frame) => !found(frame) : found;
    }
  }
}

/** A few items in one function cost a call each; a loop over them costs more. */
function allOf(items: readonly Closure[]): Closure {
  const [a, b, c, ...others] = items as [Closure, Closure, Closure, ...Closure[]];
  if (c === undefined) return (frame) => a(frame) && b(frame);
  if (others.length === 0) return (frame) => a(frame) && b(frame) && c(frame);
  const rest = others.length === 1 ? others[0]! : allOf(others);
  return (frame) => a(frame) && b(frame) && c(frame) && rest(frame);
}

function someOf(items: readonly Closure[]): Closure {
  const [a, b, c, ...others] = items as [Closure, Closure, Closure, ...Closure[]];
  if (c === undefined) return (frame) => a(frame) || b(frame);
  if (others.length === 0) return (frame) => a(frame) || b(frame) || c(frame);
  const rest = others.length === 1 ? others[0]! : someOf(others);
  return (frame) => a(frame) || b(frame) || c(frame) || rest(frame);
}

type Read = (frame: Frame) => unknown;

function columnReader({ source: { id }, name }: ColumnRef): Read {
  const inherited = name in Object.prototype;
  switch (id) {
    case RECORD.id:
      return inherited ? ({ record }) => own(record, name) : ({ record }) => record[name];
    case NEXT.id:
      return inherited ? ({ next }) => own(next, name) : ({ next }) => next[name];
    default:
      return inherited ? ({ bound }) => own(bound[id]!, name) : ({ bound }) => bound[id]![name];
  }
}

function operandReader(operand: Operand): Read {
  switch (operand.kind) {
    case 'column':
      return columnReader(operand);
    case 'literal': {
      const value = literalOf(operand.value);
      return () => value;
    }
    case 'slot': {
      const { slot } = operand;
      return ({ values }) => values[slot];
    }
  }
}

function testClosure(test: Test): Closure {
  const { op, negated, left, right } = test;
  const a = operandReader(left);
  if (left.kind === 'column' && right.kind !== 'column' && !negated) {
    const fused = right.kind === 'slot' ? slotTest(test, right.slot) : literalTest(test, literalOf(right.value));
    if (fused !== undefined) return fused;
  }
  const b = operandReader(right);
  const { holds } = OPERATORS[op];
  return (frame) => {
    const x = a(frame);
    const y = b(frame);
    return x != null && y != null && holds(x as Scalar, y as Scalar) !== negated;
  };
}

// The commonest tests in one function each, without a look at the operator.

function slotTest({ op, left }: Test, slot: number): Closure | undefined {
  const read = columnReader(left as ColumnRef);
  if (op === '=') return (frame) => read(frame) === frame.values[slot];
  const ordered = left.type === 'string' ? undefined : ORDERED[op];
  return ordered?.(read, (frame) => frame.values[slot]);
}

function literalTest({ op, left }: Test, value: unknown): Closure | undefined {
  const read = columnReader(left as ColumnRef);
  if (op === '=') return (frame) => read(frame) === value;
  if (op === 'in') {
    const list = value as readonly unknown[];
    return (frame) => list.includes(read(frame));
  }
  const ordered = left.type === 'string' ? undefined : ORDERED[op];
  return ordered?.(read, () => value);
}

type Ordered = (a: Read, b: Read) => Closure;
/** Of numbers and of datetimes, which are ordered as JavaScript orders them. */
const ORDERED: { readonly [op in Test['op']]?: Ordered } = {
  '<': (a, b) => (frame) => {
    const x = a(frame) as number | null | undefined;
    return x != null && x < (b(frame) as number);
  },
  '<=': (a, b) => (frame) => {
    const x = a(frame) as number | null | undefined;
    return x != null && x <= (b(frame) as number);
  },
  '>': (a, b) => (frame) => {
    const x = a(frame) as number | null | undefined;
    return x != null && x > (b(frame) as number);
  },
  '>=': (a, b) => (frame) => {
    const x = a(frame) as number | null | undefined;
    return x != null && x >= (b(frame) as number);
  },
};

function existsClosure(exists: Exists): Closure {
  const key = columnReader(exists.key);
  const condition = closureOf(exists.condition);
  const { id, version } = exists.source;
  const relatedOf = (frame: Frame): Related => (version === 'record' ? frame.related : frame.nextRelated);
  const meets = (frame: Frame, row: Row): boolean => {
    frame.bound[id] = row;
    return condition(frame);
  };
  if (!isToOne(exists)) return (frame) => manyOf(exists, relatedOf(frame), key(frame)).some((row) => meets(frame, row));
  return (frame) => {
    const row = oneOf(exists, relatedOf(frame), key(frame));
    return row !== undefined && meets(frame, row);
  };
}

// ---------------------------------------------------------------- what it reads

export interface Needs {
  readonly record: readonly Need[];
  readonly next: readonly Need[];
}
type Branch = Map<string, Branch>;

export function needsOf(cond: Condition): Needs {
  const [record, next]: [Branch, Branch] = [new Map(), new Map()];
  const branches = new Map<number, Branch>([
    [0, record],
    [1, next],
  ]);
  const visit = (node: Condition): void => {
    if (node.kind === 'and' || node.kind === 'or') node.items.forEach(visit);
    if (node.kind !== 'exists') return;
    let branch = branches.get(node.key.source.id);
    invariant(branch !== undefined, 'a row is bound before it is walked from');
    for (const relation of node.walk) {
      const known: Branch = branch.get(relation) ?? new Map();
      branch.set(relation, known);
      branch = known;
    }
    branches.set(node.source.id, branch);
    visit(node.condition);
  };
  visit(cond);
  return { record: listed(record), next: listed(next) };
}

const listed = (branch: Branch): readonly Need[] =>
  [...branch].map(([relation, needs]) => ({ relation, needs: listed(needs) }));
