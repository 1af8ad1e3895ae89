/** The rows of a grid that are in the document: those in view, some beside them, and the rows of the focus and of an editor. */
import {
  defaultRangeExtractor,
  elementScroll,
  observeElementOffset,
  observeElementRect,
  type Range,
  Virtualizer,
} from '@tanstack/virtual-core';
import type { RefObject } from 'preact';
import { useLayoutEffect, useReducer, useState } from 'preact/hooks';

/** Rows before and after those in view. */
const SPARE_ROWS = 6;
/** Before the box has a size. */
const FIRST_RECT = { width: 0, height: 600 };

interface GridSize {
  readonly count: number;
  /** Pixels of each row, and of the header above them. */
  readonly rowHeight: number;
  /** These stay in the document. A negative one is none. */
  readonly keptRows: readonly number[];
}
export interface GridRows {
  /** Pixels of all rows together. */
  readonly height: number;
  /** From the top of the first row. */
  readonly shown: readonly { readonly index: number; readonly top: number }[];
  /** The index after the last row in view. */
  readonly end: number;
  /** Rows that fit into the view. */
  readonly pageRows: number;
  /** Scrolls the row into view, if it is not. */
  readonly show: (row: number) => void;
}

export function useGridRows(box: RefObject<HTMLElement | null>, { count, rowHeight, keptRows }: GridSize): GridRows {
  const [, redraw] = useReducer((round: number) => round + 1, 0);
  const options = {
    count,
    estimateSize: () => rowHeight,
    // The header stays at the top of the box, before the rows and above them.
    scrollMargin: rowHeight,
    scrollPaddingStart: rowHeight,
    overscan: SPARE_ROWS,
    initialRect: FIRST_RECT,
    rangeExtractor: (range: Range) => withRows(defaultRangeExtractor(range), keptRows, count),
    getScrollElement: () => box.current,
    observeElementRect,
    observeElementOffset,
    scrollToFn: elementScroll,
    onChange: () => redraw(undefined),
  };
  const [rows] = useState(() => new Virtualizer<HTMLElement, HTMLElement>(options));
  rows.setOptions(options);
  useLayoutEffect(() => rows._didMount(), []);
  useLayoutEffect(() => rows._willUpdate());
  const shown = rows.getVirtualItems().map(({ index, start }) => ({ index, top: start - rowHeight }));
  const inView = rows.scrollRect ?? FIRST_RECT;
  return {
    height: rows.getTotalSize(),
    shown,
    end: (rows.range?.endIndex ?? -1) + 1,
    pageRows: Math.max(1, Math.floor(inView.height / rowHeight) - 2),
    show: (row) => rows.scrollToIndex(row),
  };
}

/** The row of the focus stays in the document, so that Tab comes back to its cell, and that of an editor with its text. */
function withRows(indexes: readonly number[], kept: readonly number[], count: number): number[] {
  const all = new Set([...indexes, ...kept.filter((row) => row >= 0 && row < count)]);
  return [...all].toSorted((a, b) => a - b);
}
