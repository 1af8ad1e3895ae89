/**
 * The deleted records of a collection with `soft_delete: true`. They are in a table of their own, so that no other statement
 * finds them; here the same pages are made of that table, under the rules for `restore`.
 */
import type { Database, Transaction } from '../database/contract.ts';
import { memoizedBy } from '../memoized.ts';
import { deletedName } from '../policy/deleted-names.ts';
import type { ErrorDetail } from '../problem.ts';
import { invalid, notFound } from '../refusal.ts';
import { FIELD_KINDS, keyKindOf } from '../schema/fields/index.ts';
import { linksOf } from '../schema/model/kept/link-sides.ts';
import { deletedSchemaOf } from '../schema/model/kept/soft-delete.ts';
import type { BelongsTo, Collection, Field, Relation, Schema } from '../schema/model/model.ts';
import { LINKS_COLUMN, VERSION_COLUMN } from '../schema/model/stored-names.ts';
import { ident, join, param, raw, type Sql, type SqlType, sql, text } from '../sql.ts';
import { type AccessContext, type Reading, Store } from './access-context.ts';
import { toRefusal } from './constraint-errors.ts';
import { list, type PageReading, type RecordPage } from './page/list.ts';
import type { ListRequest } from './page/page-plan.ts';
import { recordKeyIn, recordKeyOf } from './record-key.ts';
import { everyTenant, inTenantOf, type Scope, scopeOf } from './scope.ts';
import { ShapeMemory } from './shape-memory.ts';
import { checksOn, failureOfStored } from './write/checks.ts';
import { type ColumnValue, columnValueOf, valueOfDefault, withFoldedCopies } from './write/input.ts';
import { copyRows, type KeptColumn, keptColumnsOf } from './write/kept-rows.ts';
import { hasPlacesInTurn, takeTurn } from './write/locks/value-locks.ts';
import { restoreNewerLinks } from './write/newer-links.ts';
import { touchOwners } from './write/remove.ts';
import { recordingHistory } from './write/row-history.ts';
import { assigned, isTouched } from './write/written-row.ts';

class DeletedRecords {
  /** That of the service, with the deleted records as another collection. */
  readonly schema: Schema;
  readonly collection: Collection;
  readonly #living: Collection;
  readonly #livingSchema: Schema;
  readonly #store: Store;
  readonly #livingStore: Store;
  readonly #pages: PageReading;

  constructor(db: Database, schema: Schema, name: string) {
    this.schema = deletedSchemaOf(schema, name);
    this.collection = this.schema.collections.get(deletedName(name))!;
    this.#living = schema.collections.get(name)!;
    this.#livingSchema = schema;
    this.#store = new Store(db, this.schema);
    this.#livingStore = new Store(db, schema);
    this.#pages = { store: this.#store, plans: new ShapeMemory((plan) => plan.text) };
  }

