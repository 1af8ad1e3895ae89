/** The rules that hide members of a record in memory, and the related rows that rules read. */
import type { Permit } from '../policy/access.ts';
import type { Need, Related, Row } from '../policy/types.ts';
import type { AccessContext } from './access-context.ts';
import type { RequestedRecords } from './relations/related.ts';

export interface MemberMask {
  readonly name: string;
  readonly permit: Permit;
}

/** The members of the collection that some of its records hide. */
export function memberMasksOf(access: AccessContext, collection = access.collection): readonly MemberMask[] {
  return [...collection.memberAccess.keys()].flatMap((name) => {
    const permit = access.member(collection.name, name, 'read');
    return permit === undefined || permit.verdict === 'allow' ? [] : [{ name, permit }];
  });
}

/** The row without the members that these hide from it. */
export function maskedRow(row: Row, masks: readonly MemberMask[], related: Related): Row {
  const hidden = masks.filter(({ permit }) => !permit.test(row, related));
  return hidden.length === 0 ? row : { ...row, ...Object.fromEntries(hidden.map(({ name }) => [name, null])) };
}

export const recordNeeds = ({ rules }: Permit): readonly Need[] =>
  rules.flatMap(({ residual }) => residual.needs.record);

export const requestedNeeds = ({ rules }: Permit): readonly RequestedRecords[] =>
  rules.flatMap(({ residual }) =>
    residual.needs.requested.map(({ collection, id, needs }) => ({ collection, ids: [id], needs })),
  );
