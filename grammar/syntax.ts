/**
 * The tree of a policy. Every node has its span: offsets into the text in UTF-16 units, `end`
 * exclusive. Chains of `and` / `or` are flat: `a and b and c` has three items; parentheses make a
 * nested node only where the kind differs or were written.
 */
import type { CompareOp, QUANTIFIERS } from './tokens.ts';
export interface Span {
  readonly start: number;
  readonly end: number;
  /** The text that the offsets refer to, if it is not the policy's own: the body of a named condition. */
  readonly source?: string;
}

export type { CompareOp };

/**
 * The use of a text. A policy names its records by `@record` and the like; in the filter of a query a bare
 * name is a member of the record, `$name` is one of the query's params, and `@me` is the caller's id.
 */
export type Dialect = 'policy' | 'filter';

/** A condition: true, false or unknown for one record and one request. */
export type Expr = Logic | Negation | Compare | IsNullTest | Quantified | TruthLiteral | Call;

interface Logic {
  readonly kind: 'and' | 'or';
  readonly items: readonly Expr[];
  readonly span: Span;
}
interface Negation {
  readonly kind: 'not';
  readonly item: Expr;
  readonly span: Span;
}
export interface Compare {
  readonly kind: 'compare';
  readonly op: CompareOp;
  readonly opSpan: Span;
  readonly left: Operand;
  readonly right: Operand;
  readonly span: Span;
}
export interface IsNullTest {
  readonly kind: 'is null';
  readonly negated: boolean;
  readonly operand: Operand;
  readonly span: Span;
}
export type QuantifierWord = (typeof QUANTIFIERS)[number];
export interface Quantified {
  readonly kind: 'quantified';
  readonly quantifier: QuantifierWord;
  readonly path: Elements;
  readonly variable: Name;
  readonly condition: Expr;
  readonly span: Span;
}
/** `is_member(@record.team)`: a named condition. */
export interface Call {
  readonly kind: 'call';
  readonly name: Name;
  readonly args: readonly Operand[];
  readonly span: Span;
}
/** A bool path, `true` or `false` as a condition. */
export interface TruthLiteral {
  readonly kind: 'truth';
  readonly operand: Operand;
  readonly span: Span;
}

export type Operand =
  | Path
  | ParamOperand
  | TextLiteral
  | NumeralLiteral
  | Bool
  | NullLiteral
  | List
  | NowReference
  | CountCall
  | AncestorsCall;
/** The range of a quantifier or `count`. */
export type Elements = Path | AncestorsCall;
/** `request` and `now`: a fact of the request, `@request.ip` or `@now.hour`. */
export type Root = 'record' | 'next' | 'auth' | 'query' | 'data' | 'request' | 'now' | 'variable';
export interface Name {
  readonly name: string;
  readonly span: Span;
}
/**
 * `@record.team.owner`, `@request.auth.id`, `m.user`, `m`. `variable` is given with the root
 * 'variable' only.
 */
export interface Path {
  readonly kind: 'path';
  readonly root: Root;
  readonly variable?: Name;
  readonly steps: readonly Name[];
  readonly span: Span;
}
/** `$name`: a value that comes with the filter of a query. */
export interface ParamOperand {
  readonly kind: 'param';
  readonly name: string;
  readonly span: Span;
}
export interface TextLiteral {
  readonly kind: 'text';
  readonly value: string;
  readonly span: Span;
}
/**
 * `count(<to-many>)`, `count(<to-many> as x, <condition>)`. Both or neither of `variable` and
 * `condition`.
 */
export interface CountCall {
  readonly kind: 'count';
  readonly path: Elements;
  readonly variable?: Name;
  readonly condition?: Expr;
  readonly span: Span;
}
/** `ancestors(@record.folder by parent)`: the record at the path, and what is reached from it by following `by`. */
export interface AncestorsCall {
  readonly kind: 'ancestors';
  readonly path: Path;
  readonly by: Name;
  readonly span: Span;
}
/** A JSON number; `source` is what was written, because a literal is never rounded. */
export interface NumeralLiteral {
  readonly kind: 'number';
  readonly source: string;
  readonly span: Span;
}
export interface Bool {
  readonly kind: 'bool';
  readonly value: boolean;
  readonly span: Span;
}
/** `null` is read, so that the checker can offer `is null`. */
export interface NullLiteral {
  readonly kind: 'null';
  readonly span: Span;
}
export interface List {
  readonly kind: 'list';
  readonly items: readonly (TextLiteral | NumeralLiteral | Bool | NullLiteral)[];
  readonly span: Span;
}
/**
 * `@now`, `@now - 24h`, `@now + 7d`; `@today`, `@today + 7d`. `seconds` is signed; `amount` and `unit` are as
 * written.
 */
export interface NowReference {
  readonly kind: 'now';
  /** `@today`: the day of the request, in the time zone of the schema. */
  readonly isDay?: true;
  readonly seconds: number;
  readonly offset?: { readonly sign: '+' | '-'; readonly amount: number; readonly unit: 's' | 'm' | 'h' | 'd' | 'w' };
  readonly span: Span;
}
