/**
 * Proves that a request reaches the records of one tenant only: finds the value that every rule
 * requires of the tenant's belongs_to.
 */
import { inAll } from '../column-facts.ts';
import { equalityOf } from '../operators.ts';
import type { Checked, CheckedOperand, LiteralOperand, RequestOperand } from '../types.ts';
import { isList, partsOf, scopesOf } from '../visit.ts';
import { canonical } from './canonical.ts';

/** A value that is fixed within a request: a literal, or a value of the request. */
export type Pin = RequestOperand | LiteralOperand;

/**
 * Values that `relation` provably has in every stored record that the rule allows (for a create, in
 * the written record). Sound but incomplete: an empty list means that nothing was proved.
 */
export function provenPins(rule: Checked, relation: string): readonly Pin[] {
  const pins = pinsIn(canonical(rule), relation);
  return [...new Map(pins.map((pin) => [pinKey(pin), pin])).values()];
}

/** The values that all rules require. */
export const sharedPins = (rules: readonly (readonly Pin[])[]): readonly Pin[] =>
  inAll(rules, (a, b) => pinKey(a) === pinKey(b));

/** The collections whose records the rule finds by an id of the request alone. */
export function requestedBy(rule: Checked): readonly string[] {
  const own = scopesOf(rule).flatMap((scope) => {
    const type = scope.kind === 'request' ? scope.operand.type : undefined;
    return typeof type === 'object' ? [type.id] : [];
  });
  return [...own, ...partsOf(rule).flatMap(requestedBy)];
}

const pinKey = (pin: Pin): string => (pin.kind === 'literal' ? `"${pin.value}"` : `${pin.source}.${pin.name}`);

function pinsIn(checked: Checked, relation: string): readonly Pin[] {
  switch (checked.kind) {
    case 'and':
      return checked.items.flatMap((item) => pinsIn(item, relation));
    case 'or':
      return sharedPins(checked.items.filter((item) => !isFalse(item)).map((item) => pinsIn(item, relation)));
    case 'compare': {
      const { op, left, right } = checked;
      return op === equalityOf(true) && isTenantColumn(left, relation) && isPin(right) ? [right] : [];
    }
    case 'is null':
    case 'changed':
    case 'quantified':
    case 'not':
    case 'const':
      return [];
  }
}

const isFalse = (checked: Checked): boolean => checked.kind === 'const' && !checked.value;

/** The column of the stored record: the column of `@next` holds the result of a write. */
const isTenantColumn = (operand: CheckedOperand, relation: string): boolean =>
  operand.kind === 'column' &&
  operand.scope.kind === 'record' &&
  operand.steps.length === 0 &&
  operand.column.kind === 'belongs_to' &&
  operand.column.relation.name === relation;

/** An id: a string beside an id is compared as text, which no index serves. */
const isPin = (operand: CheckedOperand): operand is Pin =>
  (operand.kind === 'request' || operand.kind === 'literal') && typeof operand.type === 'object' && !isList(operand);
