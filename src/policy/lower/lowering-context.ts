/**
 * The input of lowering, and the rows and columns that its paths have reached, with the semi-joins around the
 * conditions on them.
 */
import type { ColumnRef, Condition, Exists, Roots, SlotValue, Source } from '../condition.ts';
import type { Catalog, RowScope } from '../types.ts';
import type { Visibility } from '../visibility.ts';
import type { Binding } from './specialise.ts';

export interface Signature {
  readonly states: Binding['states'];
  readonly decided: Binding['decided'];
}

export interface LoweringContext {
  readonly catalog: Catalog;
  readonly signature: Signature;
  readonly roots: Roots;
  /** Given for a filter, which sees only records that its author may read. A policy sees all stored records. */
  readonly visibility?: Visibility;
}

export interface LoweringPlace {
  /** True: `T`. False: `F`. */
  readonly polarity: boolean;
  readonly variables: ReadonlyMap<string, Source>;
}
export type Wrap = (inner: Condition) => Condition;
export const itself: Wrap = (inner) => inner;
/** A row, and the semi-joins around conditions on it. */
export interface Walked {
  readonly wrap: Wrap;
  readonly source: Source;
}
export type RequestScope = Extract<RowScope, { kind: 'request' }>;
export interface Reached {
  readonly wrap: Wrap;
  readonly column: ColumnRef;
}
/** The holder of a record's id. */
export interface Owner {
  readonly wrap: Wrap;
  readonly key: ColumnRef | SlotValue;
  readonly walk: readonly string[];
}
/** The elements of a to-many relation. */
export interface LoweredElements {
  readonly wrap: Wrap;
  readonly key: ColumnRef | SlotValue;
  /** Binds an element. */
  readonly source: Source;
  /** Negated, of ancestors: nothing is known of those beyond the last that counts, so one of them is an exception. */
  exists(condition: Condition, negated: boolean): Condition;
  /** The elements that meet the condition. */
  rows(condition: Condition): Exists;
}
