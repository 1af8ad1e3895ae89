import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loadSchema } from '../../src/schema/file/load-file.ts';
import { formatSchema } from '../../src/schema/file/shape.ts';
import { parseSchema, readSchemaCatalog } from '../../src/schema/load.ts';
import { indexesOf } from '../../src/schema/model/indexes.ts';
import type { Collection, Schema } from '../../src/schema/model/model.ts';

const LANGUAGE = new URL('language.yaml', import.meta.url).pathname;

function loaded(text: string, env: Record<string, string> = {}): Schema {
  const { schema, issues } = parseSchema(text, 'x.yaml', env);
  expect(issues).toEqual([]);
  return schema!;
}

const textsOf = ({ access }: Collection) =>
  Object.fromEntries(Object.entries(access).map(([action, policies]) => [action, policies.map(({ text }) => text)]));

describe('loading a schema', () => {
  it('the sample has no warning', () => {
    const { schema, issues } = loadSchema({ file: 'bylaw.yaml', env: {} });
    expect(issues).toEqual([]);
    expect([...schema!.collections.keys()]).toEqual([
      'users',
      'teams',
      'memberships',
      'documents',
      'tags',
      'covers',
      'comments',
      'files',
    ]);
  });

  it('the example of the language gives its schema', () => {
    const { schema, issues } = loadSchema({ file: LANGUAGE, env: {} });
    expect(issues).toEqual([]);
    const documents = schema!.collections.get('documents')!;
    expect([...documents.fields.values()]).toEqual([
      {
        name: 'created_at',
        type: 'datetime',
        required: true,
        needed: true,
        unique: false,
        index: true,
        readOnly: true,
        column: 'created_at',
        default: { kind: 'now' },
      },
      {
        name: 'updated_at',
        type: 'datetime',
        required: true,
        needed: true,
        unique: false,
        index: false,
        readOnly: true,
        column: 'updated_at',
        default: { kind: 'now' },
      },
      {
        name: 'title',
        type: 'string',
        required: true,
        needed: true,
        unique: false,
        index: false,
        readOnly: false,
        column: 'title',
        max: 200,
      },
      {
        name: 'status',
        type: 'string',
        required: true,
        needed: true,
        unique: false,
        index: false,
        readOnly: false,
        column: 'status',
        enum: ['draft', 'published'],
        default: { kind: 'constant', value: 'draft' },
      },
      {
        name: 'score',
        type: 'int',
        required: false,
        needed: false,
        unique: false,
        index: false,
        readOnly: false,
        column: 'score',
      },
      {
        name: 'rating',
        type: 'float',
        required: false,
        needed: false,
        unique: false,
        index: false,
        readOnly: false,
        column: 'rating',
      },
      {
        name: 'pinned',
        type: 'bool',
        required: true,
        needed: true,
        unique: false,
        index: false,
        readOnly: false,
        column: 'pinned',
        default: { kind: 'constant', value: false },
      },
      {
        name: 'due_at',
        type: 'datetime',
        required: false,
        needed: false,
        unique: false,
        index: false,
        readOnly: false,
        column: 'due_at',
      },
    ]);
    expect([...documents.relations.values()]).toEqual([
      {
        kind: 'belongs_to',
        name: 'owner',
        collection: 'users',
        required: true,
        needed: true,
        column: 'owner_id',
        onDelete: 'restrict',
        unique: false,
        readOnly: false,
        default: { kind: 'auth', name: 'id' },
      },
      {
        kind: 'belongs_to',
        name: 'team',
        collection: 'teams',
        required: false,
        needed: false,
        column: 'team_id',
        onDelete: 'set_null',
        unique: false,
        readOnly: false,
      },
      {
        kind: 'many_to_many',
        name: 'tags',
        collection: 'tags',
        linkTable: 'documents__tags',
        sourceColumn: 'record_id',
        targetColumn: 'member_id',
      },
      { kind: 'has_one', name: 'cover', collection: 'covers', via: 'document', viaColumn: 'document_id' },
    ]);
    expect(textsOf(documents)).toEqual({
      list: ['@record.status = "published" or @record.owner = @request.auth.id'],
      read: ['@record.status = "published" or @record.owner = @request.auth.id'],
      create: ['@record.owner = @request.auth.id'],
      update: ['any(@record.team.memberships as m, m.user = @request.auth.id and m.role in ["owner", "editor"])'],
      delete: ['@request.auth.roles contains "admin"', '@record.owner = @request.auth.id and @record.status = "draft"'],
    });
    expect(schema!.collections.get('covers')!.relations.get('document')).toMatchObject({ unique: true });
    expect(schema!.register).toEqual({ roles: ['member'], open: true, verify: false });
  });

  it('users and files exist without a declaration', () => {
    const { collections, roles } = loaded('collections: {}');
    expect([...roles.values()]).toEqual([{ name: 'admin', assigns: ['admin'], includes: [] }]);
    expect(
      [...collections.values()].map(({ name, kind, fields, relations }) => [
        name,
        kind,
        [...fields.keys()],
        [...relations.keys()],
      ]),
    ).toEqual([
      ['users', 'users', ['created_at', 'updated_at', 'email', 'email_verified'], []],
      ['files', 'files', ['created_at', 'updated_at', 'name', 'content_type', 'size', 'sha256'], ['owner']],
    ]);
    expect(textsOf(collections.get('users')!)).toEqual({
      list: ['@request.auth.roles contains "admin"', '@record.id = @request.auth.id'],
      read: ['@request.auth.roles contains "admin"', '@record.id = @request.auth.id'],
      create: [],
      update: ['@record.id = @request.auth.id'],
      delete: [],
    });
    const owned = ['@record.owner = @request.auth.id'];
    expect(textsOf(collections.get('files')!)).toEqual({
      list: owned,
      read: owned,
      create: owned,
      update: owned,
      delete: owned,
    });
  });

  it('roles and a condition become one expression', () => {
    const { collections } = loaded(`roles: [a, b]
collections:
  posts:
    fields: { n: int }
    access:
      read: [{ roles: [a, b], when: '@record.n = 1 or @record.n = 2' }, { roles: [a], when: true }]
      delete: true
`);
    expect(textsOf(collections.get('posts')!)).toEqual({
      list: [],
      read: [
        '(@request.auth.roles contains "a" or @request.auth.roles contains "b") and (@record.n = 1 or @record.n = 2)',
        '(@request.auth.roles contains "a") and (true)',
      ],
      create: [],
      update: [],
      delete: ['true'],
    });
    const caller = (roles: readonly string[]) => ({
      auth: { id: '0190b0a0-0000-7000-8000-000000000001', roles },
      query: {},
      now: '2026-01-01T00:00:00.000000Z',
    });
    const [first] = collections.get('posts')!.access.read;
    expect([['a'], ['b'], ['c']].map((roles) => first!.specialise(caller(roles)).verdict)).toEqual([
      'depends',
      'depends',
      'deny',
    ]);
  });

  it('the limits count each condition without its roles', () => {
    const many = Array.from({ length: 256 }, (_, i) => `@record.n=${i % 10}`).join(' or ');
    const { collections } = loaded(
      `roles: [a]\ncollections:\n  posts:\n    fields: { n: int }\n    access:\n      read: [{ roles: [a], when: '${many}' }]\n`,
    );
    expect(collections.get('posts')!.access.read).toHaveLength(1);
  });

  it('included roles are transitive, and admin assigns all roles', () => {
    const { roles } = loaded(
      'roles:\n  a: { includes: [b] }\n  b: { includes: [c, a] }\n  c:\n  admin: { includes: [a] }\n',
    );
    expect([...roles.values()]).toEqual([
      { name: 'a', assigns: [], includes: ['b', 'c'] },
      { name: 'b', assigns: [], includes: ['c', 'a'] },
      { name: 'c', assigns: [], includes: [] },
      { name: 'admin', assigns: ['a', 'b', 'c', 'admin'], includes: ['a', 'b', 'c'] },
    ]);
  });

  it('settings have units', () => {
    const { sessions, limits, uploads, oauth, origins, redirects, proxies } = loaded(
      `sessions: { access: 90s, refresh: 2w }
limits: { register: 5 in 1h, body: 64KiB, answer: 1MiB, query_time: 1m, write_time: 2s }
uploads: { max_size: 5MB, types: [image/*], quota: { default: 1GiB }, images: { widths: [100] } }
origins: ['https://app.example']
redirects: ['com.example.app://', 'http://[::1]:8080/cb']
proxies: [10.0.0.0/8, '::1']
oauth: { corp: { issuer: 'https://id.example', client_id: x, client_secret_env: SECRET } }
`,
      { SECRET: 's3cret' },
    );
    expect({ sessions, limits, uploads, origins, redirects, proxies, oauth: [...oauth.values()] }).toEqual({
      sessions: { access: 90, refresh: 1_209_600, idle: 1_209_600 },
      limits: {
        loginAccount: { points: 10, window: 900 },
        loginAddress: { points: 50, window: 900 },
        register: { points: 5, window: 3600 },
        refresh: { points: 600, window: 900 },
        reset: { points: 10, window: 900 },
        guest: { points: 30, window: 3600 },
        body: 65_536,
        answer: 1_048_576,
        queryTime: 60,
        writeTime: 2,
        feeds: { user: 20, node: undefined },
      },
      uploads: {
        maxSize: 5_000_000,
        types: ['image/*'],
        quota: new Map([['default', 1_073_741_824]]),
        images: { widths: [100], heights: [64, 128, 256, 512, 1024, 2048], maxPixels: 50_000_000 },
      },
      origins: ['https://app.example'],
      redirects: ['com.example.app://', 'http://[::1]:8080/cb'],
      proxies: ['10.0.0.0/8', '::1'],
      oauth: [
        {
          name: 'corp',
          issuer: 'https://id.example',
          clientId: 'x',
          clientSecret: 's3cret',
        },
      ],
    });
  });

  it('the loader reads JSON, aliases, and names of JavaScript’s own', () => {
    const json = loaded(
      '{ "collections": { "constructor": { "fields": { "toString": "int", "valueOf": { "type": "bool" } } } } }',
    );
    expect([...json.collections.get('constructor')!.fields.keys()]).toEqual([
      'created_at',
      'updated_at',
      'toString',
      'valueOf',
    ]);
    const aliased = loaded(
      'collections:\n  a:\n    fields: &f { n: int }\n    access: { read: &p "@record.n = 1", list: *p }\n  b: { fields: *f }\n',
    );
    expect(textsOf(aliased.collections.get('a')!).list).toEqual(['@record.n = 1']);
    expect(aliased.collections.get('b')!.fields.get('n')!.type).toBe('int');
  });

  it('an unreadable file gives an error with its name', () => {
    expect(loadSchema({ file: '/nowhere.yaml', env: {} }).issues).toEqual([
      {
        code: 'no_file',
        severity: 'error',
        message: 'the schema cannot be read: the file does not exist',
        file: '/nowhere.yaml',
        line: 1,
        column: 1,
        end_line: 1,
        end_column: 1,
        path: '',
      },
    ]);
  });

  it('a file in another encoding gives an error at its first byte that is not UTF-8', () => {
    const folder = mkdtempSync(join(tmpdir(), 'bylaw-'));
    const file = join(folder, 'x.yaml');
    const text = `# Zürich\ncollections: { a: { fields: { s: string }, access: { read: '@record.s = "München"' } } }\n`;
    const head = Buffer.from('# Zürich 😀 \n');
    const outcome = (bytes: Uint8Array) => {
      writeFileSync(file, bytes);
      return loadSchema({ file, env: {} }).issues.map((issue) => [issue.code, issue.line, issue.column, issue.message]);
    };
    try {
      expect(outcome(Buffer.from(text))).toEqual([]);
      const message = (line: number) => `the schema cannot be read: line ${line} is not UTF-8; save the file as UTF-8`;
      expect(outcome(Buffer.from(text, 'latin1'))).toEqual([['not_utf8', 1, 4, message(1)]]);
      const inRule = Buffer.concat([head, Buffer.from(text.slice(text.indexOf('\n') + 1), 'latin1')]);
      expect(outcome(inRule)).toEqual([['not_utf8', 2, 75, message(2)]]);
      expect(outcome(Buffer.concat([head, Buffer.of(0xc3)]))).toEqual([['not_utf8', 2, 1, message(2)]]);
      expect(outcome(Buffer.from(text, 'utf16le').fill(0xff, 0, 1))).toEqual([['not_utf8', 1, 1, message(1)]]);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('the catalog of a file ignores its policies', () => {
    const { catalog } = readSchemaCatalog(
      "roles: [x]\ncollections:\n  a:\n    fields: { n: int }\n    access: { read: 'no policy at all' }\n",
    );
    expect([[...catalog!.collections.keys()], [...catalog!.roles.keys()]]).toEqual([
      ['a', 'users', 'files'],
      ['x', 'admin'],
    ]);
  });

  it('an error has its end, its path and a fix that fits the quotes', () => {
    const { issues } = parseSchema(
      `collections:\n  a:\n    fields: { name: string }\n    access:\n      read: [{ when: '@record.nme = "x"' }]\n`,
      'x.yaml',
    );
    expect(issues).toEqual([
      {
        code: 'name_unknown',
        severity: 'error',
        message: '`a` has no `nme`; did you mean `name`?',
        file: 'x.yaml',
        line: 5,
        column: 31,
        end_line: 5,
        end_column: 34,
        path: 'collections.a.access.read[0].when',
        fix: { line: 5, column: 31, end_line: 5, end_column: 34, replacement: 'name' },
      },
    ]);
  });

  it('the loader adds an index for compared fields if it can serve them', () => {
    const schema = loaded(`collections:
  a:
    fields: { kind: { type: string, max: 20 }, slug: { type: string, unique: true }, on: { type: bool }, at: { type: datetime, index: true } }
    relations:
      owner: { kind: belongs_to, collection: users, required: true, default: '@request.auth.id' }
    access:
      list: [{ when: '@record.kind = "x"' }, { when: '@record.on' }]
`);
    expect(indexesOf(schema.collections.get('a')!, schema)).toEqual([
      { columns: ['slug'], serves: 'slug', unique: true, because: 'declared' },
      { columns: ['created_at', 'id'], serves: 'created_at', unique: false, because: 'declared' },
      { columns: ['at', 'id'], serves: 'at', unique: false, because: 'declared' },
      { columns: ['owner_id', 'id'], serves: 'owner_id', unique: false, because: 'reference' },
      { columns: ['kind', 'id'], serves: 'kind', unique: false, because: 'policy' },
      { columns: ['on', 'id'], serves: 'on', unique: false, because: 'policy' },
    ]);
    expect(schema.collections.get('a')!.fields.get('slug')!.max).toBe(675);
  });

  it('a collection can declare an index on a field of every record', () => {
    const schema = loaded(`collections:
  a: { index: [updated_at] }
  files: { index: [size, sha256] }
`);
    const columnsOf = (name: string) => indexesOf(schema.collections.get(name)!, schema).map(({ serves }) => serves);
    expect(columnsOf('a')).toEqual(['created_at', 'updated_at']);
    expect(columnsOf('files')).toEqual(['created_at', 'size', 'sha256', 'owner_id']);
  });

  it('the JSON Schema of the format is current', () => {
    expect(readFileSync('src/schema/bylaw.schema.json', 'utf8')).toBe(formatSchema());
  });
});
