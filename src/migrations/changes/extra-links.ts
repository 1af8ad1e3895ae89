/** The tables of links that a migration leaves though its schema does not have them: deleted rows keep these links too. */
import { LINK_TENANT_COLUMN } from '../../policy/condition.ts';
import { type LinkSide, linkSideName } from '../../schema/model/kept/link-sides.ts';
import type { ActualTable } from '../catalog.ts';
import type { Step } from '../step.ts';
import type { Table } from '../tables.ts';

interface LeavingLinks {
  readonly wanted: ReadonlyMap<string, Table>;
  /** The tables by their new names. */
  readonly actual: ReadonlyMap<string, ActualTable>;
  /** The tables that an earlier schema created. */
  readonly owned: readonly string[];
  /** The steps that run. */
  readonly steps: readonly Step[];
}

/** A side of a table, with the name that the other schema gives it. */
export interface ExtraLinks extends Pick<LinkSide, 'name' | 'ownColumn' | 'otherColumn'> {
  readonly linkTable: string;
  /** The table of the linked rows. */
  readonly table: string;
}

export function extraLinksLeft({ wanted, actual, owned, steps }: LeavingLinks): readonly ExtraLinks[] {
  const dropped = new Set(
    steps.flatMap(({ values }) => (values === undefined || values.column !== undefined ? [] : [values.table])),
  );
  // No collection has a name with two underscores.
  const names = owned.filter((name) => name.includes('__') && !wanted.has(name) && !dropped.has(name));
  return names.flatMap((linkTable) => {
    const { columns, constraints } = actual.get(linkTable) ?? { columns: new Map(), constraints: [] };
    const ends = [...columns.keys()].filter((column) => column !== LINK_TENANT_COLUMN);
    return constraints.flatMap(({ kind, columns: keys, table }) => {
      const [ownColumn, otherColumn] = [keys.at(-1), ends.find((column) => column !== keys.at(-1))];
      const isLink = kind === 'f' && ends.length === 2 && table !== undefined;
      if (!isLink || ownColumn === undefined || otherColumn === undefined) return [];
      return [{ name: linkSideName(linkTable, ownColumn), linkTable, table, ownColumn, otherColumn }];
    });
  });
}
