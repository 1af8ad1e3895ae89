/** The OpenAPI 3.1 document of a schema: what interface.md says, for these collections. */
import { MAX_SHOWN_FAULTS, PROBLEMS, type ProblemCode } from '../problem.ts';
import { FIELD_KINDS, ID_KIND } from '../schema/fields/index.ts';
import type { Collection, Field, Relation, Schema } from '../schema/model.ts';
import { authPaths, authSchemas, systemPaths } from './openapi-auth.ts';
import { type Json, json, operation, ref } from './openapi-parts.ts';
import { filterKeysOf, referencesOf, typeNames, type Writable, writablesOf } from './writable.ts';

type Names = ReadonlyMap<string, string>;
const BOTH = [{ bearer: [] }, { cookie: [] }];

/** `version` is the package's. */
export function openapiOf(
  schema: Schema,
  { version = '0.1.0', baseUrl = '/' }: { readonly version?: string; readonly baseUrl?: string } = {},
): Json {
  const names = typeNames(schema.collections.keys());
  const collections = [...schema.collections.values()];
  return {
    openapi: '3.1.0',
    info: { title: 'bylaw', version, description: 'Collections of records, where policies decide every access.' },
    servers: [{ url: baseUrl }],
    tags: [...collections.map(({ name }) => ({ name })), { name: 'auth' }, { name: 'system' }],
    paths: Object.assign(
      {},
      ...collections.map((collection) => collectionPaths(collection, names)),
      authPaths(schema),
      systemPaths(),
    ),
    components: {
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT' },
        cookie: { type: 'apiKey', in: 'cookie', name: 'svc_session' },
      },
      responses: problemResponses(),
      schemas: Object.assign(
        {},
        commonSchemas(schema),
        authSchemas(),
        ...collections.map((collection) => schemasOf(collection, names)),
      ),
    },
  };
}

// ---------------------------------------------------------------- schemas

function commonSchemas({ roles }: Schema): Json {
  const ids = { type: 'array', items: idSchema, maxItems: 1000 };
  return {
    Id: idSchema,
    Role: { type: 'string', enum: [...roles.keys()] },
    Members: {
      type: 'object',
      description: 'Changes of the members, applied in the order set, add, remove.',
      properties: { set: ids, add: ids, remove: ids },
      additionalProperties: false,
      minProperties: 1,
    },
    Page: {
      type: 'object',
      required: ['limit', 'offset', 'has_more'],
      properties: {
        limit: { type: 'integer' },
        offset: { type: 'integer' },
        has_more: { type: 'boolean' },
        total: { type: 'integer', description: 'With `Prefer: count=exact`.' },
      },
    },
    Problem: {
      type: 'object',
      required: ['type', 'title', 'status', 'detail', 'code', 'request_id'],
      properties: {
        type: { type: 'string' },
        title: { type: 'string' },
        status: { type: 'integer' },
        detail: { type: 'string' },
        code: { type: 'string', enum: Object.keys(PROBLEMS) },
        request_id: { type: 'string' },
        errors: {
          type: 'array',
          items: {
            type: 'object',
            required: ['code', 'detail'],
            properties: {
              pointer: { type: 'string' },
              parameter: { type: 'string' },
              code: { type: 'string' },
              detail: { type: 'string' },
            },
          },
          maxItems: MAX_SHOWN_FAULTS,
        },
        error_count: {
          type: 'integer',
          description: 'The number of all faults, where `errors` holds the first of them.',
        },
      },
    },
  };
}

const idSchema = ID_KIND.jsonSchema({});

function fieldSchema(field: Field): Json {
  const schema = FIELD_KINDS[field.type].jsonSchema(field) as Json;
  return field.required ? schema : orNull(schema);
}

function orNull(schema: Json): Json {
  const { type, enum: allowed } = schema;
  return { ...schema, type: [type, 'null'], ...(Array.isArray(allowed) ? { enum: [...allowed, null] } : {}) };
}

function schemasOf(collection: Collection, names: Names): Json {
  const name = names.get(collection.name)!;
  const writables = writablesOf(collection);
  const create = collection.kind === 'users' ? {} : { [`${name}Create`]: bodySchema(writables, { creating: true }) };
  const roles = {
    type: 'object',
    additionalProperties: false,
    minProperties: 1,
    properties: Object.fromEntries(['set', 'add', 'remove'].map((key) => [key, { type: 'array', items: ref('Role') }])),
  };
  const update = bodySchema(writables, { creating: false, extra: collection.kind === 'users' ? { roles } : {} });
  return { [name]: recordSchema(collection, names), ...create, [`${name}Update`]: update };
}

