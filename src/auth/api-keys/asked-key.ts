/** Finds the API key that a question about a decision names. */
import type { Queryable } from '../../database/contract.ts';
import type { Action, CallerKind, Row } from '../../policy/types.ts';
import type { Schema } from '../../schema/model/model.ts';
import { unusedKeyState } from './api-key-rows.ts';
import { callerOfState } from './key-callers.ts';

interface AskedKey {
  readonly auth: Row;
  readonly kind: CallerKind;
  readonly allows: (collection: string, action: Action) => boolean;
}

/** Finds keys in force by their ids. A question is not a use of the key. */
export const keyFinder =
  (db: Queryable, schema: Schema) =>
  async (id: string): Promise<AskedKey | undefined> => {
    const state = await unusedKeyState(db, id);
    const caller = state && callerOfState(state, schema);
    if (caller === undefined) return undefined;
    const { auth, kind, bounds } = caller;
    return { auth, kind, allows: (collection, action) => bounds?.allows(collection, action) !== false };
  };
