/** JSON Schemas and parameters of collections: records, what a write takes, filters, `expand`. */
import { isText } from '../policy/scalar-types.ts';
import { isToMany } from '../policy/types.ts';
import type { ProblemCode } from '../problem.ts';
import { FIELD_KINDS, newIdSchema } from '../schema/fields/index.ts';
import { type FilterKey, filterKeysOf, neededTenant } from '../schema/model/filter-keys.ts';
import { uniqueColumns, uniqueIndexes } from '../schema/model/indexes.ts';
import { countName } from '../schema/model/list-parameters.ts';
import { type Collection, type Field, madeBy, type Relation, type Schema } from '../schema/model/model.ts';
import {
  closed,
  ID_SCHEMA,
  idSchemaIn,
  type Json,
  type OperationParameter,
  type OperationScope,
  object,
  type Shape,
} from './operation.ts';
import { canBeHidden, changeablesOf, referencesOf, type Writable, writablesOf } from './writable.ts';

/** Only where a route of collections is described. */
export function collectionIn({ collection }: OperationScope): Collection {
  if (collection === undefined) throw new Error('this route names no collection');
  return collection;
}

export const ref = (name: string): Json => ({ $ref: `#/components/schemas/${name}` });

// ---------------------------------------------------------------- what bodies hold

export const record: Shape = (scope) => ref(scope.typeName(collectionIn(scope).name));
export const user: Shape = (scope) => ref(scope.typeName('users'));
export const createData: Shape = (scope) => ref(`${scope.typeName(collectionIn(scope).name)}Create`);
export const updateData: Shape = (scope) => ref(`${scope.typeName(collectionIn(scope).name)}Update`);

/** None is required: an update keeps what the body leaves out. */
export const upsertData: Shape = (scope) => {
  const { required: _, ...schema } = createSchema(collectionIn(scope), scope.schema);
  return schema;
};

/** `{ "data": … }` */
export const inData =
  (shape: Shape): Shape =>
  (scope) =>
    object({ data: shape(scope) });

/** Only the id where the caller may not read the result of the write. */
export const written: Shape = (scope) => {
  const id = idSchemaIn(scope.schema, collectionIn(scope).name);
  const idOnly = { ...object({ id }), description: 'The caller may not read the result of the write.' };
  const shown = isUuidSchema(id) ? scope.define('IdOnly', idOnly) : idOnly;
  return object({ data: { oneOf: [record(scope), shown] } });
};

// ---------------------------------------------------------------- parameters

export function expandParameter(scope: OperationScope): readonly OperationParameter[] {
  const { relations } = collectionIn(scope);
  if (relations.size === 0) return [];
  const names = [...relations.keys()];
  return [
    {
      name: 'expand',
      in: 'query',
      description: 'Relations whose records come along, under `expand` of each record.',
      style: 'form',
      explode: false,
      schema: { type: 'array', items: { type: 'string', enum: names }, minItems: 1, uniqueItems: true },
    },
  ];
}

export function filterParameters(scope: OperationScope): readonly OperationParameter[] {
  const collection = collectionIn(scope);
  return [...filterKeysOf(collection).values()].map((filterKey) => ({
    name: filterKey.key,
    in: 'query',
    description: `${filterDescription(filterKey)}${neededWords(filterKey, collection)}`,
    schema: filterSchema(scope, filterKey),
  }));
}

/** A belongs_to has two keys, of which the schema names one. */
function neededWords(filterKey: FilterKey, collection: Collection): string {
  if (filterKey.kind !== 'relation' || filterKey.relation.kind !== 'belongs_to') return '';
  const { name, column } = filterKey.relation;
  return name === neededTenant(collection) ? ` Required: \`${name}\` or \`${column}\`.` : '';
}

function filterDescription(filterKey: FilterKey): string {
  switch (filterKey.kind) {
    case 'id':
      return 'The record with this id.';
    case 'field':
      return `Records whose \`${filterKey.field.name}\` is exactly this.`;
    case 'relation': {
      const { name, kind, collection } = filterKey.relation;
      const isOne = kind === 'belongs_to' || kind === 'has_one';
      return isOne
        ? `Records whose \`${name}\` is the record of \`${collection}\` with this id.`
        : `Records that have the record of \`${collection}\` with this id among their \`${name}\`.`;
    }
  }
}

/** A filter takes any value of the field's type: only writes are held to its bounds. */
function filterSchema(scope: OperationScope, filterKey: FilterKey): Json {
  if (filterKey.kind === 'id') return idSchemaIn(scope.schema, collectionIn(scope).name);
  if (filterKey.kind === 'relation') return idSchemaIn(scope.schema, filterKey.relation.collection);
  const { type, enum: allowed } = filterKey.field;
  const schema = FIELD_KINDS[type].jsonSchema(allowed === undefined ? {} : { enum: allowed }) as Json;
  return isText(type) && allowed === undefined ? { ...schema, pattern: NO_NUL } : schema;
}
const NO_NUL = '^[^\\u0000]*$';

// ---------------------------------------------------------------- problems

