/** The record that a write would produce, as policies in the process see it. Runs without Node and without a database. */

import type { Row } from '../../policy/types.ts';
import { STAMPS } from '../../policy/types.ts';
import type { Scalar } from '../../policy/values.ts';
import type { ErrorDetail } from '../../problem.ts';
import type { Collection } from '../../schema/model/model.ts';
import type { AccessContext, Store } from '../access-context.ts';
import { recordKeyIn, recordKeyOf } from '../record-key.ts';
import {
  type ColumnValue,
  type Data,
  type HasOneSetting,
  type Input,
  type LinkChange,
  type ReferencedId,
  readInput,
  type ServerValues,
} from './input.ts';
import type { CollectionOf, MemberChange, PartnerChange, Writing } from './written-row.ts';

/** A write under a schema. */
interface InProcessWrite {
  readonly access: AccessContext;
  readonly store: Pick<Store, 'schema'>;
}

export interface PlannedWrite {
  readonly writing: Writing;
  /** The record as it would be stored, with the ids of its partners and members. */
  readonly written: Row;
  readonly errors: readonly ErrorDetail[];
  /** The records of other collections that the data name. */
  readonly references: readonly ReferencedId[];
}

export function plannedCreate({ access, store }: InProcessWrite, data: Data): PlannedWrite {
  const { collection } = access;
  const input = readInput(store.schema, access, { mode: 'create', ...askedCreate(collection, data) });
  const id = input.id ?? recordKeyOf(collection).unused;
  const writing = newRecord(access, id, input);
  const written = createdRow({ schema: store.schema, collection }, id, writing);
  return { writing, errors: input.errors, references: input.references, written };
}

const OF_NO_BYTES: ServerValues = {
  content_type: 'application/octet-stream',
  size: 0,
  sha256: 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
};

/** The data of a create that is asked about, and the values that its upload would set. */
export const askedCreate = (
  { kind }: Collection,
  data: Data,
): { readonly data: Data; readonly given?: ServerValues } =>
  kind === 'files' ? { data: { name: 'file', ...data }, given: OF_NO_BYTES } : { data };

/** The whole write of a create. */
export const newRecord = (
  { collection, now }: AccessContext,
  id: string,
  { values, links, hasOnes }: Input,
): Writing => ({
  values: [keyValueOf(collection, id), ...stampsOf(collection, now), ...values],
  members: links.map(firstMembersOf),
  partners: hasOnes.map(firstPartnerOf),
});

function keyValueOf(collection: Collection, id: string): ColumnValue {
  const { column, type } = recordKeyOf(collection);
  return { column, type, value: id };
}

const stampsOf = ({ fields }: Collection, now: string): readonly ColumnValue[] =>
  STAMPS.flatMap((name) => {
    const field = fields.get(name);
    return field === undefined ? [] : [{ column: field.column, type: 'timestamptz', value: now }];
  });

/** The change of a record that does not exist yet. */
const firstMembersOf = ({ relation, set, add }: LinkChange): MemberChange => ({
  relation,
  joining: set ?? add,
  leaving: [],
});

/** The change of a record that does not exist yet. */
const firstPartnerOf = (setting: HasOneSetting): PartnerChange => ({ ...setting, partner: setting.id });

/** A new record as policies see it, with the ids of its partners and members. */
export function createdRow(of: CollectionOf, id: string, writing: Writing): Row {
  const { collection } = of;
  const before: Record<string, unknown> = {};
  for (const { kind, name } of collection.relations.values()) {
    if (kind === 'has_one') before[name] = null;
    if (kind === 'many_to_many') before[name] = [];
  }
  const stored = storedRow(collection, writing, true);
  return { id: recordKeyOf(collection).value(id), ...stored, ...changedBy(of, before, writing) };
}

/** The members with a column that the write sets, as policies see them; of a new record, all. */
export function storedRow({ fields, relations }: Collection, { values }: Writing, isNew: boolean): Row {
  const byColumn = new Map(values.map(({ column, value }) => [column, value]));
  const row: Record<string, unknown> = {};
  for (const member of [...fields.values(), ...relations.values()]) {
    if ('column' in member && (isNew || byColumn.has(member.column)))
      row[member.name] = byColumn.get(member.column) ?? null;
  }
  return row;
}

/** Partners and members by relation, after the write. */
export function changedBy({ schema }: Pick<CollectionOf, 'schema'>, held: Row, { members, partners }: Writing): Row {
  const after: Record<string, unknown> = { ...held };
  for (const { relation, partner } of partners)
    after[relation.name] = partner === null ? null : recordKeyIn(schema, relation.collection).value(partner);
  for (const { relation, joining, leaving } of members) {
    const key = recordKeyIn(schema, relation.collection);
    const kept = ((held[relation.name] ?? []) as readonly Scalar[]).filter((id) => !leaving.includes(String(id)));
    after[relation.name] = [...new Set([...kept, ...joining.map((id) => key.value(id))])];
  }
  return after;
}
