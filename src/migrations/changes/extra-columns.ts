/**
 * The columns that a migration leaves in the tables though its schema does not have them: a newer version fills them, or
 * an operator has not consented to their loss. The triggers of histories and of deleted rows hold them too.
 */
import type { ActualTable } from '../catalog.ts';
import type { Renamed } from '../renamed-tables.ts';
import type { Step } from '../step.ts';
import type { Table } from '../tables.ts';

interface ExtraColumn {
  readonly name: string;
  /** As the catalog has it. */
  readonly type: string;
}

interface LeavingMigration {
  readonly wanted: ReadonlyMap<string, Table>;
  readonly renamed: Renamed;
  /** The steps that run. */
  readonly steps: readonly Step[];
  /** The tables that are made anew, with the columns of the schema alone. */
  readonly moved: readonly string[];
}

/** @returns by the names of the tables */
export function extraColumnsLeft({
  wanted,
  renamed: { actual, formerNames },
  steps,
  moved,
}: LeavingMigration): ReadonlyMap<string, readonly ExtraColumn[]> {
  const dropped = new Set(steps.map(({ values }) => JSON.stringify([values?.table, values?.column])));
  const left = [...wanted.values()].flatMap((table) => {
    const existing = actual.get(table.name);
    if (existing === undefined || moved.includes(table.name)) return [];
    const stored = formerNames.get(table.name) ?? table.name;
    const own = namesBefore(table, existing);
    const columns = [...existing.columns]
      .filter(([name]) => !own.has(name) && !dropped.has(JSON.stringify([stored, name])))
      .map(([name, { type }]) => ({ name, type }));
    return [[table.name, columns] as const];
  });
  return new Map(left);
}

/** The names that the columns of the schema have before the migration. */
const namesBefore = ({ columns }: Table, existing: ActualTable): ReadonlySet<string> =>
  new Set(columns.map(({ name, was }) => (existing.columns.has(name) ? name : (was ?? name))));

/** The text of a function does not depend on the version that makes it: an older one makes the same. */
export const inOrderOfNames = <C extends { readonly name: string }>(columns: readonly C[]): readonly C[] =>
  columns.toSorted((a, b) => (a.name < b.name ? -1 : 1));