/** True if another record can take a value or a place. */
export function uniqueProblems(scope: OperationScope): readonly ProblemCode[] {
  const collection = collectionIn(scope);
  const hasOne = [...collection.relations.values()].some(({ kind }) => kind === 'has_one');
  const keys = [...uniqueColumns(collection), ...uniqueIndexes(collection)];
  const isTakeable = hasOne || !collection.countsChanges || keys.length > 0 || madeBy(collection) === 'caller';
  return isTakeable ? ['unique_violation'] : [];
}

/** `no_overlap`, and exclusion constraints of a table that another program owns. */
export const exclusionProblems = (scope: OperationScope): readonly ProblemCode[] => {
  const { countsChanges, noOverlap } = collectionIn(scope);
  return countsChanges && noOverlap === undefined ? [] : ['conflict'];
};

/** Triggers of a table that another program owns can reject a delete. */
export const triggerProblems = (scope: OperationScope): readonly ProblemCode[] => {
  const { countsChanges, showsErrors } = collectionIn(scope);
  return countsChanges && !showsErrors ? [] : ['validation_failed'];
};

/** Given if the rules do not fix the tenant of a list. */
export const tenantProblems = (scope: OperationScope): readonly ProblemCode[] =>
  neededTenant(collectionIn(scope)) === undefined ? [] : ['filter_required'];

/** Given where a field has transitions. */
export const transitionProblems = (scope: OperationScope): readonly ProblemCode[] =>
  collectionIn(scope).checks.some(({ transitions }) => transitions !== undefined) ? ['transition_refused'] : [];

/** An update of a user can take away the last admin. */
export const adminProblems = (scope: OperationScope): readonly ProblemCode[] =>
  collectionIn(scope).kind === 'users' ? ['last_admin'] : [];

// ---------------------------------------------------------------- components

export function commonSchemas({ roles }: Schema): Json {
  return {
    Id: ID_SCHEMA,
    Role: { type: 'string', enum: [...roles.keys()] },
    MemberChange: memberChange(ID_SCHEMA),
    Page: {
      type: 'object',
      required: ['limit', 'offset', 'has_more'],
      properties: {
        limit: { type: 'integer' },
        offset: { type: 'integer' },
        has_more: { type: 'boolean' },
        total: { type: 'integer', description: 'With `count`, or `Prefer: count=exact`.' },
        total_is_estimate: { type: 'boolean', description: 'With `count=estimated`.' },
        next_cursor: {
          type: ['string', 'null'],
          description: 'Where the next page begins; for lists with a word of queries, such as `filter` or `sort`.',
        },
      },
    },
  };
}

function memberChange(id: Json): Json {
  const ids = { type: 'array', items: id, maxItems: 1000 };
  return closed(
    { set: ids, add: ids, remove: ids },
    { description: 'Changes the members of a many_to_many, in the order set, add, remove.', minProperties: 1 },
  );
}

const isUuidSchema = ({ format }: Json): boolean => format === 'uuid';

type TypeName = OperationScope['typeName'];
/** The schema of a collection's records depends on these, beside the collection. */
interface Described extends Pick<OperationScope, 'schema' | 'typeName'> {}

/** `Post`, `PostCreate`, `PostUpdate`. Users are created by registering. */
export function schemasOf(collection: Collection, scope: Described): Json {
  const { schema, typeName } = scope;
  const name = typeName(collection.name);
  const isUsers = collection.kind === 'users';
  return {
    [name]: recordJsonSchema(collection, scope),
    ...(isUsers ? {} : { [`${name}Create`]: createSchema(collection, schema) }),
    [`${name}Update`]: updateSchema(collection, schema),
  };
}

/** The members of a record that a query asked for, and those of related records. */
export function selectionSchema(collection: Collection, { schema, typeName }: Described): Json {
  const selected = { schema, typeName: (name: string) => selectionName(typeName(name)) };
  return { ...recordJsonSchema(collection, selected), required: ['id'] };
}
export const selectionName = (type: string): string => `${type}Selection`;

function recordJsonSchema(collection: Collection, { schema, typeName }: Described): Json {
  const stored: Json = Object.fromEntries([
    ['id', idSchemaIn(schema, collection.name)],
    ...[...collection.fields.values()].map((field) => [
      field.name,
      field.readOnly ? { ...fieldSchema(field), readOnly: true } : fieldSchema(field),
    ]),
    ...(collection.kind === 'users' ? [['roles', { type: 'array', items: ref('Role') }]] : []),
    ...referencesOf(collection).map((relation) => [
      relation.name,
      nullIf(relation.kind !== 'belongs_to' || !relation.required, idSchemaIn(schema, relation.collection)),
    ]),
  ]);
  return {
    type: 'object',
    required: Object.keys(stored).filter((name) => !canBeHidden(collection, name)),
    properties: { ...stored, ...expandProperties([...collection.relations.values()], typeName) },
  };
}

