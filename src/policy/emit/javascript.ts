/**
 * The JavaScript of a condition as generated code, the fast form.
 * INVARIANT: names in the code come from the schema and are quoted; values, of the policy and of
 * the request, come from arrays.
 */
import { invariant } from '../../invariant.ts';
import {
  type ColumnRef,
  type Condition,
  type ConditionOperand,
  type CountRef,
  type Exists,
  NEXT,
  type Source,
  type Test,
} from '../condition.ts';
import { fold } from '../fold.ts';
import { isMember, OPERATORS, rank } from '../operators.ts';
import { listElements } from '../scalars/list-values.ts';
import { isWithin } from '../scalars/places.ts';
import { own, rankNumerals, type Scalar } from '../values.ts';
import { countedOf, goesOn, isToOne, literalOf, manyOf, oneOf, type Predicate } from './decision.ts';
import { partOf } from './json-parts.ts';

/** Compiled when first called, so that a request which only needs SQL does not pay for it. */
export function javascript(cond: Condition): Predicate {
  let compiled: Predicate | undefined;
  return (values) => {
    compiled ??= compileCode(cond);
    return compiled(values);
  };
}

function compileCode(cond: Condition): Predicate {
  const { code, constants } = writeCode(cond);
  const make = new Function(
    'constants',
    'own',
    'rank',
    'rankNumerals',
    'oneOf',
    'manyOf',
    'countedOf',
    'goesOn',
    'fold',
    'listElements',
    'partOf',
    'isWithin',
    code,
  ) as (...given: unknown[]) => Predicate;
  return make(
    constants,
    own,
    rank,
    rankNumerals,
    oneOf,
    manyOf,
    countedOf,
    goesOn,
    fold,
    listElements,
    partOf,
    isWithin,
  );
}

/** The text of the code and the constants it names, for `explain` and for tests. */
export function writeCode(cond: Condition): { readonly code: string; readonly constants: readonly unknown[] } {
  const writer = new CodeWriter();
  const expression = writer.write(cond);
  const { constants, walked, slots, folded } = writer;
  const names = constants.map((_, i) => `const c${i} = constants[${i}];`).join(' ');
  const values = [
    ...[...slots].map((slot) => `const v${slot} = values[${slot}];`),
    ...[...folded].map((slot) => `const f${slot} = fold(values[${slot}]);`),
  ].join(' ');
  const rows = walked.size > 0 ? `let ${[...walked].join(', ')}; ` : '';
  const given = writer.speaksOfNext ? 'r0, related, r1' : 'r0, related';
  const decision = `(${given}) => { ${rows}return ${expression}; }`;
  const code = `"use strict"; ${names} return (values) => { ${values} return ${decision}; };`;
  return { code, constants };
}

class CodeWriter {
  readonly constants: unknown[] = [];
  /** Variables of to-one rows, and of counts that may be absent. */
  readonly walked = new Set<string>();
  readonly slots = new Set<number>();
  /** Slots whose folded values are needed. */
  readonly folded = new Set<number>();
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
    const found = `(${this.#constant(exists)}, related, ${this.#operand(exists.key)})`;
    const some = (): string => `manyOf${found}.some((${row}) => ${this.write(exists.condition)})`;
    if (exists.beyond) return `(goesOn${found} || ${some()})`;
    if (!isToOne(exists)) return some();
    this.walked.add(row);
    return `((${row} = oneOf${found}) !== undefined && ${this.write(exists.condition)})`;
  }

  /** Undefined where the chain of ancestors goes on. */
  #count(exists: Exists): string {
    const row = rowName(exists.source);
    const rows = `countedOf(${this.#constant(exists)}, related, ${this.#operand(exists.key)})`;
    return `${rows}?.reduce((n, ${row}) => (${this.write(exists.condition)} ? n + 1 : n), 0)`;
  }

  #column({ part, type, ...ref }: ColumnRef): string {
    if (part === undefined) return this.#member(ref);
    return `partOf(${this.#member({ ...ref, name: part.member })}, ${this.#constant(part)}, ${this.#constant(type)})`;
  }

  #member({ source, name }: Pick<ColumnRef, 'source' | 'name'>): string {
    const property = JSON.stringify(name);
    const row = rowName(source);
    if (source.id === NEXT.id) this.speaksOfNext = true;
    // Only these names are found on a row that does not have them; a plain read is an order faster.
    return name in Object.prototype ? `own(${row}, ${property})` : `${row}[${property}]`;
  }

  #operand(operand: ConditionOperand): string {
    switch (operand.kind) {
      case 'column':
        return this.#column(operand);
      case 'count':
        return this.#count(operand.exists);
      case 'literal':
        return this.#constant(literalOf(operand.value));
      case 'slot':
        this.slots.add(operand.slot);
        return `v${operand.slot}`;
    }
  }

  /** Once for a request, not for each record. */
  #folded(operand: ConditionOperand): string {
    if (operand.kind === 'literal') return this.#constant(fold(operand.value as string));
    invariant(operand.kind === 'slot', 'what is looked for is not of a record');
    this.folded.add(operand.slot);
    return `f${operand.slot}`;
  }

  #oneOfFew(left: ConditionOperand, elements: readonly Scalar[]): string {
    const side = this.#operand(left);
    return `(${elements.map((element) => `${side} === ${this.#constant(element)}`).join(' || ')})`;
  }

  #test(test: Test): string {
    const { left, right, negated, op } = test;
    const operator = OPERATORS[op];
    if (
      isMember(operator) &&
      !negated &&
      left.kind === 'column' &&
      right.kind === 'literal' &&
      typeof right.value === 'object'
    ) {
      if (right.value.length <= FEW) return this.#oneOfFew(left, right.value);
    }
    const [a, b] = [
      left.kind === 'count' ? countVariable(left) : this.#operand(left),
      operator.folds ? this.#folded(right) : this.#operand(right),
    ];
    const holds = operator.js(a, b, left.type);
    // A present value equals no absent one, so `===` needs no guard beside it.
    const equality = operator.family === 'equality' && isMember(operator);
    const guarded = equality && right.kind !== 'column' ? [] : [left, right].filter((side) => side.kind === 'column');
    const guards = guarded.map((side) => `${this.#column(side)} != null`);
    const tested = negated ? `!(${holds})` : holds;
    return `(${[...guards, left.kind === 'count' ? this.#counted(left, tested) : tested].join(' && ')})`;
  }

  #counted(count: CountRef, tested: string): string {
    const name = countVariable(count);
    this.walked.add(name);
    const found = `(${name} = ${this.#count(count.exists)})`;
    return count.beyond ? `(${found} === undefined || ${tested})` : `${found} !== undefined && ${tested}`;
  }
}

/** A few comparisons cost less than a call. */
const FEW = 4;

const rowName = ({ id }: Source): string => `r${id}`;
const countVariable = ({ exists }: CountRef): string => `n${exists.source.id}`;
