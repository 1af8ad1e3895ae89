/** The names and the records that a text of the palette may mean. */
import type { ServedCollection } from '../data/schema-answer.ts';

/** True if the name has the text in it, in any case. */
export const hasText = (name: string, text: string): boolean => name.toLowerCase().includes(text.trim().toLowerCase());

const ID_FORMS: Readonly<Record<string, RegExp>> = {
  uuid: /^[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}$/i,
  int: /^-?\d+$/,
  string: /./,
};

/** The collections of which the text may be an id, the open one first. */
export function collectionsWithId(
  collections: readonly Pick<ServedCollection, 'name' | 'key'>[],
  text: string,
  open: string | undefined,
): readonly string[] {
  const names = collections.flatMap(({ name, key }) => (ID_FORMS[key.type]?.test(text) === true ? [name] : []));
  return names.toSorted((a, b) => Number(b === open) - Number(a === open));
}
