/** TypeScript types of the collections, for clients: `bylaw types`. */
import { present } from '../invariant.ts';
import { isDay, isInstant, scalarOf } from '../policy/scalar-types.ts';
import { type CatalogField, keyOf } from '../policy/types.ts';
import { PROBLEMS } from '../problem.ts';
import { FIELD_KINDS, keyKindOf } from '../schema/fields/index.ts';
import { type FilterKey, filterKeysOf } from '../schema/model/filter-keys.ts';
import { countName } from '../schema/model/list-parameters.ts';
import {
  type Collection,
  type Field,
  madeBy,
  type Relation,
  type Schema,
  uniqueFieldsOf,
} from '../schema/model/model.ts';
import { canBeHidden, changeablesOf, referencesOf, typeNames, type Writable, writablesOf } from './writable.ts';

const FILE_HEAD = `// Made by \`bylaw types\`. Do not edit.

/** A UUID. */
export type Id = string;
/** \`YYYY-MM-DDTHH:MM:SS.ffffffZ\` */
export type DateTime = string;
/** The answer to a write where the caller may not read the result. */
export interface IdOnly {
  id: Id;
}
/** Changes the members of a many_to_many, in this order. */
export interface MemberChange {
  set?: Id[];
  add?: Id[];
  remove?: Id[];
}
export interface Page {
  limit: number;
  offset: number;
  has_more: boolean;
  total?: number;
}
`;

type TypeNames = ReadonlyMap<string, string>;
interface Typed extends Pick<Schema, 'collections'> {
  readonly names: TypeNames;
}

const ID_TYPE = 'Id';
const idTypeOf = (collection: Collection): string =>
  keyOf(collection).kind === 'uuid' ? ID_TYPE : keyKindOf(collection).typescript({});
const idTypeIn = ({ collections }: Typed, relation: Relation): string =>
  idTypeOf(present(collections.get(relation.collection), `collection ${relation.collection}`));

export function typescriptOf({ collections, roles }: Schema): string {
  const names = typeNames(collections.keys());
  const all = [...collections.values()];
  return [
    FILE_HEAD,
    `export type Role = ${typeUnion(roles.keys())};\n`,
    `/** The \`code\` of an error. */\nexport type ErrorCode =${Object.keys(PROBLEMS)
      .map((code) => `\n  | ${JSON.stringify(code)}`)
      .join('')};\n`,
    ...all.map((collection) => typesOf(collection, { collections, names })),
    `export interface Collections {\n${all.map((collection) => typeEntry(collection, { collections, names })).join('')}}\n`,
  ].join('\n');
}

const typescriptType = (collection: string, names: TypeNames): string =>
  present(names.get(collection), `the type of ${collection}`);

function typeEntry(collection: Collection, { collections, names }: Typed): string {
  const { name, relations } = collection;
  const type = typescriptType(name, names);
  const create = name === 'users' ? 'never' : `${type}Create`;
  const id = idTypeOf(collection);
  const written = `${type} | ${id === ID_TYPE ? 'IdOnly' : `{ id: ${id} }`}`;
  const parts = [
    `record: ${type}`,
    `written: ${written}`,
    `create: ${create}`,
    `update: ${type}Update`,
    `filters: ${type}Filters`,
    `expand: ${typeUnion(relations.keys())}`,
    ...orderEntries(collection, collections),
  ];
  return `  ${name}: { ${parts.join('; ')} };\n`;
}

const typeUnion = (names: Iterable<string>): string =>
  Array.from(names, (name) => JSON.stringify(name)).join(' | ') || 'never';

/** The words of `sort`, `group_by` and upserts. */
function orderEntries(collection: Collection, collections: Typed['collections']): readonly string[] {
  const named = (members: readonly { readonly name: string }[]): string => typeUnion(members.map(({ name }) => name));
  const references = referencesOf(collection);
  const ordered = orderedFieldsOf(collection);
  return [
    `through: ${named(references)}`,
    `linked: ${references.flatMap((relation) => linkedNames(relation, collections)).join(' | ') || 'never'}`,
    `sort: ${named(ordered)}`,
    `folded: ${named(ordered.filter(({ search }) => search === true))}`,
    `unique: ${named(uniqueFieldsOf(collection))}`,
    `group_by: ${named([...ordered, ...references.filter(({ kind }) => kind === 'belongs_to')])}`,
    `dated: ${named(ordered.filter(({ type }) => isInstant(type) || isDay(type)))}`,
    `points: ${named([...collection.fields.values()].filter(({ type }) => type === 'point'))}`,
  ];
}

const orderedFieldsOf = ({ fields }: Collection): readonly CatalogField[] =>
  [...fields.values()].flatMap((field) =>
    scalarOf(field.type).sorts === false ? [...(field.paths?.values() ?? [])] : [field],
  );

