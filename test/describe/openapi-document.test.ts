/** The document is the route table: every route of every collection, and nothing else. */
import { describe, expect, it, test } from 'vitest';
import { openapiOf } from '../../src/describe/openapi-document.ts';
import { OTHER_TYPES } from '../../src/describe/writable.ts';
import { PROBLEMS, type ProblemCode } from '../../src/problem.ts';
import { routes } from '../../src/routes/index.ts';
import { parseSchema } from '../../src/schema/load.ts';
import { RESERVED_IDS } from '../../src/schema/model/model.ts';
import { SCHEMA } from './schema.ts';

// biome-ignore lint/suspicious/noExplicitAny: the document is JSON
type Json = any;
const document: Json = openapiOf(SCHEMA, routes, '1.2.3');
const operations: readonly [string, Json][] = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item as object).map(([method, operation]): [string, Json] => [`${method} ${path}`, operation]),
);
const operation = (name: string): Json => operations.find(([each]) => each === name)![1];
const resolve = ({ $ref }: { $ref: string }): Json =>
  $ref
    .split('/')
    .slice(1)
    .reduce((place: Json, key) => place[key], document);
const parameter = (name: string, key: string): Json =>
  operation(name).parameters.find((each: Json) => each.name === key);
const codesOf = (name: string, status: number | 'default'): Json => {
  const { content } = resolve(operation(name).responses[status]);
  return content['application/problem+json'].schema.allOf[1].properties.code.enum;
};

test('the document holds exactly the routes and methods', () => {
  const expected = routes.flatMap(({ method, path, door, head, concerns }) => {
    const collections = path.includes(':collection') ? [...SCHEMA.collections.values()] : [undefined];
    const kind = typeof door === 'object' ? door.kind : undefined;
    const needs = typeof door === 'object' ? door.needs : undefined;
    return collections
      .filter((collection) => kind === undefined || collection?.kind === kind)
      .filter((collection) => needs === undefined || collection?.[needs] !== undefined)
      .filter((collection) => collection === undefined || concerns?.(collection) !== false)
      .map((collection) => path.replace(':collection', collection?.name ?? '').replaceAll(/:(\w+)/g, '{$1}'))
      .flatMap((at) => [`${method.toLowerCase()} ${at}`, ...(head === undefined ? [] : [`head ${at}`])]);
  });
  expect(operations.map(([name]) => name).toSorted()).toEqual(expected.toSorted());
  expect(operations.length).toBeGreaterThan(105);
});

test('every operation has its own id, a summary, a described tag, and its security', () => {
  expect(new Set(operations.map(([, { operationId }]) => operationId)).size).toBe(operations.length);
  const tags = new Map(document.tags.map((tag: Json) => [tag.name, tag.description]));
  for (const [
    name,
    {
      summary,
      tags: [tag],
      security,
    },
  ] of operations) {
    expect([name, /^[A-Z].*[^.]$/.test(summary), summary.includes('{')]).toEqual([name, true, false]);
    expect([name, tags.get(tag)]).toEqual([name, expect.stringMatching(/\.$/)]);
    expect([name, security]).toEqual([name, expect.any(Array)]);
  }
});

test('the later of two equal ids gets a number', () => {
  const [posts] = SCHEMA.collections.values();
  const collections = new Map([['sessions', { ...posts!, name: 'sessions' }], ...SCHEMA.collections]);
  const { paths }: Json = openapiOf({ ...SCHEMA, collections }, routes, '1.2.3');
  expect(paths['/api/sessions'].get.operationId).toBe('list_sessions');
  expect(paths['/api/auth/sessions'].get.operationId).toBe('list_sessions_2');
});

test('every reference resolves, and every component is used', () => {
  const text = JSON.stringify(document);
  const used = new Set(
    [...text.matchAll(/"#\/components\/(\w+)\/([\w.]+)"/g)].map(([, kind, name]) => `${kind} ${name}`),
  );
  const held = ['schemas', 'responses'].flatMap((kind) =>
    Object.keys(document.components[kind]).map((name) => `${kind} ${name}`),
  );
  expect([...used].filter((name) => !held.includes(name))).toEqual([]);
  expect(held.filter((name) => !used.has(name))).toEqual(['schemas Id']);
});

test('no type of a collection can take the name of another type', () => {
  const names = Object.keys(document.components.schemas);
  const others = names.filter(
    (name) => !/^(?:Post|Member|Pin|User|FileRecord)(?:Create|Update|Selection)?$/.test(name),
  );
  expect(others.filter((name) => !OTHER_TYPES.includes(name))).toEqual([]);
  expect(names).toContain('Member');
});

