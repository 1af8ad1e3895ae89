/**
 * The canonical text of a tree: words for operators, double quotes, one space, no parentheses but
 * those that the tree needs, and those around an `and` in an `or`, which save the reader the precedence.
 */
import type { AncestorsCall, CountCall, Elements, Expr, List, NowReference, Operand, Path } from './syntax.ts';
import { WITHIN } from './tokens.ts';

/** How tightly a condition binds; a looser one within a tighter one has parentheses. */
const TIGHTNESS: Readonly<Record<Expr['kind'], number>> = {
  or: 0,
  and: 0,
  not: 1,
  compare: 2,
  'is null': 2,
  quantified: 2,
  call: 2,
  truth: 2,
};

export function print(expr: Expr): string {
  switch (expr.kind) {
    case 'and':
    case 'or':
      // Chains are flat, so a nested one of the same kind was written with parentheses.
      return expr.items.map((item) => needsParentheses(item, TIGHTNESS.not)).join(` ${expr.kind} `);
    case 'not':
      return `not ${needsParentheses(expr.item, TIGHTNESS.not)}`;
    case 'compare':
      if (expr.op === WITHIN && expr.right.kind === 'text')
        return `${WITHIN}(${printOperand(expr.left)}, ${expr.right.value})`;
      return `${printOperand(expr.left)} ${expr.op} ${printOperand(expr.right)}`;
    case 'is null':
      return `${printOperand(expr.operand)} ${expr.negated ? 'is not null' : 'is null'}`;
    case 'quantified': {
      const { quantifier, path, variable, condition } = expr;
      return `${quantifier}(${printElements(path)} as ${variable.name}, ${print(condition)})`;
    }
    case 'call':
      return `${expr.name.name}(${expr.args.map(printOperand).join(', ')})`;
    case 'truth':
      return printOperand(expr.operand);
  }
}

function needsParentheses(expr: Expr, tightness: number): string {
  const text = print(expr);
  return TIGHTNESS[expr.kind] < tightness ? `(${text})` : text;
}

function printOperand(operand: Operand): string {
  switch (operand.kind) {
    case 'path':
      return printPath(operand);
    case 'param':
      return `$${operand.name}`;
    case 'text':
      return JSON.stringify(operand.value);
    case 'number':
      return operand.source;
    case 'bool':
      return String(operand.value);
    case 'null':
      return 'null';
    case 'list':
      return printList(operand);
    case 'now':
      return printNow(operand);
    case 'count':
      return printCount(operand);
    case 'ancestors':
      return printElements(operand);
  }
}

function printCount({ path, variable, condition }: CountCall): string {
  const chosen = variable === undefined || condition === undefined ? '' : ` as ${variable.name}, ${print(condition)}`;
  return `count(${printElements(path)}${chosen})`;
}

const printElements = (elements: Elements): string =>
  elements.kind === 'path' ? printPath(elements) : printAncestors(elements);
const printAncestors = ({ path, by }: AncestorsCall): string => `ancestors(${printPath(path)} by ${by.name})`;

const printList = ({ items }: List): string => `[${items.map(printOperand).join(', ')}]`;

function printNow({ isDay, offset }: NowReference): string {
  const word = isDay ? '@today' : '@now';
  return offset === undefined ? word : `${word} ${offset.sign} ${offset.amount}${offset.unit}`;
}

function printedRoot({ root, variable }: Path): string {
  switch (root) {
    case 'record':
    case 'next':
    case 'request':
    case 'now':
      return `@${root}`;
    case 'auth':
    case 'query':
    case 'data':
      return `@request.${root}`;
    case 'variable':
      return variable!.name;
  }
}

const printPath = (path: Path): string => [printedRoot(path), ...path.steps.map((step) => step.name)].join('.');