function recordSchema(collection: Collection, names: Names): Json {
  const properties: Json = { id: idSchema };
  for (const field of collection.fields.values())
    properties[field.name] = { ...fieldSchema(field), ...(field.readOnly ? { readOnly: true } : {}) };
  if (collection.kind === 'users') properties.roles = { type: 'array', items: ref('Role') };
  for (const relation of referencesOf(collection)) {
    properties[relation.name] =
      relation.kind === 'belongs_to' && relation.required ? idSchema : orNull(idSchema as Json);
  }
  const required = Object.keys(properties);
  const relations = [...collection.relations.values()].map(({ name, kind, collection: target }) => {
    const record = ref(names.get(target)!);
    return [
      name,
      isToMany({ kind }) ? { type: 'array', items: record, maxItems: 100 } : { oneOf: [record, { type: 'null' }] },
    ] as const;
  });
  if (relations.length > 0) properties.expand = { type: 'object', properties: Object.fromEntries(relations) };
  const cuttable = [...collection.relations.values()].filter(isToMany).map(({ name }) => name);
  if (cuttable.length > 0)
    properties.expand_more = {
      type: 'array',
      items: { type: 'string', enum: cuttable },
      description: 'The relations in `expand` that have more records than the 100 that are shown.',
    };
  return { type: 'object', required, properties };
}

const isToMany = ({ kind }: Pick<Relation, 'kind'>): boolean => kind === 'has_many' || kind === 'many_to_many';

function bodySchema(
  writables: readonly Writable[],
  { creating, extra = {} }: { readonly creating: boolean; readonly extra?: Json },
): Json {
  const properties = {
    ...Object.fromEntries(writables.map((writable) => [writable.name, writableSchema(writable, creating)])),
    ...extra,
  };
  const required = creating ? writables.filter(({ mandatory }) => mandatory).map(({ name }) => name) : [];
  return {
    type: 'object',
    additionalProperties: false,
    properties,
    ...(required.length > 0 ? { required } : {}),
    ...(creating ? {} : { minProperties: 1 }),
  };
}

function writableSchema(writable: Writable, creating: boolean): Json {
  switch (writable.kind) {
    case 'field': {
      const { default: value } = writable.field;
      return {
        ...fieldSchema(writable.field),
        ...(creating && value?.kind === 'constant' ? { default: value.value } : {}),
      };
    }
    case 'reference':
      return writable.nullable ? orNull(idSchema as Json) : (idSchema as Json);
    case 'members':
      return ref('Members');
  }
}

// ---------------------------------------------------------------- paths

const query = (name: string, schema: unknown, description?: string): Json => ({
  name,
  in: 'query',
  schema,
  ...(description === undefined ? {} : { description }),
});
const header = (name: string, description: string): Json => ({
  name,
  in: 'header',
  schema: { type: 'string' },
  description,
});
const dataOf = (schema: Json): Json => ({
  type: 'object',
  required: ['data'],
  additionalProperties: false,
  properties: { data: schema },
});
const ID_PARAMETER: Json = { name: 'id', in: 'path', required: true, schema: idSchema };
const COMMON: readonly ProblemCode[] = [
  'unauthenticated',
  'forbidden',
  'rate_limited',
  'unavailable',
  'not_acceptable',
];

function expandParameter({ relations }: Collection): readonly Json[] {
  if (relations.size === 0) return [];
  return [
    query(
      'expand',
      { type: 'string' },
      `Relations to show as records, with commas between: ${[...relations.keys()].join(', ')}.`,
    ),
  ];
}

function listParameters(collection: Collection): readonly Json[] {
  const filters = filterKeysOf(collection).map(({ key, field }) =>
    query(key, field === undefined ? idSchema : FIELD_KINDS[field.type].jsonSchema(field)),
  );
  return [
    query('limit', { type: 'integer', minimum: 1, maximum: 100, default: 20 }),
    query('offset', { type: 'integer', minimum: 0, maximum: 1_000_000, default: 0 }),
    ...expandParameter(collection),
    ...filters,
    header('Prefer', '`count=exact` adds `page.total`.'),
  ];
}