/** The names after the dot of a relation to one record. Longer paths are known by their first two steps. */
function linkedNames(
  { name, collection }: Pick<Relation, 'name' | 'collection'>,
  collections: Typed['collections'],
): readonly string[] {
  const target = collections.get(collection)!;
  const ordered = orderedFieldsOf(target);
  const references = referencesOf(target);
  const belongsTos = references.filter(({ kind }) => kind === 'belongs_to');
  const words = ['id', ...[...ordered, ...belongsTos].map((member) => member.name)];
  const folded = ordered.filter(({ search }) => search === true).map((field) => `${field.name}:text`);
  const points = [...target.fields.values()].filter(({ type }) => type === 'point');
  return [
    ...[...words, ...folded].map((word) => JSON.stringify(`${name}.${word}`)),
    ...points.map((field) => `\`${name}.${field.name}:from(\${number} \${number})\``),
    ...references.map((relation) => `\`${name}.${relation.name}.\${string}\``),
  ];
}

function typesOf(collection: Collection, of: Typed): string {
  const { names } = of;
  const type = typescriptType(collection.name, names);
  const writables = writablesOf(collection);
  return [
    block(type, recordLines(collection, of)),
    ...(collection.kind === 'users'
      ? []
      : [
          block(`${type}Create`, [
            ...(madeBy(collection) === 'caller' ? [`id: ${idTypeOf(collection)};`] : []),
            ...writables.map((writable) => writableLine(writable, of, writable.required)),
          ]),
        ]),
    block(`${type}Update`, [
      ...changeablesOf(collection).map((writable) => writableLine(writable, of, false)),
      ...rolesLine(collection),
    ]),
    block(`${type}Filters`, filterLines(collection, of)),
  ].join('\n');
}

const block = (name: string, lines: readonly string[]): string =>
  `export interface ${name} {\n${lines.map((line) => `  ${line}\n`).join('')}}\n`;

const rolesLine = ({ kind }: Collection): readonly string[] =>
  kind === 'users' ? ['roles?: { set?: Role[]; add?: Role[]; remove?: Role[] };'] : [];

function recordLines(collection: Collection, of: Typed): readonly string[] {
  const lines = [`id: ${idTypeOf(collection)};`];
  for (const field of collection.fields.values()) {
    lines.push(`${shownName(collection, field)}: ${valueType(field)}${field.required ? '' : ' | null'};`);
  }
  if (collection.kind === 'users') lines.push('roles: Role[];');
  for (const relation of referencesOf(collection)) {
    const nullable = relation.kind === 'has_one' || !relation.required;
    lines.push(`${shownName(collection, relation)}: ${idTypeIn(of, relation)}${nullable ? ' | null' : ''};`);
  }
  return [...lines, ...expandLine(collection, of.names)];
}

/** Adds a question mark if the record can come without the member. */
const shownName = (collection: Collection, { name }: Pick<Field, 'name'>): string =>
  `${name}${canBeHidden(collection, name) ? '?' : ''}`;

function expandLine({ relations }: Collection, names: TypeNames): readonly string[] {
  const parts = [...relations.values()].map(({ kind, name, collection }) => {
    const type = typescriptType(collection, names);
    const isMany = kind === 'has_many' || kind === 'many_to_many';
    const count = isMany && !relations.has(countName(name)) ? `; ${countName(name)}?: number` : '';
    return isMany ? `${name}?: ${type}[]${count}` : `${name}?: ${type} | null`;
  });
  const cuttable = [...relations.values()].filter(({ kind }) => kind === 'has_many' || kind === 'many_to_many');
  const more = cuttable.map(({ name }) => JSON.stringify(name)).join(' | ');
  return [
    ...(parts.length === 0 ? [] : [`expand?: { ${parts.join('; ')} };`]),
    ...(cuttable.length === 0 ? [] : [`expand_more?: (${more})[];`]),
  ];
}

type Valued = Extract<Writable, { kind: 'field' }>['field'];

const valueType = (field: Valued): string => FIELD_KINDS[field.type].typescript(field);

function writableLine(writable: Writable, of: Typed, required: boolean): string {
  const name = `${writable.name}${required ? '' : '?'}`;
  switch (writable.kind) {
    case 'field':
      return `${name}: ${valueType(writable.field)}${writable.field.needed ? '' : ' | null'};`;
    case 'reference':
      return `${name}: ${idTypeIn(of, writable.relation)}${writable.nullable ? ' | null' : ''};`;
    case 'members': {
      const id = idTypeIn(of, writable.relation);
      const lists = ['set', 'add', 'remove'].map((key) => `${key}?: ${id}[]`).join('; ');
      return `${name}: ${id === ID_TYPE ? 'MemberChange' : `{ ${lists} }`};`;
    }
  }
}

const filterLines = (collection: Collection, of: Typed): readonly string[] =>
  [...filterKeysOf(collection).values()].map(
    (filterKey) => `${filterKey.key}?: ${filterType(filterKey, collection, of)};`,
  );

function filterType(filterKey: FilterKey, collection: Collection, of: Typed): string {
  switch (filterKey.kind) {
    case 'id':
      return idTypeOf(collection);
    case 'field':
      return valueType(filterKey.field);
    case 'relation':
      return idTypeIn(of, filterKey.relation);
  }
}
