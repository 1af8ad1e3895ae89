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
import { useGridRows } from './grid-rows.ts';
import type { GridColumn, StudioRecord } from './record-query.ts';
import { ReferenceText, ValueText } from './value-text.tsx';

const ROW_HEIGHTS = { normal: 40, compact: 30 };
/** Rows from the end of the loaded ones at which more are asked for. */
const ROWS_BEFORE_END = 12;

interface RecordGridProps {
  readonly collection: ServedCollection;
  readonly columns: readonly GridColumn[];
  readonly records: readonly StudioRecord[];
  readonly hasMore: boolean;
  readonly sort: string;
  readonly openId: string | undefined;
  readonly selection: Selection;
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

export function RecordGrid(props: RecordGridProps): JSX.Element {
  const { collection, columns, records, hasMore, selection, sort, onOpen, onSort } = props;
  const box = useRef<HTMLDivElement>(null);
  const rowHeight = ROW_HEIGHTS[density.value];
  const { rows, focus, move } = useFocusedRows(box, props, rowHeight);
  const [editing, setEditing] = useState<CellPlace>();
  useMoreRows(props, rows.end);
  const onKeyDown = (event: KeyboardEvent): void => {
    if (!isCell(event.target)) return;
    const [row, column] = focus;
    const record = records[row];
    const step = cellStepOf(event.key, rows.pageRows);
    const isEditable = editedMember(collection, columns[column], record) !== undefined;
    if (event.key === 'Enter' && isEditable) setEditing(focus);
    else if ((event.key === 'Enter' || event.key === 'o') && record !== undefined) onOpen(record);
    else if (event.key === ' ' && record !== undefined) selection.toggle(String(record.id));
    else if (event.key === 'S' && columns[column] !== undefined)
      onSort(nextSort(sortKeys(sort), columns[column].name, false));
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
            editedColumn={editing?.[0] === index ? editing[1] : undefined}
            onEdited={() => {
              setEditing(undefined);
              move(...focus);
            }}
          />
        ))}
      </div>
    </div>
  );
}

/** The cell that the Tab key reaches, and a move of the focus that scrolls it into view. */
function useFocusedRows(box: RefObject<HTMLElement | null>, { records, columns }: RecordGridProps, rowHeight: number) {
  const [focus, setFocus] = useState<CellPlace>([0, 0]);
  const rows = useGridRows(box, { count: records.length, rowHeight, focusedRow: focus[0] });
  const move = (row: number, column: number): void => {
    const next: CellPlace = [clamp(row, records.length - 1), clamp(column, columns.length - 1)];
    setFocus(next);
    rows.show(next[0]);
    requestAnimationFrame(() => cellAt(box.current, next)?.focus());
  };
  return { rows, focus, move };
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
const clamp = (value: number, most: number): number => Math.max(0, Math.min(value, most));
const isCell = (target: EventTarget | null): boolean => (target as HTMLElement).role === 'gridcell';
const cellAt = (box: HTMLElement | null, [row, column]: CellPlace): HTMLElement | null | undefined =>
  box?.querySelector<HTMLElement>(`[data-cell="${row}-${column}"]`);

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
  readonly onEdited: () => void;
}

/** A grid that scrolls draws the rows that come into view, and leaves the others as they are. */
function GridRow(props: GridRowProps): JSX.Element {
  const { collection, columns, record, index, top, focusedColumn, openId, selection, onOpen, editedColumn } = props;
  return useMemo(
    () => <DrawnRow {...props} />,
    [collection, columns, record, index, top, focusedColumn, openId, selection, onOpen, editedColumn],
  );
}

function DrawnRow(props: GridRowProps): JSX.Element {
  const { collection, columns, record, index, top, focusedColumn, openId, selection, onOpen, editedColumn, onEdited } =
    props;
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
          <CellEditor collection={collection} member={member} record={record} onClose={onEdited} />
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
