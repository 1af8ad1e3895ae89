/** TypeScript types of the collections, for clients. */
import { FIELD_KINDS } from '../schema/fields/index.ts';
import type { Collection, Schema } from '../schema/model.ts';
import { filterKeysOf, referencesOf, typeNames, type Writable, writablesOf } from './writable.ts';

const HEAD = `// Made by \`bylaw types\`. Do not edit.

/** A UUID. */
export type Id = string;
/** \`YYYY-MM-DDTHH:MM:SS.ffffffZ\` */
export type DateTime = string;
/** Changes of a many_to_many, applied in this order. */
export interface Members {
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
    HEAD,
    `export type Role = ${[...roles.keys()].map((role) => JSON.stringify(role)).join(' | ')};\n`,
    ...all.map((collection) => typesOf(collection, names)),
    `export interface Collections {\n${all.map((collection) => entryOf(collection, names)).join('')}}\n`,
  ].join('\n');
}

function entryOf({ name }: Collection, names: Names): string {
  const type = names.get(name)!;
  const create = name === 'users' ? 'never' : `${type}Create`;
  return `  ${name}: { record: ${type}; create: ${create}; update: ${type}Update; filters: ${type}Filters };\n`;
}

function typesOf(collection: Collection, names: Names): string {
  const type = names.get(collection.name)!;
  const writables = writablesOf(collection);
  return [
    block(type, recordLines(collection, names)),
    ...(collection.kind === 'users'
      ? []
      : [
          block(
            `${type}Create`,
            writables.map((writable) => writableLine(writable, writable.mandatory)),
          ),
        ]),
    block(`${type}Update`, [...writables.map((writable) => writableLine(writable, false)), ...rolesLine(collection)]),
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
    lines.push(`${field.name}: ${valueType(field)}${field.required ? '' : ' | null'};`);
  }
  if (collection.kind === 'users') lines.push('roles: Role[];');
  for (const relation of referencesOf(collection)) {
    const nullable = relation.kind === 'has_one' || !relation.required;
    lines.push(`${relation.name}: Id${nullable ? ' | null' : ''};`);
  }
  return [...lines, ...expandLine(collection, names)];
}

function expandLine({ relations }: Collection, names: Names): readonly string[] {
  const parts = [...relations.values()].map(({ kind, name, collection }) => {
    const type = names.get(collection)!;
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

function writableLine(writable: Writable, mandatory: boolean): string {
  const name = `${writable.name}${mandatory ? '' : '?'}`;
  switch (writable.kind) {
    case 'field':
      return `${name}: ${valueType(writable.field)}${writable.field.required ? '' : ' | null'};`;
    case 'reference':
      return `${name}: Id${writable.nullable ? ' | null' : ''};`;
    case 'members':
      return `${name}: Members;`;
  }
}

const filterLines = (collection: Collection): readonly string[] =>
  filterKeysOf(collection).map(({ key, field }) => `${key}?: ${field === undefined ? 'Id' : valueType(field)};`);
