/**
 * The lowered form: conditions that are definitely true or not, without negation and without a third value. Both printers read it.
 * INVARIANT: a test over something absent is not true; a printer adds the null tests that its language needs, and no others.
 */
import type { CompareOp } from '../../grammar/syntax.ts';
import type { CatalogCollection, CatalogRelation, ValueType } from './types.ts';

/** A row that a condition may speak of: 0 is the record, 1 the resulting record, the others are bound by an `exists`. */
export interface Source {
  readonly id: number;
  /** Which `Related` answers for what hangs on it. */
  readonly version: 'record' | 'next';
}
export const RECORD: Source = { id: 0, version: 'record' };
export const NEXT: Source = { id: 1, version: 'next' };

export interface ColumnRef {
  readonly kind: 'column';
  readonly source: Source;
  /** The key in a `Row`. */
  readonly name: string;
  readonly column: string;
  readonly type: ValueType;
  readonly nullable: boolean;
  /** Worth an `= ANY(ARRAY(…))`: an index finds few rows for a value. */
  readonly selective: boolean;
}

/** What a database parameter needs done to a request's number before it can meet an int column. */
export type Rounding = 'floor' | 'ceil' | 'whole';
export type Scalar = string | number | boolean;

/** A present value: a literal, or the request's slot `slot`. `type` is the type it is bound as. */
export type Value = LiteralValue | SlotValue;
export interface LiteralValue {
  readonly kind: 'literal';
  readonly type: ValueType;
  readonly value: Scalar | readonly Scalar[];
}
export interface SlotValue {
  readonly kind: 'slot';
  readonly type: ValueType;
  readonly slot: number;
  readonly adapt?: Rounding;
  /** A text without a successor: there is no upper bound to what starts with it. */
  readonly hasNoSuccessor: boolean;
}
export type Operand = ColumnRef | Value;

export type Condition = Const | Junction | Test | NullTest | Exists;
export interface Const {
  readonly kind: 'const';
  readonly value: boolean;
}
export interface Junction {
  readonly kind: 'and' | 'or';
  readonly items: readonly Condition[];
}
/** True when both sides are present and `op` holds (`negated`: does not hold). */
export interface Test {
  readonly kind: 'test';
  readonly op: CompareOp;
  readonly negated: boolean;
  readonly left: Operand;
  readonly right: Operand;
}
export interface NullTest {
  readonly kind: 'null';
  readonly negated: boolean;
  readonly column: ColumnRef;
}
/** Some row of `relation`, found by the key of the row it hangs on, meets `condition`; `negated`: no row does, an absent key included. */
export interface Exists {
  readonly kind: 'exists';
  readonly negated: boolean;
  /** Binds the row that is walked to. */
  readonly source: Source;
  /** The collection that `relation` belongs to. */
  readonly from: string;
  readonly relation: CatalogRelation;
  readonly target: CatalogCollection;
  /** belongs_to: the foreign key. Otherwise the identifier of the record of `from`, which may be held by a foreign key. */
  readonly key: ColumnRef;
  /** The relation names from the row that holds `key`: what must be loaded for the JavaScript side. */
  readonly walk: readonly string[];
  readonly condition: Condition;
}

export const TRUE: Const = { kind: 'const', value: true };
export const FALSE: Const = { kind: 'const', value: false };

/** INVARIANT: what is passed here cannot be false; it names what would have been broken. */
export function invariant(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Error(`invariant broken: ${what}`);
}

export const isTo = (type: ValueType): type is { readonly id: string } => typeof type === 'object';
