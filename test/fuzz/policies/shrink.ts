/** Smaller policies that still disagree. */
import type { Expr, Operand } from '../../../grammar/syntax.ts';
import { SPAN } from './policies.ts';

/** Every tree that is one step simpler. */
function* simpler(expr: Expr): Generator<Expr> {
  switch (expr.kind) {
    case 'and':
    case 'or':
      yield* expr.items;
      for (const [i, item] of expr.items.entries()) {
        if (expr.items.length > 2) yield { ...expr, items: expr.items.filter((_, j) => j !== i) };
        for (const smaller of simpler(item)) {
          // Chains are flat.
          const items = smaller.kind === expr.kind ? (smaller as { items: readonly Expr[] }).items : [smaller];
          yield { ...expr, items: [...expr.items.slice(0, i), ...items, ...expr.items.slice(i + 1)] };
        }
      }
      return;
    case 'not':
      yield expr.item;
      for (const item of simpler(expr.item)) yield { ...expr, item };
      return;
    case 'quantified':
      // The checker rejects it if it names the variable.
      yield expr.condition;
      if (expr.condition.kind !== 'truth') {
        for (const condition of [truth(true), truth(false), ...simpler(expr.condition)]) yield { ...expr, condition };
      }
      for (const path of shorter(expr.path))
        if (path.kind === 'path' || path.kind === 'ancestors') yield { ...expr, path };
      return;
    case 'compare':
      for (const left of shorter(expr.left)) yield { ...expr, left };
      for (const right of shorter(expr.right)) yield { ...expr, right };
      return;
    case 'is null':
      for (const operand of shorter(expr.operand)) yield { ...expr, operand };
      return;
    case 'truth':
      return;
  }
}

function* shorter(operand: Operand): Generator<Operand> {
  if (operand.kind === 'list') {
    for (const i of operand.items.keys()) yield { ...operand, items: operand.items.filter((_, j) => j !== i) };
  } else if (operand.kind === 'path' && operand.steps.length > 1) {
    yield { ...operand, steps: operand.steps.slice(1) };
  } else if (operand.kind === 'ancestors') {
    for (const path of shorter(operand.path)) if (path.kind === 'path') yield { ...operand, path };
  } else if (operand.kind === 'now' && operand.offset) {
    yield { kind: 'now', ...(operand.isDay && { isDay: true }), seconds: 0, span: SPAN };
  }
}

const truth = (value: boolean): Expr => ({ kind: 'truth', operand: { kind: 'bool', value, span: SPAN }, span: SPAN });

export function leavesOf(expr: Expr): number {
  switch (expr.kind) {
    case 'and':
    case 'or':
      return expr.items.reduce((sum, item) => sum + leavesOf(item), 0);
    case 'not':
      return leavesOf(expr.item);
    case 'quantified':
      return leavesOf(expr.condition);
    default:
      return 1;
  }
}

export async function shrink<T>(
  expr: Expr,
  { start, disagrees }: { start: T; disagrees: (expr: Expr) => Promise<T | undefined> },
): Promise<{ expr: Expr; found: T }> {
  let best = { expr, found: start };
  const deadline = Date.now() + 20_000;
  for (let again = true; again && Date.now() < deadline; ) {
    again = false;
    for (const candidate of simpler(best.expr)) {
      const found = await disagrees(candidate);
      if (found === undefined) continue;
      best = { expr: candidate, found };
      again = true;
      break;
    }
  }
  return best;
}
