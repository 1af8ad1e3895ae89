/** The widths of columns that a person chose, in pixels. This device keeps them. */
import { signal } from '@preact/signals';
import { keep, kept } from '../../app/preferences.ts';
import type { ServedCollection } from '../../data/schema-answer.ts';
import type { GridColumn } from './record-query.ts';

type Widths = Readonly<Record<string, number>>;

const LEAST_PIXELS = 48;
const MOST_PIXELS = 1_200;
const chosenWidths = signal<Readonly<Record<string, Widths>>>({});

const keyOfWidths = (collection: string): string => `widths:${collection}`;

function keptWidths(collection: string): Widths {
  try {
    return JSON.parse(kept(keyOfWidths(collection)) ?? '{}') as Widths;
  } catch {
    return {};
  }
}

export const widthsOf = (collection: string): Widths => chosenWidths.value[collection] ?? keptWidths(collection);

/** @param pixels undefined: the width of the type again */
export function setWidth(collection: string, column: string, pixels: number | undefined): void {
  const { [column]: _, ...others } = widthsOf(collection);
  const width =
    pixels === undefined ? {} : { [column]: Math.round(Math.max(LEAST_PIXELS, Math.min(MOST_PIXELS, pixels))) };
  const widths = { ...others, ...width };
  chosenWidths.value = { ...chosenWidths.value, [collection]: widths };
  keep(keyOfWidths(collection), JSON.stringify(widths));
}

const WIDTHS: Readonly<Record<string, string>> = {
  id: '20rem',
  uuid: '20rem',
  bool: '6rem',
  int: '7rem',
  float: '8rem',
  datetime: '14rem',
  date: '8rem',
  time: '8rem',
};

/** The least width of a column that takes a part of what is left. */
const flexibleWidth = (isTitle: boolean): string => (isTitle ? '12rem' : '9rem');
const SELECTION_WIDTH = '2.5rem';

/** The tracks of every row, and the width below which the grid scrolls, as variables of its style. */
export function gridTracks(
  columns: readonly GridColumn[],
  { name: collection, title }: ServedCollection,
): Readonly<Record<`--${string}`, string>> {
  const widths = widthsOf(collection);
  const fixedWidth = ({ name, type = '' }: GridColumn): string | undefined =>
    widths[name] === undefined ? WIDTHS[type] : `${widths[name]}px`;
  const least = columns.map((column) => fixedWidth(column) ?? flexibleWidth(column.name === title));
  const tracks = columns.map((column, i) =>
    fixedWidth(column) === undefined ? `minmax(${least[i]}, ${column.name === title ? 2 : 1}fr)` : least[i],
  );
  return {
    '--tracks': [SELECTION_WIDTH, ...tracks].join(' '),
    '--least-width': `calc(${[SELECTION_WIDTH, ...least].join(' + ')})`,
  };
}
