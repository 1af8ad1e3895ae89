/** The record that an operand identifies: paths go on from it, and chains of ancestors begin at it. */
import type { CheckedOperand, ColumnOperand } from '../types.ts';
import type { RecordStart } from './place.ts';

/** `undefined` for what is not the id of a record. */
export function recordStart(operand: CheckedOperand): RecordStart | undefined {
  if (typeof operand.type !== 'object') return undefined;
  if (operand.kind === 'column') return recordOfColumn(operand);
  if (operand.kind !== 'request') return undefined;
  const { id } = operand.type;
  return { scope: { kind: 'request', operand }, collection: id, steps: [], at: id, nullable: true };
}

function recordOfColumn({ scope, collection, steps, column, nullable }: ColumnOperand): RecordStart {
  const from = steps.at(-1)?.relation.collection ?? collection;
  if (column.kind !== 'belongs_to') return { scope, collection, steps, at: from, nullable };
  const { relation } = column;
  return { scope, collection, steps: [...steps, { from, relation }], at: relation.collection, nullable };
}