function collectionPaths(collection: Collection, names: Names): Json {
  const { name, kind } = collection;
  const type = names.get(name)!;
  const make = (id: string, more: Json): Json =>
    operation({ operationId: `${id}_${name}`, tags: [name], security: BOTH, ...more });
  const record = json(dataOf(ref(type)));
  const etag = { ETag: { schema: { type: 'string' } } };
  const list = make('list', {
    summary: `The records of ${name} that the caller may see, in the order of their identifiers.`,
    parameters: listParameters(collection),
    success: {
      200: {
        description: 'A page.',
        ...json({
          type: 'object',
          required: ['data', 'page'],
          properties: { data: { type: 'array', items: ref(type) }, page: ref('Page') },
        }),
      },
    },
    problems: [...COMMON, 'filter_unknown_key', 'invalid_parameter', 'unknown_expand'],
  });
  const create = make('create', {
    summary: kind === 'files' ? 'Stores a file.' : `Makes a record of ${name}.`,
    parameters: [
      header('Idempotency-Key', 'The same key and body within 24 hours get the first answer.'),
      ...expandParameter(collection),
    ],
    requestBody: { required: true, ...(kind === 'files' ? multipart(type) : json(dataOf(ref(`${type}Create`)))) },
    success: {
      201: {
        description: 'Made. Only the identifier where the caller may not read it.',
        headers: { Location: { schema: { type: 'string' } } },
        ...record,
      },
    },
    problems: [
      ...COMMON,
      'malformed_json',
      'too_large',
      'unsupported_media_type',
      'validation_failed',
      'unique_violation',
    ],
  });
  const read = make('read', {
    summary: `One record of ${name}.`,
    parameters: [ID_PARAMETER, ...expandParameter(collection), header('If-None-Match', 'ETags that the caller has.')],
    success: {
      200: { description: 'The record.', headers: etag, ...record },
      304: { description: 'It has not changed.' },
    },
    problems: [...COMMON, 'not_found', 'unknown_expand'],
  });
  const update = make('update', {
    summary: `Changes fields and relations of a record of ${name}.`,
    parameters: [
      ID_PARAMETER,
      ...expandParameter(collection),
      header('If-Match', 'Refuses where the record has changed.'),
    ],
    requestBody: { required: true, ...json(dataOf(ref(`${type}Update`))) },
    success: {
      200: { description: 'Changed. Only the identifier where the caller may not read it.', headers: etag, ...record },
    },
    problems: [
      ...COMMON,
      'not_found',
      'patch_empty',
      'too_large',
      'unsupported_media_type',
      'validation_failed',
      'unique_violation',
      'changed',
    ],
  });
  const remove = make('delete', {
    summary: `Deletes a record of ${name}.`,
    parameters: [ID_PARAMETER, header('If-Match', 'Refuses where the record has changed.')],
    success: { 204: { description: 'Deleted.' } },
    problems: [...COMMON, 'not_found', 'still_referenced', 'changed'],
  });
  return {
    [`/api/${name}`]: { get: list, ...(kind === 'users' ? {} : { post: create }) },
    [`/api/${name}/{id}`]: { get: read, patch: update, delete: remove },
    ...(kind === 'files' ? contentPaths() : {}),
  };
}

function multipart(type: string): Json {
  const properties = {
    file: { type: 'string', contentMediaType: 'application/octet-stream' },
    data: ref(`${type}Create`),
  };
  return { content: { 'multipart/form-data': { schema: { type: 'object', required: ['file'], properties } } } };
}

function contentPaths(): Json {
  const bytes = { content: { '*/*': { schema: { type: 'string', contentMediaType: 'application/octet-stream' } } } };
  const make = (more: Json): Json =>
    operation({ tags: ['files'], security: BOTH, parameters: [ID_PARAMETER], ...more });
  const success = {
    200: { description: 'The bytes.', ...bytes },
    206: { description: 'A range of them.', ...bytes },
    302: { description: 'Where they are, if readers are sent to the bucket itself.' },
    304: { description: 'They have not changed.' },
  };
  const problems: readonly ProblemCode[] = [...COMMON, 'not_found', 'range_not_satisfiable'];
  const link = {
    type: 'object',
    required: ['url', 'expires_at'],
    properties: { url: { type: 'string' }, expires_at: { type: 'string', format: 'date-time' } },
  };
  return {
    '/api/files/{id}/content': {
      get: make({ operationId: 'read_file_content', summary: 'The bytes of a file.', success, problems }),
      head: make({
        operationId: 'head_file_content',
        summary: 'The headers of its bytes.',
        success: { 200: { description: 'As GET.' } },
        problems,
      }),
    },
    '/api/files/{id}/link': {
      post: make({
        operationId: 'link_file',
        summary: 'A link to the bytes that needs no credential for a while.',
        success: { 201: { description: 'The link.', ...json(link) } },
        problems: [...COMMON, 'not_found'],
      }),
    },
  };
}

function problemResponses(): Json {
  const statuses = [...new Set(Object.values(PROBLEMS).map(({ status }) => status))];
  return Object.fromEntries(
    statuses.map((status) => {
      const codes = Object.entries(PROBLEMS)
        .filter(([, problem]) => problem.status === status)
        .map(([code]) => `\`${code}\``);
      return [
        `Problem${status}`,
        { description: codes.join(', '), content: { 'application/problem+json': { schema: ref('Problem') } } },
      ];
    }),
  );
}
