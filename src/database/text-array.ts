import pg from 'pg';
import { invariant } from '../invariant.ts';

/** The object id of `text[]`, in every PostgreSQL. */
const TEXT_ARRAY: number = 1009;

/** Reads a `text[]` without NULLs from the text that PostgreSQL prints for it. */
export const readTextArray = pg.types.getTypeParser(TEXT_ARRAY) as (cell: string) => readonly string[];

/** A JSON array of strings, as `array_to_json` and `json_agg` give it. */
export function readStrings(json: string | null | undefined): readonly string[] {
  const value: unknown = JSON.parse(json ?? 'null');
  invariant(
    Array.isArray(value) && value.every((item) => typeof item === 'string'),
    'the cell is a JSON array of strings',
  );
  return value;
}
