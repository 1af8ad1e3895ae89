/**
 * The grid of a collection. Only the rows in view are in the document: every row has the same height. The arrow keys move
 * one focus through the cells (WAI-ARIA grid).
 */
import type { JSX, RefObject } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { density } from '../../app/preferences.ts';
import { collectionNamed } from '../../app/session-state.ts';
import type { ServedCollection } from '../../data/schema-answer.ts';
import { wording } from '../../en.ts';
import { CellEditor, editedMember } from './cell-editor.tsx';
import { gridTracks, setWidth } from './column-widths.ts';
import { marksOf } from './found-records.ts';
import { type CellEdit, FIRST_PLACE, followedEdit, placeAt, rowOfPlace, rowsWithEdit } from './grid-place.ts';
import { useGridRows } from './grid-rows.ts';
import type { GridColumn, StudioRecord } from './record-query.ts';
import { ReferenceText, ValueText } from './value-text.tsx';

const ROW_HEIGHTS = { normal: 40, compact: 30 };
/** Rows from the end of the loaded ones at which more are asked for. */
const ROWS_BEFORE_END = 12;

interface RecordGridProps {
  readonly collection: ServedCollection;
  readonly columns: readonly GridColumn[];
  /** The rows of `edited`. */
  readonly records: readonly StudioRecord[];
  readonly hasMore: boolean;
  readonly sort: string;
  readonly openId: string | undefined;
  readonly selection: Selection;
  readonly edited: EditedCell;
  readonly onSort: (sort: string) => void;
  readonly onOpen: (record: StudioRecord) => void;
  readonly onEnd: () => void;
}

export interface Selection {
  readonly has: (id: string) => boolean;
  readonly isWhole: boolean;
  readonly toggle: (id: string) => void;
  /** Selects all loaded records, or none. */
  readonly toggleAll: () => void;
}

/** The cell that is edited, if there is one, and the rows with its record. */
export interface EditedCell {
  readonly edit: CellEdit | undefined;
  readonly rows: readonly StudioRecord[];
  /** The list has the record no more. */
  readonly isGone: boolean;
  readonly begin: (edit: CellEdit) => void;
  readonly end: () => void;
}

export function useEditedCell(records: readonly StudioRecord[], columns: readonly GridColumn[]): EditedCell {
  const [edit, setEdit] = useState<CellEdit>();
  useEffect(() => setEdit((now) => now && followedEdit(now, records, columns)), [records, columns]);
  const rows = rowsWithEdit(edit, records);
  return { edit, rows, isGone: rows !== records, begin: setEdit, end: () => setEdit(undefined) };
}

export function RecordGrid(props: RecordGridProps): JSX.Element {
  const { collection, columns, records, hasMore, selection, sort, edited, onOpen, onSort } = props;
  const box = useRef<HTMLDivElement>(null);
  const rowHeight = ROW_HEIGHTS[density.value];
  const { rows, focus, move, onFocusIn } = useFocusedRows(box, props, rowHeight);
  useMoreRows(props, rows.end);
  const onKeyDown = (event: KeyboardEvent): void => {
    if (!isCell(event.target)) return;
    const [row, column] = focus;
    const record = records[row];
    const name = columns[column]?.name;
    const step = cellStepOf(event.key, rows.pageRows);
    if (event.key === 'Enter' && editedMember(collection, columns[column], record) !== undefined)
      edited.begin({ record: record!, row, column: name! });
    else if ((event.key === 'Enter' || event.key === 'o') && record !== undefined) onOpen(record);
    else if (event.key === ' ' && record !== undefined) selection.toggle(String(record.id));
    else if (event.key === 'S' && name !== undefined) onSort(nextSort(sortKeys(sort), name, false));
    else if (step === undefined) return;
    else move(row + step[0], column + step[1]);
    event.preventDefault();
  };
  return (
    <div
      ref={box}
      class="grid"
      role="grid"
      tabIndex={-1}
      aria-label={collection.name}
      aria-rowcount={hasMore ? -1 : records.length + 1}
      aria-colcount={columns.length + 1}
      aria-multiselectable="true"
      style={gridTracks(columns, collection)}
      onKeyDown={onKeyDown}
      onFocusIn={onFocusIn}
    >
      <HeaderRow {...props} />
      <div class="rows" role="rowgroup" style={{ height: `${rows.height}px` }}>
        {rows.shown.map(({ index, top }) => (
          <GridRow
            key={records[index]!.id}
            {...props}
            record={records[index]!}
            index={index}
            top={top}
            focusedColumn={focus[0] === index ? focus[1] : undefined}
            editedColumn={editedColumnOf(props, records[index]!)}
            isGone={edited.isGone}
            onEdited={(column) => {
              edited.end();
              move(index, column);
            }}
          />
        ))}
      </div>
    </div>
  );
}

