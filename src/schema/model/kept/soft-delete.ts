/** `soft_delete: true`: a table beside that of a collection keeps its deleted records, as they were. */
import { deletedName } from '../../../policy/deleted-names.ts';
import type { Action, Catalog, Policy, RuledAction } from '../../../policy/types.ts';
import type { DocumentPath, Report } from '../../file/issue.ts';
import type { CollectionShape } from '../../file/shape.ts';
import { fieldOf } from '../built-in.ts';
import type { Collection, Field, Relation, Schema, SoftDelete } from '../model.ts';
import { deletedTableOf } from '../stored-names.ts';
import { withoutForeignKey } from '../unmanaged.ts';
import { keptMemberAccess } from './kept-rules.ts';

/** The time of the deletion, as deleted records have it. */
export const DELETED_AT = 'deleted_at';
const DELETED_AT_FIELD: Field = fieldOf({ name: DELETED_AT, type: 'datetime', required: true, readOnly: true });

interface SoftDeleteDeclaration {
  readonly shape: CollectionShape;
  readonly path: DocumentPath;
  readonly kind: Collection['kind'];
  readonly table: string;
}

/** Its rules are read later. */
export function softDeleteOf(
  { shape, path, kind, table }: SoftDeleteDeclaration,
  report: Report,
): { readonly softDelete?: SoftDelete } {
  if (shape.soft_delete !== true) {
    const message = '`restore` is for collections that keep deleted records; add `soft_delete: true`, or remove it';
    if (shape.access?.restore !== undefined)
      report({ code: 'no_such_action', message, path: [...path, 'access', 'restore'], at: 'key' });
    return {};
  }
  const reason = whyNotKept({ shape, kind, table });
  if (reason !== undefined) {
    const message = `${reason}; remove \`soft_delete\``;
    report({ code: 'soft_delete', message, path: [...path, 'soft_delete'], at: 'key' });
  }
  if (Object.hasOwn(shape.fields ?? {}, DELETED_AT)) {
    const message = `deleted records have \`${DELETED_AT}\` by themselves; choose another name`;
    report({ code: 'name_taken', message, path: [...path, 'fields', DELETED_AT], at: 'key' });
  }
  return { softDelete: { table: deletedTableOf(table), restore: [] } };
}

function whyNotKept({ shape, kind, table }: Omit<SoftDeleteDeclaration, 'path'>): string | undefined {
  if (kind !== 'plain') return `records of \`${kind}\` are deleted for good`;
  if (shape.managed === false)
    return 'the table is not managed, so the service adds no trigger that would keep its rows';
  if (table.includes('.')) return 'the table is in another schema of the database';
  return undefined;
}

/** The rules that decide about the action. */
export const rulesOfAction = (
  { access, softDelete }: Pick<Collection, 'access' | 'softDelete'>,
  action: RuledAction,
): readonly Policy[] => (action === 'restore' ? (softDelete?.restore ?? []) : access[action]);

const referenceOfDeleted = (relation: Relation): Relation =>
  relation.kind === 'belongs_to' ? withoutForeignKey(relation) : relation;

/**
 * The collection as policies and filters about its deleted records see it. Their links are gone, and over none `all` and
 * `none` are true, so rules cannot ask of their members.
 */
function deletedCollectionOf(collection: Collection): Collection {
  const { name, softDelete, fields, relations } = collection;
  if (softDelete === undefined) return collection;
  return {
    ...collection,
    name: deletedName(name),
    table: softDelete.table,
    fields: new Map([...fields, [DELETED_AT, DELETED_AT_FIELD]]),
    relations: new Map(
      [...relations]
        .filter(([, { kind }]) => kind !== 'many_to_many')
        .map(([name, relation]) => [name, referenceOfDeleted(relation)]),
    ),
    softDelete: undefined,
    feed: undefined,
  };
}

/** The catalog that has the deleted records of one collection too. Relations lead to living records. */
export function deletedCatalogOf<C extends Catalog>(catalog: C, name: string): C {
  const deleted = deletedCollectionOf(catalog.collections.get(name) as Collection);
  return { ...catalog, collections: new Map(catalog.collections).set(deleted.name, deleted) };
}

interface RuledPlace {
  readonly collection: string;
  readonly action: RuledAction;
}

/** The catalog and the action of the rules for an action: those for `restore` list deleted records. */
export const askedPlace = <C extends Catalog>(
  { collection, action }: RuledPlace,
  catalog: C,
): { readonly catalog: C; readonly collection: string; readonly action: Action } =>
  action === 'restore'
    ? { catalog: deletedCatalogOf(catalog, collection), collection: deletedName(collection), action: 'list' }
    : { catalog, collection, action };

/** The schema that has the deleted records of one collection too: found under the rules for `restore`, never written. */
export function deletedSchemaOf(schema: Schema, name: string): Schema {
  const { softDelete, memberAccess } = schema.collections.get(name)!;
  const catalog = deletedCatalogOf(schema, name);
  const deleted = catalog.collections.get(deletedName(name))!;
  const restore: readonly Policy[] = softDelete?.restore ?? [];
  const access = { list: restore, read: restore, create: [], update: [], delete: [] };
  const kept = keptMemberAccess(memberAccess, { catalog: schema, collection: name });
  return {
    ...schema,
    collections: new Map(catalog.collections).set(deleted.name, { ...deleted, access, memberAccess: kept }),
  };
}
