/**
 * The values in printed conditions: a policy's literals are part of the text, a filter's literals are
 * parameters, and other values of a request fill holes, once per request.
 */
import { invariant } from '../../invariant.ts';
import {
  Place,
  param,
  plannedParam,
  type Sql,
  type SqlType,
  sql,
  type TenantValue,
  typedLiteral,
  withValues,
} from '../../sql.ts';
import { successorOf } from '../collation.ts';
import type { ConditionOperand, Value } from '../condition.ts';
import { likePattern } from '../fold.ts';
import { scalarOf } from '../scalar-types.ts';

/** The values of one request, by slot. */
export type Values = readonly unknown[];

/** A hole in a printed condition, filled from the values of a request. */
class Hole {
  readonly read: (values: Values) => unknown;
  constructor(read: Hole['read']) {
    this.read = read;
  }
}

const TENANT_HOLE = new Hole(() => undefined);
/** Names the tenant of the record as a value: every row that the condition reads beside it has the same. */
export const TENANT_PLACE: Sql = sql`${param('uuid', TENANT_HOLE)}`;

/** A printed condition, whose holes are for the values of one request. */
export class PrintedWhere {
  readonly #printed: Sql;

  constructor(printed: Sql) {
    this.#printed = printed;
  }

  /** @param tenant given for a condition that was printed with it */
  fill(values: Values, tenant?: TenantValue): Sql {
    const read = (hole: Hole): unknown => (hole === TENANT_HOLE ? tenant : hole.read(values));
    return withValues(this.#printed, (value) => (value instanceof Hole ? read(value) : value));
  }

  /** For a form: the request that fills it gives the values. */
  placed<Request>(valuesOf: (request: Request) => Values, tenant?: TenantValue): Sql {
    const placeOf = (hole: Hole) =>
      hole === TENANT_HOLE ? tenant : new Place((request: Request) => hole.read(valuesOf(request)));
    return withValues(this.#printed, (value) => (value instanceof Hole ? placeOf(value) : value));
  }
}

/** The checker has seen that it is a string. */
const patternText = (value: unknown): string => value as string;
const readingText = (slot: number, change: (text: string) => string | undefined): Hole =>
  new Hole((values) => change(patternText(values[slot])));

/** The values of one condition as SQL. */
class ValuePlaces {
  /** Prints a value that the condition itself states. */
  readonly literal: (type: SqlType, value: unknown) => Sql;

  constructor(literal: ValuePlaces['literal']) {
    this.literal = literal;
  }

  of(value: Value, isList: boolean): Sql {
    const element = scalarOf(value.type).sqlType;
    const type = isList ? (`${element}[]` as SqlType) : element;
    return value.kind === 'literal'
      ? this.literal(type, value.value)
      : sql`${param(type, new Hole(slotReader(value)))}`;
  }

  pattern(operand: ConditionOperand): Sql {
    invariant(operand.kind === 'literal' || operand.kind === 'slot', 'what is looked for is not of a record');
    return operand.kind === 'literal'
      ? this.literal('text', likePattern(patternText(operand.value)))
      : sql`${param('text', readingText(operand.slot, likePattern))}`;
  }

  successor(operand: ConditionOperand): Sql | undefined {
    if (operand.kind === 'column' || operand.kind === 'count') return undefined;
    if (operand.kind === 'literal') {
      const successor = successorOf(patternText(operand.value));
      return successor === undefined ? undefined : this.literal('text', successor);
    }
    const { slot, hasNoSuccessor } = operand;
    return hasNoSuccessor ? undefined : sql`${param('text', readingText(slot, successorOf))}`;
  }
}

/** Literals of a policy are part of the text, so that generic plans know them too. */
export const POLICY_PLACES = new ValuePlaces(typedLiteral);
/** Literals of a filter come from its request, and never enter the text. Its plan knows them all the same. */
export const FILTER_PLACES = new ValuePlaces((type, value) => sql`${plannedParam(type, value)}`);

// Stored ints lie within ±(2^53−1): this number equals none of them, and is above (below) them all.
const BEYOND = 2 ** 53;
const clamped = (value: number): number => Math.max(-BEYOND, Math.min(BEYOND, value));

const ADAPT: Readonly<Record<'floor' | 'ceil' | 'whole', (value: number) => number>> = {
  floor: (value) => clamped(Math.floor(value)),
  ceil: (value) => clamped(Math.ceil(value)),
  whole: (value) => (Number.isSafeInteger(value) ? value : BEYOND),
};

export function slotReader({ slot, adapt }: Extract<Value, { kind: 'slot' }>): Hole['read'] {
  if (adapt === undefined) return (values) => values[slot];
  const change = ADAPT[adapt];
  return (values) => {
    const value = values[slot] as number | readonly number[];
    return typeof value === 'number' ? change(value) : value.map(change);
  };
}
