/** The rules for reading, for the states that `history: true` keeps. */
import { memoizedBy } from '../../../memoized.ts';
import type { Schema } from '../model.ts';
import { keptMemberAccess, keptRules } from './kept-rules.ts';

/** The schema in which the rules for reading a collection decide about former states of its records. */
export const formerSchemaOf = memoizedBy((schema: Schema) => {
  const known = new Map<string, Schema>();
  return (name: string): Schema => {
    const former = known.get(name) ?? madeFormer(schema, name);
    known.set(name, former);
    return former;
  };
});

function madeFormer(schema: Schema, name: string): Schema {
  const collection = schema.collections.get(name)!;
  const rows = { catalog: schema, collection: name };
  const access = { ...collection.access, read: keptRules(collection.access.read, rows, 'read') };
  const memberAccess = keptMemberAccess(collection.memberAccess, rows);
  return { ...schema, collections: new Map(schema.collections).set(name, { ...collection, access, memberAccess }) };
}
