/** A session that was stolen without the second factor of its user must not make itself another way in. */
import type { Queryable } from '../../database/contract.ts';
import { Problem } from '../../problem.ts';
import type { Caller } from '../caller.ts';
import { factorMethods } from './factor-rows.ts';

/** Throws `forbidden` in a session that lacks the second factor of its user. */
export async function requireUsedFactor(db: Queryable, { principal, auth }: Caller): Promise<void> {
  if (auth.second_factor === true || (await factorMethods(db, principal)).length === 0) return;
  throw new Problem(
    'forbidden',
    'this session has no second factor; confirm it by a code first (POST /api/auth/confirm)',
  );
}
