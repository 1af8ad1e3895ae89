import type {
  Compare,
  CountCall,
  Elements,
  List,
  NowReference,
  NullLiteral,
  Operand,
  Path,
  Span,
} from '../../../grammar/syntax.ts';
import type { Catalog, CheckedOperand, CountOperand, NowOperand, RequestOperand } from '../types.ts';
import { UTC } from '../values.ts';
import { resolveAncestors } from './ancestors.ts';
import type { Literal } from './literals.ts';
import { paramOf } from './params.ts';
import type { CheckerPlace, QueryName, ToMany } from './place.ts';
import { resolve } from './resolve.ts';

export interface Comparing extends CheckerPlace {
  readonly text: string;
  freshName(name: string): string;
  count(count: CountCall): CountOperand | undefined;
}

/** A side before its type is settled: only `fixed` and `held` are typed. */
export type Side =
  | { readonly kind: 'fixed'; readonly operand: CheckedOperand; readonly span: Span }
  /** `@request.auth.roles` */
  | { readonly kind: 'held'; readonly operand: RequestOperand; readonly span: Span }
  | { readonly kind: 'query'; readonly query: QueryName; readonly span: Span }
  | { readonly kind: 'literal'; readonly literal: Literal; readonly span: Span }
  | { readonly kind: 'list'; readonly list: List; readonly span: Span }
  | { readonly kind: 'null'; readonly literal: NullLiteral; readonly span: Span }
  | { readonly kind: 'to many'; readonly relation: ToMany; readonly path: Elements; readonly span: Span };
export type ScalarSide = Extract<Side, { kind: 'fixed' | 'query' | 'literal' }>;

export interface Pair {
  readonly expr: Compare;
  readonly left: Side;
  readonly right: Side;
  readonly at: Comparing;
}

export function sideOf(operand: Operand, at: Comparing): Side | undefined {
  const { span } = operand;
  switch (operand.kind) {
    case 'text':
    case 'number':
    case 'bool':
      return { kind: 'literal', literal: operand, span };
    case 'null':
      return { kind: 'null', literal: operand, span };
    case 'list':
      return { kind: 'list', list: operand, span };
    case 'now':
      return { kind: 'fixed', operand: nowOperand(operand, at.catalog), span };
    case 'count': {
      const count = at.count(operand);
      return count && { kind: 'fixed', operand: count, span };
    }
    case 'ancestors': {
      const relation = resolveAncestors(operand, at);
      return relation && { kind: 'to many', relation, path: operand, span };
    }
    case 'path':
      return pathSide(operand, at);
    case 'param': {
      const query = paramOf(operand, at);
      return query && { kind: 'query', query, span };
    }
  }
}

export const nowOperand = (
  { isDay, seconds, span }: NowReference,
  { timezone }: Pick<Catalog, 'timezone'>,
): NowOperand =>
  isDay
    ? { kind: 'now', seconds, type: 'date', zone: timezone ?? UTC, span }
    : { kind: 'now', seconds, type: 'datetime', span };

function pathSide(path: Path, at: Comparing): Side | undefined {
  const named = resolve(path, at);
  if (named === undefined) return undefined;
  const { span } = path;
  switch (named.kind) {
    case 'query':
      return { kind: 'query', query: named, span };
    case 'to many':
      return { kind: 'to many', relation: named, path, span };
    case 'column':
    case 'literal':
    case 'now':
    case 'count':
      return { kind: 'fixed', operand: named, span };
    case 'request':
      return named.list ? { kind: 'held', operand: named, span } : { kind: 'fixed', operand: named, span };
  }
}

export const isScalar = (side: Side): side is ScalarSide =>
  side.kind === 'fixed' || side.kind === 'query' || side.kind === 'literal';
export const isWholePath = ({ relation, path }: Extract<Side, { kind: 'to many' }>): boolean =>
  path.kind === 'path' && relation.used === path.steps.length;
export const textAt = ({ text }: Pick<Comparing, 'text'>, { start, end, source = text }: Span): string =>
  source.slice(start, end);
