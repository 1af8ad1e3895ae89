/** Decides for `bylaw dev` whether a statement that would drop or convert values loses any. */
import type { Transaction } from '../database/contract.ts';
import { ident, raw, sql, tableIdent } from '../sql.ts';

/** The values that a statement drops or converts: of a column, or of a whole table. */
export interface LosableValues {
  readonly table: string;
  readonly column?: string;
}

/** True if it loses none. The lock keeps other sessions from adding any until `tx` ends. */
export async function losesNothing(tx: Transaction, { table, column }: LosableValues): Promise<boolean> {
  await tx.run(sql`LOCK TABLE ${tableIdent(table)} IN ACCESS EXCLUSIVE MODE`);
  const isFilled = column === undefined ? raw('true') : sql`${ident(column)} IS NOT NULL`;
  const [row] = await tx.rows(sql`SELECT EXISTS (SELECT 1 FROM ${tableIdent(table)} WHERE ${isFilled})`);
  return row?.[0] === 'f';
}