/** The index of the column of the record that is edited; undefined: none is. */
function editedColumnOf({ columns, edited: { edit } }: RecordGridProps, { id }: StudioRecord): number | undefined {
  const index = edit?.record.id === id ? columns.findIndex(({ name }) => name === edit.column) : -1;
  return index === -1 ? undefined : index;
}

/** The cell that the Tab key reaches, and a move of the focus that scrolls it into view. */
function useFocusedRows(box: RefObject<HTMLElement | null>, props: RecordGridProps, rowHeight: number) {
  const { records, columns, edited } = props;
  const [place, setPlace] = useState(FIRST_PLACE);
  const focus: CellPlace = [rowOfPlace(place, records), Math.min(place.column, columns.length - 1)];
  const editedRow = edited.edit === undefined ? -1 : records.findIndex(({ id }) => id === edited.edit?.record.id);
  const rows = useGridRows(box, { count: records.length, rowHeight, keptRows: [focus[0], editedRow] });
  const move = (row: number, column: number): void => {
    const next = placeAt(records, row, Math.min(column, columns.length - 1));
    setPlace(next);
    rows.show(next.row);
    requestAnimationFrame(() => box.current?.querySelector<HTMLElement>('[data-cell][tabindex="0"]')?.focus());
  };
  const onFocusIn = ({ target }: FocusEvent): void => {
    const cell = target instanceof Element ? target.closest<HTMLElement>('[data-cell]')?.dataset.cell : undefined;
    const [row, column] = cell?.split('-').map(Number) ?? [];
    if (row !== undefined && column !== undefined) setPlace(placeAt(records, row, column));
  };
  return { rows, focus, move, onFocusIn };
}

/** Asks for more records when the end of the rows in view is near that of all. */
function useMoreRows({ records, hasMore, onEnd }: RecordGridProps, end: number): void {
  const isNearEnd = hasMore && end >= records.length - ROWS_BEFORE_END;
  useEffect(() => {
    if (isNearEnd) onEnd();
  }, [isNearEnd, records]);
}

type CellPlace = readonly [row: number, column: number];

type CellStep = readonly [down: number, right: number];

/** The way of the focus by a key. */
function cellStepOf(key: string, pageRows: number): CellStep | undefined {
  if (key === 'PageDown') return [pageRows, 0];
  if (key === 'PageUp') return [-pageRows, 0];
  return STEPS[key];
}

const STEPS: Readonly<Record<string, CellStep>> = {
  ArrowDown: [1, 0],
  ArrowUp: [-1, 0],
  ArrowRight: [0, 1],
  ArrowLeft: [0, -1],
  Home: [0, Number.NEGATIVE_INFINITY],
  End: [0, Number.POSITIVE_INFINITY],
};
const isCell = (target: EventTarget | null): boolean => (target as HTMLElement).role === 'gridcell';

function HeaderRow({ collection, columns, sort, selection, onSort }: RecordGridProps): JSX.Element {
  const keys = sortKeys(sort);
  return (
    <div class="header" role="rowgroup">
      <div class="row" role="row" aria-rowindex={1}>
        <div role="columnheader" class="cell select">
          <input
            type="checkbox"
            aria-label={wording.selectAll}
            aria-keyshortcuts="a"
            checked={selection.isWhole}
            onChange={selection.toggleAll}
          />
        </div>
        {columns.map(({ name, type }) => {
          const order = keys.includes(name) ? 'ascending' : keys.includes(`-${name}`) ? 'descending' : 'none';
          return (
            <div key={name} role="columnheader" aria-sort={order} class={classOf(type)}>
              <button
                type="button"
                onClick={(event) => onSort(nextSort(keys, name, event.shiftKey))}
                title={order === 'none' ? undefined : order === 'ascending' ? wording.sortedUp : wording.sortedDown}
              >
                {name}
                <span aria-hidden="true">{order === 'none' ? '' : order === 'ascending' ? ' ↑' : ' ↓'}</span>
              </button>
              <ColumnEdge collection={collection.name} column={name} />
            </div>
          );
        })}
      </div>
    </div>
  );
}

const sortKeys = (sort: string): readonly string[] => (sort === '' ? [] : sort.split(','));

