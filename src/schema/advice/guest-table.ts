/** The actions that guests may take on the records of each collection. */
import { outcomesForGuest } from '../../policy/check/guests.ts';
import { CAN_BE_FALSE, CAN_BE_TRUE, CAN_BE_UNKNOWN, canBe } from '../../policy/check/outcomes.ts';
import { type Policy, RULED_ACTIONS, type RuledAction } from '../../policy/types.ts';
import { rulesOfAction } from '../model/kept/soft-delete.ts';
import type { Schema } from '../model/model.ts';

type GuestAccess = 'all' | 'some' | '-';

/** A collection of which guests may do anything, in the order of the file. */
export interface GuestRow {
  readonly collection: string;
  /** In the order of `guestColumns`. */
  readonly actions: readonly GuestAccess[];
}

/** `restore` is among them where some collection keeps deleted records. */
export const guestColumns = ({ collections }: Pick<Schema, 'collections'>): readonly RuledAction[] => {
  const keepsDeleted = [...collections.values()].some(({ softDelete }) => softDelete !== undefined);
  return RULED_ACTIONS.filter((action) => action !== 'restore' || keepsDeleted);
};

export const guestRows = ({ collections, guests }: Schema): readonly GuestRow[] =>
  [...(guests ? collections.values() : [])]
    .map((collection) => ({
      collection: collection.name,
      actions: guestColumns({ collections }).map((action) => accessBy(rulesOfAction(collection, action))),
    }))
    .filter(({ actions }) => actions.some((each) => each !== '-'));

function accessBy(rules: readonly Policy[]): GuestAccess {
  const sets = rules.map(({ checked }) => outcomesForGuest(checked));
  if (sets.some((set) => canBe(set, CAN_BE_TRUE) && !canBe(set, CAN_BE_FALSE | CAN_BE_UNKNOWN))) return 'all';
  return sets.some((set) => canBe(set, CAN_BE_TRUE)) ? 'some' : '-';
}
