/** The tables of docs/schema.md, from the JSON Schema of the file and from the field types. */
import { stringify } from 'yaml';
import { MOST_ELEMENTS } from '../../src/policy/scalar-types.ts';
import { FIELD_KINDS } from '../../src/schema/fields/index.ts';
import { schemaOfFormat } from '../../src/schema/file/shape.ts';
import { builtInFields, builtInRelations } from '../../src/schema/model/built-in.ts';
import type { Collection } from '../../src/schema/model/model.ts';
import { markdownTable } from './markdown.ts';

interface JsonSchema {
  readonly description?: string;
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly pattern?: string;
  readonly properties?: Readonly<Record<string, JsonSchema>>;
  readonly required?: readonly string[];
  readonly items?: JsonSchema;
  readonly additionalProperties?: JsonSchema | boolean;
  readonly anyOf?: readonly JsonSchema[];
  readonly oneOf?: readonly JsonSchema[];
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
}

const FORMAT = schemaOfFormat() as JsonSchema;

/** The mapping below these keys; `*` is any name, and of alternatives the first mapping counts. */
function mappingAt(...path: readonly string[]): JsonSchema {
  return path.reduce((schema, key) => {
    const next = key === '*' ? mappingIn(schema).additionalProperties : mappingIn(schema).properties?.[key];
    if (typeof next !== 'object') throw new Error(`the format has no ${path.join('.')}`);
    return next;
  }, FORMAT);
}

const mappingIn = (schema: JsonSchema): JsonSchema =>
  alternativesOf(schema).find(({ properties, additionalProperties }) => properties ?? additionalProperties) ?? schema;
const alternativesOf = (schema: JsonSchema): readonly JsonSchema[] => schema.anyOf ?? schema.oneOf ?? [schema];

/** The spellings of `src/schema/file/units.ts`, by what their patterns have in common. */
const SPELLINGS: readonly (readonly [part: string, name: string])[] = [
  [' in ', 'rate'],
  ['s|m|h|d|w', 'duration'],
  ['KiB', 'size'],
  ['within_', '`within_<relation>`'],
  ['A-Za-z', 'name'],
];

function typeOf({
  const: only,
  enum: allowed,
  pattern,
  type,
  items,
  additionalProperties,
  anyOf,
  oneOf,
}: JsonSchema): string {
  if (only !== undefined) return code(only);
  if (allowed !== undefined) return allowed.map(code).join(', ');
  if (pattern !== undefined) return SPELLINGS.find(([part]) => pattern.includes(part))?.[1] ?? 'string';
  const alternatives = anyOf ?? oneOf;
  if (alternatives !== undefined) return [...new Set(alternatives.map(typeOf))].join(' or ');
  if (Array.isArray(type))
    return type
      .filter((one) => one !== 'null')
      .map(wordOf)
      .join(' or ');
  if (type === 'array') return `list of ${items === undefined ? 'values' : typeOf(items)}`;
  if (type === 'object' && typeof additionalProperties === 'object') return 'mapping from names';
  return wordOf(String(type ?? 'any'));
}

const WORDS: Readonly<Record<string, string>> = { boolean: 'bool', integer: 'int', object: 'mapping' };
const wordOf = (type: string): string => WORDS[type] ?? type;

/** As it would be written in the file. */
const code = (value: unknown): string =>
  `\`${stringify(value, { collectionStyle: 'flow', flowCollectionPadding: false, lineWidth: 0 }).trim()}\``;

/** A row for each key. Every key has a description. */
function keysTable(mapping: JsonSchema): string {
  const { properties = {}, required = [] } = mappingIn(mapping);
  const rows = Object.entries(properties).map(([key, schema]) => {
    const { description, default: standard, examples = [] } = schema;
    if (description === undefined) throw new Error(`\`${key}\` has no description`);
    const otherwise = required.includes(key) ? 'required' : standard === undefined ? '' : code(standard);
    return [`\`${key}\``, typeOf(schema), otherwise, description, examples.map(code).join(', ')];
  });
  return markdownTable(['key', 'type', 'default', 'meaning', 'for example'], rows);
}

