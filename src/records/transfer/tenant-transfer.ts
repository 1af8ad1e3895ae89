/** Takes the records of one tenant out of a database and into another one, in chunks, and continues after an interruption. */

import type { Database, Queryable, Transaction } from '../../database/contract.ts';
import { present } from '../../invariant.ts';
import type { Collection, ManyToMany, Schema } from '../../schema/model/model.ts';
import { ident, join, param, raw, type Sql, sql, uuid } from '../../sql.ts';
import { lockAllPlaces } from '../write/locks/value-locks.ts';
import { exportRecords } from './export-records.ts';
import { ImportRejected } from './import-records.ts';
import { manyToManyOf, type StoredMember } from './members.ts';
import { type ImportError, RecordReader, type SourceRecord, type StagedRecord } from './read-record.ts';
import { looseReferences, rowsOfPart, scopeOfPart, type Tenant, type TenantPart } from './tenant-parts.ts';

/** Records of one transaction. */
const MOVED_AT_ONCE = 500;

/** @param after the last id of an interrupted export */
export const exportPart = (
  db: Queryable,
  schema: Schema,
  { tenant, part, after }: { readonly tenant: Tenant; readonly part: TenantPart; readonly after?: string | undefined },
): AsyncGenerator<string> =>
  exportRecords({ q: db, schema }, part.collection, { ...rowsOfPart(schema, part, tenant.id), after });

export interface TenantImport {
  readonly schema: Schema;
  readonly tenant: Tenant;
  readonly part: TenantPart;
  readonly records: AsyncIterable<SourceRecord>;
  /** Canonical. */
  readonly now: string;
}

/**
 * Writes the records that are missing, without their optional references and links, which may lead to later records.
 * Returns the number of new records. Throws ImportRejected.
 */
export async function importPart(db: Database, request: TenantImport): Promise<number> {
  const { schema, tenant, part } = request;
  const loose = new Set(looseReferences(part, tenant).map(({ name }) => name));
  let created = 0;
  await inChunks(request, async (records, members) => {
    const values = members.filter(({ name }) => !loose.has(name));
    created += await inPlaces(db, request, (tx) =>
      tx.run(insertion(schema, part, { tenant, records, members: values })),
    );
  });
  return created;
}

/** Sets the optional references and the links of the records. */
export async function linkPart(db: Database, request: TenantImport): Promise<void> {
  const { schema, tenant, part } = request;
  const loose = looseReferences(part, tenant);
  const links = manyToManyOf(part.collection);
  if (loose.length + links.length === 0) return;
  await inChunks(request, (records) =>
    inPlaces(db, request, async (tx) => {
      const { rows, isOfTenant } = rowsOfPart(schema, part, tenant.id);
      for (const { name, column } of loose) {
        const held = records.filter(({ values }) => values.get(name) !== null);
        for (const [target, ids] of Map.groupBy(held, ({ values }) => values.get(name) as string)) {
          const isHolder = sql`t.id = ANY(${param(
            'uuid[]',
            ids.map(({ id }) => id),
          )})`;
          const isEmpty = sql`${ident('t', column)} IS NULL`;
          await tx.run(
            sql`UPDATE ${rows.set([sql`${ident(column)} = ${uuid(target)}`], ...isOfTenant, isHolder, isEmpty)}`,
          );
        }
      }
      for (const relation of links)
        await writeLinks(tx, scopeOfPart(schema, part, tenant.id), { part, relation, records });
    }),
  );
}

/** Rules that count records of a place, in writes at this time, see all records of a chunk or none. */
const inPlaces = <T>(db: Database, { schema, part }: TenantImport, work: (tx: Transaction) => Promise<T>): Promise<T> =>
  db.transaction(async (tx) => {
    await lockAllPlaces(tx, schema, part.collection);
    return work(tx);
  });

interface LinkedRecords {
  readonly part: TenantPart;
  readonly relation: ManyToMany;
  readonly records: readonly StagedRecord[];
}

async function writeLinks(
  tx: Queryable,
  scope: ReturnType<typeof scopeOfPart>,
  { part, relation, records }: LinkedRecords,
): Promise<void> {
  const pairs = records.flatMap(({ id, links }) => (links.get(relation.name) ?? []).map((target) => ({ id, target })));
  if (pairs.length === 0) return;
  await tx.run(scope.linksInto(relation, part.collection.name, pairs));
}

async function inChunks(
  { schema, part, tenant, records, now }: TenantImport,
  write: (records: readonly StagedRecord[], members: readonly StoredMember[]) => Promise<void>,
): Promise<void> {
  const reader = new RecordReader({ schema, collection: part.collection, now, keyed: new Map() });
  const owner = reader.members.find(({ column }) => column === part.column)!;
  const errors: ImportError[] = [];
  let chunk: StagedRecord[] = [];
  const flush = async (): Promise<void> => {
    if (errors.length > 0) throw new ImportRejected(errors, errors.length);
    if (chunk.length > 0) await write(chunk, reader.members);
    chunk = [];
  };
  for await (const source of records) {
    const record = reader.read(source, errors);
    if (record !== undefined && record.values.get(owner.name) !== tenant.id)
      errors.push({ line: source.line, message: `\`${owner.name}\`: expected ${tenant.id}, the tenant` });
    // The service makes the ids of a schema with tenants.
    if (record !== undefined) chunk.push({ ...record, id: present(record.id, 'the id of a record') });
    if (chunk.length === MOVED_AT_ONCE) await flush();
  }
  await flush();
}

interface InsertedRecords {
  readonly tenant: Tenant;
  readonly records: readonly StagedRecord[];
  readonly members: readonly StoredMember[];
}

function insertion(schema: Schema, part: TenantPart, { tenant, records, members }: InsertedRecords): Sql {
  const columns = members.map(({ column }) => ident(column));
  const rows = records.map(({ values }) => {
    const cells = members.map(({ name, arrayType, castTo }) => {
      const cell = sql`${param(elementTypeOf(arrayType), values.get(name) ?? null)}`;
      return castTo === undefined ? cell : sql`${cell}::${raw(castTo)}`;
    });
    return sql`(${join(cells, ', ')})`;
  });
  return sql`
    INSERT INTO ${scopeOfPart(schema, part, tenant.id).into(part.collection.name, 't')} (${join(columns, ', ')})
    VALUES ${join(rows, ', ')}
    ON CONFLICT (${conflictKey(part.collection)}) DO NOTHING`;
}

const conflictKey = ({ tenantLayout }: Collection): Sql =>
  tenantLayout?.kind === 'by' ? sql`${ident(tenantLayout.column)}, id` : sql`id`;

const elementTypeOf = (type: StoredMember['arrayType']) => type.slice(0, -2) as StoredMember['arrayType'];
