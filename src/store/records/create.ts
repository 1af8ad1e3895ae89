/**
 * Creates a record. The rules judge it as it would be stored, and the statement that decides also
 * writes it.
 */
import { v7 as uuidv7 } from 'uuid';
import type { Permit } from '../../policy/access.ts';
import { NO_RELATED, type Row } from '../../policy/types.ts';
import type { Collection, Relation } from '../../schema/model.ts';
import { ident, join, param, raw, type Sql, sql } from '../../sql.ts';
import type { Cells, Transaction } from '../database/contract.ts';
import { forbidden, invalid } from '../refusal.ts';
import type { AccessContext, Reading, Store } from './access-context.ts';
import { toRefusal, unreadableReferences } from './constraint-errors.ts';
import type { Data } from './data.ts';
import { withFoldedCopies } from './folded-copies.ts';
import { type ColumnValue, type Input, readInput, type ServerValues } from './input.ts';
import { lookAt } from './locked-row.ts';
import { type Answer, answerOf } from './read.ts';
import { tableOf } from './record-shape.ts';
import { RecordView } from './record-view.ts';
import { firstPartnerOf, writePartners } from './relations/has-one.ts';
import { firstMembersOf, writeMembers } from './relations/links.ts';
import { forbiddenMembers, type GuardedMember, guardedMembers } from './relations/member-writes.ts';
import { VERSION_WIDTH, versionColumn } from './select.ts';
import { uniqueKeys } from './unique-queue.ts';
import { insertWhere, judgeInsert, WRITTEN, type Writing } from './written-row.ts';

export interface CreateRequest {
  readonly data: Data;
  readonly relations: readonly Relation[];
  /** Values that the program sets: the id, and fields that callers cannot write (a file's size). */
  readonly given?: ServerValues;
  /** Default: one of its own. */
  readonly tx?: Transaction;
}
/** Only the id where the caller may not read the written record. */
export type Written = { readonly id: string } & Partial<Answer>;

export async function create(store: Store, access: AccessContext, request: CreateRequest): Promise<Written> {
  const { tx } = request;
  const creation = await creationOf({ store, q: tx ?? store.db, access }, request);
  try {
    if (tx) return await writeIn(tx, creation);
    return await store.uniqueQueue.run(uniqueKeys(access.collection, creation.input.values), () =>
      isPlain(creation) ? writeAtOnce(creation) : store.db.transaction((own) => writeIn(own, creation)),
    );
  } catch (error) {
    throw toRefusal(error, access.collection);
  }
}

/** As one of several writes of a transaction, between which unique constraints hold. */
export async function createWithin(
  store: Store,
  access: AccessContext,
  { tx, ...request }: CreateRequest & { readonly tx: Transaction },
): Promise<Written> {
  const creation = await creationOf({ store, q: tx, access }, request);
  try {
    // Without related rows, nothing comes between the decision and the constraint.
    if (isPlain(creation)) return await writeAtOnce(creation, tx);
    await tx.run(raw('SET CONSTRAINTS ALL DEFERRED'));
    return await writeIn(tx, creation);
  } catch (error) {
    throw toRefusal(error, access.collection);
  }
}

/** Throws `forbidden` for members that the caller may never set, and `validation_failed`. */
async function creationOf(reading: Reading, { data, relations, given = {} }: CreateRequest): Promise<Creation> {
  const { store, access } = reading;
  const permit = access.permit(access.collection.name, 'create');
  const members = guardedMembers(access, data, 'create');
  const input = readInput(access, { mode: 'create', data, given });
  const errors = [...input.errors, ...(await unreadableReferences(reading, input.references))];
  if (errors.length > 0) throw invalid(errors);
  const id = typeof given.id === 'string' ? given.id : uuidv7();
  return { id, store, access, permit, members, input, relations };
}

interface Creation {
  readonly id: string;
  readonly store: Store;
  readonly access: AccessContext;
  readonly permit: Permit;
  readonly members: readonly GuardedMember[];
  readonly input: Input;
  readonly relations: readonly Relation[];
}

