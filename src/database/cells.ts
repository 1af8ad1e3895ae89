/** Reads rows and cells as PostgreSQL prints them. */
import pg from 'pg';
import { invariant } from '../invariant.ts';
import type { Cells } from './contract.ts';

/** A row whose first cells are never null, by the names that its statement gives them. */
export function namedCells<const Name extends string>(
  cells: Cells | undefined,
  ...names: readonly Name[]
): Readonly<Record<Name, string>> {
  invariant(cells !== undefined, `there is a row with ${names.join(', ')}`);
  const row: Partial<Record<Name, string>> = {};
  for (const [i, name] of names.entries()) {
    const cell = cells[i];
    invariant(cell !== null && cell !== undefined, `\`${name}\` is never null`);
    row[name] = cell;
  }
  return row as Readonly<Record<Name, string>>;
}

/** The object id of `text[]`, in every PostgreSQL. */
const TEXT_ARRAY: number = 1009;

/** Reads a `text[]` without NULLs from the text that PostgreSQL prints for it. */
export const readTextArray = pg.types.getTypeParser(TEXT_ARRAY) as (cell: string) => readonly string[];

/** A JSON array of strings, as `array_to_json` and `json_agg` give it. */
export function readStrings(json: string | null | undefined): readonly string[] {
  const value: unknown = JSON.parse(json ?? 'null');
  invariant(Array.isArray(value) && value.every((item) => typeof item === 'string'), 'the cell is an array of strings');
  return value;
}
