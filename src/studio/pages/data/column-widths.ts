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

const flexible = (isTitle: boolean): string => (isTitle ? 'minmax(12rem, 2fr)' : 'minmax(9rem, 1fr)');

/** The tracks of a row: the box of the selection, and the columns. */
export function columnTracks(columns: readonly GridColumn[], { name: collection, title }: ServedCollection): string {
  const widths = widthsOf(collection);
  const track = ({ name, type = '' }: GridColumn): string =>
    widths[name] === undefined ? (WIDTHS[type] ?? flexible(name === title)) : `${widths[name]}px`;
  return ['2.5rem', ...columns.map(track)].join(' ');
}
