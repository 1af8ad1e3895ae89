/**
 * Counts the shapes that a run has met: leaves as (operator, operands and their nullability,
 * polarity), and pairs of leaves and of walks beside each other, which a simplifier might make one
 * of. A shape that stays at zero was not tested.
 */
import type { Checked, CheckedOperand, ValueType } from '../../../src/policy/types.ts';
import { type Polarity, pairShapes, pairsOf } from './pair-shapes.ts';

export class Shapes {
  readonly #seen = new Map<string, number>();

  count(checked: Checked, polarity: Polarity = '+'): void {
    switch (checked.kind) {
      case 'const':
        this.#add(`const ${polarity}`);
        return;
      case 'and':
      case 'or':
        this.#add(`${checked.kind} ${polarity}`);
        for (const pair of pairsOf(checked, polarity)) this.#add(pair);
        for (const item of checked.items) this.count(item, polarity);
        return;
      case 'not':
        this.count(checked.item, flipped(polarity));
        return;
      case 'is null':
        this.#add(`${checked.negated ? 'is not null' : 'is null'} ${sideOf(checked.operand)} ${polarity}`);
        return;
      case 'compare':
        this.#add(`${sideOf(checked.left)} ${checked.op} ${sideOf(checked.right)} ${polarity}`);
        return;
      case 'changed':
        this.#add(`${checked.unchanged ? 'changed_only' : 'changed'} ${polarity}`);
        return;
      case 'quantified': {
        const { quantifier, path, condition } = checked;
        const reached =
          path.steps.length === 0
            ? ''
            : path.steps.some(({ relation }) => relation.kind === 'has_one' || !relation.required)
              ? ' path?'
              : ' path';
        this.#add(`${quantifier} ${path.relation.kind} of ${path.scope.kind}${reached} ${polarity}`);
        this.count(condition, quantifier === 'none' ? flipped(polarity) : polarity);
        return;
      }
    }
  }

  #add(shape: string): void {
    this.#seen.set(shape, (this.#seen.get(shape) ?? 0) + 1);
  }

  report(): {
    readonly known: number;
    readonly met: number;
    readonly missing: readonly string[];
    readonly others: number;
  } {
    const known = [...leafShapes(), ...pairShapes()];
    const missing = known.filter((shape) => !this.#seen.has(shape));
    return {
      known: known.length,
      met: known.length - missing.length,
      missing,
      others: this.#seen.size - (known.length - missing.length),
    };
  }
}

const flipped = (polarity: Polarity): Polarity => (polarity === '+' ? '-' : '+');

const typeOf = (type: ValueType): string => (typeof type === 'object' ? 'id' : type);

function sideOf(operand: CheckedOperand): string {
  switch (operand.kind) {
    case 'column':
      return `${operand.steps.length === 0 ? 'column' : 'path'}:${typeOf(operand.type)}${operand.nullable ? '?' : ''}`;
    case 'request':
      return `${operand.source}:${typeOf(operand.type)}${operand.list ? '[]' : ''}`;
    case 'literal':
      return `literal:${operand.exact === undefined ? typeOf(operand.type) : 'exact'}${operand.list ? '[]' : ''}`;
    case 'now':
      return `now:${operand.type}`;
    case 'count':
      return `count${operand.nullable ? '?' : ''}`;
  }
}

const TYPES = [
  'string',
  'int',
  'float',
  'bool',
  'datetime',
  'date',
  'time',
  'bigint',
  'decimal',
  'uuid',
  'bytes',
  'id',
];
const NUMBERS = ['int', 'float'];

const columns = (type: string): string[] =>
  ['column', 'path'].flatMap((kind) => [`${kind}:${type}`, `${kind}:${type}?`]);
const requests = (type: string): string[] => [
  ...['auth', 'query', 'data'].map((source) => `${source}:${type}`),
  ...(type === 'datetime' || type === 'date' ? [`now:${type}`] : []),
];

/** Every leaf that the language allows, one side of which is a record's. */
export function leafShapes(): string[] {
  const shapes = new Set<string>();
  const both = (shape: string) => {
    shapes.add(`${shape} +`);
    shapes.add(`${shape} -`);
  };
  const pairs = (op: string, [leftType, rightType]: readonly [string, string]) => {
    const left = columns(leftType);
    const right = [...columns(rightType), ...requests(rightType)];
    for (const a of left) for (const b of right) both(`${a} ${op} ${b}`);
    for (const a of requests(leftType))
      for (const b of columns(rightType)) if (!(op === 'contains' && a.startsWith('query'))) both(`${a} ${op} ${b}`);
  };
  for (const type of TYPES) {
    const ops = ['bool', 'uuid', 'bytes', 'id'].includes(type) ? ['=', '!='] : ['=', '!=', '<', '<=', '>', '>='];
    const literals = type === 'int' ? ['int', 'float', 'exact'] : type === 'float' ? ['float', 'exact'] : [type];
    for (const op of ops) {
      pairs(op, [type, type]);
      for (const a of columns(type)) for (const literal of literals) both(`${a} ${op} literal:${literal}`);
    }
    for (const op of ['in', 'not in']) {
      for (const a of columns(type)) {
        both(`${a} ${op} literal:${type}[]`);
        both(`${a} ${op} query:${type}[]`);
        if (type === 'string') both(`${a} ${op} auth:string[]`);
      }
    }
    for (const a of columns(type)) both(`query:${type}[] contains ${a}`);
    for (const test of ['is null', 'is not null']) {
      for (const side of [...columns(type), `auth:${type}`, `data:${type}`]) both(`${test} ${side}`);
    }
  }
  for (const op of ['=', '!=', '<', '<=', '>', '>=']) {
    pairs(op, ['int', 'float']);
    pairs(op, ['float', 'int']);
  }
  // A query parameter is read as the type of its other side.
  const readAsOther = (shape: string) =>
    NUMBERS.some((type) => shape.includes(`query:${type}`) && !agrees(shape, type));
  for (const op of ['contains', 'starts with', 'ends with']) {
    pairs(op, ['string', 'string']);
    for (const a of columns('string')) both(`${a} ${op} literal:string`);
  }
  for (const a of columns('string'))
    for (const b of [...requests('string'), 'literal:string']) both(`${a} matches ${b}`);
  for (const quantifier of ['any', 'all', 'none']) {
    for (const relation of ['has_many', 'many_to_many']) {
      for (const scope of ['record', 'next', 'variable'])
        for (const path of ['', ' path', ' path?']) both(`${quantifier} ${relation} of ${scope}${path}`);
    }
  }
  for (const quantifier of ['any', 'all', 'none']) {
    for (const scope of ['record path', 'record path?', 'next path', 'next path?', 'variable', 'request'])
      both(`${quantifier} ancestors of ${scope}`);
  }
  both('changed');
  both('changed_only');
  return [...shapes].filter((shape) => !readAsOther(shape));
}

const agrees = (shape: string, type: string): boolean =>
  NUMBERS.every((other) => other === type || !shape.includes(`:${other}`));
