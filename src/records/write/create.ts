/**
 * Creates a record. The rules judge it as it would be stored, and the statement that decides also
 * writes it.
 */

import type { Cells, Transaction } from '../../database/contract.ts';
import type { Permit } from '../../policy/access.ts';
import { NO_RELATED, type Row } from '../../policy/types.ts';
import { newRecordId } from '../../record-id.ts';
import { forbidden, invalid } from '../../refusal.ts';
import type { Collection, Relation } from '../../schema/model/model.ts';
import { ident, join, param, raw, type Sql, sql } from '../../sql.ts';
import type { AccessContext, Reading, Store } from '../access-context.ts';
import { readableReferences, toRefusal, uniqueViolation, unreadableReferences } from '../constraint-errors.ts';
import type { Data } from '../data.ts';
import { answerOf, type Written } from '../read.ts';
import { ALWAYS } from '../record-shape.ts';
import { RecordView } from '../record-view.ts';
import { firstPartnerOf, writePartners } from '../relations/has-one.ts';
import { firstMembersOf, writeMembers } from '../relations/links.ts';
import { forbiddenMembers, type GuardedMember, guardedMembers } from '../relations/member-writes.ts';
import { mayBeOfTenant, scopeOf, tenantOfValues } from '../scope.ts';
import { VERSION_WIDTH, versionColumn } from '../select.ts';
import { type AtOnce, atOnce } from './at-once.ts';
import { withFoldedCopies } from './folded-copies.ts';
import { type ColumnValue, type Input, readInput, type ServerValues } from './input.ts';
import { lookAt } from './locked-row.ts';
import { Objections, unlessTaken } from './objections.ts';
import { setsUnique, withFreeUniques } from './unique-values.ts';
import { type Insertion, insertWhere, judgeInsert, STORED, WRITTEN, type Writing } from './written-row.ts';
import { WrittenView } from './written-view.ts';

export interface CreateRequest {
  readonly data: Data;
  readonly relations: readonly Relation[];
  /** Values that the program sets: the id, and fields that callers cannot write (a file's size). */
  readonly given?: ServerValues;
  /** Default: one of its own. */
  readonly tx?: Transaction;
}
export async function create(store: Store, access: AccessContext, request: CreateRequest): Promise<Written> {
  const { tx } = request;
  const { within, creation } = await begun(atOnce(store, access, tx), request);
  try {
    const written = await tryAtOnce(within, creation);
    if (written !== undefined) return written;
    return tx ? await writeIn(tx, creation) : await store.db.transaction((own) => writeIn(own, creation));
  } catch (error) {
    throw toRefusal(error, access.collection);
  }
}

interface Begun {
  readonly within: AtOnce;
  readonly creation: Creation;
}

/** Within the tenant that the record is to be of. Throws as `creationOf`. */
async function begun(within: AtOnce, request: CreateRequest): Promise<Begun> {
  const creation = await creationOf(within, request);
  return { within: { ...within, tenant: creation.tenant }, creation };
}

/** Throws `forbidden` for members that the caller may never set, and `validation_failed`. */
async function creationOf(reading: Reading, { data, relations, given = {} }: CreateRequest): Promise<Creation> {
  const { store, access } = reading;
  const permit = access.permit(access.collection.name, 'create');
  const members = guardedMembers(access, data, 'create');
  const input = readInput(access, { mode: 'create', data, given });
  const id = typeof given.id === 'string' ? given.id : newRecordId();
  const tenant = tenantOfValues(access.collection, input.values);
  const creation = { id, store, access, permit, members, input, relations, tenant };
  if (input.errors.length > 0 || writesMore(creation)) await requireValid({ ...reading, tenant }, input);
  return creation;
}

/** Throws `validation_failed`. */
async function requireValid(reading: Reading, { errors, references }: Input): Promise<void> {
  const all = [...errors, ...(await unreadableReferences(reading, references))];
  if (all.length > 0) throw invalid(all);
}

interface Creation {
  readonly id: string;
  readonly store: Store;
  readonly access: AccessContext;
  readonly permit: Permit;
  readonly members: readonly GuardedMember[];
  readonly input: Input;
  readonly relations: readonly Relation[];
  /** Where the collection is divided by tenant. */
  readonly tenant: string | undefined;
}

/** Whether more is written, or read, than the row itself. */
const writesMore = ({ input, relations }: Creation): boolean =>
  input.links.length + input.hasOnes.length + relations.length > 0;

/**
 * Undefined: nothing was written, or one statement cannot decide. The transaction finds out why.
 * A unique value that is taken is reported by the write itself, which comes after every other check.
 */
async function tryAtOnce(within: AtOnce, creation: Creation): Promise<Written | undefined> {
  if (writesMore(creation)) return undefined;
  if (isPlain(within, creation)) return insertPlain(within, creation);
  const written = await insertAtOnce(within, creation);
  if (written === undefined) await requireValid(within, creation.input);
  return written;
}

/** Whether the row itself is all that decides. */
function isPlain({ store, access }: AtOnce, { permit, members, input }: Creation): boolean {
  const deciding = [permit, access.permit(access.collection.name, 'read'), ...members.map((member) => member.permit)];
  const view = new RecordView(store, access, { collection: access.collection.name });
  return input.references.length === 0 && view.isPlain && !deciding.some(({ consultsOthers }) => consultsOthers);
}

