/** "View as": another caller, about whom the pages ask. The address holds it, and nothing is written meanwhile. */
import { computed } from '@preact/signals';
import { wording } from '../en.ts';
import { address, VIEWED_KEY } from './page-address.ts';
import { isEditingOn } from './preferences.ts';
import { isAdminHere } from './session-state.ts';

/** An email, an id, a role or `guest`; empty: the user who is signed in. */
export const viewedCaller = computed(() => (isAdminHere.value ? (address.value.query.get(VIEWED_KEY) ?? '') : ''));

/** The caller whom a page asks about: the one that the address names under the key, else the viewed one. */
export const callerAskedAbout = (key: string): string => address.value.query.get(key) ?? viewedCaller.value;

export const isWritingOn = computed(() => isEditingOn.value && viewedCaller.value === '');

/** Why controls that write are greyed. */
export const greyReason = computed(() => {
  if (viewedCaller.value !== '') return wording.nothingWritten;
  return isEditingOn.value ? undefined : wording.readOnly;
});
