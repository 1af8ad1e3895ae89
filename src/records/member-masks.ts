/** The rules that hide members of a record in memory, and the related rows that rules read. */
import type { Permit } from '../policy/access.ts';
import type { Need } from '../policy/types.ts';
import type { AccessContext } from './access-context.ts';
import type { RequestedRecords } from './relations/related.ts';

export interface MemberMask {
  readonly name: string;
  readonly permit: Permit;
}

/** The members of the access's collection that some of its records hide. */
export function memberMasksOf(access: AccessContext): readonly MemberMask[] {
  const { name: collection, memberAccess } = access.collection;
  return [...memberAccess.keys()].flatMap((name) => {
    const permit = access.member(collection, name, 'read');
    return permit === undefined || permit.verdict === 'allow' ? [] : [{ name, permit }];
  });
}

export const recordNeeds = ({ rules }: Permit): readonly Need[] =>
  rules.flatMap(({ residual }) => residual.needs.record);

export const requestedNeeds = ({ rules }: Permit): readonly RequestedRecords[] =>
  rules.flatMap(({ residual }) =>
    residual.needs.requested.map(({ collection, id, needs }) => ({ collection, ids: [id], needs })),
  );
