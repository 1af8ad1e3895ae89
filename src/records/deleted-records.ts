/**
 * The deleted records of a collection with `soft_delete: true`. They are in a table of their own, so that no other statement
 * finds them; here the same pages are made of that table, under the rules for `restore`.
 */
import type { Database, Transaction } from '../database/contract.ts';
import { memoizedBy } from '../memoized.ts';
import { foldedColumn } from '../policy/fold.ts';
import { notFound } from '../refusal.ts';
import { keyKindOf } from '../schema/fields/index.ts';
import { linksOf } from '../schema/model/kept/links.ts';
import { deletedSchemaOf } from '../schema/model/kept/soft-delete.ts';
import type { Collection, Schema } from '../schema/model/model.ts';
import { LINKS_COLUMN, VERSION_COLUMN } from '../schema/model/stored-names.ts';
import { ident, join, raw, type Sql, sql, text } from '../sql.ts';
import { type AccessContext, Store } from './access-context.ts';
import { toRefusal } from './constraint-errors.ts';
import { list, type Pages, type RecordPage } from './page/list.ts';
import type { ListRequest } from './page/page-plan.ts';
import { recordKeyOf } from './record-key.ts';
import { everyTenant } from './scope.ts';
import { ShapeMemory } from './shape-memory.ts';
import { checksOn, failureOfStored } from './write/checks.ts';

class DeletedRecords {
  /** Its collection of the name has the deleted records. */
  readonly schema: Schema;
  readonly collection: Collection;
  readonly #living: Collection;
  readonly #livingSchema: Schema;
  readonly #store: Store;
  readonly #livingStore: Store;
  readonly #pages: Pages;

  constructor(db: Database, schema: Schema, name: string) {
    this.schema = deletedSchemaOf(schema, name);
    this.collection = this.schema.collections.get(name)!;
    this.#living = schema.collections.get(name)!;
    this.#livingSchema = schema;
    this.#store = new Store(db, this.schema);
    this.#livingStore = new Store(db, schema);
    this.#pages = { store: this.#store, plans: new ShapeMemory((plan) => plan.text) };
  }

  list(access: AccessContext, request: ListRequest): Promise<RecordPage> {
    return list(this.#pages, access, request);
  }

  /** Brings a record back, with the links whose other side still exists. Throws `not_found` and the errors of a create. */
  async restore(access: AccessContext, id: string): Promise<void> {
    try {
      await this.#store.transaction((tx) => this.#restoreIn(tx, access, id));
    } catch (error) {
      throw toRefusal(error, this.#living);
    }
    await this.#store.noteWrite(access);
  }

  async #restoreIn(tx: Transaction, access: AccessContext, id: string): Promise<void> {
    const { name } = this.collection;
    const key = recordKeyOf(this.collection);
    const deleted = everyTenant(this.schema);
    const isAllowed = access.permit(name, 'list').where('t');
    const [found] = await tx.rows(sql`
      SELECT ${key.of('t')}
        FROM ${deleted.from(name, 't').where(key.is('t', id), isAllowed)}
         FOR UPDATE OF t`);
    if (found === undefined) throw notFound();
    const columns = this.#columns();
    await tx.run(sql`
      INSERT INTO ${everyTenant(this.#livingSchema).into(name, 'x')} (${join(
        columns.map((column) => ident(column)),
        ', ',
      )})
      SELECT ${join(
        columns.map((column) => this.#restored(column)),
        ', ',
      )}
        FROM ${deleted.from(name, 't').where(key.is('t', id))}`);
    for (const links of this.#links(id)) await tx.run(links);
    const asked = checksOn(access, this.#living, 'create');
    const failure = await failureOfStored({ store: this.#livingStore, q: tx }, { collection: name, id }, asked);
    if (failure !== undefined) throw failure;
    await tx.run(sql`DELETE FROM ${deleted.stored(name, 't').where(key.is('t', id))}`);
  }

  /** The columns of a living record. */
  #columns(): readonly string[] {
    const { fields, relations } = this.#living;
    return [
      recordKeyOf(this.#living).column,
      ...[...fields.values()].flatMap(({ column, search }) => (search ? [column, foldedColumn(column)] : [column])),
      ...[...relations.values()].flatMap((relation) => (relation.kind === 'belongs_to' ? [relation.column] : [])),
      VERSION_COLUMN,
    ];
  }

  /** The record has changed: it has a new version, and the time of now. */
  #restored(column: string): Sql {
    if (column === VERSION_COLUMN) return sql`coalesce(${ident('t', column)}, 0) + 1`;
    return column === this.#living.fields.get('updated_at')?.column ? raw('now()') : ident('t', column);
  }

  #links(id: string): readonly Sql[] {
    const { name } = this.collection;
    const key = recordKeyOf(this.collection);
    const living = everyTenant(this.#livingSchema);
    return linksOf(this.#living, this.#livingSchema).map(({ name: side, relation, holder, isSource, other }) => {
      const otherKey = living.key(other);
      const [source, target] = isSource ? [key.of('t'), otherKey.of('o')] : [otherKey.of('o'), key.of('t')];
      const type = raw(keyKindOf(this.#livingSchema.collections.get(other)!).column);
      const isLinked = sql`${otherKey.of('o')} IN (
              SELECT each::${type}
                FROM jsonb_array_elements_text(${ident('t', LINKS_COLUMN)} -> ${text(side)}) AS each)`;
      const rows = everyTenant(this.schema).from(name, 't').join(living.from(other, 'o'), isLinked);
      return sql`
        INSERT INTO ${living.linkInto(relation, holder, source!, target!)}
          FROM ${rows.where(key.is('t', id))}
            ON CONFLICT DO NOTHING`;
    });
  }
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
