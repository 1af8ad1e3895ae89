/** The members of a record outside the API: its stored members by name, and its many_to_many lists. */
import { foldedColumn } from '../../policy/fold.ts';
import { keyOf, type ReferencedColumn } from '../../policy/types.ts';
import { columnTypeOfField, FIELD_KINDS, keyKindOf } from '../../schema/fields/index.ts';
import type { FieldKind, Read } from '../../schema/fields/kind.ts';
import type { BelongsTo, Collection, Default, Field, ManyToMany } from '../../schema/model/model.ts';
import type { SqlType } from '../../sql.ts';
import type { Collections } from '../scope.ts';

export interface StoredMember {
  readonly name: string;
  readonly column: string;
  /** The type of the column, as `format_type` prints it. */
  readonly columnType: string;
  /** The type of a parameter that holds one value for each of many records. */
  readonly arrayType: SqlType;
  /** Given if an element of `arrayType` is cast to the type of the column. */
  readonly castTo?: string;
  /** The type of the column in a table of another owner, if it is not `columnType`. */
  readonly columnCast?: string | undefined;
  readonly required: boolean;
  readonly default?: Default;
  readonly isUnique: boolean;
  /** The belongs_to whose records each have the value at most once. */
  readonly uniqueWithin?: Pick<BelongsTo, 'name' | 'column' | 'references'>;
  /** The column of the folded copy that a search field keeps. */
  readonly copy?: string;
  /** Its values are days or instants. */
  readonly moment?: FieldKind['moment'];
  /** The collection that it references. */
  readonly references?: string;
  /** Given if the column holds another value of the related record than its id. */
  readonly referencesBy?: ReferencedColumn | undefined;
  /** Values of a file are not stored: the database has its own. */
  readonly isComputed?: true;
  /** Reads a value of a JSON document other than null. */
  read(value: unknown): Read;
  /** Text of a CSV cell → the JSON value that it represents; undefined if it cannot be read. */
  fromText(text: string): unknown;
}

/** The value is unique in the whole collection, or within a relation. */
export const isExclusive = ({ isUnique, uniqueWithin }: StoredMember): boolean =>
  isUnique || uniqueWithin !== undefined;

export const keyColumns = ({ column, uniqueWithin }: StoredMember): readonly string[] =>
  uniqueWithin === undefined ? [column] : [uniqueWithin.column, column];

export const manyToManyOf = ({ relations }: Collection): readonly ManyToMany[] =>
  [...relations.values()].filter((relation) => relation.kind === 'many_to_many');

/** The stored members in the order of the API's records: `id` first. */
export function storedMembersOf(collection: Collection, { collections }: Collections): readonly StoredMember[] {
  const { column } = keyOf(collection);
  const id: StoredMember = { ...idMember(collection), name: 'id', column, required: true, isUnique: true };
  const fields = [...collection.fields.values()].map((field): StoredMember => {
    const kind = FIELD_KINDS[field.type];
    return {
      name: field.name,
      column: field.column,
      ...stagingOf(kind, columnTypeOfField(field)),
      columnCast: field.castTo,
      required: field.needed,
      default: field.default,
      isUnique: field.unique,
      ...leaderOf(collection, field),
      ...(field.search && { copy: foldedColumn(field.column) }),
      ...(field.isComputed && { isComputed: true }),
      read: (value) => kind.fromJson(value, field),
      fromText(text) {
        if (kind.fromText !== undefined) return kind.fromText(text);
        const value = kind.fromQuery(text);
        // A value that JSON writes as a string is the text of the cell.
        return typeof value === 'string' ? text : value;
      },
      ...(kind.moment && { moment: kind.moment }),
    };
  });
  const references = [...collection.relations.values()].flatMap((relation): readonly StoredMember[] => {
    // The members of a reference of several columns have its value.
    if (relation.kind !== 'belongs_to' || relation.columns !== undefined) return [];
    const { name, column, needed: required, unique, collection: target } = relation;
    const uniqueness = { isUnique: unique, ...leaderOf(collection, relation) };
    const own = { ...idMember(collections.get(target)!), name, column };
    const by = { references: target, referencesBy: relation.references };
    return [{ ...own, ...uniqueness, ...by, required, default: relation.default }];
  });
  return [id, ...fields, ...references];
}

/** PostgreSQL has no array of lists: each is a text, which is cast. */
function stagingOf(
  { sqlType, bounds }: FieldKind,
  columnType: string,
): Pick<StoredMember, 'columnType' | 'arrayType' | 'castTo'> {
  if (bounds === 'elements') return { columnType, arrayType: 'text[]', castTo: columnType };
  return { columnType, arrayType: `${sqlType}[]` as SqlType };
}

function leaderOf(
  { relations }: Collection,
  { uniqueWithin }: Pick<Field, 'uniqueWithin'>,
): Pick<StoredMember, 'uniqueWithin'> {
  const leader = uniqueWithin === undefined ? undefined : relations.get(uniqueWithin);
  return leader?.kind === 'belongs_to' ? { uniqueWithin: leader } : {};
}

function idMember(collection: Collection) {
  const kind = keyKindOf(collection);
  return {
    columnType: kind.column,
    arrayType: `${kind.sqlType}[]` as SqlType,
    read: (value: unknown): Read => kind.fromJson(value, {}),
    fromText: (text: string): unknown => kind.fromQuery(text) ?? text,
  };
}
