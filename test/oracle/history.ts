/** The history of a record as a caller sees it, by the definition of `history`; shares no code with the store. */
import type { Row } from '../../src/policy/types.ts';
import type { Id } from './database.ts';
import { isMemberReadable, isReadableAs, rowOf, type Standing } from './judge.ts';

/** A change of a record. Undefined: the record did not exist. */
export interface Change {
  readonly entry: number;
  readonly by: string | null;
  readonly before: Row | undefined;
  readonly after: Row | undefined;
}

/** A time of its own is in each entry. */
const LEFT_OUT = ['id', 'updated_at'];

/**
 * The entries of the changes, in their order. Each state is judged as the record was then, and each member also as the record
 * is now. Undefined: the record is hidden, or missing.
 */
export function historySeen(
  collection: string,
  id: Id,
  changes: readonly Change[],
  standing: Standing,
): readonly Row[] | undefined {
  const present = rowOf(standing.data, collection, id);
  if (present === undefined || !isReadableAs(collection, present, standing)) return undefined;
  const isNowReadable = (name: string): boolean => isMemberReadable(collection, name, present, standing);
  const members = Object.keys(present).filter((name) => !LEFT_OUT.includes(name) && isNowReadable(name));
  const seenOf = (state: Row | undefined): readonly string[] =>
    state === undefined || !isReadableAs(collection, state, standing)
      ? []
      : members.filter((name) => isMemberReadable(collection, name, state, standing));
  const isSeen = (state: Row | undefined): boolean => state !== undefined && isReadableAs(collection, state, standing);
  return changes.flatMap(({ entry, by, before, after }) => {
    if (!isSeen(before) && !isSeen(after)) return [];
    const [was, is] = [seenOf(before), seenOf(after)];
    const isUpdate = before !== undefined && after !== undefined;
    const changed = members.filter((name) => {
      if (!was.includes(name) && !is.includes(name)) return false;
      return !isUpdate || was.includes(name) !== is.includes(name) || before?.[name] !== after?.[name];
    });
    if (isUpdate && changed.length === 0) return [];
    const shownOf = (state: Row | undefined, seen: readonly string[]): Row | null =>
      state === undefined || !isSeen(state)
        ? null
        : Object.fromEntries(
            ['id', ...changed.filter((name) => seen.includes(name))].map((name) => [name, state[name]]),
          );
    const action = before === undefined ? 'create' : after === undefined ? 'delete' : 'update';
    return [
      { entry, by, action, changed: changed.toSorted(), before: shownOf(before, was), after: shownOf(after, is) },
    ];
  });
}
