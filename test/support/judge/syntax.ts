/** PostgreSQL's own syntax trees, as its parser gives them: a node is an object with one key, its kind. */
import { loadModule, parseSync } from 'libpg-query';

export type Tree = Readonly<Record<string, unknown>>;

await loadModule();

const known = new Map<string, readonly Tree[]>();

/** The statements of a text. */
export function parse(text: string): readonly Tree[] {
  const made =
    known.get(text) ?? (parseSync(text) as { stmts?: { stmt: Tree }[] }).stmts?.map(({ stmt }) => stmt) ?? [];
  known.set(text, made);
  return made;
}

export const isTree = (value: unknown): value is Tree => typeof value === 'object' && value !== null;

/** The node of this kind that `value` is. */
export function as(value: unknown, kind: string): Tree | undefined {
  const inner = isTree(value) ? value[kind] : undefined;
  return isTree(inner) ? inner : undefined;
}

export const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);

/** The names of a column, a function or an operator. */
export const names = (value: unknown): readonly string[] =>
  list(value).map((part) => String(as(part, 'String')?.sval ?? '*'));

/** Calls `visit` with every node of the kinds, not looking into what `visit` takes (returns true for). */
export function walk(value: unknown, visit: (kind: string, node: Tree) => boolean): void {
  if (Array.isArray(value)) for (const item of value) walk(item, visit);
  else if (isTree(value))
    for (const [kind, inner] of Object.entries(value)) if (!isTree(inner) || !visit(kind, inner)) walk(inner, visit);
}
