/** A random schema some of whose references have another value of the related record than its id. */
import type { CatalogBelongsTo, CatalogCollection, CatalogField } from '../../../src/policy/types.ts';
import type { Collection } from '../../../src/schema/model/model.ts';
import type { Id } from '../../oracle/database.ts';
import type { Random } from '../random.ts';
import { idParam } from './keyed-schema.ts';
import type { Doors } from './store-modules.ts';

/** The field of records that are referred to by it. */
const MARK = 'mark';
/** The share of schemas, and of their references. */
const SHARE = 0.7;
/** Users are referred to by their addresses. */
const EMAIL = 'email';

interface ReferringFile {
  readonly fields: Record<string, object>;
  readonly relations: Record<string, { readonly kind: string; readonly collection: string; references?: string }>;
  readonly history?: boolean;
  readonly soft_delete?: boolean;
}

/** JSON is YAML. */
export function withReferences(text: string, random: Random): string {
  const file = JSON.parse(text) as { readonly collections: Record<string, ReferringFile> };
  if (random.chance(1 - SHARE)) return text;
  for (const [name, { relations, history, soft_delete: softDelete }] of Object.entries(file.collections)) {
    if (name === 'users' || history || softDelete) continue;
    for (const relation of Object.values(relations)) {
      if (relation.kind !== 'belongs_to' || !random.chance(SHARE)) continue;
      relation.references = relation.collection === 'users' ? EMAIL : MARK;
      const { fields } = file.collections[relation.collection]!;
      if (relation.references === MARK) fields[MARK] = { type: 'string', required: true, unique: true, max: 20 };
    }
  }
  return JSON.stringify(file);
}

/** Other records may have its values. */
export const isReferredTo = ({ name }: Pick<CatalogField, 'name'>): boolean => name === MARK;

/** Undefined: another field. */
export const firstMark = (id: Id, { name }: Pick<CatalogField, 'name'>): string | undefined =>
  isReferredTo({ name }) ? markOf(id) : undefined;

/** Ids differ in their ends, which have the sign of an int. */
const markOf = (id: Id): string => `m-${[...String(id)].slice(-17).join('')}`;

/** The mark of a copied record, which no other one has; empty without marks. */
export const markOfCopy = (id: Id, { fields }: Pick<CatalogCollection, 'fields'>): Readonly<Record<string, string>> =>
  fields.has(MARK) ? { [MARK]: markOf(id) } : {};

/** A mark that mostly no other record has. */
export const newMark = (field: CatalogField, random: Random): string | undefined =>
  random.chance(0.2) ? firstMark(`${random.below(4)}`, field) : firstMark(random.uuid(), field);

/** The value of the column that refers to the record of the collection with the id. */
export function columnValue(doors: Doors, { references }: CatalogBelongsTo, collection: Collection, id: unknown) {
  const { sql, ident, tableIdent } = doors.compiler.sql;
  const given = idParam({ doors, collection }, id);
  if (references === undefined) return given;
  const { column, table, key } = references;
  return sql`(SELECT ${ident(column)} FROM ${tableIdent(table)} WHERE ${ident(key)} = ${given})`;
}