  list(access: AccessContext, request: ListRequest): Promise<RecordPage> {
    return list(this.#pages, access, request);
  }

  /**
   * Brings a record back, with the links whose other side still exists. Throws `not_found` and the errors of a create.
   * @param tx default: a transaction of its own
   */
  async restore(access: AccessContext, id: string, tx?: Transaction): Promise<void> {
    try {
      if (tx !== undefined) return await this.#restoreIn(tx, access, id);
      await this.#store.transaction((own) => this.#restoreIn(own, access, id));
    } catch (error) {
      throw toRefusal(error, this.#living);
    }
    await this.#store.noteWrite(access);
  }

  /**
   * Deletes a stored record at a time, by the database's owner, and restores it for the caller, in a transaction that the
   * caller of this function undoes.
   */
  async restoreAsDeletedAt(
    tx: Transaction,
    access: AccessContext,
    { id, tenant, deletedAt }: DeletedAt,
  ): Promise<void> {
    const { name } = this.#living;
    await copyRows(tx, this.#livingSchema, { collection: name, ids: [id], tenant, now: deletedAt });
    // Neither a trigger nor a reference of another record keeps the row.
    await tx.run(raw('SET LOCAL session_replication_role = replica'));
    const rows = scopeOf({ store: this.#livingStore, tenant }).stored(name, 't');
    await tx.run(sql`DELETE FROM ${rows.where(recordKeyOf(this.#living).is('t', id))}`);
    await tx.run(raw('SET LOCAL session_replication_role = origin'));
    await this.restore(access, id, tx);
  }

  async #restoreIn(tx: Transaction, access: AccessContext, id: string): Promise<void> {
    const { name } = this.collection;
    const key = recordKeyOf(this.collection);
    const outside: Reading = { store: this.#store, q: tx, access };
    const reading = await inTenantOf(outside, id, 'list');
    const { tenant } = reading;
    const deleted = scopeOf(reading);
    // Records of every tenant can have links to a record without one.
    const living =
      tenant === undefined ? everyTenant(this.#livingSchema) : scopeOf({ store: this.#livingStore, tenant });
    const isAllowed = reading.access.permit(name, 'list').where('t');
    const collection = this.#living;
    // The rule below sees the records of the restores that had their turn before.
    if (hasPlacesInTurn(this.#livingStore, collection))
      await takeTurn(
        { ...reading, store: this.#livingStore },
        { collection, id, mayWrite: isAllowed, keptIn: { scope: deleted, name } },
      );
    const kept = await keptColumnsOf(tx, collection);
    const isWithout = kept.map(
      (column) => sql`${raw(String(column.isRequired))} AND ${ident('t', column.name)} IS NULL`,
    );
    const [found] = await tx.rows(sql`
      SELECT ${join(isWithout, ', ')}
        FROM ${deleted.from(name, 't').where(key.is('t', id), isAllowed)}
         FOR UPDATE OF t`);
    if (found === undefined) throw notFound();
    const lacking = kept.filter((_, i) => found[i] === 't');
    const cells = this.#cells(kept, lacking, access);
    const insert = sql`
      INSERT INTO ${living.into(collection.name, 'x')} (${join(
        cells.map(({ column }) => ident(column)),
        ', ',
      )})
      SELECT ${join(
        cells.map(({ cell }) => cell),
        ', ',
      )}
        FROM ${deleted.from(name, 't').where(key.is('t', id))}`;
    const row = { collection: collection.name, ids: [id], tenant, areNew: true };
    await recordingHistory({ store: this.#livingStore, q: tx }, row, () => tx.run(insert));
    for (const links of this.#links(id, { deleted, living })) await tx.run(links);
    await restoreNewerLinks(tx, { schema: this.#livingSchema, collection, id, deleted });
    for (const owners of this.#owners(id, living, access.now)) await tx.run(owners);
    const asked = checksOn(access, this.#living, 'create');
    const failure = await failureOfStored(
      { store: this.#livingStore, q: tx, tenant },
      { collection: collection.name, id },
      asked,
    );
    if (failure !== undefined) throw failure;
    await tx.run(sql`DELETE FROM ${deleted.stored(name, 't').where(key.is('t', id))}`);
  }

  /** @param lacking without a value in the kept row; where the service gives none, the database fills them in */
  #cells(kept: readonly KeptColumn[], lacking: readonly KeptColumn[], access: AccessContext): readonly RestoredCell[] {
    const given = new Map(this.#defaults(lacking, access).map((value) => [value.column, value]));
    const lacks = new Set(lacking);
    return kept.flatMap((column): readonly RestoredCell[] => {
      const { name } = column;
      const value = given.get(name);
      if (value !== undefined) return [{ column: name, cell: assigned(value) }];
      return lacks.has(column) ? [] : [{ column: name, cell: this.#restored(name, access.now) }];
    });
  }

  /** The defaults of members that became required after the deletion. Throws `validation_failed`. */
  #defaults(lacking: readonly KeptColumn[], access: AccessContext): readonly ColumnValue[] {
    const { fields, relations } = this.#living;
    const errors: ErrorDetail[] = [];
    const values = lacking.flatMap(({ name: column, hasDefault }): readonly ColumnValue[] => {
      const isOwn = (member: Field | Relation): boolean => 'column' in member && member.column === column;
      const member = [...fields.values(), ...relations.values()].find(isOwn) as Field | BelongsTo | undefined;
      const value = valueOfDefault(member?.default, access.now, access);
      if (member !== undefined && value !== undefined)
        return [columnValueOf(member, sqlTypeOfMember(this.#livingSchema, member), value)];
      if (!hasDefault) errors.push(valueMissing(member?.name ?? column));
      return [];
    });
    if (errors.length > 0) throw invalid(errors);
    return withFoldedCopies(this.#living, [...values]);
  }

  /** The record has changed: it has a new version, and the time of now. */
  #restored(column: string, now: string): Sql {
    if (column === VERSION_COLUMN) return sql`coalesce(${ident('t', column)}, 0) + 1`;
    const isTime = column === this.#living.fields.get('updated_at')?.column;
    return isTime ? sql`${param('timestamptz', now)}` : ident('t', column);
  }

  #links(id: string, { deleted, living }: RestoringScopes): readonly Sql[] {
    const { name } = this.collection;
    const key = recordKeyOf(this.collection);
    return linksOf(this.#living, this.#livingSchema).map(({ name: side, relation, holder, isSource, other }) => {
      const otherKey = living.key(other);
      const [source, target] = isSource ? [key.of('t'), otherKey.of('o')] : [otherKey.of('o'), key.of('t')];
      const type = raw(keyKindOf(this.#livingSchema.collections.get(other)!).column);
      const isLinked = sql`${otherKey.of('o')} IN (
              SELECT each::${type}
                FROM jsonb_array_elements_text(${ident('t', LINKS_COLUMN)} -> ${text(side)}) AS each)`;
      const others = living.from(other, 'o');
      const rows = deleted.from(name, 't').join(others, isLinked);
      return sql`
        INSERT INTO ${others.related.linkInto(relation, holder, source!, target!)}
          FROM ${rows.where(key.is('t', id))}
            ON CONFLICT DO NOTHING`;
    });
  }

  /** Getting a member back is a change of its owner, as losing it was. */
  #owners(id: string, living: Scope, now: string): readonly Sql[] {
    const targets = recordKeyOf(this.collection).list([id]);
    return linksOf(this.#living, this.#livingSchema).flatMap(({ relation, holder, isSource }) => {
      const collection = this.#livingSchema.collections.get(holder)!;
      if (isSource || !isTouched(collection)) return [];
      const owners = { rows: living.stored(holder, 't'), collection, targets, key: recordKeyOf(collection), now };
      return [touchOwners(owners, relation).statement];
    });
  }
}

interface RestoredCell {
  readonly column: string;
  readonly cell: Sql;
}

const sqlTypeOfMember = (schema: Schema, member: Field | BelongsTo): SqlType =>
  'kind' in member ? recordKeyIn(schema, member.collection).type : FIELD_KINDS[member.type].sqlType;

const valueMissing = (name: string): ErrorDetail => ({
  pointer: `/data/${name}`,
  code: 'required',
  detail: `\`${name}\` must have a value by now, and the deleted record has none; a default in the schema would give it one`,
});

interface DeletedAt {
  readonly id: string;
  readonly tenant: string | undefined;
  /** Canonical. */
  readonly deletedAt: string;
}

/** The scopes of the tenant of the record, or without one. */
interface RestoringScopes {
  readonly deleted: Scope;
  readonly living: Scope;
}

/** Undefined: the collection keeps no deleted records. */
export type FindDeleted = (collection: string) => DeletedRecords | undefined;

export function deletedRecordsOf(db: Database, schema: Schema): FindDeleted {
  const made = memoizedBy((collection: Collection) => new DeletedRecords(db, schema, collection.name));
  return (name) => {
    const collection = schema.collections.get(name);
    return collection?.softDelete === undefined ? undefined : made(collection);
  };
}
