/** Warnings about what a rule gives guests, in a schema that admits them. */
import type { CheckContext, Checked } from '../../types.ts';
import { GUEST, outcomesForGuest, passedByGuests } from '../guests.ts';
import { CAN_BE_TRUE, canBe } from '../outcomes.ts';
import type { Warning } from './warning-list.ts';

export function guestWarnings(checked: Checked, context: CheckContext): readonly Warning[] {
  const { catalog, action, roles = [], isOfMember, isRestore = false, parameters, params } = context;
  if (catalog.guests !== true || parameters !== undefined || params !== undefined) return [];
  if (roles.length > 0 && !roles.includes(GUEST)) return [];
  if (!canBe(outcomesForGuest(checked), CAN_BE_TRUE)) return [];
  const isWrite = isRestore || (action !== 'list' && action !== 'read');
  return [
    ...(isWrite && !isOfMember && !roles.includes(GUEST) ? [mayWrite(checked, context)] : []),
    ...passedByGuests(checked).map(({ span }): Warning => {
      const message = 'guests lack roles and a second factor, so each passes this; add `roles`, or what guests lack';
      return { code: 'guests_pass', message, span };
    }),
  ];
}

function mayWrite({ span }: Checked, { action, isRestore = false, text }: CheckContext): Warning {
  const message =
    `guests meet this: callers who are not signed in may ${isRestore ? 'restore' : action} records; ` +
    'add `roles`, with `guest` among them if it is meant';
  return { code: 'guests_write', message, span: span.source === undefined ? span : { start: 0, end: text.length } };
}
