/** Cells by their records: rows come and go while a person is in one of them. */
import type { GridColumn, StudioRecord } from './record-query.ts';

/** The cell that the Tab key reaches. */
export interface GridPlace {
  /** Undefined: the first row, whose record may be any. */
  readonly id: StudioRecord['id'] | undefined;
  /** The place stays in this row if the record goes. */
  readonly row: number;
  readonly column: number;
}
export const FIRST_PLACE: GridPlace = { id: undefined, row: 0, column: 0 };

const clamp = (value: number, count: number): number => Math.max(0, Math.min(value, count - 1));

export function placeAt(records: readonly StudioRecord[], row: number, column: number): GridPlace {
  const nearest = clamp(row, records.length);
  return { id: records[nearest]?.id, row: nearest, column: Math.max(0, column) };
}

/** The row in which the place is now. */
export function rowOfPlace({ id, row }: GridPlace, records: readonly StudioRecord[]): number {
  if (id === undefined || records[row]?.id === id) return row;
  const found = records.findIndex((each) => each.id === id);
  return found === -1 ? clamp(row, records.length) : found;
}

/** A cell that is edited, with its record as it was last in the list. */
export interface CellEdit {
  readonly record: StudioRecord;
  readonly row: number;
  /** The name of the column. */
  readonly column: string;
}

/** The edit with the record as it is in the list now; it ends with its column. */
export function followedEdit(
  edit: CellEdit,
  records: readonly StudioRecord[],
  columns: readonly GridColumn[],
): CellEdit | undefined {
  if (!columns.some(({ name }) => name === edit.column)) return undefined;
  const row = records.findIndex(({ id }) => id === edit.record.id);
  const record = records[row];
  if (record === undefined || (row === edit.row && record === edit.record)) return edit;
  return { ...edit, row, record };
}

/** The rows of the grid: a record that leaves the list while it is edited keeps its row. */
export function rowsWithEdit(edit: CellEdit | undefined, records: readonly StudioRecord[]): readonly StudioRecord[] {
  if (edit === undefined || records.some(({ id }) => id === edit.record.id)) return records;
  return records.toSpliced(edit.row, 0, edit.record);
}
