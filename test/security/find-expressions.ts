/** Finds every regular expression in the sources, by their syntax trees. */
import { globSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { parseAst } from 'vitest/node';

const ROOT = join(import.meta.dirname, '../..');

export interface Literal {
  readonly file: string;
  readonly line: number;
  readonly expression: RegExp;
}

/** A regular expression that the program puts together: `new RegExp(…)`, or a string where one is expected. */
export interface Construction {
  readonly file: string;
  readonly line: number;
  readonly text: string;
}

export interface Found {
  readonly literals: readonly Literal[];
  readonly constructions: readonly Construction[];
}

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
  readonly [key: string]: unknown;
}

/** Methods that turn a string into a regular expression. */
const MATCHERS = new Set(['match', 'matchAll', 'search']);

export function findExpressions(folders: readonly string[]): Found {
  const files = folders.flatMap((folder) => globSync(join(ROOT, folder, '**/*.ts')));
  const found = files.map((file) => findIn(relative(ROOT, file), readFileSync(file, 'utf8')));
  return {
    literals: found.flatMap(({ literals }) => literals),
    constructions: found.flatMap(({ constructions }) => constructions),
  };
}

export function findIn(file: string, text: string): Found {
  const literals: Literal[] = [];
  const constructions: Construction[] = [];
  visit(parseAst(text, { lang: 'ts' }, file), (node) => {
    const { pattern, flags } = (node.regex ?? {}) as { pattern?: string; flags?: string };
    if (pattern !== undefined)
      literals.push({ file, line: lineOf(node, text), expression: new RegExp(pattern, flags) });
    else if (constructsExpression(node))
      constructions.push({ file, line: lineOf(node, text), text: text.slice(node.start, node.end) });
  });
  return { literals, constructions };
}

const lineOf = ({ start }: Node, text: string): number => text.slice(0, start).split('\n').length;

function constructsExpression(node: Node): boolean {
  if (node.type !== 'NewExpression' && node.type !== 'CallExpression') return false;
  const callee = node.callee as Node;
  if (callee.name === 'RegExp') return true;
  const method = (callee.property as Node | undefined)?.name;
  const [argument] = node.arguments as readonly Node[];
  return MATCHERS.has(method as string) && argument !== undefined && isString(argument);
}

const isString = ({ type, value }: Node): boolean =>
  type === 'TemplateLiteral' || type === 'BinaryExpression' || typeof value === 'string';

function visit(value: unknown, see: (node: Node) => void): void {
  if (Array.isArray(value)) for (const item of value) visit(item, see);
  else if (typeof value === 'object' && value !== null) {
    if (typeof (value as Node).type === 'string') see(value as Node);
    for (const child of Object.values(value)) visit(child, see);
  }
}