describe('problems', () => {
  it('problems have their status, and those of any request are the default', () => {
    for (const [name, { responses }] of operations) {
      const refused = Object.entries<Json>(responses).filter(([, answer]) => answer.$ref !== undefined);
      expect([name, refused.at(-1)?.[0]]).toEqual([name, 'default']);
      for (const [status] of refused.slice(0, -1)) {
        const codes: readonly ProblemCode[] = codesOf(name, Number(status));
        expect([name, status, codes.filter((code) => PROBLEMS[code].status !== Number(status))]).toEqual([
          name,
          status,
          [],
        ]);
      }
    }
    expect(codesOf('get /healthz', 'default')).toEqual([
      'malformed_request',
      'request_timeout',
      'too_large',
      'expectation_failed',
      'headers_too_large',
      'internal',
      'unavailable',
    ]);
  });

  it('an operation lists its possible problems', () => {
    expect(codesOf('get /api/posts', 400)).toEqual([
      'filter_unknown_key',
      'filter_invalid_value',
      'filter_invalid',
      'invalid_cursor',
      'query_too_expensive',
      'filter_duplicate_key',
      'invalid_parameter',
      'unknown_expand',
    ]);
    expect(codesOf('patch /api/posts/{id}', 400)).toEqual([
      'malformed_json',
      'invalid_parameter',
      'unknown_expand',
      'patch_empty',
    ]);
    expect(codesOf('post /api/auth/login', 401)).toEqual(['invalid_credentials']);
    expect(codesOf('post /api/auth/login', 403)).toEqual(['cross_origin', 'email_unverified']);
    expect(codesOf('delete /api/posts/{id}', 403)).toEqual(['forbidden', 'cross_origin']);
    expect(Object.keys(operation('get /api/posts').responses)).toEqual([
      '200',
      '400',
      '401',
      '403',
      '406',
      '422',
      '429',
      'default',
    ]);
    expect(Object.keys(operation('post /api/posts').responses)).toEqual([
      '201',
      '400',
      '401',
      '403',
      '406',
      '413',
      '415',
      '422',
      '429',
      'default',
    ]);
    // The codes of its unique email, and of an admin.
    expect(codesOf('patch /api/users/{id}', 409)).toEqual(['unique_violation', 'last_admin']);
    expect(operation('patch /api/posts/{id}').responses[409]).toBeUndefined();
  });
});

