/** The place of a path in a policy, and the names that it may use there. */
import type { PolicyIssue } from '../../../grammar/policy-error.ts';
import type { Operand, Span } from '../../../grammar/syntax.ts';
import { present } from '../../invariant.ts';
import { elementOf } from '../scalar-types.ts';
import type {
  Action,
  Catalog,
  CheckContext,
  CheckedOperand,
  ColumnOperand,
  Params,
  ToManyPath,
  ValueType,
} from '../types.ts';

/** The meaning of a name at the root of a path. */
export type Bound = BoundVariable | BoundElement | BoundParameter;
interface BoundVariable {
  readonly kind: 'variable';
  /** Unique in the whole expression. */
  readonly unique: string;
  readonly collection: string;
}
/** A variable that ranges over the elements of a list field. */
export interface BoundElement {
  readonly kind: 'element';
  readonly unique: string;
  readonly type: ValueType;
}
/** The variable of a quantifier or of a count. */
export function boundTo({ relation }: ToManyPath, unique: string): Bound {
  if (relation.kind !== 'elements') return { kind: 'variable', unique, collection: relation.collection };
  return { kind: 'element', unique, type: present(elementOf(relation.field.type), 'the type of the elements') };
}
/** A parameter of a named condition, with its argument. */
export interface BoundParameter {
  readonly kind: 'parameter';
  /** The argument itself. */
  readonly operand: CheckedOperand;
  /** The record that paths continue from, if the parameter is a record. */
  readonly record?: RecordStart;
  /** How many names the argument has. */
  readonly names: number;
}
/** A record after zero or more to-one steps, from which a path continues. */
export interface RecordStart extends Pick<ColumnOperand, 'scope' | 'collection' | 'steps'> {
  /** The collection after the steps. */
  readonly at: string;
  readonly nullable: boolean;
}
/** The record that an operand identifies; `undefined` where it is not the id of a record. */
export function recordStart(operand: CheckedOperand): RecordStart | undefined {
  if (typeof operand.type !== 'object') return undefined;
  if (operand.kind === 'column') return recordOfColumn(operand);
  if (operand.kind !== 'request') return undefined;
  const { id } = operand.type;
  return { scope: { kind: 'request', operand }, collection: id, steps: [], at: id, nullable: true };
}

function recordOfColumn({ scope, collection, steps, column, nullable }: ColumnOperand): RecordStart {
  const from = steps.at(-1)?.relation.collection ?? collection;
  if (column.kind !== 'belongs_to') return { scope, collection, steps, at: from, nullable };
  const { relation } = column;
  return { scope, collection, steps: [...steps, { from, relation }], at: relation.collection, nullable };
}

/** The place of a path: the names that it may use. */
export interface CheckerPlace {
  readonly catalog: Catalog;
  readonly collection: string;
  readonly action: Action;
  readonly variables: ReadonlyMap<string, Bound>;
  /** True in the body of a named condition, which names no record. */
  readonly isBody: boolean;
  /** The other side of the comparison that the path is a side of. */
  readonly beside?: Operand;
  /** The params of a filter; a policy has none. */
  readonly params?: Params | undefined;
  report(issue: CheckIssue): undefined;
  onUnknown?: CheckContext['onUnknown'];
}
export type CheckIssue = Omit<PolicyIssue, 'severity'>;

/** A value of the request without a declared type: a query parameter, or a param of a filter. */
export interface QueryName {
  readonly kind: 'query';
  readonly source: 'query' | 'param';
  readonly name: string;
  /** The value of a param. */
  readonly given?: unknown;
  readonly span: Span;
}
export type Named = CheckedOperand | QueryName | ToMany;
export interface ToMany {
  readonly kind: 'to many';
  readonly path: ToManyPath;
  /** How many of the steps lead to the relation; fewer than all if the path continues after it. */
  readonly used: number;
}
