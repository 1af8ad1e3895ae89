/** Tables that have another name in the schema than in the database. */
import { ident, sql, tableIdent } from '../sql.ts';
import type { ActualTable } from './catalog.ts';
import type { Step } from './step.ts';
import type { Table } from './tables.ts';
import { renamedPartitions } from './tenant-tables.ts';

export interface Renamed {
  /** The tables by their new names. */
  readonly actual: ReadonlyMap<string, ActualTable>;
  /** New name → the name in the database. */
  readonly formerNames: ReadonlyMap<string, string>;
  readonly steps: readonly Step[];
}

export function renamedTables(wanted: ReadonlyMap<string, Table>, actual: ReadonlyMap<string, ActualTable>): Renamed {
  const names = new Map<string, string>();
  for (const { name, was = [] } of wanted.values()) {
    const former = actual.has(name) ? undefined : was.find((one) => actual.has(one) && !wanted.has(one));
    if (former !== undefined) names.set(former, name);
  }
  const nameNow = (name: string): string => names.get(name) ?? name;
  const renamed = [...actual.values()].map((table): [string, ActualTable] => {
    const constraints = table.constraints.map((constraint) =>
      constraint.table === undefined ? constraint : { ...constraint, table: nameNow(constraint.table) },
    );
    return [nameNow(table.name), { ...table, name: nameNow(table.name), constraints }];
  });
  return {
    actual: new Map(renamed),
    formerNames: new Map([...names].map(([former, name]) => [name, former])),
    steps: [...names].flatMap(([former, name]) => [
      { sql: sql`ALTER TABLE ${tableIdent(former)} RENAME TO ${ident(name)}` },
      ...(actual.get(former)?.tenantLayout?.kind === 'by' ? renamedPartitions(former, name) : []),
    ]),
  };
}
