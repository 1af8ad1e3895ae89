/** Compares the parsed tree with the spelled tree, and the checked tree with its meaning. */
import type { Expr, Operand } from '../../../grammar/syntax.ts';
import type {
  Checked,
  CheckedOperand,
  Member,
  RowScope,
  ToManyPath,
  ToOneStep,
  ValueType,
} from '../../../src/policy/types.ts';
import { memberName as memberNameOf } from '../../../src/policy/visit.ts';

/** Parentheses within a chain change nothing. */
const flat = (kind: 'and' | 'or', items: readonly Expr[]): readonly Expr[] =>
  items.flatMap((item) => (item.kind === kind ? flat(kind, (item as { items: readonly Expr[] }).items) : [item]));

/** The first difference, or undefined. */
export function differenceOfTrees(made: Expr, read: Expr): string | undefined {
  const [a, b] = [JSON.stringify(plain(made)), JSON.stringify(plain(read))];
  return a === b ? undefined : `made ${a}, read ${b}`;
}

function plain(expr: Expr): unknown {
  switch (expr.kind) {
    case 'and':
    case 'or':
      return [expr.kind, flat(expr.kind, expr.items).map(plain)];
    case 'not':
      return ['not', plain(expr.item)];
    case 'compare':
      return [expr.op, plainOperand(expr.left), plainOperand(expr.right)];
    case 'is null':
      return [expr.negated ? 'is not null' : 'is null', plainOperand(expr.operand)];
    case 'quantified':
      return [expr.quantifier, plainOperand(expr.path), expr.variable.name, plain(expr.condition)];
    case 'call':
      return [expr.name.name, expr.args.map(plainOperand)];
    case 'truth':
      return ['truth', plainOperand(expr.operand)];
  }
}

function plainOperand(operand: Operand): unknown {
  switch (operand.kind) {
    case 'path':
      return [operand.root, operand.variable?.name, operand.steps.map(({ name }) => name)];
    case 'text':
    case 'bool':
      return operand.value;
    case 'number':
      return numberOf(operand.source);
    case 'null':
      return null;
    case 'list':
      return ['list', operand.items.map(plainOperand)];
    case 'now':
      return ['now', operand.isDay === true, operand.seconds];
    case 'param':
      return ['param', operand.name];
    case 'ancestors':
      return ['ancestors', plainOperand(operand.path), operand.by.name];
    case 'count':
      return [
        'count',
        plainOperand(operand.path),
        operand.variable?.name,
        operand.condition && plain(operand.condition),
      ];
  }
}

/** The digits and the power of ten: `1.50` is `15e-1`. */
function numberOf(source: string): string {
  const [mantissa = '', exponent = '0'] = source.toLowerCase().split('e');
  const [whole = '', decimals = ''] = mantissa.replace('-', '').split('.');
  const digits = (whole + decimals).replace(/^0+/, '');
  const kept = digits.replace(/0+$/, '');
  const power = Number(exponent) - decimals.length + digits.length - kept.length;
  return kept === '' ? '0' : `${mantissa.startsWith('-') ? '-' : ''}${kept}e${power}`;
}

// ---------------------------------------------------------------- checked trees

const isOfNumbers = (type: ValueType): boolean =>
  typeof type === 'object' ? type.key === 'int' : NUMERIC.some((each) => each === type);

/** Names of elements are the checker's own, so the comparison is by the place of their binding. */
export function differenceOfMeanings(meant: Checked, checked: Checked): string | undefined {
  const [a, b] = [JSON.stringify(new Outline().of(meant)), JSON.stringify(new Outline().of(checked))];
  return a === b ? undefined : `meant ${a}, checked ${b}`;
}

class Outline {
  readonly #elements = new Map<string, number>();

  of(checked: Checked): unknown {
    switch (checked.kind) {
      case 'const':
        return checked.value;
      case 'and':
      case 'or':
        return [checked.kind, flatChecked(checked.kind, checked.items).map((item) => this.of(item))];
      case 'not':
        return ['not', this.of(checked.item)];
      case 'is null':
        return ['is null', checked.negated, this.#operand(checked.operand)];
      case 'compare':
        return [checked.op, this.#operand(checked.left), this.#operand(checked.right)];
      case 'quantified':
        return [checked.quantifier, this.#range(checked.path, checked.variable), this.of(checked.condition)];
      case 'changed':
        return ['changed', checked.unchanged, checked.collection, checked.members.map(memberName).sort()];
    }
  }

  #range({ scope, collection, steps, from, relation }: ToManyPath, variable: string): unknown {
    const start = this.#scope(scope);
    this.#elements.set(variable, this.#elements.size);
    return [start, collection, steps.map(stepName), from, relation.kind, relation.name, this.#elements.get(variable)];
  }

  #scope(scope: RowScope): unknown {
    if (scope.kind === 'variable') return this.#elements.get(scope.name);
    return scope.kind === 'request' ? [scope.operand.source, scope.operand.name] : scope.kind;
  }

  #operand(operand: CheckedOperand): unknown {
    switch (operand.kind) {
      case 'column': {
        const { scope, collection, steps, column, type, nullable } = operand;
        const end = column.kind === 'id' ? 'id' : memberNameOf(column);
        return [this.#scope(scope), collection, steps.map(stepName), column.kind, end, type, nullable];
      }
      case 'request':
        return [operand.source, operand.name, operand.type, operand.list];
      case 'literal':
        // How a number is held is the checker's own; what it is shows where it is compared.
        return isOfNumbers(operand.type) ? ['number', operand.list] : [operand.value, operand.list];
      case 'now':
        return ['now', operand.type, operand.zone, operand.seconds];
      case 'count':
        return ['count', this.#range(operand.path, operand.variable), this.of(operand.condition), operand.nullable];
    }
  }
}

const NUMERIC: readonly unknown[] = ['int', 'float', 'bigint', 'decimal'];

const flatChecked = (kind: 'and' | 'or', items: readonly Checked[]): readonly Checked[] =>
  items.flatMap((item) =>
    item.kind === kind ? flatChecked(kind, (item as { items: readonly Checked[] }).items) : [item],
  );
const stepName = ({ from, relation }: ToOneStep): string => `${from}.${relation.name}`;
const memberName = (member: Member): string => (member.kind === 'field' ? member.field.name : member.relation.name);
