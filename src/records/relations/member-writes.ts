/** The members of a body that have write rules of their own. */
import type { Permit } from '../../policy/access.ts';
import { Refusal } from '../../refusal.ts';
import type { AccessContext } from '../access-context.ts';
import type { Data } from '../data.ts';
import { pointerTo } from '../write/input.ts';

/** A member that the body sets, whose rule depends on the record. */
export interface GuardedMember {
  readonly permit: Permit;
  /** Where the body sets it. */
  readonly pointer: string;
}

/**
 * Those whose rules depend on the record. Throws `forbidden` where the caller may never set one of
 * them, whatever the value. Defaults are not asked about: they are the schema's.
 */
export function guardedMembers(
  access: AccessContext,
  data: Data,
  action: 'create' | 'update',
): readonly GuardedMember[] {
  if (access.collection.memberAccess.size === 0) return [];
  const members = Object.keys(data).flatMap((name) => {
    const permit = access.member(access.collection.name, name, action);
    return permit === undefined ? [] : [{ permit, pointer: pointerTo('/data', name) }];
  });
  const denied = members.filter(({ permit }) => permit.verdict === 'deny');
  if (denied.length > 0) throw forbiddenMembers(denied);
  return members.filter(({ permit }) => permit.verdict === 'depends');
}

type Pointed = Pick<GuardedMember, 'pointer'>;

export function forbiddenMembers(members: readonly Pointed[]): Refusal {
  const detail = 'you may not set this here; leave it out';
  const errors = members.map(({ pointer }) => ({ pointer, code: 'forbidden', detail }));
  return new Refusal('forbidden', 'the policies deny this', errors);
}
