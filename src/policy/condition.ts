/**
 * The lowered form: conditions that are definitely true or not, without negation and without a
 * third value. Both printers read it. INVARIANT: a test over something absent is not true; a
 * printer adds the null tests that its language needs, and no others.
 */
import type { CompareOp } from '../../grammar/syntax.ts';
import type {
  AncestorRelation,
  CatalogCollection,
  CatalogManyToMany,
  CatalogRelation,
  ElementsRelation,
  HasOne,
  JsonPart,
  ValueType,
} from './types.ts';
import type { Scalar } from './values.ts';

/**
 * A row that a condition reads: 0 is the record, 1 the resulting record, the others are bound by an
 * `exists`.
 */
export interface Source {
  readonly id: number;
  /**
   * A written row is the record that a write produces. It holds the ids of its has_one partner and
   * many_to_many members, because the database does not have them yet. INVARIANT: only a root is
   * written; every related row is read from the database before the write.
   */
  readonly state: 'stored' | 'written';
}
export const RECORD: Source = { id: 0, state: 'stored' };
export const NEXT: Source = { id: 1, state: 'written' };
/** Both are in the outermost FROM. */
export const isRoot = (id: number): boolean => id === RECORD.id || id === NEXT.id;
const WRITTEN_RECORD: Source = { id: 0, state: 'written' };

/** The sources that `@record` and `@next` name. */
export interface Roots {
  readonly record: Source;
  readonly next: Source;
}
/** A stored record, and the result of its update. */
export const STORED_ROOTS: Roots = { record: RECORD, next: NEXT };
/** A create, and the half of an update rule that judges the result: the only record is the written one. */
export const WRITTEN_ROOTS: Roots = { record: WRITTEN_RECORD, next: WRITTEN_RECORD };

/**
 * The column of a written row that holds its has_one partner's id (`cover.id`) or its members' ids
 * (`tags.ids`). INVARIANT: no column of a table has such a name, because names have no dot.
 */
export const heldColumn = ({ kind, name }: HasOne | CatalogManyToMany): string =>
  kind === 'has_one' ? `${name}.id` : `${name}.ids`;
export const isHeld = (column: string): boolean => column.includes('.');

export interface ColumnRef {
  readonly kind: 'column';
  readonly source: Source;
  /** The key in a `Row`. */
  readonly name: string;
  readonly column: string;
  readonly type: ValueType;
  readonly nullable: boolean;
  /** Makes an `= ANY(ARRAY(…))` worthwhile: an index finds few rows for a value. */
  readonly selective: boolean;
  /** Given for a part of a json column, which `column` names apart from the other parts. */
  readonly part?: JsonPart;
  /** It counts only where the caller may read it. Then it is nullable, and not selective. */
  readonly mask?: MaskedMember;
}
interface MaskedMember {
  readonly collection: string;
  readonly member: string;
}

/** The rounding of a request's number before it is compared with an int column. */
type Rounding = 'floor' | 'ceil' | 'whole';

/** A present value: a literal, or the request's slot `slot`. `type` is the type it is bound as. */
export type Value = LiteralValue | SlotValue;
interface LiteralValue {
  readonly kind: 'literal';
  readonly type: ValueType;
  readonly value: Scalar | readonly Scalar[];
}
export interface SlotValue {
  readonly kind: 'slot';
  readonly type: ValueType;
  readonly slot: number;
  readonly adapt?: Rounding;
  /** A string without a successor: the strings that start with it have no upper bound. */
  readonly hasNoSuccessor: boolean;
}
/**
 * The number of rows that `exists` finds. An absent key finds none. A count of ancestors is absent if the
 * chain goes on beyond the last that counts.
 */
export interface CountRef {
  readonly kind: 'count';
  readonly type: 'int';
  readonly exists: Exists;
  /** Rows beyond this many make no difference. */
  readonly limit?: number;
  /** For ancestors, a test of the count is true if the chain goes on. */
  readonly beyond?: true;
}
export type ConditionOperand = ColumnRef | CountRef | Value;

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
  readonly left: ConditionOperand;
  readonly right: ConditionOperand;
}
export interface NullTest {
  readonly kind: 'null';
  readonly negated: boolean;
  readonly column: ColumnRef;
}
/**
 * Some row of `relation`, found by the key of the row that has it, meets `condition`. `negated`: no
 * row does, or the key is null.
 */
export interface Exists {
  readonly kind: 'exists';
  readonly negated: boolean;
  /** Binds the related row. */
  readonly source: Source;
  /** The collection that `relation` belongs to. */
  readonly from: string;
  readonly relation: CatalogRelation | AncestorRelation | ElementsRelation;
  readonly target: CatalogCollection;
  /**
   * The content of `key`. `id`: the id of the one row (a belongs_to, or the has_one of a written record), or
   * of the first ancestor. `members`: the ids of the rows (the many_to_many of a written record). `owner`:
   * the id of the record of `from`, which the rows belong to in the database. `elements`: the list itself, whose
   * elements are the rows.
   */
  readonly by: 'id' | 'members' | 'owner' | 'elements';
  readonly key: ColumnRef | SlotValue;
  /** The relation names from the row that holds `key`: the JavaScript side needs these records loaded. */
  readonly walk: readonly string[];
  /** Given for rows that are divided by tenant: the row that holds the key has the same tenant. */
  readonly colocated?: Colocated;
  readonly condition: Condition;
  /** For ancestors, the record after the last that counts meets any condition, because nothing is known of it. */
  readonly beyond?: true;
  /** Only the rows that the caller may read count. */
  readonly guard?: Guard;
}
interface Colocated {
  /** The tenant of the row that holds the key. */
  readonly outer: ColumnRef;
  /** The column of the rows. Left out of rows that every machine has, to which only links lead. */
  readonly own?: string;
}
/** The column of a link table that holds the tenant of both records. No other column begins so. */
export const LINK_TENANT_COLUMN = '_tenant';
export interface Guard {
  /** The collection of the rows. */
  readonly collection: string;
  /** The belongs_to of theirs by which they were found, where it has rules of its own. */
  readonly via?: string;
}

export const TRUE: Const = { kind: 'const', value: true };
export const FALSE: Const = { kind: 'const', value: false };
