/** The data of records that are not there, for the rules of `create`. */
import type { ServedCollection, ServedField } from '../../data/schema-answer.ts';

type MadeUpData = Readonly<Record<string, unknown>>;

/** A value for each field that a create has to give. References have to name a record: they are left out. */
export const madeUpRecord = ({ fields }: ServedCollection): MadeUpData =>
  Object.fromEntries(
    fields
      .filter(
        ({ required, read_only: isReadOnly, default: otherwise }) => required && !isReadOnly && otherwise === undefined,
      )
      .map((field) => [field.name, sampleOf(field)]),
  );

const SAMPLES: Readonly<Record<string, unknown>> = {
  bool: false,
  datetime: '2026-01-01T12:00:00Z',
  date: '2026-01-01',
  time: '12:00:00',
  uuid: '01900000-0000-7000-8000-000000000000',
  decimal: '1',
  bigint: '1',
  json: {},
};

function sampleOf({ name, type, enum: choices, min }: ServedField): unknown {
  if (choices !== undefined) return choices[0];
  if (min !== undefined && type !== 'string') return min;
  if (type === 'int' || type === 'float') return 1;
  return Object.hasOwn(SAMPLES, type) ? SAMPLES[type] : name;
}

/** Undefined: the text is not a JSON object. */
export function dataOf(text: string): MadeUpData | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as MadeUpData) : undefined;
  } catch {
    return undefined;
  }
}
