/**
 * Writes of one statement, which decides and writes. If it writes nothing, a transaction finds out
 * why, on the locked row.
 */

import type { Cells, StatementTaker, Transaction } from '../../database/contract.ts';
import type { Need } from '../../policy/types.ts';
import { type Collection, type Relation, tenantKeyOf } from '../../schema/model/model.ts';
import { join, type Place, param, raw, type Sql, sql } from '../../sql.ts';
import { type AccessContext, type Reading, type Requested, readable, type Store } from '../access-context.ts';
import { answerOfWrite, type ShownRecord, type WrittenAnswer } from '../read.ts';
import { recordKeyOf } from '../record-key.ts';
import { type PermitOfCollection, RecordView } from '../record-view.ts';
import { scopeOf } from '../scope.ts';
import { versionColumn } from '../versions.ts';
import { recordingHistory } from './row-history.ts';
import { STORED } from './written-row.ts';

/** A transaction, or what gives each statement a transaction of its own. */
export interface StatementWriter extends Reading {
  readonly q: Transaction | StatementTaker;
}

/** Writes in a transaction of its own, or as a part of `tx`. */
export const statementWriter = (store: Store, access: AccessContext, tx?: Transaction): StatementWriter => ({
  store,
  access,
  q: tx ?? store.db,
});

/**
 * Sends a statement that creates or updates a record, and resolves with the rows that it returns.
 */
export function sendWrite(
  { store, access, q, tenant }: StatementWriter,
  statement: Sql,
  { id, isNew, turn: first }: SentRecord,
): Promise<readonly Cells[]> {
  const { table, name } = access.collection;
  const inTransaction = async (tx: Transaction): Promise<readonly Cells[]> => {
    if (first !== undefined) await tx.rows(first);
    const row = { collection: name, ids: [id], tenant, areNew: isNew };
    return recordingHistory({ store, q: tx }, row, () => tx.rows(statement));
  };
  if ('inTransaction' in q) return inTransaction(q);
  if (store.reachesHistory(name)) return store.transaction(inTransaction);
  const row = isNew ? undefined : id;
  const isDivided = tenantKeyOf(access.collection) !== undefined;
  // The write of one record needs no other plan for other values.
  const plan = isDivided ? store.genericPlan : undefined;
  return q.write(statement, { table, row, isDivided, plan, first });
}

export interface SentRecord {
  readonly id: string;
  readonly isNew: boolean;
  /** Takes the turn of the write, and runs before it in one transaction. */
  readonly turn?: Sql | undefined;
}

export interface Target {
  readonly id: string;
  /** The versions of the record that are accepted; undefined: any. */
  readonly ifVersion?: readonly string[] | undefined;
}

/**
 * The count of changes of the stored record, if `ifVersion` accepts one version alone; undefined: it
 * does not accept the record's. A version is opaque, so the database cannot compare it: the row is
 * read beforehand, without a lock, and the statement asks for `hasCount`.
 */
export async function acceptedCounts(
  reading: Reading,
  { id, ifVersion }: Target,
): Promise<readonly string[] | undefined> {
  if (ifVersion === undefined) return [];
  const { store, q, access } = reading;
  const { name } = access.collection;
  const [cells] = await q.rows(sql`
    SELECT ${versionColumn(access.collection, 't')}
      FROM ${scopeOf(reading).from(name, 't').where(recordKeyOf(access.collection).is('t', id))}`);
  if (cells === undefined) return undefined;
  const count = cells[0]!;
  const version = (await store.versions(q)).of({ collection: name, id, count });
  return ifVersion.includes(version) ? [count] : undefined;
}

export const hasCount = (collection: Collection, count: string | Place<never>): Sql =>
  sql`${versionColumn(collection, STORED)} = ${param('int8', count)}`;

/**
 * The condition that the row `STORED` is the one that the statement saw when it began. With it, a
 * condition that reads other rows is asked of one state of the database, although the statement may
 * wait for the row.
 */
export function versionUnchanged(reading: Requested, id: string | Place<never>): Sql {
  const { collection } = reading.access;
  return sql`${versionColumn(collection, STORED)} = (
    SELECT ${versionColumn(collection, 's')}
      FROM ${scopeOf(reading).from(collection.name, 's').where(recordKeyOf(collection).is('s', id))})`;
}

