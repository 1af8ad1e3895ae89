/**
 * The grid of a collection. Only the rows in view are in the document: every row has the same height. The arrow keys move
 * one focus through the cells (WAI-ARIA grid).
 */
import type { JSX, RefObject } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { density } from '../../app/preferences.ts';
import { collectionNamed } from '../../app/session-state.ts';
import type { ServedCollection } from '../../data/schema-answer.ts';
import { wording } from '../../wording.ts';
import { CellEditor, editedMember } from './cell-editor.tsx';
import { columnTracks, setWidth } from './column-widths.ts';
import type { GridColumn, StudioRecord } from './record-query.ts';
import { ReferenceText, ValueText } from './value-text.tsx';

const ROW_HEIGHTS = { normal: 40, compact: 30 };
/** Rows before and after those in view. */
const SPARE_ROWS = 6;

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

interface GridView {
  readonly top: number;
  readonly height: number;
}

export function RecordGrid(props: RecordGridProps): JSX.Element {
  const { collection, columns, records, hasMore, selection, onOpen } = props;
  const box = useRef<HTMLDivElement>(null);
  const rowHeight = ROW_HEIGHTS[density.value];
  const [view, readView] = useView(box);
  const [focus, move] = useCellFocus(box, rowHeight, { rows: records.length, columns: columns.length });
  const [editing, setEditing] = useState<CellPlace>();
  const [first, last] = rowsInView(view, rowHeight, records.length);
  useMoreRows(props, last);
  const onKeyDown = (event: KeyboardEvent): void => {
    if (!isCell(event.target)) return;
    const record = records[focus[0]];
    const step = STEPS[event.key];
    const isEditable = editedMember(collection, columns[focus[1]], record) !== undefined;
    if (event.key === 'Enter' && isEditable) setEditing(focus);
    else if ((event.key === 'Enter' || event.key === 'o') && record !== undefined) onOpen(record);
    else if (event.key === ' ' && record !== undefined) selection.toggle(String(record.id));
    else if (step === undefined) return;
    else {
      const [down, right] = step;
      move(focus[0] + rowStep(down, view, rowHeight), focus[1] + right);
    }
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
      onScroll={readView}
      onKeyDown={onKeyDown}
    >
      <HeaderRow {...props} />
      <div class="rows" role="rowgroup" style={{ height: `${records.length * rowHeight}px` }}>
        {records.slice(first, last).map((record, i) => (
          <GridRow
            key={record.id}
            {...props}
            record={record}
            index={first + i}
            focus={focus}
            height={rowHeight}
            editedColumn={editing?.[0] === first + i ? editing[1] : undefined}
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

/** Asks for more records when the last drawn row is near the end. */
function useMoreRows({ records, hasMore, onEnd }: RecordGridProps, last: number): void {
  const isNearEnd = hasMore && last >= records.length - SPARE_ROWS;
  useEffect(() => {
    if (isNearEnd) onEnd();
  }, [isNearEnd, records.length]);
}

/** The range of rows to draw: those in view, with some before and after. */
function rowsInView(
  { top, height }: GridView,
  rowHeight: number,
  count: number,
): readonly [first: number, end: number] {
  const first = Math.max(0, Math.floor(top / rowHeight) - SPARE_ROWS);
  return [first, Math.min(count, Math.ceil((top + height) / rowHeight) + SPARE_ROWS)];
}

/** The rows that a key moves the focus by: a page is as long as the view. */
function rowStep(down: number, { height }: GridView, rowHeight: number): number {
  const pageRows = Math.max(1, Math.floor(height / rowHeight) - 2);
  return Math.abs(down) === PAGE_STEP ? Math.sign(down) * pageRows : down;
}

type GridBox = RefObject<HTMLDivElement | null>;

/** The part of the grid that is in view, kept with scrolling and with the size of the window. */
function useView(box: GridBox): readonly [view: GridView, read: () => void] {
  const [view, setView] = useState<GridView>({ top: 0, height: 600 });
  const read = (): void => {
    const { scrollTop, clientHeight } = box.current!;
    setView({ top: scrollTop, height: clientHeight });
  };
  useLayoutEffect(() => {
    const observer = new ResizeObserver(read);
    observer.observe(box.current!);
    return () => observer.disconnect();
  }, []);
  return [view, read];
}

type CellPlace = readonly [row: number, column: number];
interface GridSize {
  readonly rows: number;
  readonly columns: number;
}

/** The cell that the Tab key reaches, and a move of the focus that scrolls it into view. */
function useCellFocus(box: GridBox, rowHeight: number, size: GridSize) {
  const [focus, setFocus] = useState<CellPlace>([0, 0]);
  const move = (row: number, column: number): void => {
    const next: CellPlace = [clamp(row, size.rows - 1), clamp(column, size.columns - 1)];
    setFocus(next);
    const grid = box.current!;
    const top = next[0] * rowHeight;
    if (top < grid.scrollTop) grid.scrollTop = top;
    // The header covers a row.
    const bottom = top + 2 * rowHeight - grid.clientHeight;
    if (bottom > grid.scrollTop) grid.scrollTop = bottom;
    requestAnimationFrame(() => cellAt(grid, next)?.focus());
  };
  return [focus, move] as const;
}

const PAGE_STEP = 1_000;
const STEPS: Readonly<Record<string, readonly [down: number, right: number]>> = {
  ArrowDown: [1, 0],
  ArrowUp: [-1, 0],
  ArrowRight: [0, 1],
  ArrowLeft: [0, -1],
  PageDown: [PAGE_STEP, 0],
  PageUp: [-PAGE_STEP, 0],
  Home: [0, -PAGE_STEP],
  End: [0, PAGE_STEP],
};
const clamp = (value: number, most: number): number => Math.max(0, Math.min(value, most));
const isCell = (target: EventTarget | null): boolean => (target as HTMLElement).role === 'gridcell';
const cellAt = (box: HTMLElement, [row, column]: CellPlace): HTMLElement | null =>
  box.querySelector(`[data-cell="${row}-${column}"]`);

function HeaderRow({ collection, columns, sort, selection, onSort }: RecordGridProps): JSX.Element {
  const keys = sort === '' ? [] : sort.split(',');
  return (
    <div class="header" role="rowgroup">
      <div class="row" role="row" aria-rowindex={1} style={{ gridTemplateColumns: columnTracks(columns, collection) }}>
        <div role="columnheader" class="cell select">
          <input
            type="checkbox"
            aria-label={wording.selectAll}
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
  readonly focus: CellPlace;
  readonly height: number;
  readonly editedColumn: number | undefined;
  readonly onEdited: () => void;
}

function GridRow(props: GridRowProps): JSX.Element {
  const { collection, columns, record, index, focus, height, openId, selection, onOpen, editedColumn, onEdited } =
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
      style={{
        gridTemplateColumns: columnTracks(columns, collection),
        transform: `translateY(${index * height}px)`,
      }}
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
          tabIndex={focus[0] === index && focus[1] === i ? 0 : -1}
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
function flashOf({ changes }: StudioRecord, { name }: GridColumn): string {
  return changes?.names.has(name) === true ? ` flash ${changes.at % 2 === 0 ? 'flash-even' : 'flash-odd'}` : '';
}

function CellValue({ record, column: { name, type, reference } }: { record: StudioRecord; column: GridColumn }) {
  if (reference === undefined) return <ValueText value={record[name]} type={type} />;
  const { collection } = reference;
  return (
    <ReferenceText record={record} name={name} collection={collection} title={collectionNamed(collection)?.title} />
  );
}