function expandProperties(relations: readonly Relation[], typeName: TypeName): Json {
  if (relations.length === 0) return {};
  const expanded = relations.map((relation) => {
    const target = ref(typeName(relation.collection));
    const schema = isToMany(relation)
      ? { type: 'array', items: target, maxItems: 100 }
      : { oneOf: [target, { type: 'null' }] };
    const count: Json = { type: 'integer', description: `The number of \`${relation.name}\`, if it was asked for.` };
    return { [relation.name]: schema, ...(isToMany(relation) && { [countName(relation.name)]: count }) };
  });
  const cuttable = relations.filter(isToMany).map(({ name }) => name);
  const more = {
    type: 'array',
    items: { type: 'string', enum: cuttable },
    description: 'The relations in `expand` that have more records than the 100 that are shown.',
  };
  return {
    expand: { type: 'object', properties: Object.assign({}, ...expanded) },
    ...(cuttable.length > 0 ? { expand_more: more } : {}),
  };
}

function createSchema(collection: Collection, schema: Schema): Json {
  const writables = writablesOf(collection);
  // The name of a file is that of the part, unless `data` gives another.
  const isGiven = (name: string): boolean => collection.kind === 'files' && name === 'name';
  const required = writables.filter(({ name, required }) => required && !isGiven(name)).map(({ name }) => name);
  const own = madeBy(collection) === 'caller' ? [['id', newIdSchema(collection) as Json] as const] : [];
  const described = writables.map((writable) => {
    const property = { ...withDefault(writable, schema), ...guardMark(writable, collection, 'create') };
    return [writable.name, property] as const;
  });
  const properties = [...own, ...described];
  const all = [...own.map(([name]) => name), ...required];
  return closed(Object.fromEntries(properties), {
    ...checksInWords(collection),
    ...(all.length > 0 && { required: all }),
  });
}

function updateSchema(collection: Collection, schema: Schema): Json {
  const properties = changeablesOf(collection).map((writable) => {
    const words = { ...transitionsInWords(writable, collection), ...guardMark(writable, collection, 'update') };
    const described = { ...writableSchema(writable, schema), ...words };
    return [writable.name, described] as const;
  });
  const roles = collection.kind === 'users' ? { roles: ROLE_CHANGE } : {};
  return closed({ ...Object.fromEntries(properties), ...roles }, { ...checksInWords(collection), minProperties: 1 });
}

/** Examples leave out the members that rules of their own let some callers set. */
const guardMark = ({ name }: Writable, { memberAccess }: Collection, action: 'create' | 'update'): Json =>
  memberAccess.get(name)?.[action] === undefined ? {} : { 'x-guarded': true };

/** The stored value decides, so JSON Schema cannot express them. */
function transitionsInWords({ name }: Writable, { checks }: Collection): Json {
  const found = checks.find(({ transitions }) => transitions?.field === name)?.transitions;
  if (found === undefined) return {};
  const lines = [...found.possible].map(
    ([from, to]) => `- from \`${from}\` to ${to.map((each) => `\`${each}\``).join(', ') || 'no other'}`,
  );
  return { description: `It changes only so:\n${lines.join('\n')}` };
}

/** JSON Schema cannot express them: they read other records, and the record before the write. */
function checksInWords({ checks }: Collection): Json {
  const own = checks.filter(({ transitions }) => transitions === undefined);
  if (own.length === 0) return {};
  const lines = own.map(({ name, message, fields }) => {
    const about = fields.length === 0 ? '' : ` (${fields.map((field) => `\`${field}\``).join(', ')})`;
    return `- \`${name}\`${about}: ${message}`;
  });
  return { description: `The record that it makes is held to these checks:\n${lines.join('\n')}` };
}

const ROLE_CHANGE: Json = closed(
  Object.fromEntries(['set', 'add', 'remove'].map((key) => [key, { type: 'array', items: ref('Role') }])),
  { description: 'Needs, for each role given or taken, a role of the caller that assigns it.', minProperties: 1 },
);

function fieldSchema(field: Field, hasValue = field.required): Json {
  const schema = FIELD_KINDS[field.type].jsonSchema(field) as Json;
  return hasValue ? schema : orNull(schema);
}

const nullIf = (isNullable: boolean, schema: Json): Json => (isNullable ? orNull(schema) : schema);

function orNull(schema: Json): Json {
  const { type, enum: allowed } = schema;
  return { ...schema, type: [type, 'null'].flat(), ...(Array.isArray(allowed) ? { enum: [...allowed, null] } : {}) };
}

function writableSchema(writable: Writable, schema: Schema): Json {
  switch (writable.kind) {
    case 'field':
      return fieldSchema(writable.field, writable.field.needed);
    case 'reference': {
      const { nullable, relation } = writable;
      return { ...nullIf(nullable, idSchemaIn(schema, relation.collection)), 'x-collection': relation.collection };
    }
    case 'members': {
      const id = idSchemaIn(schema, writable.relation.collection);
      return isUuidSchema(id) ? ref('MemberChange') : memberChange(id);
    }
  }
}

/**
 * Describes the default in words, because generators of clients take a property with the keyword
 * `default` for required.
 */
function withDefault(writable: Writable, of: Schema): Json {
  const schema = writableSchema(writable, of);
  const value = writable.kind === 'field' ? writable.field.default : undefined;
  return value?.kind === 'constant' ? { ...schema, description: `Default: ${JSON.stringify(value.value)}.` } : schema;
}