const section =
  (...path: readonly string[]) =>
  (): string =>
    keysTable(mappingAt(...path));

const COLLECTION = ['collections', '*'];

function relationTables(): string {
  return alternativesOf(mappingAt(...COLLECTION, 'relations', '*'))
    .map((kind) => `### ${String(kind.properties?.kind?.const)}\n\n${keysTable(kind)}`)
    .join('\n\n');
}

function typesTable(): string {
  const kinds = Object.values(FIELD_KINDS);
  const lists = kinds.filter(({ bounds }) => bounds === 'elements').map(({ column }) => `\`${column}\``);
  const list = [
    '`list`',
    `at most ${MOST_ELEMENTS} values of the type \`of\`, in their order; no nulls; a string has at most 675 characters`,
    '`min`, `max` (elements)',
    lists.join(', '),
  ];
  const single = kinds.filter(({ bounds }) => bounds !== 'elements');
  const rows = single.map(({ name, doc, bounds, hasEnum, column }) => {
    const limits = {
      none: '',
      length: '`min`, `max` (characters)',
      elements: '`min`, `max` (elements)',
      value: '`min`, `max`',
    }[bounds];
    return [`\`${name}\``, doc, [limits, ...(hasEnum ? ['`enum`'] : [])].filter(Boolean).join(', '), `\`${column}\``];
  });
  return markdownTable(['type', 'values', 'limits', 'column in PostgreSQL'], [...rows, list]);
}

function builtInTable(kind: Collection['kind']): string {
  const fields = builtInFields(kind).map(({ name, type, readOnly }) => [
    `\`${name}\``,
    `\`${type}\``,
    readOnly ? 'set by the service' : 'may be changed',
  ]);
  const relations = builtInRelations(kind).map(({ name, collection }) => [
    `\`${name}\``,
    `belongs_to \`${collection}\``,
    'set by the service',
  ]);
  return markdownTable(['member', 'is', 'and'], [...fields, ...relations]);
}

/** The parts of the page, by name. */
export const SCHEMA_PARTS: Readonly<Record<string, () => string>> = {
  file: section(),
  collection: section(...COLLECTION),
  id: section(...COLLECTION, 'id'),
  types: typesTable,
  field: section(...COLLECTION, 'fields', '*'),
  unique: section(...COLLECTION, 'fields', '*', 'unique'),
  no_overlap: section(...COLLECTION, 'no_overlap'),
  member_access: section(...COLLECTION, 'fields', '*', 'access'),
  relations: relationTables,
  access: section(...COLLECTION, 'access'),
  check: section(...COLLECTION, 'checks', '*'),
  distribute: section(...COLLECTION, 'distribute'),
  changes: section(...COLLECTION, 'changes'),
  webhooks: section('webhooks', '*'),
  rule: () => keysTable(ruleIn(mappingAt(...COLLECTION, 'access', 'create'))),
  role: section('roles', '*'),
  prove: () => keysTable(mappingAt('prove').items ?? {}),
  register: section('register'),
  second_factor: section('second_factor'),
  passkeys: section('passkeys'),
  cookie: section('cookie'),
  studio: section('studio'),
  sessions: section('sessions'),
  mail: section('mail'),
  audit: section('audit'),
  limits: section('limits'),
  feeds: section('limits', 'feeds'),
  uploads: section('uploads'),
  images: section('uploads', 'images'),
  oauth: section('oauth', '*'),
  seed: section('seed'),
  seed_file: section('seed', 'files', '*'),
  users: () => builtInTable('users'),
  files: () => builtInTable('files'),
};

const ruleIn = (rules: JsonSchema): JsonSchema => alternativesOf(rules).find(({ properties }) => properties) ?? rules;