describe('bodies and answers', () => {
  const id = { type: 'string', format: 'uuid' };
  const datetime = { type: 'string', format: 'date-time', readOnly: true };
  it('a record has its members', () =>
    expect(document.components.schemas.Post).toEqual({
      type: 'object',
      required: ['id', 'created_at', 'updated_at', 'title', 'state', 'score', 'owner'],
      properties: {
        id,
        created_at: datetime,
        updated_at: datetime,
        title: { type: 'string', minLength: 1, maxLength: 80 },
        state: { type: 'string', enum: ['draft', 'live'] },
        score: { type: ['integer', 'null'], minimum: 0, maximum: 9007199254740991 },
        owner: id,
        expand: {
          type: 'object',
          properties: {
            owner: { oneOf: [{ $ref: '#/components/schemas/User' }, { type: 'null' }] },
            tags: { type: 'array', items: { $ref: '#/components/schemas/Member' }, maxItems: 100 },
            tags_count: { type: 'integer', description: 'The number of `tags`, if it was asked for.' },
          },
        },
        expand_more: {
          type: 'array',
          items: { type: 'string', enum: ['tags'] },
          description: 'The relations in `expand` that have more records than the 100 that are shown.',
        },
      },
    }));

  it('a create may omit members with a default, also for clients that read the keyword as required', () =>
    expect(document.components.schemas.PostCreate).toEqual({
      type: 'object',
      additionalProperties: false,
      required: ['title'],
      properties: {
        title: { type: 'string', minLength: 1, maxLength: 80 },
        state: { type: 'string', enum: ['draft', 'live'], description: 'Default: "draft".' },
        score: { type: ['integer', 'null'], minimum: 0, maximum: 9007199254740991 },
        owner: { ...id, 'x-collection': 'users' },
        tags: { $ref: '#/components/schemas/MemberChange' },
      },
    }));

  it('an example of feeds names a collection that has them', () => {
    const { schema } = parseSchema('collections: { posts: {}, notes: { changes: true, access: { view: true } } }');
    const { paths }: Json = openapiOf(schema!, routes, '1.2.3');
    const { example } = paths['/api/changes'].post.requestBody.content['application/json'];
    expect(example).toEqual({ feeds: { notes: { collection: 'notes' } } });
  });

  it('an example leaves out what only some callers may set, unless it is required', () => {
    const guarded = (more: string) => `{ type: int, ${more}access: { write: [{ roles: [admin] }] } }`;
    const fields = `{ title: string, budget: ${guarded('')}, rank: ${guarded('required: true, ')} }`;
    const { schema } = parseSchema(
      `collections: { posts: { fields: ${fields}, access: { create: true, update: true } } }`,
    );
    const { paths }: Json = openapiOf(schema!, routes, '1.2.3');
    const exampleOf = (path: string, method: string): Json =>
      paths[path][method].requestBody.content['application/json'].example;
    expect(exampleOf('/api/posts', 'post')).toEqual({ data: { title: 'title', rank: 1 } });
    expect(exampleOf('/api/posts/{id}', 'patch')).toEqual({ data: { title: 'title' } });
    // Users have roles alone here.
    expect(exampleOf('/api/users/{id}', 'patch')).toEqual({ data: { roles: { add: ['admin'] } } });
  });

  it('the result of a write is the record, or its id alone', () => {
    for (const [name, status] of [
      ['post /api/posts', 201],
      ['patch /api/posts/{id}', 200],
    ] as const) {
      const { schema } = operation(name).responses[status].content['application/json'];
      expect(schema.properties.data.oneOf).toEqual([
        { $ref: '#/components/schemas/Post' },
        { $ref: '#/components/schemas/IdOnly' },
      ]);
    }
  });

  it('`expand` names each relation once', () =>
    expect(parameter('get /api/posts', 'expand')).toMatchObject({
      style: 'form',
      explode: false,
      schema: { type: 'array', items: { type: 'string', enum: ['owner', 'tags'] }, minItems: 1, uniqueItems: true },
    }));

  it('filters take any value of the type', () => {
    const { parameters } = operation('get /api/posts');
    expect(parameters.map(({ name }: Json) => name)).toEqual([
      'limit',
      'offset',
      'expand',
      'filter',
      'params',
      'sort',
      'fields',
      'cursor',
      'count',
      'id',
      'created_at',
      'updated_at',
      'title',
      'state',
      'score',
      'owner',
      'owner_id',
      'tags_any',
      'Prefer',
    ]);
    expect(parameter('get /api/posts', 'title').schema).toEqual({ type: 'string', pattern: '^[^\\u0000]*$' });
    expect(parameter('get /api/posts', 'state').schema).toEqual({ type: 'string', enum: ['draft', 'live'] });
    expect(parameter('get /api/posts', 'score').schema.minimum).toBe(Number.MIN_SAFE_INTEGER);
  });

  it('headers have the form that the service enforces', () => {
    expect(parameter('post /api/posts', 'Idempotency-Key').schema).toMatchObject({ minLength: 1, maxLength: 255 });
    const ifMatch = new RegExp(parameter('patch /api/posts/{id}', 'If-Match').schema.pattern);
    const held = ['*', '"a.b"', '"a", "b"', 'W/"a"', 'a', '', '"a" "b"'].map((text) => ifMatch.test(text));
    expect(held).toEqual([true, true, true, false, false, false, false]);
  });

  it('bodies of the authentication routes match the checked schemas', () => {
    const { schema } = operation('post /api/auth/password/reset/confirm').requestBody.content['application/json'];
    expect(schema).toMatchObject({ required: ['token', 'password'], additionalProperties: false });
    expect(schema.properties.token.pattern).toBe('^[A-Za-z0-9_-]{43}$');
    expect(schema.properties.password).toEqual({ type: 'string', description: expect.stringContaining('NFKC') });
  });

  it('a form holds a file of an allowed type, and nothing unknown', () => {
    const { schema, encoding } = operation('post /api/files').requestBody.content['multipart/form-data'];
    expect([schema.additionalProperties, schema.required]).toEqual([false, ['file']]);
    expect(encoding).toEqual({
      file: { contentType: 'image/png, application/pdf' },
      data: { contentType: 'application/json' },
    });
  });
});

test('a collection with unique fields has upserts, and the words of its addresses are no ids', () => {
  const text =
    'collections: { a: { fields: { slug: { type: string, unique: true }, n: { type: int, unique: { where: "@record.n > 1" } } } } }';
  const { paths } = openapiOf(parseSchema(text).schema!, routes, '1') as Json;
  const { parameters, requestBody } = paths['/api/a/by/{field}/{value}'].put;
  expect(parameters.map(({ name, schema }: Json) => [name, schema.enum])).toEqual([
    ['field', ['slug']],
    ['value', undefined],
    ['If-Match', undefined],
    ['If-None-Match', ['*']],
  ]);
  expect(requestBody.content['application/json'].schema.properties.data.required).toBeUndefined();
  const words = routes.flatMap(({ path }) => /^\/api\/:collection\/([a-z]+)/.exec(path)?.[1] ?? []);
  expect([...new Set(words)].toSorted()).toEqual(RESERVED_IDS.filter((word) => words.includes(word)));
});
