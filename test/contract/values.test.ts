// @module-tag long
// @module-tag partitions
/** Values in bodies, filters and answers, and the parameters of lists. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { idsOf, NOBODY, outcomeOf } from '../support/records.ts';
import { describeOnBoth, type User } from '../support/service.ts';

const SCHEMA = readFileSync(join(import.meta.dirname, 'bylaw.yaml'), 'utf8');
const at = (field: string) => `/data/${field}`;

describeOnBoth(
  'values',
  (service) => {
    let ann: User;
    beforeAll(async () => {
      ann = await service.user();
    });
    const create = (data: string) =>
      ann.client.send('POST', '/api/things', {
        raw: `{"data":{"title":"v",${data}}}`,
        headers: { 'Content-Type': 'application/json' },
      });

    // [field, JSON in, value out]
    const taken: readonly (readonly [string, string, unknown])[] = [
      ['n', '0', 0],
      ['n', '-0', 0],
      ['n', '-0.0', 0],
      ['n', '1.0', 1],
      ['n', '1e3', 1000],
      ['n', '9007199254740991', 9007199254740991],
      ['n', '-9007199254740991', -9007199254740991],
      ['n', 'null', null],
      ['x', '-0', 0],
      ['x', '-0.0e5', 0],
      ['x', '1e308', 1e308],
      ['x', '5e-324', 5e-324],
      ['x', '0.1', 0.1],
      ['x', '9007199254740993', 9007199254740992],
      ['ok', 'true', true],
      ['kind', '"two"', 'two'],
      ['kind', 'null', null],
      ['code', '""', ''],
      ['at', '"2024-02-29T23:59:59Z"', '2024-02-29T23:59:59.000000Z'],
      ['at', '"2024-01-01T00:00:00+14:00"', '2023-12-31T10:00:00.000000Z'],
      ['at', '"2024-01-01T00:00:00.123456-00:30"', '2024-01-01T00:30:00.123456Z'],
      ['at', '"2024-01-01T00:00:00.5-00:00"', '2024-01-01T00:00:00.500000Z'],
      ['at', '"0001-01-01T00:00:00Z"', '0001-01-01T00:00:00.000000Z'],
      ['at', '"9999-12-31T23:59:59.999999Z"', '9999-12-31T23:59:59.999999Z'],
      ['at', '"0000-12-31T23:30:00-01:00"', '0001-01-01T00:30:00.000000Z'],
      ['at', '"1969-12-31T23:59:59.999999Z"', '1969-12-31T23:59:59.999999Z'],
    ];
    for (const [field, text, value] of taken)
      test(`the field ${field} takes ${text}`, async () => {
        const made = await create(`"${field}":${text}`);
        expect([made.status, made.body.data?.[field]]).toEqual([201, value]);
        expect(Object.is(made.body.data[field], -0)).toBe(false);
        const read = await ann.client.get(`/api/things/${made.body.data.id}`);
        expect([read.status, read.body.data]).toEqual([200, made.body.data]);
        if (value === null) return;
        const listed = await ann.client.get(
          `/api/things?id=${made.body.data.id}&${field}=${encodeURIComponent(String(value))}`,
        );
        expect([listed.status, listed.body.data]).toEqual([200, [made.body.data]]);
      });

    const refused: readonly (readonly [string, string])[] = [
      ['n', '9007199254740992'],
      ['n', '-9007199254740992'],
      ['n', '1.5'],
      ['n', '"1"'],
      ['n', 'true'],
      ['n', '1e400'],
      ['n', '[]'],
      ['x', '1e309'],
      ['x', '"1"'],
      ['x', 'false'],
      ['ok', 'null'],
      ['ok', '1'],
      ['ok', '"true"'],
      ['kind', '"three"'],
      ['kind', '""'],
      ['kind', '"constructor"'],
      ['code', '1'],
      ['code', '"\\u0000"'],
      ['code', '"\\ud800"'],
      ['code', '"\\udc00\\ud800"'],
      ['code', '{"set":"x"}'],
      ...[
        '2024-01-01',
        '2024-01-01T00:00:00',
        '2024-01-01 00:00:00Z',
        '2024-01-01t00:00:00Z',
        '2024-01-01T00:00:00z',
        '2024-01-01T24:00:00Z',
        '2024-02-30T00:00:00Z',
        '2023-02-29T00:00:00Z',
        '2024-12-31T23:59:60Z',
        '2024-01-01T00:00:00.1234567Z',
        '2024-01-01T00:00:00.Z',
        '2024-01-01T00:00Z',
        '2024-01-01T00:00:00+0100',
        '2024-01-01T00:00:00+24:00',
        '2024-01-01T00:00:00+01:60',
        '0000-01-01T00:00:00Z',
        '0001-01-01T00:00:00+01:00',
        '9999-12-31T23:59:59-01:00',
        '+2024-01-01T00:00:00Z',
        '2024-01-01T00:00:00,5Z',
        ' 2024-01-01T00:00:00Z',
        '2024-01-01T00:00:00Z\\n',
        '2024-13-01T00:00:00Z',
        '2024-00-01T00:00:00Z',
        'infinity',
        'now',
        '',
        '10000-01-01T00:00:00Z',
      ].map((text) => ['at', `"${text}"`] as const),
      ['at', '1704067200'],
      ['owner', '"x"'],
      ['owner', '1'],
      ['owner', `"${NOBODY}"`],
      ['owner', '{}'],
      ['id', `"${NOBODY}"`],
      ['created_at', '"2024-01-01T00:00:00Z"'],
      ['owner_id', `"${NOBODY}"`],
      ['parts', '[]'],
      ['parts', '{"add":[]}'],
      ['marks', '{}'],
      ['marks', 'null'],
      ['marks', '[]'],
      ['marks', '{"put":[]}'],
      ['marks', '{"__proto__":[]}'],
      ['badge', '{}'],
      ['badge', '"x"'],
      ['badge', `"${NOBODY}"`],
      ['expand', '{}'],
    ];
    for (const [field, text] of refused)
      test(`the field ${field} rejects ${text}`, async () => {
        const { status, body } = await create(`"${field}":${text}`);
        expect([
          status,
          body.code,
          body.errors?.map(({ pointer }: { pointer: string }) => pointer.startsWith(at(field))),
        ]).toEqual([422, 'validation_failed', [true]]);
        expect(body.detail + JSON.stringify(body.errors)).not.toMatch(/select|insert|postgres|\/src\//i);
      });
    test('max and min count code points', async () => {
      const title = (text: string) => ann.client.post('/api/things', { data: { title: text } });
      expect((await title('😀'.repeat(5))).body.data?.title).toBe('😀'.repeat(5));
      expect(outcomeOf(await title('😀'.repeat(6))).slice(0, 2)).toEqual([422, 'validation_failed']);
      expect((await title('e\u0301e\u0301e')).status).toBe(201);
      expect((await title('')).status).toBe(422);
    });
    test('a string with `lower` is stored, compared and found in lower case', async () => {
      const make = (slug: string) => ann.client.post('/api/things', { data: { title: 'v', slug } });
      const made = await make('ÄBC');
      expect([made.status, made.body.data?.slug]).toEqual([201, 'äbc']);
      expect(outcomeOf(await make('äBc')).slice(0, 2)).toEqual([409, 'unique_violation']);
      const listed = await ann.client.get('/api/things?slug=%C3%84bC');
      expect(listed.body.data).toEqual([made.body.data]);
      // In lower case, this letter is two code points.
      expect(outcomeOf(await make('İİİ')).slice(0, 2)).toEqual([422, 'validation_failed']);
      const changed = await ann.client.patch(`/api/things/${made.body.data.id}`, { data: { slug: 'XYZ' } });
      expect(changed.body.data?.slug).toBe('xyz');
    });
    test('a write reports all errors at once', async () => {
      const { status, body } = await ann.client.post('/api/things', {
        data: { title: '', n: 'x', x: true, at: 1, ok: null, nothing: 1, owner: 2, marks: { add: ['x', NOBODY] } },
      });
      expect([status, body.errors.map(({ pointer }: { pointer: string }) => pointer).sort()]).toEqual([
        422,
        [
          '/data/at',
          '/data/marks/add/0',
          '/data/marks/add/1',
          '/data/n',
          '/data/nothing',
          '/data/ok',
          '/data/owner',
          '/data/title',
          '/data/x',
        ],
      ]);
    });

    describe('filters', () => {
      const filter = async (query: string) => {
        const { status, body } = await ann.client.get(`/api/things?${query}`);
        return [
          status,
          body.code ?? 'ok',
          ...(body.errors ?? []).map(({ parameter }: { parameter: string }) => parameter),
        ];
      };
      const invalid = [
        'n=',
        'n=1.0',
        'n=1e1',
        'n=01',
        'n=+1',
        'n=%201',
        'n=9007199254740992',
        'n=0x1',
        'n=null',
        'x=',
        'x=NaN',
        'x=Infinity',
        'x=1e309',
        'x=.5',
        'x=5.',
        'x=+1',
        'ok=',
        'ok=1',
        'ok=TRUE',
        'ok=yes',
        'kind=three',
        'kind=',
        'at=',
        'at=2024-01-01',
        'at=2024-01-01T00:00:00+01:00',
        'created_at=now',
        'updated_at=',
        'owner=',
        'owner=x',
        'owner=null',
        'owner_id=x',
        'owner_id=',
        'badge=',
        'badge=x',
        'marks_any=',
        'marks_any=x',
        'parts_any=1',
        'id=',
        'id=x',
        'code=%00',
        'title=a%00b',
      ];
      for (const query of invalid)
        test(`the filter ${query} is invalid`, async () =>
          expect(await filter(query)).toEqual([400, 'filter_invalid_value', query.split('=')[0]]));
      const unknown = [
        'nothing=1',
        '__proto__=1',
        'constructor=1',
        'hasOwnProperty=1',
        'toString=',
        'Title=a',
        'title%20=a',
        'marks=x',
        'parts=x',
        'owner_any=x',
        'badge_any=x',
        'badge_id=x',
        'marks_any_id=x',
        'title[]=a',
        'title%5Beq%5D=a',
        '=1',
        'owner.id=1',
        'Limit=1',
        'id_id=1',
        'order=id',
        'title%27=a',
      ];
      for (const query of unknown)
        test(`the filter ${query} is unknown`, async () =>
          expect(await filter(query)).toEqual([400, 'filter_unknown_key', decodeURIComponent(query.split('=')[0]!)]));
      for (const query of [
        'title=a&title=a',
        'n=1&n=2',
        `owner=${NOBODY}&owner=${NOBODY}`,
        `marks_any=${NOBODY}&marks_any=${NOBODY}`,
        'title=a&t%69tle=b',
      ])
        test(`the filter ${query} is a duplicate`, async () =>
          expect((await filter(query)).slice(0, 3)).toEqual([400, 'filter_duplicate_key', query.split('=')[0]]));
      for (const query of [
        'n=-0',
        'x=-0',
        'x=1E5',
        'x=-1.5e-3',
        'n=-9007199254740991',
        'code=',
        'title=%F0%9F%98%80',
        'ok=true',
        `owner=${NOBODY}`,
        `owner_id=${NOBODY.toUpperCase()}`,
        `badge=${NOBODY}`,
        `marks_any=${NOBODY}`,
        `parts_any=${NOBODY}`,
        `id=${NOBODY}`,
        'at=2024-01-01T00:00:00%2B01:00',
        '',
        '&',
        'title=a&',
        "code='%3B--",
        'code=%25',
        'code=a%2Bb',
      ])
        test(`the filter ${query} is valid`, async () => expect(await filter(query)).toEqual([200, 'ok']));
      test('an error suggests the nearest name', async () => {
        const { body } = await ann.client.get('/api/things?titel=a');
        expect(JSON.stringify(body)).toContain('title');
      });
      test('invalid UTF-8 in a query is not a value', async () =>
        expect((await ann.client.get('/api/things?title=%FF')).status).toBe(400));
    });

    describe('parameters', () => {
      const bad = [
        'limit=0',
        'limit=101',
        'limit=1e1',
        'limit=%2B5',
        'limit=+5',
        'limit=%205',
        'limit=5%20',
        'limit=',
        'limit=-1',
        'limit=1.0',
        'limit=05',
        'limit=0x5',
        'limit=null',
        'limit=99999999999999999999',
        'limit=5&limit=5',
        'limit=%D9%A5',
        'offset=-1',
        'offset=1000001',
        'offset=',
        'offset=1e3',
        'offset=1.5',
        'offset=0&offset=0',
        'offset=00',
        'offset=-0',
      ];
      for (const query of bad)
        test(query, async () => {
          const { status, body } = await ann.client.get(`/api/things?${query}`);
          expect([status, body.code, body.errors?.map(({ parameter }: { parameter: string }) => parameter)]).toEqual([
            400,
            'invalid_parameter',
            [query.split('=')[0]],
          ]);
        });
      for (const [query, page] of [
        ['', { limit: 20, offset: 0 }],
        ['limit=1', { limit: 1, offset: 0 }],
        ['limit=100&offset=1000000', { limit: 100, offset: 1_000_000 }],
      ] as const)
        test(`?${query}`, async () =>
          expect((await ann.client.get(`/api/things?${query}`)).body.page).toEqual({
            ...page,
            has_more: expect.any(Boolean),
          }));
      const oddities = [
        'expand=',
        'expand=owner,',
        'expand=,owner',
        'expand=owner,owner',
        'expand=owner.best',
        'expand=nothing',
        'expand=title',
        'expand=owner,%20marks',
        'expand=Owner',
        'expand=__proto__',
        'expand=constructor',
        'expand=hasOwnProperty',
        'expand=id',
        'expand=owner_id',
        'expand=marks_any',
        'expand=*',
        'expand=owner&expand=marks',
        'expand=owner&expand=owner',
      ];
      for (const query of oddities)
        test(query, async () => {
          const { body: one } = await ann.client.post('/api/things', { data: { title: 'e' } });
          const twice = query.split('expand').length > 2;
          for (const path of ['/api/things', `/api/things/${one.data.id}`, `/api/things/${NOBODY}`]) {
            const { status, body } = await ann.client.get(`${path}?${query}`);
            if (path.endsWith(NOBODY) && status === 404) continue;
            expect([path.length, status, twice ? 'any' : body.code]).toEqual([
              path.length,
              400,
              twice ? 'any' : 'unknown_expand',
            ]);
          }
          const before = (await ann.client.get('/api/things?limit=1', { Prefer: 'count=exact' })).body.page.total;
          expect((await ann.client.post(`/api/things?${query}`, { data: { title: 'e' } })).status).toBe(400);
          expect((await ann.client.patch(`/api/things/${one.data.id}?${query}`, { data: { title: 'f' } })).status).toBe(
            400,
          );
          expect((await ann.client.get(`/api/things/${one.data.id}`)).body).toEqual(one);
          expect((await ann.client.get('/api/things?limit=1', { Prefer: 'count=exact' })).body.page.total).toBe(before);
        });
      test('a list pages in id order, and counts on request', async () => {
        const bob = await service.user();
        const made: string[] = [];
        for (let i = 0; i < 5; i++)
          made.push((await bob.client.post('/api/things', { data: { title: `p${i}` } })).body.data.id);
        expect(made).toEqual([...made].sort());
        const page = async (query: string, prefer?: string) => {
          const { body, headers } = await bob.client.get(
            `/api/things?owner=${bob.id}&${query}`,
            prefer === undefined ? {} : { Prefer: prefer },
          );
          return [idsOf(body.data), body.page, headers.get('preference-applied')];
        };
        expect(await page('limit=2')).toEqual([made.slice(0, 2), { limit: 2, offset: 0, has_more: true }, null]);
        expect(await page('limit=2&offset=3', 'count=exact')).toEqual([
          made.slice(3),
          { limit: 2, offset: 3, has_more: false, total: 5 },
          'count=exact',
        ]);
        expect(await page('limit=5', 'respond-async, count=exact; x=1')).toEqual([
          made,
          { limit: 5, offset: 0, has_more: false, total: 5 },
          'count=exact',
        ]);
        expect(await page('offset=9', 'count=exact')).toEqual([
          [],
          { limit: 20, offset: 9, has_more: false, total: 5 },
          'count=exact',
        ]);
        expect(await page('', 'count=planned')).toEqual([made, { limit: 20, offset: 0, has_more: false }, null]);
      });
    });
  },
  { schema: SCHEMA },
);
