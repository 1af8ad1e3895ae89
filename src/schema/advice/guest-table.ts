/** The actions that guests may take on the records of each collection. */
import { outcomesForGuest } from '../../policy/check/guests.ts';
import { CAN_BE_FALSE, CAN_BE_TRUE, CAN_BE_UNKNOWN, canBe } from '../../policy/check/outcomes.ts';
import { ACTIONS, type Policy } from '../../policy/types.ts';
import type { Schema } from '../model/model.ts';

type GuestAccess = 'all' | 'some' | '-';

/** A collection of which guests may do anything, in the order of the file. */
export interface GuestRow {
  readonly collection: string;
  /** In the order of `ACTIONS`. */
  readonly actions: readonly GuestAccess[];
}

export const guestRows = ({ collections, guests }: Schema): readonly GuestRow[] =>
  [...(guests ? collections.values() : [])]
    .map(({ name, access }) => ({ collection: name, actions: ACTIONS.map((action) => accessBy(access[action])) }))
    .filter(({ actions }) => actions.some((each) => each !== '-'));

function accessBy(rules: readonly Policy[]): GuestAccess {
  const sets = rules.map(({ checked }) => outcomesForGuest(checked));
  if (sets.some((set) => canBe(set, CAN_BE_TRUE) && !canBe(set, CAN_BE_FALSE | CAN_BE_UNKNOWN))) return 'all';
  return sets.some((set) => canBe(set, CAN_BE_TRUE)) ? 'some' : '-';
}
