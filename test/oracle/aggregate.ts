/** Groups and measures by their definition, in exact arithmetic. */
import type { CatalogCollection, Row, ScalarType } from '../../src/policy/types.ts';
import { compared, ranked, sortedBy } from './order.ts';

export interface Aggregation {
  readonly group_by: readonly string[];
  readonly measures: Readonly<Record<string, string>>;
  readonly sort: readonly string[];
  /** A bound that a measure must be above. */
  readonly having?: string;
}

/** A cell as it is shown, and the value that it is sorted by. */
interface Cell {
  readonly shown: unknown;
  readonly order: unknown;
  readonly isBeyond?: boolean;
}
type Line = ReadonlyMap<string, Cell>;

/** All rows of the answer. @param rows as the caller sees them */
export function aggregated(
  rows: readonly Row[],
  { group_by: groups, measures, sort, having }: Aggregation,
  { fields }: CatalogCollection,
): readonly Row[] {
  const keyOf = (row: Row): string => JSON.stringify(groups.map((group) => groupValue(row, group)));
  const sets = groups.length === 0 ? [rows] : [...Map.groupBy(rows, keyOf).values()];
  const lines = sets.map((set): Line => {
    const named = groups.map((group) => [group, typed(groupValue(set[0]!, group), fields.get(group)?.type)] as const);
    const measured = Object.entries(measures).map(
      ([name, measure]) => [name, measureCell(set, measure, (field) => fields.get(field)!.type)] as const,
    );
    return new Map([...named, ...measured]);
  });
  const kept = having === undefined ? lines : lines.filter((line) => isAbove(line, having));
  const keys = [...sort, ...groups.filter((group) => !sort.includes(group) && !sort.includes(`-${group}`))];
  return kept.toSorted((a, b) => orderOf(a, b, keys)).map(shownLine);
}

/** @param having such as `m0 > 2` */
function isAbove(line: Line, having: string): boolean {
  const [name, , bound] = having.split(' ');
  const { shown } = line.get(name!)!;
  return shown !== null && Number(shown) > Number(bound);
}

function orderOf(a: Line, b: Line, keys: readonly string[]): number {
  for (const key of keys) {
    const name = key.replace(/^-/, '');
    const order = ranked(a.get(name)!.order, b.get(name)!.order, key.startsWith('-') ? -1 : 1);
    if (order !== 0) return order;
  }
  return 0;
}

function shownLine(line: Line): Row {
  const beyond = [...line].filter(([, { isBeyond }]) => isBeyond);
  const errors = beyond.map(([measure]) => ({ measure, code: 'out_of_range' }));
  const members = [...line].map(([name, { shown }]) => [name, shown]);
  return { ...Object.fromEntries(members), ...(errors.length > 0 && { errors }) };
}

const PART_LENGTHS: Readonly<Record<string, number>> = { year: 4, month: 7, day: 10, hour: 13 };
const DAY = 24 * 60 * 60 * 1000;

/** 1 is Monday. */
const weekdayOf = (time: number): number => new Date(time).getUTCDay() || 7;

/** ISO 8601: the week of a day is in the year of its Thursday. */
function weekOf(text: string): string {
  const day = Date.parse(`${text.slice(0, 10)}T00:00:00Z`);
  const thursday = new Date(day + (4 - weekdayOf(day)) * DAY);
  const first = new Date(thursday);
  first.setUTCMonth(0, 1);
  const week = Math.floor((thursday.getTime() - first.getTime()) / (7 * DAY)) + 1;
  return `${String(thursday.getUTCFullYear()).padStart(4, '0')}-W${String(week).padStart(2, '0')}`;
}

function periodOf(part: string, text: string): unknown {
  if (part === 'week') return weekOf(text);
  return part === 'weekday'
    ? weekdayOf(Date.parse(`${text.slice(0, 10)}T00:00:00Z`))
    : text.slice(0, PART_LENGTHS[part]);
}

function groupValue(row: Row, group: string): unknown {
  const [, part, field] = /^(\w+)\((\w+)\)$/.exec(group) ?? [];
  const value = row[field ?? group] ?? null;
  if (part !== undefined && value !== null) return periodOf(part, String(value));
  return unsigned(value);
}

/** Zero has one sign. */
const unsigned = (value: unknown): unknown => (value === 0 ? 0 : value);
const typed = (value: unknown, type: ScalarType | undefined): Cell => ({
  shown: unsigned(value),
  order: sortedBy(value, type),
});
const plain = (value: unknown): Cell => ({ shown: unsigned(value), order: value });

function measureCell(rows: readonly Row[], measure: string, typeOf: (field: string) => ScalarType): Cell {
  if (measure === 'count') return plain(rows.length);
  const [, kind, field = ''] = /^(\w+)\((?:distinct )?(\w+)\)$/.exec(measure)!;
  const values = rows.map((row) => row[field] ?? null).filter((value) => value !== null);
  if (kind === 'count') return plain(new Set(values.map((value) => (value === 0 ? 0 : value))).size);
  if (values.length === 0) return plain(null);
  if (kind === 'min' || kind === 'max') {
    const sign = kind === 'min' ? 1 : -1;
    const type = typeOf(field);
    return typed(values.toSorted((a, b) => sign * compared(sortedBy(a, type), sortedBy(b, type)))[0], type);
  }
  const sum = (values as (number | string)[]).reduce((total, value) => total + exact(value), 0n);
  return kind === 'sum' ? sumCell(sum, typeOf(field)) : averageCell(sum, BigInt(values.length));
}

/** Decimals of an exact value: more than the least double has. */
const SCALE = 360;

/** A double by its shortest decimals, as an integer of units of 10^-SCALE. */
function exact(value: number | string): bigint {
  const [, sign, whole, fraction = '', exponent = '0'] = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(String(value))!;
  const zeros = SCALE + Number(exponent) - fraction.length;
  return BigInt(`${sign}${whole}${fraction}${'0'.repeat(zeros)}`);
}

function sumCell(sum: bigint, type: ScalarType): Cell {
  if (type === 'bigint') return { shown: String(sum / 10n ** BigInt(SCALE)), order: sum };
  const value = Number(`${sum}e-${SCALE}`);
  const isBeyond = type === 'int' ? !Number.isSafeInteger(value) : !Number.isFinite(value);
  return { shown: isBeyond ? null : unsigned(value), order: sum, isBeyond };
}

/** With as many decimals more as a sum has, so that the division rounds nothing that a double shows. */
function averageCell(sum: bigint, count: bigint): Cell {
  const quotient = (sum * 10n ** BigInt(SCALE)) / count;
  return { shown: unsigned(Number(`${quotient}e-${2 * SCALE}`)), order: quotient };
}
