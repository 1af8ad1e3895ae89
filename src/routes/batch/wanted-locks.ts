/** The locks that the operations of a batch want before the first of them runs. Not a route. */
import type { Context } from 'koa';
import type { App } from '../../http/app.ts';
import { admitOf } from '../../http/gate.ts';
import { present } from '../../invariant.ts';
import { Problem } from '../../problem.ts';
import type { WantedLocks } from '../../records/write/batch.ts';
import { changedByUpsert } from '../../records/write/upsert.ts';
import { keyKindOf } from '../../schema/fields/index.ts';
import { uniqueFieldOf, upsertAccessOf } from '../records/upsert-request.ts';
import type { BatchOperation } from './operations.ts';

/** Operations that fail before they reach the database want none. */
export function wantedLocksOf(operations: readonly BatchOperation[], ctx: Context, app: App): WantedLocks {
  const admit = admitOf(ctx, app);
  const created = new Set(
    operations.flatMap((operation) => (operation.op === 'create' ? [`${operation.collection} ${operation.id}`] : [])),
  );
  const known = operations.flatMap((operation) => {
    const collection = app.schema.collections.get(operation.collection);
    return collection === undefined ? [] : [{ operation, collection }];
  });
  return {
    values: known.flatMap(({ operation, collection }) =>
      operation.op === 'delete' ? [] : [{ collection, data: operation.data }],
    ),
    rows: known.flatMap(({ operation, collection }) => {
      if (operation.op === 'create' || operation.op === 'upsert') return [];
      const read = keyKindOf(collection).fromQuery(operation.id);
      const id = read === undefined ? undefined : String(read);
      if (id === undefined || created.has(`${collection.name} ${id}`)) return [];
      const action = operation.op;
      const data = operation.op === 'update' ? operation.data : {};
      return ifAdmitted(() => ({ access: admit(collection, action).access(data), action, id, data }));
    }),
    upserts: known.flatMap(({ operation, collection }) => {
      if (operation.op !== 'upsert') return [];
      const { on, data } = operation;
      return ifAdmitted(() => {
        const { read, update } = upsertAccessOf(admit, collection);
        const field = present(uniqueFieldOf(collection, on), 'a unique field');
        return read && { read, update: update(changedByUpsert(collection, field, data)), field, data };
      });
    }),
  };
}

/** The operation itself reports that its caller may not do it. */
function ifAdmitted<T>(make: () => T | undefined): readonly T[] {
  try {
    const made = make();
    return made === undefined ? [] : [made];
  } catch (error) {
    if (error instanceof Problem) return [];
    throw error;
  }
}