/** Whether the rules need only the row itself, so that one statement is enough. */
function isPlain({ store, access, permit, members, input, relations }: Creation): boolean {
  const hasMore = input.links.length + input.hasOnes.length + relations.length > 0;
  const deciding = [permit, access.permit(access.collection.name, 'read'), ...members.map((member) => member.permit)];
  const view = new RecordView(store, access, { collection: access.collection.name });
  return !hasMore && view.isPlain && !deciding.some(({ consultsOthers }) => consultsOthers);
}

async function writeAtOnce(creation: Creation, tx?: Transaction): Promise<Written> {
  const { id, store, access, permit, members, input } = creation;
  const values = withStamps(id, access.now, input.values);
  const proposed = proposedRow(access, values);
  if (!permit.test(proposed, NO_RELATED)) throw forbidden();
  const refused = members.filter((member) => !member.permit.test(proposed, NO_RELATED));
  if (refused.length > 0) throw forbiddenMembers(refused);
  const cells = await insert(store, {
    write: (statement) => (tx === undefined ? store.db.write(statement) : tx.rows(statement)),
    collection: access.collection,
    values,
  });
  const read = access.permit(access.collection.name, 'read');
  const shape = store.shape(access.collection.name);
  if (!read.test(shape.row(cells, VERSION_WIDTH), NO_RELATED)) return { id };
  const view = new RecordView(store, access, { collection: access.collection.name });
  const completed = view.completed(cells, VERSION_WIDTH);
  return { id, ...(await answerOf({ store, q: tx ?? store.db, access }, completed, [])) };
}

async function writeIn(tx: Transaction, creation: Creation): Promise<Written> {
  const { id, store, access, permit, members, input, relations } = creation;
  const reading: Reading = { store, q: tx, access };
  const { collection } = access;
  const writing: Writing = {
    values: withStamps(id, access.now, input.values),
    members: input.links.map(firstMembersOf),
    partners: input.hasOnes.map(firstPartnerOf),
  };
  const conditions = [permit, ...members.map((member) => member.permit)].map((each) => each.where(WRITTEN));
  const condition = join(conditions, ' AND ');
  const inserted = await tx.rows(insertWhere({ collection, writing, condition, returning: raw('id') }));
  if (inserted.length === 0) {
    const [isPermitted, ...held] =
      members.length === 0 ? [false] : await judgeInsert(tx, { collection, writing, conditions });
    throw isPermitted ? forbiddenMembers(members.filter((_, i) => !held[i])) : forbidden();
  }
  for (const member of writing.members) await writeMembers(reading, id, member);
  await writePartners(reading, id, writing.partners);
  await tx.run(raw('SET CONSTRAINTS ALL IMMEDIATE'));
  const written = await lookAt(reading, { collection: collection.name, id, conditions: [] });
  return written.isReadable ? { id, ...(await answerOf(reading, written.cells, relations)) } : { id };
}

export const withStamps = (id: string, now: string, values: readonly ColumnValue[]): readonly ColumnValue[] => [
  { column: 'id', type: 'uuid', value: id },
  { column: 'created_at', type: 'timestamptz', value: now },
  { column: 'updated_at', type: 'timestamptz', value: now },
  ...values,
];

/** The record as it would be stored, as policies see it. */
export function proposedRow({ collection }: AccessContext, values: readonly ColumnValue[]): Row {
  const byColumn = new Map(values.map(({ column, value }) => [column, value]));
  const row: Record<string, unknown> = { id: byColumn.get('id') };
  for (const member of [...collection.fields.values(), ...collection.relations.values()]) {
    if ('column' in member) row[member.name] = byColumn.get(member.column) ?? null;
  }
  return row;
}

interface RowInsertion {
  readonly write: (statement: Sql) => Promise<readonly Cells[]>;
  readonly collection: Collection;
  readonly values: readonly ColumnValue[];
}

/** The cells of the new row: the version, then the record. */
export async function insert(store: Store, { write, collection, values: given }: RowInsertion): Promise<Cells> {
  const values = withFoldedCopies(collection, given);
  const columns = join(
    values.map(({ column }) => ident(column)),
    ', ',
  );
  const cells = join(
    values.map(({ type, value }) => sql`${param(type, value)}`),
    ', ',
  );
  const [row] = await write(sql`
    INSERT INTO ${tableOf(collection)} (${columns})
    VALUES (${cells})
    RETURNING ${versionColumn(collection.table)}, ${store.shape(collection.name).columns(collection.table)}`);
  return row!;
}
