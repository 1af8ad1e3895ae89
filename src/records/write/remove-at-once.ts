/** A delete in one statement, where nothing but rows of the database goes with the record. */
import { raw, sql, uuid } from '../../sql.ts';
import { isFollowed } from '../relations/cascades.ts';
import { scopeOf } from '../scope.ts';
import { type AtOnce, stillAccepted, type Target } from './at-once.ts';
import { STORED, unmoved } from './written-row.ts';

/** False: nothing was deleted, or one statement cannot decide. */
export async function removeAtOnce(within: AtOnce, request: Target): Promise<boolean> {
  const { store, access, write } = within;
  const { collection } = access;
  if (isFollowed(store.schema, collection.name)) return false;
  const accepted = await stillAccepted(within, request, STORED);
  if (accepted === undefined) return false;
  const permit = access.permit(collection.name, 'delete');
  const conditions = [
    sql`${raw(STORED)}.id = ${uuid(request.id)}`,
    permit.where(STORED),
    ...(permit.consultsOthers ? [unmoved(within, request.id)] : []),
    ...accepted,
  ];
  const statement = sql`
    DELETE FROM ${scopeOf(within)
      .from(collection.name, STORED)
      .where(...conditions)}
    RETURNING id`;
  const deleted = await write(statement, request.id);
  return deleted.length > 0;
}
