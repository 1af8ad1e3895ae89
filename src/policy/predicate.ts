/**
 * The JavaScript of a lowered condition, in two forms that mean the same: generated code, and composed closures for places where code generation
 * is off. INVARIANT: of what enters the code, names come from the schema and are quoted; values, of the policy and of the request, come from arrays.
 */
import {
  type ColumnRef,
  type Cond,
  type Exists,
  invariant,
  type Operand,
  type Scalar,
  type Source,
  type Test,
} from './lowered.ts';
import { OPERATORS, rank } from './operators.ts';
import type { Need, Related, Row } from './types.ts';
import { NO_RELATED } from './types.ts';

export interface Rows {
  readonly record: Row;
  readonly related: Related;
  readonly next: Row;
  readonly nextRelated: Related;
}
/** `values`: the request's, by slot. */
export type Predicate = (rows: Rows, values: readonly unknown[]) => boolean;

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
export function generated(cond: Cond): Predicate {
  let compiled: Predicate | undefined;
  return (rows, values) => {
    compiled ??= compileCode(cond);
    return compiled(rows, values);
  };
}

function compileCode(cond: Cond): Predicate {
  const { code, constants } = codeOf(cond);
  const make = new Function('constants', 'own', 'rank', 'oneOf', 'manyOf', code) as (...given: unknown[]) => Predicate;
  return make(constants, own, rank, oneOf, manyOf);
}

/** The text of the code and the constants it names, for `explain` and for tests. */
export function codeOf(cond: Cond): { readonly code: string; readonly constants: readonly unknown[] } {
  const writer = new CodeWriter();
  const expression = writer.write(cond);
  const { constants, walked } = writer;
  const names = constants.map((_, i) => `const c${i} = constants[${i}];`).join(' ');
  const rows = walked.length > 0 ? `let ${walked.join(', ')}; ` : '';
  const code = `"use strict"; ${names} return (rows, v) => { const r0 = rows.record, r1 = rows.next; ${rows}return ${expression}; };`;
  return { code, constants };
}

class CodeWriter {
  readonly constants: unknown[] = [];
  /** Variables of to-one rows. */
  readonly walked: string[] = [];

  write(cond: Cond): string {
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
    const related = exists.source.world === 'record' ? 'rows.related' : 'rows.nextRelated';
    const found = `(${this.#constant(exists)}, ${related}, ${this.#column(exists.key)})`;
    if (!isToOne(exists)) return `manyOf${found}.some((${row}) => ${this.write(exists.condition)})`;
    this.walked.push(row);
    return `((${row} = oneOf${found}) !== undefined && ${this.write(exists.condition)})`;
  }

  #column({ source, name }: ColumnRef): string {
    const property = JSON.stringify(name);
    const row = rowName(source);
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
        return `v[${operand.slot}]`;
    }
  }

  #test(test: Test): string {
    const { left, right, negated, op } = test;
    const [a, b] = [this.#operand(left), this.#operand(right)];
    const holds = OPERATORS[op].js(a, b, left.type);
    // A present value equals no absent one, so `===` needs no guard beside it.
    const guarded = op === '=' && right.kind !== 'column' ? [] : [left, right].filter((side) => side.kind === 'column');
    const guards = guarded.map((side) => `${this.#column(side)} != null`);
    return `(${[...guards, negated ? `!(${holds})` : holds].join(' && ')})`;
  }
}

const rowName = ({ id }: Source): string => `r${id}`;

// ---------------------------------------------------------------- composed closures

interface Frame {
  /** By the identifier of the source. */
  readonly bound: Row[];
  readonly related: Related;
  readonly nextRelated: Related;
  readonly values: readonly unknown[];
}
type Closure = (frame: Frame) => boolean;

export function composed(cond: Cond): Predicate {
  const closure = closureOf(cond);
  return ({ record, related, next, nextRelated }, values) =>
    closure({ bound: [record, next], related, nextRelated, values });
}

function closureOf(cond: Cond): Closure {
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

function allOf(items: readonly Closure[]): Closure {
  if (items.length === 2) {
    const [a, b] = items as [Closure, Closure];
    return (frame) => a(frame) && b(frame);
  }
  return (frame) => {
    for (const item of items) if (!item(frame)) return false;
    return true;
  };
}

function someOf(items: readonly Closure[]): Closure {
  if (items.length === 2) {
    const [a, b] = items as [Closure, Closure];
    return (frame) => a(frame) || b(frame);
  }
  return (frame) => {
    for (const item of items) if (item(frame)) return true;
    return false;
  };
}

type Read = (frame: Frame) => unknown;

function columnReader({ source: { id }, name }: ColumnRef): Read {
  return name in Object.prototype ? ({ bound }) => own(bound[id]!, name) : ({ bound }) => bound[id]![name];
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

function testClosure({ op, negated, left, right }: Test): Closure {
  const [a, b] = [operandReader(left), operandReader(right)];
  if (op === '=' && left.kind === 'column' && right.kind !== 'column') return (frame) => a(frame) === b(frame);
  const { holds } = OPERATORS[op];
  return (frame) => {
    const x = a(frame);
    const y = b(frame);
    return x != null && y != null && holds(x as Scalar, y as Scalar) !== negated;
  };
}

function existsClosure(exists: Exists): Closure {
  const key = columnReader(exists.key);
  const condition = closureOf(exists.condition);
  const { id, world } = exists.source;
  const relatedOf = (frame: Frame): Related => (world === 'record' ? frame.related : frame.nextRelated);
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

export function needsOf(cond: Cond): Needs {
  const [record, next]: [Branch, Branch] = [new Map(), new Map()];
  const branches = new Map<number, Branch>([
    [0, record],
    [1, next],
  ]);
  const visit = (node: Cond): void => {
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

/** On create the resulting record is the record. */
export function rowsOf(
  record: Row,
  related: Related,
  next: { readonly record?: Row | undefined; readonly related?: Related | undefined },
): Rows {
  if (next.record === undefined) return { record, related, next: record, nextRelated: related };
  return { record, related, next: next.record, nextRelated: next.related ?? NO_RELATED };
}
