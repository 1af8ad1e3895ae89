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
  bytes: '',
  point: { lat: 0, lng: 0 },
};

type SampledField = Pick<ServedField, 'name' | 'type' | 'enum' | 'min' | 'max'>;

function sampleOf({ name, type, enum: choices, min, max }: SampledField): unknown {
  if (type.endsWith('[]'))
    return Array.from({ length: Number(min ?? 0) }, () => sampleOf({ name, type: type.slice(0, -'[]'.length) }));
  if (choices !== undefined) return choices[0];
  if (type === 'string') return name.padEnd(Number(min ?? 0), '-').slice(0, Number(max ?? Infinity));
  const bound = min ?? max;
  if (bound !== undefined) return bound;
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
