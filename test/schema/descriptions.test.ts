import { describe, expect, it } from 'vitest';
import { openapiOf } from '../../src/describe/openapi.ts';
import { typescriptOf } from '../../src/describe/typescript.ts';
import { parseSchema } from '../../src/schema/load.ts';

const SCHEMA = parseSchema(`roles: [editor]
collections:
  posts:
    fields:
      title: { type: string, required: true, min: 1, max: 80 }
      state: { type: string, required: true, enum: [draft, live], default: draft }
      score: { type: int, min: 0 }
    relations:
      owner: { kind: belongs_to, collection: users, required: true, default: '@request.auth.id' }
      tags: { kind: many_to_many, collection: members }
  members:
    relations: { posts: { kind: has_many, collection: pins, via: member } }
  pins:
    relations: { member: { kind: belongs_to, collection: members } }
`).schema!;

describe('the OpenAPI document', () => {
  // biome-ignore lint/suspicious/noExplicitAny: the document is JSON
  const document = openapiOf(SCHEMA) as any;

  it('has a path for every route of every collection', () => {
    const paths = Object.entries(document.paths).map(
      ([path, methods]) => `${path} ${Object.keys(methods as object).join(' ')}`,
    );
    expect(paths.filter((path) => !path.startsWith('/api/auth'))).toEqual([
      '/api/posts get post',
      '/api/posts/{id} get patch delete',
      '/api/members get post',
      '/api/members/{id} get patch delete',
      '/api/pins get post',
      '/api/pins/{id} get patch delete',
      '/api/users get',
      '/api/users/{id} get patch delete',
      '/api/files get post',
      '/api/files/{id} get patch delete',
      '/api/files/{id}/content get head',
      '/api/files/{id}/link post',
      '/.well-known/jwks.json get',
      '/healthz get',
      '/readyz get',
      '/metrics get',
      '/openapi.json get',
    ]);
    expect(paths.filter((path) => path.startsWith('/api/auth'))).toEqual([
      '/api/auth/register post',
      '/api/auth/login post',
      '/api/auth/token/refresh post',
      '/api/auth/logout post',
      '/api/auth/me get',
      '/api/auth/sessions get',
      '/api/auth/sessions/{id} delete',
      '/api/auth/password post',
      '/api/auth/password/reset/request post',
      '/api/auth/password/reset/confirm post',
      '/api/auth/email/verify/request post',
      '/api/auth/email/verify/confirm post',
    ]);
  });

  it('describes what is sent and what comes back', () => {
    const id = { type: 'string', format: 'uuid' };
    const datetime = { type: 'string', format: 'date-time', readOnly: true };
    expect(document.components.schemas.Posts).toEqual({
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
            owner: { oneOf: [{ $ref: '#/components/schemas/Users' }, { type: 'null' }] },
            tags: { type: 'array', items: { $ref: '#/components/schemas/Members2' }, maxItems: 100 },
          },
        },
        expand_more: {
          type: 'array',
          items: { type: 'string', enum: ['tags'] },
          description: 'The relations in `expand` that have more records than the 100 that are shown.',
        },
      },
    });
    expect(document.components.schemas.PostsCreate).toEqual({
      type: 'object',
      additionalProperties: false,
      required: ['title'],
      properties: {
        title: { type: 'string', minLength: 1, maxLength: 80 },
        state: { type: 'string', enum: ['draft', 'live'], default: 'draft' },
        score: { type: ['integer', 'null'], minimum: 0, maximum: 9007199254740991 },
        owner: id,
        tags: { $ref: '#/components/schemas/Members' },
      },
    });
    expect(document.paths['/api/posts'].get.parameters.map(({ name }: { name: string }) => name)).toEqual([
      'limit',
      'offset',
      'expand',
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
    expect(Object.keys(document.paths['/api/posts'].post.responses)).toEqual([
      '201',
      '400',
      '401',
      '403',
      '406',
      '409',
      '413',
      '415',
      '422',
      '429',
      '503',
    ]);
  });

  it('refers to nothing that is not there, and names every operation once', () => {
    const text = JSON.stringify(document);
    const refs = new Set(text.match(/#\/components\/\w+\/\w+/g));
    const missing = [...refs].filter(
      (path) => document.components[path.split('/')[2]!]?.[path.split('/')[3]!] === undefined,
    );
    expect([missing, refs.size > 10]).toEqual([[], true]);
    const ids = text.match(/"operationId":"[^"]+"/g)!;
    expect(new Set(ids).size).toBe(ids.length);
  });
});

describe('the TypeScript types', () => {
  it('are those of records, of bodies and of filters', () => {
    const text = typescriptOf(SCHEMA);
    const posts = text.slice(text.indexOf('export interface Posts {'), text.indexOf('export interface Members2 {'));
    expect(posts).toBe(`export interface Posts {
  id: Id;
  created_at: DateTime;
  updated_at: DateTime;
  title: string;
  state: "draft" | "live";
  score: number | null;
  owner: Id;
  expand?: { owner?: Users | null; tags?: Members2[] };
  expand_more?: ("tags")[];
}

export interface PostsCreate {
  title: string;
  state?: "draft" | "live";
  score?: number | null;
  owner?: Id;
  tags?: Members;
}

export interface PostsUpdate {
  title?: string;
  state?: "draft" | "live";
  score?: number | null;
  owner?: Id;
  tags?: Members;
}

export interface PostsFilters {
  id?: Id;
  created_at?: DateTime;
  updated_at?: DateTime;
  title?: string;
  state?: "draft" | "live";
  score?: number;
  owner?: Id;
  owner_id?: Id;
  tags_any?: Id;
}

`);
    expect(text).toContain('  users: { record: Users; create: never; update: UsersUpdate; filters: UsersFilters };\n');
  });
});
