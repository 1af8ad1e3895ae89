/** The description of a session. Not a route. */
import { ID_SCHEMA, type Json, object, type Shape, TIMESTAMP } from '../../describe/operation.ts';

const NULLABLE = { type: ['string', 'null'] };

const members: Json = {
  id: ID_SCHEMA,
  created_at: TIMESTAMP,
  last_used_at: TIMESTAMP,
  user_agent: NULLABLE,
  ip: NULLABLE,
};

/** A session of another user. */
export const foreignSession: Shape = (scope) => scope.define('UserSession', object(members));

export const ownSession: Shape = (scope) =>
  scope.define(
    'Session',
    object({ ...members, current: { type: 'boolean', description: 'Whether this request belongs to it.' } }),
  );