async function insertPlain(within: AtOnce, { id, permit, members, input }: Creation): Promise<Written> {
  const { store, access, write } = within;
  const values = withStamps(id, access.now, input.values);
  const proposed = proposedRow(access, values);
  if (!permit.test(proposed, NO_RELATED)) throw forbidden();
  const refused = members.filter((member) => !member.permit.test(proposed, NO_RELATED));
  if (refused.length > 0) throw forbiddenMembers(refused);
  const cells = await insert(store, { write, collection: access.collection, values });
  const read = access.permit(access.collection.name, 'read');
  const shape = store.shape(access.collection.name);
  if (!read.test(shape.row(cells, VERSION_WIDTH), NO_RELATED)) return { id };
  const view = new RecordView(store, access, { collection: access.collection.name });
  return { id, ...(await answerOf(within, view.completed(cells, VERSION_WIDTH), [])) };
}

/** The statement decides, and sees that the related records are there. */
async function insertAtOnce(within: AtOnce, { id, permit, members, input }: Creation): Promise<Written | undefined> {
  const { access, write } = within;
  const view = new WrittenView(within, true);
  // A statement never names two tenants.
  if (!view.isExact || !mayBeOfTenant(within, 'create')) return undefined;
  const permits = [permit, ...members.map((member) => member.permit)];
  const conditions = [...permits.map((each) => each.where(WRITTEN)), ...readableReferences(within, input.references)];
  const writing = { values: withStamps(id, access.now, input.values), members: [], partners: [] };
  const [cells] = await write(
    insertWhere({
      scope: scopeOf(within),
      collection: access.collection,
      writing,
      condition: join(conditions, ' AND '),
      returning: view.columns(STORED),
    }),
  );
  return cells && view.answer(id, cells);
}

async function writeIn(tx: Transaction, creation: Creation): Promise<Written> {
  const { id, store, access, permit, members, input, relations, tenant } = creation;
  const reading: Reading = { store, q: tx, access, tenant };
  const { collection } = access;
  const writing: Writing = {
    values: withStamps(id, access.now, input.values),
    members: input.links.map(firstMembersOf),
    partners: input.hasOnes.map(firstPartnerOf),
  };
  const conditions = [permit, ...members.map((member) => member.permit)].map((each) => each.where(WRITTEN));
  const condition = join(conditions, ' AND ');
  const objections = new Objections();
  const inserted = await insertRow(
    tx,
    { scope: scopeOf(reading), collection, writing, condition, returning: raw('id') },
    objections,
  );
  if (inserted.length === 0) {
    const [isPermitted, ...held] =
      members.length === 0 ? [false] : await judgeInsert(tx, { collection, writing, conditions });
    throw isPermitted ? forbiddenMembers(members.filter((_, i) => !held[i])) : forbidden();
  }
  for (const member of writing.members) await writeMembers(reading, id, member);
  await writePartners(reading, { id, changes: writing.partners, objections });
  objections.raise();
  const written = await lookAt(reading, { collection: collection.name, id, conditions: [] });
  return written.isReadable ? { id, ...(await answerOf(reading, written.cells, relations)) } : { id };
}

/**
 * Only partners are asked about after the row. They are judged beside it, or beside one that stands
 * in for it where another record has a unique value.
 */
function insertRow(tx: Transaction, insertion: Insertion, objections: Objections): Promise<readonly Cells[]> {
  const { collection, writing } = insertion;
  const write = () => tx.rows(insertWhere(insertion));
  if (writing.partners.length === 0 || !setsUnique(collection, writing.values)) return write();
  const standing = { ...writing, values: withFreeUniques(collection, writing.values) };
  return unlessTaken(tx, {
    write,
    // The rules have allowed the row as it was to be.
    standIn: () => tx.rows(insertWhere({ ...insertion, writing: standing, condition: ALWAYS })),
    onTaken: (error) => objections.note(uniqueViolation(collection, error.violated)),
  });
}

export const withStamps = (id: string, now: string, values: readonly ColumnValue[]): readonly ColumnValue[] => [
  { column: 'id', type: 'uuid', value: id },
  { column: 'created_at', type: 'timestamptz', value: now },
  { column: 'updated_at', type: 'timestamptz', value: now },
  ...values,
];

/** The record as it would be stored, as policies see it. */
export function proposedRow({ collection }: AccessContext, values: readonly ColumnValue[]): Row {
  const byColumn = new Map<string, ColumnValue['value']>();
  for (const { column, value } of values) byColumn.set(column, value);
  const row: Record<string, unknown> = { id: byColumn.get('id') };
  for (const { name, column } of collection.fields.values()) row[name] = byColumn.get(column) ?? null;
  for (const relation of collection.relations.values())
    if ('column' in relation) row[relation.name] = byColumn.get(relation.column) ?? null;
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
    INSERT INTO ${scopeOf({ store }).into(collection.name, STORED)} (${columns})
    VALUES (${cells})
    RETURNING ${versionColumn(STORED)}, ${store.shape(collection.name).columns(STORED)}`);
  return row!;
}
