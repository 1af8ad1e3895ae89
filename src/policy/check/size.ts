/** How large an expression is once its named conditions are expanded. */
import { LIMITS } from '../../../grammar/limits.ts';
import type { Elements, Expr, Operand } from '../../../grammar/syntax.ts';
import type { Catalog, Size } from '../types.ts';

const LEAF: Size = { comparisons: 1, elements: 0, levels: 0 };
const deeper = (size: Size, by = 1): Size => ({ ...size, levels: size.levels + by });
const NO_SIZE: Size = { comparisons: 0, elements: 0, levels: 0 };

const elementsSize = ({ kind }: Elements): Size => (kind === 'ancestors' ? deeper(NO_SIZE) : NO_SIZE);

function sideSize(operand: Operand, catalog: Catalog): Size {
  if (operand.kind === 'list') return { ...NO_SIZE, elements: operand.items.length };
  if (operand.kind !== 'count') return operand.kind === 'ancestors' ? elementsSize(operand) : NO_SIZE;
  const condition = operand.condition === undefined ? NO_SIZE : sizeOf(operand.condition, catalog);
  return deeper(combinedSize(elementsSize(operand.path), condition));
}

/** A call counts as its body, which was measured before. */
export function sizeOf(expr: Expr, catalog: Catalog): Size {
  switch (expr.kind) {
    case 'and':
    case 'or':
      return expr.items.map((item) => sizeOf(item, catalog)).reduce(combinedSize);
    case 'not':
      return deeper(sizeOf(expr.item, catalog));
    case 'quantified':
      return deeper(combinedSize(elementsSize(expr.path), sizeOf(expr.condition, catalog)));
    case 'compare':
      return [sideSize(expr.left, catalog), sideSize(expr.right, catalog)].reduce(combinedSize, LEAF);
    case 'call':
      return deeper(catalog.conditions?.get(expr.name.name)?.size ?? LEAF);
    case 'is null':
    case 'truth':
      return LEAF;
  }
}

const combinedSize = (a: Size, b: Size): Size => ({
  comparisons: a.comparisons + b.comparisons,
  elements: a.elements + b.elements,
  levels: Math.max(a.levels, b.levels),
});

/** The limit that an expanded expression exceeds. */
export function excessOf(size: Size): { readonly code: string; readonly what: string } | undefined {
  const { comparisons, elements, levels } = size;
  if (levels > LIMITS.levels) return { code: 'too_deep', what: `${LIMITS.levels} levels` };
  if (comparisons > LIMITS.comparisons)
    return { code: 'too_many_comparisons', what: `${LIMITS.comparisons} comparisons` };
  return elements > LIMITS.elements
    ? { code: 'too_many_elements', what: `${LIMITS.elements} list elements` }
    : undefined;
}
