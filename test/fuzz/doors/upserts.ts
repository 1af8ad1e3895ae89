/** Random upserts by a unique field. */
import type { Row } from '../../../src/policy/types.ts';
import type { Collection, Field } from '../../../src/schema/model/model.ts';
import type { Data, Id } from '../../oracle/database.ts';
import { isMemberReadable, isReadable, type Standing } from '../../oracle/judge.ts';
import { keyOf, membersWithin } from '../../oracle/keys.ts';
import type { Random } from '../random.ts';
import { PLAIN, writableValue } from './doors-world.ts';
import { SLUG } from './kept-schema.ts';

export interface Upsert {
  readonly collection: string;
  readonly field: Field;
  /** The value, and those of the members that it is unique within. */
  readonly key: Row;
  /** The record that has the value, hidden or not. */
  readonly holder: Row | undefined;
}

/** Undefined: no collection has a unique field without a condition. */
export function randomUpsert(
  collections: ReadonlyMap<string, Collection>,
  data: Data,
  random: Random,
): Upsert | undefined {
  const keyed = PLAIN.flatMap((collection) => {
    const field = collections.get(collection)!.fields.get(SLUG);
    const isKey = field !== undefined && field.uniqueKey?.where === undefined;
    return isKey ? [{ collection, field }] : [];
  });
  if (keyed.length === 0) return undefined;
  const { collection, field } = random.pick(keyed);
  const rows = data.rows.get(collection)!;
  const holding = rows.filter((row) => row[SLUG] !== null);
  const near = holding.length > 0 && random.chance(0.75) ? random.pick(holding) : undefined;
  const { fields } = collections.get(collection)!;
  // The same value within other members is another key.
  const place = random.chance(0.5) ? near : undefined;
  const within = membersWithin(field).map((name) => [name, place?.[name] ?? writableValue(fields.get(name)!, random)]);
  const value = near === undefined ? writableValue(field, random) : inSomeCase(String(near[SLUG]), random);
  const key: Row = { ...Object.fromEntries(within), [SLUG]: value };
  const holder = rows.find((row) => keyOf(field, row) === keyOf(field, key));
  return { collection, field, key, holder };
}

const inSomeCase = (text: string, random: Random): string =>
  random.pick([text, text, text.toUpperCase(), text.toLowerCase()]);

/** False: the caller may not read the record, or its key, so the value is as a taken one of a create. */
export const isFoundBy = ({ collection, key, holder }: Upsert, standing: Standing): boolean =>
  holder === undefined ||
  (isReadable(collection, holder.id as Id, standing) &&
    Object.keys(key).every((name) => isMemberReadable(collection, name, holder, standing)));
