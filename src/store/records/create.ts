/** Creates a record: checked, decided on as it would be stored, and written by the statement that decides. */
import { v7 as uuidv7 } from 'uuid';
import type { Permit } from '../../policy/access.ts';
import { NO_RELATED, type Row } from '../../policy/types.ts';
import type { Collection, Relation } from '../../schema/model.ts';
import { ident, join, param, raw, type Sql, sql } from '../../sql.ts';
import type { Cells, Transaction } from '../database/contract.ts';
import { forbidden, invalid } from '../refusal.ts';
import type { AccessContext, Reading, Store } from './access-context.ts';
import { toRefusal, unreadableMentions } from './constraint-errors.ts';
import { firstPartnerOf, writePartners } from './has-one.ts';
import { type Data, type Input, readInput, type ServerValues, type Value } from './input.ts';
import { firstMembersOf, writeMembers } from './links.ts';
import { lookAt } from './locked-row.ts';
import { type Answer, answerOf } from './read.ts';
import { tableOf } from './record-shape.ts';
import { VERSION_WIDTH, versionColumn } from './select.ts';
import { uniqueKeys } from './unique-queue.ts';
import { insertWhere, WRITTEN, type Writing } from './written-row.ts';

export interface CreateRequest {
  readonly data: Data;
  readonly relations: readonly Relation[];
  /** What the program sets itself: the identifier, and fields that callers cannot write (a file's size). */
  readonly given?: ServerValues;
}
/** Only the id where the caller may not read the written record. */
export type Written = { readonly id: string } & Partial<Answer>;

export async function create(
  store: Store,
  ask: AccessContext,
  { data, relations, given = {} }: CreateRequest,
  tx?: Transaction,
): Promise<Written> {
  const permit = ask.permit(ask.collection.name, 'create');
  const input = readInput(ask, data, 'create', given);
  const mentions = await unreadableMentions({ store, q: tx ?? store.db, ask }, input.mentions);
  const faults = [...input.faults, ...mentions];
  if (faults.length > 0) throw invalid(faults);
  const id = typeof given.id === 'string' ? given.id : uuidv7();
  const creation = { id, store, ask, permit, input, relations };
  try {
    if (tx) return await writeIn(tx, creation);
    return await store.uniqueQueue.run(uniqueKeys(ask.collection, input.values), () =>
      isPlain(creation) ? writeAtOnce(creation) : store.db.transaction((own) => writeIn(own, creation)),
    );
  } catch (error) {
    throw toRefusal(error, ask.collection);
  }
}

interface Creation {
  readonly id: string;
  readonly store: Store;
  readonly ask: AccessContext;
  readonly permit: Permit;
  readonly input: Input;
  readonly relations: readonly Relation[];
}

/** All that matters is in the row itself: one statement does. */
function isPlain({ ask, permit, input, relations }: Creation): boolean {
  const hasMore = input.links.length + input.hasOnes.length + relations.length > 0;
  return !hasMore && !permit.consultsOthers && !ask.permit(ask.collection.name, 'read').consultsOthers;
}

async function writeAtOnce({ id, store, ask, permit, input }: Creation): Promise<Written> {
  const values = withStamps({ id, now: ask.now }, input.values);
  if (!permit.test(proposedRow(ask, values), NO_RELATED)) throw forbidden();
  const cells = await insert(store, {
    write: (statement) => store.db.write(statement),
    collection: ask.collection,
    values,
  });
  const read = ask.permit(ask.collection.name, 'read');
  const shape = store.shape(ask.collection.name);
  if (!read.test(shape.row(cells, VERSION_WIDTH), NO_RELATED)) return { id };
  return { id, ...(await answerOf({ store, q: store.db, ask }, cells, [])) };
}

async function writeIn(tx: Transaction, { id, store, ask, permit, input, relations }: Creation): Promise<Written> {
  const reading: Reading = { store, q: tx, ask };
  const { collection } = ask;
  const writing: Writing = {
    values: withStamps({ id, now: ask.now }, input.values),
    members: input.links.map(firstMembersOf),
    partners: input.hasOnes.map(firstPartnerOf),
  };
  const condition = permit.where(WRITTEN);
  const inserted = await tx.rows(insertWhere({ collection, writing, condition, returning: raw('id') }));
  if (inserted.length === 0) throw forbidden();
  for (const member of writing.members) await writeMembers(reading, id, member);
  await writePartners(reading, id, writing.partners);
  await tx.run(raw('SET CONSTRAINTS ALL IMMEDIATE'));
  const written = await lookAt(reading, { collection: collection.name, id, conditions: [] });
  return written.isReadable ? { id, ...(await answerOf(reading, written.cells, relations)) } : { id };
}

const withStamps = (
  { id, now }: { readonly id: string; readonly now: string },
  values: readonly Value[],
): readonly Value[] => [
  { column: 'id', type: 'uuid', value: id },
  { column: 'created_at', type: 'timestamptz', value: now },
  { column: 'updated_at', type: 'timestamptz', value: now },
  ...values,
];

/** The record as it would be stored, as policies see it. */
function proposedRow({ collection }: AccessContext, values: readonly Value[]): Row {
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
  readonly values: readonly Value[];
}

/** The cells of the new row: the version, then the record. */
export async function insert(store: Store, { write, collection, values }: RowInsertion): Promise<Cells> {
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
