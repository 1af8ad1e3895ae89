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
