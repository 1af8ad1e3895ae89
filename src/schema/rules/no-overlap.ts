/** `no_overlap` of the file → the key of the model: records of one place do not overlap in time. */
import { hintOf, nearest } from '../../../grammar/suggest.ts';
import { describeType, type ScalarType } from '../../policy/scalar-types.ts';
import type { DocumentPath } from '../file/issue.ts';
import type { CollectionShape } from '../file/shape.ts';
import type { Bare } from '../model/collections.ts';
import { type BelongsTo, type Field, type NoOverlap, PERIOD_RANGES } from '../model/model.ts';
import { readCondition, type UniqueReading } from './unique-conditions.ts';

/** Types whose values have one text each, under all settings of a session. */
const PLACES: ReadonlySet<ScalarType> = new Set(['string', 'int', 'bigint', 'bool', 'uuid']);

export function readNoOverlap(
  collection: Bare,
  shape: CollectionShape | undefined,
  reading: UniqueReading,
): Pick<Bare, 'noOverlap'> {
  const declared = shape?.no_overlap;
  if (declared === undefined) return {};
  const path = ['collections', collection.name, 'no_overlap'];
  if (!Array.isArray(declared)) return { noOverlap: readOverlapKey(collection, declared, { ...reading, path }) };
  const seen = new Set<string>();
  for (const [i, { on, from, to, where }] of declared.entries()) {
    const key = JSON.stringify([on, from, to, where]);
    const message = 'this place is in the list already; remove one of the two';
    if (seen.has(key)) reading.source.report({ code: 'no_overlap_twice', message, path: [...path, i] });
    seen.add(key);
  }
  return {
    noOverlap: declared.flatMap((key, i) => readOverlapKey(collection, key, { ...reading, path: [...path, i] })),
  };
}

type KeyShape = Exclude<NonNullable<CollectionShape['no_overlap']>, readonly unknown[]>;

/** None if an error is reported. */
function readOverlapKey(
  collection: Bare,
  declared: KeyShape,
  { path, ...reading }: UniqueReading & { readonly path: DocumentPath },
): readonly NoOverlap[] {
  const reader = new OverlapReader(collection, path, reading);
  const on = declared.on.flatMap((name, i) => reader.place(name, [...path, 'on', i]) ?? []);
  const [from, to] = (['from', 'to'] as const).map((key) => reader.time(declared[key], [...path, key]));
  if (from === undefined || to === undefined || on.length < declared.on.length) return [];
  if (from.type !== to.type) reader.reportTypes(from, to);
  const { where: text } = declared;
  const at = { ...reading, collection: collection.name, path: [...path, 'where'] };
  const where = text === undefined ? undefined : readCondition(text, at);
  return [{ on, from, to, ...(where !== undefined && { where }) }];
}

class OverlapReader {
  readonly #collection: Bare;
  readonly #path: DocumentPath;
  readonly #reading: UniqueReading;

  constructor(collection: Bare, path: DocumentPath, reading: UniqueReading) {
    this.#collection = collection;
    this.#path = path;
    this.#reading = reading;
  }

  place(name: string, path: DocumentPath): Field | BelongsTo | undefined {
    const { fields, relations } = this.#collection;
    const field = fields.get(name);
    if (field !== undefined && PLACES.has(field.type)) return field;
    const relation = relations.get(name);
    if (relation?.kind === 'belongs_to' && relation.references === undefined) return relation;
    if (relation?.kind === 'belongs_to') return this.#reportReferences(name, path);
    if (field === undefined && relation === undefined) return this.#unknown(name, path);
    const found = field === undefined ? `a ${relation!.kind}` : describeType(field.type);
    const message = `expected a belongs_to, or a field of the type ${[...PLACES].join(', ')}; \`${name}\` is ${found}`;
    return this.#reading.source.report({ code: 'no_overlap_on', message, path });
  }

  #reportReferences(name: string, path: DocumentPath): undefined {
    const message = `\`${name}\` has values of another field (\`references\`), and a place is the id of a record; name a field instead`;
    return this.#reading.source.report({ code: 'no_overlap_on', message, path });
  }

  time(name: string, path: DocumentPath): Field | undefined {
    const field = this.#collection.fields.get(name);
    if (field === undefined) return this.#unknown(name, path);
    if (PERIOD_RANGES.has(field.type)) return field;
    const expected = [...PERIOD_RANGES.keys()].join(', ');
    const message = `expected a field of the type ${expected}; \`${name}\` is ${describeType(field.type)}`;
    return this.#reading.source.report({ code: 'no_overlap_time', message, path });
  }

  reportTypes(from: Field, to: Field): void {
    const message = `\`${from.name}\` is ${describeType(from.type)}, and \`${to.name}\` is ${describeType(to.type)}; expected one type`;
    this.#reading.source.report({ code: 'no_overlap_time', message, path: [...this.#path, 'to'] });
  }

  #unknown(name: string, path: DocumentPath): undefined {
    const { name: collection, fields, relations } = this.#collection;
    if (this.#reading.broken.has(name)) return undefined;
    const near = nearest(name, [...fields.keys(), ...relations.keys()]);
    const message = `\`${collection}\` has no member \`${name}\`${hintOf(near)}`;
    return this.#reading.source.report({ code: 'unknown_field', message, path, replacement: near });
  }
}
