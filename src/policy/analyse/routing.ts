/**
 * Proves that a request reaches the records of one tenant only: finds the value that every rule
 * requires of the tenant's belongs_to.
 */

import { isMember, OPERATORS } from '../operators.ts';
import type { Checked, CheckedOperand, LiteralOperand, RequestOperand } from '../types.ts';
import { isList, partsOf, scopesOf } from '../visit.ts';
import { canonical } from './canonical.ts';
import { implies } from './subsumes.ts';

/** A value that is fixed within a request: a literal, or a value of the request. */
export type Pin = RequestOperand | LiteralOperand;

/**
 * Values that `relation` provably has in every stored record that the rule allows (for a create, in
 * the written record). Sound but incomplete: an empty list means that nothing was proved.
 */
export function provenPins(rule: Checked, relation: string): readonly Pin[] {
  const spelt = canonical(rule);
  const equalities = equalitiesIn(spelt, relation);
  const proven = equalities.filter((equality) => implies(spelt, equality.checked));
  return [...new Map(proven.map(({ pin }) => [keyOf(pin), pin])).values()];
}

/** The values that all rules require. */
export function sharedPins(rules: readonly (readonly Pin[])[]): readonly Pin[] {
  const [first = [], ...others] = rules;
  return first.filter((pin) => others.every((pins) => pins.some((each) => keyOf(each) === keyOf(pin))));
}

/** The collections whose records the rule finds by an id of the request alone. */
export function requestedBy(rule: Checked): readonly string[] {
  const own = scopesOf(rule).flatMap((scope) => {
    const type = scope.kind === 'request' ? scope.operand.type : undefined;
    return typeof type === 'object' ? [type.id] : [];
  });
  return [...own, ...partsOf(rule).flatMap(requestedBy)];
}

const keyOf = (pin: Pin): string => (pin.kind === 'literal' ? `"${pin.value}"` : `${pin.source}.${pin.name}`);

interface TenantEquality {
  readonly checked: Checked;
  readonly pin: Pin;
}

function equalitiesIn(checked: Checked, relation: string): readonly TenantEquality[] {
  switch (checked.kind) {
    case 'and':
    case 'or':
      return checked.items.flatMap((item) => equalitiesIn(item, relation));
    case 'compare': {
      const { op, left, right } = checked;
      const { family } = OPERATORS[op];
      const isEquality = family === 'equality' && isMember(OPERATORS[op]);
      return isEquality && isTenantColumn(left, relation) && isPin(right) ? [{ checked, pin: right }] : [];
    }
    case 'is null':
    case 'changed':
    case 'quantified':
    case 'not':
    case 'const':
      return [];
  }
}

/** Of the stored record: that of `@next` is what a write would make of it. */
const isTenantColumn = (operand: CheckedOperand, relation: string): boolean =>
  operand.kind === 'column' &&
  operand.scope.kind === 'record' &&
  operand.steps.length === 0 &&
  operand.column.kind === 'belongs_to' &&
  operand.column.relation.name === relation;

/** An id: a string beside an id is compared as text, which no index serves. */
const isPin = (operand: CheckedOperand): operand is Pin =>
  (operand.kind === 'request' || operand.kind === 'literal') && typeof operand.type === 'object' && !isList(operand);