/** Ascending, descending, none. With Shift the other keys stay. */
function nextSort(keys: readonly string[], name: string, isAdded: boolean): string {
  const next = keys.includes(name) ? [`-${name}`] : keys.includes(`-${name}`) ? [] : [name];
  const others = isAdded ? keys.filter((key) => key !== name && key !== `-${name}`) : [];
  return [...others, ...next].slice(0, 4).join(',');
}

/** Dragged with the pointer; the menu of the columns takes a width by the keys. */
function ColumnEdge({ collection, column }: { readonly collection: string; readonly column: string }): JSX.Element {
  return (
    <span
      class="column-edge"
      aria-hidden="true"
      onPointerDown={({ currentTarget: edge, pointerId }) => edge.setPointerCapture(pointerId)}
      onPointerMove={({ currentTarget: edge, pointerId, clientX }) => {
        if (!edge.hasPointerCapture(pointerId)) return;
        const { left, right } = edge.parentElement!.getBoundingClientRect();
        const isRightToLeft = getComputedStyle(edge).direction === 'rtl';
        setWidth(collection, column, isRightToLeft ? right - clientX : clientX - left);
      }}
    />
  );
}

const NUMERIC = new Set(['int', 'float', 'bigint', 'decimal']);
const classOf = (type = ''): string => (NUMERIC.has(type) ? 'cell numeric' : 'cell');

interface GridRowProps extends RecordGridProps {
  readonly record: StudioRecord;
  readonly index: number;
  /** Pixels from the first row. */
  readonly top: number;
  readonly focusedColumn: number | undefined;
  readonly editedColumn: number | undefined;
  readonly isGone: boolean;
  readonly onEdited: (column: number) => void;
}

/** A grid that scrolls draws the rows that come into view, and leaves the others as they are. */
function GridRow(props: GridRowProps): JSX.Element {
  const { collection, columns, record, index, top, focusedColumn, openId, selection, onOpen, editedColumn } = props;
  const isGone = editedColumn !== undefined && props.isGone;
  return useMemo(
    () => <DrawnRow {...props} />,
    [collection, columns, record, index, top, focusedColumn, openId, selection, onOpen, editedColumn, isGone],
  );
}

function DrawnRow(props: GridRowProps): JSX.Element {
  const { collection, columns, record, index, top, focusedColumn, openId, selection, onOpen } = props;
  const { editedColumn, isGone, onEdited } = props;
  const member = editedColumn === undefined ? undefined : editedMember(collection, columns[editedColumn], record);
  const id = String(record.id);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the grid
    <div
      class={`row${id === openId ? ' open' : ''}${member === undefined ? '' : ' edited'}`}
      role="row"
      tabIndex={-1}
      aria-rowindex={index + 2}
      aria-selected={selection.has(id)}
      style={{ transform: `translateY(${top}px)` }}
      onClick={(event) => {
        if (event.target instanceof Element && event.target.closest('a, button, .select, .editor-cell') === null)
          onOpen(record);
      }}
    >
      <div role="gridcell" class="cell select">
        <input
          type="checkbox"
          tabIndex={-1}
          aria-label={`${wording.select} ${index + 1}`}
          checked={selection.has(id)}
          onChange={() => selection.toggle(id)}
        />
      </div>
      {columns.map((column, i) => (
        <div
          key={column.name}
          role="gridcell"
          class={`${classOf(column.type)}${flashOf(record, column)}`}
          data-cell={`${index}-${i}`}
          tabIndex={focusedColumn === i ? 0 : -1}
        >
          <CellValue record={record} column={column} />
        </div>
      ))}
      {member !== undefined && (
        <div role="gridcell" class="editor-cell" style={{ gridColumn: editedColumn! + 2 }}>
          <CellEditor {...{ collection, member, record, isGone }} onClose={() => onEdited(editedColumn!)} />
        </div>
      )}
    </div>
  );
}

/** Another animation for each change, so that a cell that keeps the focus flashes again. */
function flashOf(record: StudioRecord, { name }: GridColumn): string {
  const changes = marksOf(record);
  return changes?.names.has(name) === true ? ` flash ${changes.at % 2 === 0 ? 'flash-even' : 'flash-odd'}` : '';
}

function CellValue({ record, column: { name, type, reference } }: { record: StudioRecord; column: GridColumn }) {
  if (reference === undefined) return <ValueText value={record[name]} type={type} />;
  const { collection } = reference;
  return (
    <ReferenceText record={record} name={name} collection={collection} title={collectionNamed(collection)?.title} />
  );
}