/** The answer to a write: the version of the record, its cells, and whether the caller may read it. */
export class WrittenView {
  readonly record: RecordView;
  /** The version, then the record, then the decision. */
  readonly columns: Sql;
  /** The ones that ask no rule. */
  readonly storedColumns: Sql;
  readonly #reading: Requested;

  constructor(reading: Requested) {
    const { store, access, tenant } = reading;
    const { name } = access.collection;
    this.#reading = reading;
    this.record = new RecordView(store, access, { collection: name, tenant });
    const isReadable = readable(access, name, STORED);
    const version = versionColumn(access.collection, STORED);
    this.columns = join([version, this.record.columns(STORED), sql`(${isReadable})`], ', ');
    this.storedColumns = join([version, this.record.storedColumns(STORED)], ', ');
  }

  /** The cells that follow them, of the row `alias`. A new record has no partners. */
  decisions(alias: string, write: 'create' | 'update'): readonly Sql[] {
    const { store, access } = this.#reading;
    const { name } = access.collection;
    const partners =
      write === 'create' ? store.shape(name).hasOnes.map(() => raw('NULL')) : this.record.partners(STORED);
    return [...partners, ...this.record.masks(alias), readable(access, name, alias)];
  }

  /**
   * Returns true if the statement that writes returns the columns as they are after the write. It sees
   * the stored records of the record's own collection as they were before it, without a new one.
   */
  isExactFor(write: 'create' | 'update'): boolean {
    const { store, access } = this.#reading;
    const { name } = access.collection;
    const isNew = write === 'create';
    // A new record has no partners, and nothing refers to it yet, so only its own references lead to it.
    const hasOnes = isNew ? [] : store.shape(name).hasOnes;
    const leads = ({ kind, collection }: Relation): boolean =>
      collection === name && !(isNew && (kind === 'belongs_to' || kind === 'many_to_many'));
    // It can be the partner of itself.
    if (hasOnes.some(({ collection }) => collection === name)) return false;
    const asked = [{ collection: name, permit: access.permit(name, 'read') }, ...this.record.permits(hasOnes)];
    return !asked.some((each) => reaches(store, each, { name, leads }));
  }

  /** The columns read other rows than the record's own. */
  get consultsOthers(): boolean {
    const { store, access } = this.#reading;
    return store.shape(access.collection.name).hasOnes.length > 0 || this.rulesConsultOthers;
  }

  /** The rules of the record and of its own members read other rows. */
  get rulesConsultOthers(): boolean {
    const { access } = this.#reading;
    const { name } = access.collection;
    const asked = [access.permit(name, 'read'), ...this.record.permits([]).map(({ permit }) => permit)];
    return asked.some((permit) => permit.consultsOthers);
  }

  /** Reads the record after the write, for a statement that does not return it. */
  statement(id: string | Place<never>): Sql {
    const { collection } = this.#reading.access;
    const isRecord = recordKeyOf(collection).is(STORED, id);
    const rows = scopeOf(this.#reading).from(collection.name, STORED);
    return sql`
    SELECT ${this.columns}
      FROM ${rows.where(isRecord)}`;
  }
}

/** `cells`: the columns of a `WrittenView`. */
export async function writtenOf(reading: Reading, id: string, shown: ShownRecord): Promise<WrittenAnswer> {
  return shown.cells.at(-1) === 't' ? { id, ...(await answerOfWrite(reading, shown)) } : { id };
}

/** Reads the record that this transaction has written. */
export async function readWritten(
  reading: Reading,
  id: string,
  relations: readonly Relation[],
): Promise<WrittenAnswer> {
  const view = new WrittenView(reading);
  const [cells] = await reading.q.rows(view.statement(id));
  // A view may not show the row that was written through it.
  return cells === undefined ? { id } : writtenOf(reading, id, { view: view.record, cells, relations });
}

interface Destination {
  readonly name: string;
  /** A step by the relation can end at the written record. */
  readonly leads: (relation: Relation) => boolean;
}

/** True if the permit can reach the written record through a relation. */
function reaches(store: Store, { collection, permit }: PermitOfCollection, { name, leads }: Destination): boolean {
  const walks = (from: string, needs: readonly Need[]): boolean =>
    needs.some(({ relation, needs: further }) => {
      const step = store.shape(from).collection.relations.get(relation)!;
      return leads(step) || walks(step.collection, further);
    });
  return permit.rules.some(
    ({ residual: { needs } }) =>
      walks(collection, needs.record) ||
      needs.requested.some((asked) => asked.collection === name || walks(asked.collection, asked.needs)),
  );
}
