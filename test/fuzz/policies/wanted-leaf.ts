/**
 * A leaf of a shape that is drawn from all shapes alike, independent of their share in a random schema: paths of one type and nullability are
 * rare, and pairs of such paths are rarer still. It does not depend on what was met before, so that a world can be made again alone.
 */
import type { CompareOp, Expr, Operand } from '../../../grammar/syntax.ts';
import type { Random } from '../random.ts';
import { leafShapes } from './shapes.ts';

/** A side of a shape: `column:int?`, `query:string[]`, `literal:exact`. */
export interface WantedSide {
  readonly kind: string;
  /** `id` is that of some collection. */
  readonly type: string;
  readonly nullable: boolean;
  readonly isList: boolean;
  /** The left side of `matches`. */
  readonly isSearched: boolean;
}
/** Makes sides where the schema has them. */
export interface SideMaker {
  side(wanted: WantedSide): Operand | undefined;
}

interface WantedTest {
  readonly op: CompareOp | 'is null' | 'is not null';
  readonly sides: readonly [WantedSide, WantedSide?];
}

const SPAN = { start: 0, end: 0 };
const WANTED: readonly WantedTest[] = [...new Set(leafShapes().map((shape) => shape.replace(/ [+-]$/, '')))].flatMap(
  readShape,
);

/** Undefined where this schema, or this action, does not have it. */
export function wantedLeaf(random: Random, maker: SideMaker): Expr | undefined {
  const { op, sides } = random.pick(WANTED);
  const [left, right] = sides.map((side) => side && maker.side(side));
  if (left === undefined) return undefined;
  if (op === 'is null' || op === 'is not null')
    return left.kind === 'path'
      ? { kind: 'is null', negated: op === 'is not null', operand: left, span: SPAN }
      : undefined;
  return right && { kind: 'compare', op, opSpan: SPAN, left, right, span: SPAN };
}

/** A quantifier or a change has no leaf to make. */
function readShape(shape: string): readonly WantedTest[] {
  const nullTest = /^(is null|is not null) (\S+)$/.exec(shape);
  if (nullTest !== null) return [{ op: nullTest[1] as 'is null', sides: [readSide(nullTest[2]!)] }];
  const comparison = /^(\S+:\S+) (.+) (\S+:\S+)$/.exec(shape);
  if (comparison === null) return [];
  const [, left = '', op = '', right = ''] = comparison;
  return [{ op: op as CompareOp, sides: [readSide(left, op === 'matches'), readSide(right)] }];
}

function readSide(text: string, isSearched = false): WantedSide {
  const [, kind = '', type = '', list, nullable] = /^(\w+):(\w+)(\[\])?(\?)?$/.exec(text) ?? [];
  return { kind, type, nullable: nullable !== undefined, isList: list !== undefined, isSearched };
}
