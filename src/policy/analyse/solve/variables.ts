/** Values and records of a world that is being looked for, with what is known about each. */
import type { CompareOp } from '../../../../grammar/syntax.ts';
import type { Scalar } from '../../values.ts';
import type { Domain, DomainBound, Range } from './domains.ts';

/** Tests of texts, and the test that folding leaves nothing of a text. */
type PartOp = CompareOp | typeof BLANK;
export const BLANK = 'blank';

export interface TextPart {
  readonly op: PartOp;
  /** False: the text has no such part. */
  readonly holds: boolean;
  readonly needle: string | Term;
}
export interface LengthLimits {
  readonly min?: number;
  readonly max?: number;
}

interface Edge {
  readonly to: Term;
  readonly strict: boolean;
}

/** INVARIANT: everything but `into` counts at the root alone. */
export class Term implements Range {
  readonly domain: Domain;
  /** Undefined: not decided yet. */
  isPresent: boolean | undefined;
  /** The collection of ids; their values are rows. */
  readonly collection: string | undefined;
  /** A foreign key: its record is stored. */
  isReference = false;
  row: StoredRow | undefined;
  into: Term | undefined;
  value: Scalar | undefined;
  /** The only values, where they are few. */
  allowed: readonly Scalar[] | undefined;
  low: DomainBound | undefined;
  high: DomainBound | undefined;
  isWhole = false;
  /** It can have values before the first of its type, and after the last. */
  isOpenEnded = false;
  step = 1n;
  excluded: readonly Scalar[] = [];
  different: readonly Term[] = [];
  above: readonly Edge[] = [];
  below: readonly Edge[] = [];
  parts: readonly TextPart[] = [];
  limits: LengthLimits = {};
  /** A text that is the id of this row, or of none of those. */
  idOf: StoredRow | undefined;
  notIdOf: readonly StoredRow[] = [];

  constructor(domain: Domain, collection?: string) {
    this.domain = domain;
    this.collection = collection;
    if (domain.kind === 'truth') this.allowed = [false, true];
  }
}

export function rootOf(term: Term): Term {
  let root = term;
  while (root.into !== undefined) root = root.into;
  return root;
}

// ---------------------------------------------------------------- records

/** INVARIANT: everything but `into` counts at the root alone. */
export class StoredRow {
  readonly collection: string;
  readonly columns = new Map<string, Term>();
  readonly id: Term;
  into: StoredRow | undefined;
  /** The id, where it is given. */
  uuid: string | undefined;
  /** False: an id without a record. Undefined: not decided yet. */
  isStored: boolean | undefined;
  others: readonly StoredRow[] = [];

  constructor(collection: string, domain: Domain) {
    this.collection = collection;
    this.id = new Term(domain, collection);
    this.id.isPresent = true;
    this.id.row = this;
  }
}
/** The record that a write makes, in a row of its own. */
export class WrittenVariables {
  readonly collection: string;
  readonly columns = new Map<string, Term>();
  readonly id: Term;

  constructor(collection: string, id: Term) {
    this.collection = collection;
    this.id = id;
  }
}
export type RowVariable = StoredRow | WrittenVariables;

export function rowRoot<T extends RowVariable>(row: T): T {
  let root: RowVariable = row;
  while (root instanceof StoredRow && root.into !== undefined) root = root.into;
  return root as T;
}
