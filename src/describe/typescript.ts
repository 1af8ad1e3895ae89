/** TypeScript types of the collections, for clients: `bylaw types`. */
import { present } from '../invariant.ts';
import { FIELD_KINDS } from '../schema/fields/index.ts';
import { filterKeysOf } from '../schema/model/filter-keys.ts';
import type { Collection, Field, Schema } from '../schema/model/model.ts';
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

type Names = ReadonlyMap<string, string>;

export function typescriptOf({ collections, roles }: Schema): string {
  const names = typeNames(collections.keys());
  const all = [...collections.values()];
  return [
    FILE_HEAD,
    `export type Role = ${[...roles.keys()].map((role) => JSON.stringify(role)).join(' | ')};\n`,
    ...all.map((collection) => typesOf(collection, names)),
    `export interface Collections {\n${all.map((collection) => typeEntry(collection, names)).join('')}}\n`,
  ].join('\n');
}

const typescriptType = (collection: string, names: Names): string =>
  present(names.get(collection), `the type of ${collection}`);

function typeEntry({ name, relations }: Collection, names: Names): string {
  const type = typescriptType(name, names);
  const expand = relations.size === 0 ? 'never' : [...relations.keys()].map((key) => JSON.stringify(key)).join(' | ');
  const create = name === 'users' ? 'never' : `${type}Create`;
  const written = `${type} | IdOnly`;
  const parts = [
    `record: ${type}`,
    `written: ${written}`,
    `create: ${create}`,
    `update: ${type}Update`,
    `filters: ${type}Filters`,
    `expand: ${expand}`,
  ];
  return `  ${name}: { ${parts.join('; ')} };\n`;
}

function typesOf(collection: Collection, names: Names): string {
  const type = typescriptType(collection.name, names);
  const writables = writablesOf(collection);
  return [
    block(type, recordLines(collection, names)),
    ...(collection.kind === 'users'
      ? []
      : [
          block(
            `${type}Create`,
            writables.map((writable) => writableLine(writable, writable.required)),
          ),
        ]),
    block(`${type}Update`, [
      ...changeablesOf(collection).map((writable) => writableLine(writable, false)),
      ...rolesLine(collection),
    ]),
    block(`${type}Filters`, filterLines(collection)),
  ].join('\n');
}

const block = (name: string, lines: readonly string[]): string =>
  `export interface ${name} {\n${lines.map((line) => `  ${line}\n`).join('')}}\n`;

const rolesLine = ({ kind }: Collection): readonly string[] =>
  kind === 'users' ? ['roles?: { set?: Role[]; add?: Role[]; remove?: Role[] };'] : [];

function recordLines(collection: Collection, names: Names): readonly string[] {
  const lines = ['id: Id;'];
  for (const field of collection.fields.values()) {
    lines.push(`${shownName(collection, field)}: ${valueType(field)}${field.required ? '' : ' | null'};`);
  }
  if (collection.kind === 'users') lines.push('roles: Role[];');
  for (const relation of referencesOf(collection)) {
    const nullable = relation.kind === 'has_one' || !relation.required;
    lines.push(`${shownName(collection, relation)}: Id${nullable ? ' | null' : ''};`);
  }
  return [...lines, ...expandLine(collection, names)];
}

/** Adds a question mark if the record can come without the member. */
const shownName = (collection: Collection, { name }: Pick<Field, 'name'>): string =>
  `${name}${canBeHidden(collection, name) ? '?' : ''}`;

function expandLine({ relations }: Collection, names: Names): readonly string[] {
  const parts = [...relations.values()].map(({ kind, name, collection }) => {
    const type = typescriptType(collection, names);
    return `${name}?: ${kind === 'has_many' || kind === 'many_to_many' ? `${type}[]` : `${type} | null`}`;
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

function writableLine(writable: Writable, required: boolean): string {
  const name = `${writable.name}${required ? '' : '?'}`;
  switch (writable.kind) {
    case 'field':
      return `${name}: ${valueType(writable.field)}${writable.field.needed ? '' : ' | null'};`;
    case 'reference':
      return `${name}: Id${writable.nullable ? ' | null' : ''};`;
    case 'members':
      return `${name}: MemberChange;`;
  }
}

const filterLines = (collection: Collection): readonly string[] =>
  [...filterKeysOf(collection).values()].map((filterKey) => {
    const type = filterKey.kind === 'field' ? valueType(filterKey.field) : 'Id';
    return `${filterKey.key}?: ${type};`;
  });
