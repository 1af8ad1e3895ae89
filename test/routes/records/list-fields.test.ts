/** List fields over HTTP: values in and out, errors, filters, rules, defaults and changes, on both databases. */
import { beforeAll, describe, expect, test } from 'vitest';
import { describeRoutes, type User } from '../../support/service.ts';

const SCHEMA = `
roles: [member]
register: { roles: [member] }
collections:
  users:
    fields:
      regions: { type: list, of: string }
  things:
    fields:
      meta: json
      origin: { type: json, default: { from: [api] } }
    access: { view: true, create: true, update: 'not changed(@record.origin)' }
  notes:
    fields:
      labels: { type: list, of: string, required: true, min: 0, max: 4, default: [] }
      scores: { type: list, of: int }
      rates: { type: list, of: float, index: true }
      flags: { type: list, of: bool }
      days: { type: list, of: date }
      times: { type: list, of: datetime, max: 2 }
      region: string
      topic: string
      secret: { type: list, of: string, access: { read: 'any(@record.labels as l, l starts with "open")' } }
    access:
      list: '@record.labels contains "shared" or @record.region in @request.auth.regions'
      read: true
      create: true
      update: 'not changed(@record.scores) or @next.scores contains 7'
      delete: 'count(@record.labels) < 2'
`;

interface ListCase {
  readonly field: string;
  readonly given: readonly unknown[];
  readonly printed: readonly unknown[];
  readonly invalid: readonly (readonly [value: unknown, code: string, detail: string])[];
}

const HOSTILE = ['', ' ', 'a,b', '{a}', 'a"b', 'a\\b', '\\', 'NULL', 'null', "it's", 'ä\n\t', '😀', '__proto__'];

const CASES: readonly ListCase[] = [
  {
    field: 'scores',
    given: [0, -0, 1, 9007199254740991, -9007199254740991],
    printed: [0, 0, 1, 9007199254740991, -9007199254740991],
    invalid: [
      ['1', 'wrong_type', 'expected a list, each element a whole number within ±9007199254740991'],
      [[1, null], 'wrong_type', 'element 1: expected a whole number within ±9007199254740991'],
      [[1.5], 'wrong_type', 'element 0: expected a whole number within ±9007199254740991'],
      [[[1]], 'wrong_type', 'element 0: expected a whole number within ±9007199254740991'],
      [Array(1001).fill(1), 'too_long', 'expected 1000 elements or less'],
    ],
  },
  {
    field: 'rates',
    given: [0.1, -0, 1e21, 5e-324, -1.7976931348623157e308],
    printed: [0.1, 0, 1e21, 5e-324, -1.7976931348623157e308],
    invalid: [[['1'], 'wrong_type', 'element 0: expected a finite number']],
  },
  { field: 'flags', given: [true, false, true], printed: [true, false, true], invalid: [] },
  {
    field: 'days',
    given: ['2024-02-29', '0001-01-01'],
    printed: ['2024-02-29', '0001-01-01'],
    invalid: [
      [['2023-02-29'], 'wrong_type', 'element 0: expected a date in the years 0001 to 9999, such as "2026-01-31"'],
    ],
  },
  {
    field: 'times',
    given: ['2026-01-31T09:30:00+02:00', '0001-01-01T00:00:00.5Z'],
    printed: ['2026-01-31T07:30:00.000000Z', '0001-01-01T00:00:00.500000Z'],
    invalid: [[Array(3).fill('2026-01-31T09:30:00Z'), 'too_long', 'expected 2 elements or less']],
  },
  {
    field: 'secret',
    given: HOSTILE,
    printed: HOSTILE,
    invalid: [
      [['a\0'], 'unstorable', 'element 0: a NUL or a lone surrogate cannot be stored'],
      [['\ud800'], 'unstorable', 'element 0: a NUL or a lone surrogate cannot be stored'],
      [['a'.repeat(676)], 'too_long', 'element 0: expected 675 characters or less'],
    ],
  },
];

describeRoutes(
  'list fields',
  (service) => {
    let ann: User;
    const post = (data: object) => ann.client.post('/api/notes', { data });
    const found = async (filter: string, params: object = {}): Promise<unknown> => {
      const { body, text } = await ann.client.post('/api/notes/query', { filter, params });
      return body.data?.map(({ region }: { region: string }) => region).toSorted() ?? text;
    };

    beforeAll(async () => {
      ann = await service.user();
      await ann.client.patch(`/api/users/${ann.id}`, { data: { regions: ['eu', 'us'] } });
      const rows = [
        {
          region: 'a',
          topic: 'shared',
          labels: ['shared', 'open now'],
          scores: [1, 2, 2],
          rates: [0.5],
          secret: ['s'],
        },
        { region: 'b', labels: ['shared'], scores: [], flags: [false], days: ['2024-02-29'], secret: ['s'] },
        { region: 'c', topic: 'open', labels: ['shared', 'SHARED', 'a"b,{c}\\'], times: ['2026-01-31T09:30:00+02:00'] },
        { region: 'eu', labels: [], scores: [7] },
        { region: 'asia', labels: ['open'], scores: [1] },
      ];
      for (const row of rows) expect((await post(row)).status).toBe(201);
    });

    describe.each(CASES)('$field', ({ field, given, printed, invalid }) => {
      test('values are read back in their order', async () => {
        for (const list of [given, [], null]) {
          const { status, body, text } = await post({ labels: ['open'], [field]: list });
          const expected = list === given ? printed : list;
          expect([status, body.data?.[field]], text).toEqual([201, expected]);
          const read = await ann.client.get(`/api/notes/${body.data.id}`);
          expect(read.body.data[field]).toEqual(expected);
          await ann.client.delete(`/api/notes/${body.data.id}`);
        }
      });

      test('invalid values are 422', async () => {
        for (const [value, code, detail] of invalid) {
          const { status, body } = await post({ [field]: value });
          expect([status, body.errors]).toEqual([422, [{ pointer: `/data/${field}`, code, detail }]]);
        }
      });
    });

    test('filters ask for elements', async () => {
      expect(await found('labels contains "shared"')).toEqual(['a', 'b', 'c']);
      expect(await found('not (labels contains $x)', { x: 'open now' })).toEqual(['b', 'c', 'eu']);
      expect(await found('labels contains $x', { x: 'a"b,{c}\\' })).toEqual(['c']);
      expect(await found('labels contains region or scores contains 7')).toEqual(['eu']);
      expect(await found('labels contains topic')).toEqual(['a']);
      // An empty list contains nothing, not even an absent value.
      expect(await found('not (labels contains topic)')).toEqual(['c', 'eu']);
      expect(await found('scores contains 2 or flags contains false')).toEqual(['a', 'b']);
      expect(await found('rates contains 0.5 or days contains "2024-02-29"')).toEqual(['a', 'b']);
      expect(await found('times contains "2026-01-31T07:30:00Z"')).toEqual(['c']);
      expect(await found('any(labels as l, l ends with "now" or l > "shb")')).toEqual(['a']);
      expect(await found('all(scores as s, s < 3)')).toEqual(['a', 'b']);
      expect(await found('none(scores as s, s < 3)')).toEqual(['b', 'eu']);
      expect(await found('count(scores) = 3 or count(labels as l, l != "shared") = 0')).toEqual(['a', 'b', 'eu']);
      expect(await found('scores is null')).toEqual(['c']);
      expect(await found('any(secret as s, s = "s")')).toEqual(['a']);
    });

    test('wrong uses are errors with what was expected', async () => {
      const wrong: readonly (readonly [filter: string, code: string])[] = [
        ['labels = "a"', 'list_compared'],
        ['"a" in labels', 'list_compared'],
        ['labels in ["a"]', 'list_compared'],
        ['labels contains 5', 'type_mismatch'],
        ['scores contains 1.5', 'type_mismatch'],
        ['labels contains secret', 'list_misplaced'],
        ['labels starts with "a"', 'list_compared'],
        ['any(labels as l, l.name = "a")', 'path_not_walked'],
        ['any(region as l, true)', 'to_many_expected'],
      ];
      for (const [filter, code] of wrong) {
        const { status, body } = await ann.client.post('/api/notes/query', { filter });
        expect([status, body.errors?.[0].code], filter).toEqual([400, code]);
      }
      const sorted = await ann.client.post('/api/notes/query', { sort: ['labels'] });
      expect([sorted.status, sorted.body.errors?.[0].detail]).toEqual([
        422,
        '`labels` is list of string, which have no order',
      ]);
      const grouped = await ann.client.post('/api/notes/aggregate', { group_by: ['labels'], measures: { n: 'count' } });
      expect([grouped.status, grouped.body.errors?.[0].detail]).toEqual([
        422,
        'expected a field whose values are compared, found list of string',
      ]);
      const plain = await ann.client.get('/api/notes?labels=a');
      expect([plain.status, plain.body.errors?.[0]]).toEqual([
        400,
        {
          parameter: 'labels',
          code: 'filter_unknown_key',
          detail:
            '`notes` has no filter `labels`; ask for its values by an expression, such as `filter=labels is not null`',
        },
      ]);
    });

    test('a list of ints does not contain a number that rounding makes an int', async () => {
      const raw = '{"filter":"scores contains $n","params":{"n":0.99999999999999999999}}';
      const headers = { 'Content-Type': 'application/json' };
      const { status, body } = await ann.client.send('POST', '/api/notes/query', { raw, headers });
      expect([status, body.errors[0].pointer]).toEqual([422, '/params/n']);
    });

    test('json is read back as it was written, and is compared by nobody', async () => {
      const things = (data: object) => ann.client.post('/api/things', { data });
      const values = [0, false, '', 'a\u2028"', [], {}, [null, { 'ä\n': [1.5, -0.1, 1e300] }], 5e-324];
      for (const meta of values) {
        const { status, body, text } = await things({ meta });
        expect([status, body.data?.meta, body.data?.origin], text).toEqual([201, meta, { from: ['api'] }]);
      }
      const path = '/api/things';
      const exact = await ann.client.send('POST', path, {
        raw: '{"data":{"meta":[9007199254740993,0.10000000000000000001,1.0]}}',
        headers: { 'Content-Type': 'application/json' },
      });
      expect(exact.text).toContain('[9007199254740993, 0.10000000000000000001, 1]');
      const invalid: readonly (readonly [meta: unknown, code: string])[] = [
        [{ a: '\0' }, 'unstorable'],
        [{ '\ud800': 1 }, 'unstorable'],
        ['a'.repeat(65_535), 'too_long'],
      ];
      for (const [meta, code] of invalid) {
        const { status, body } = await things({ meta });
        expect([status, body.errors?.[0].code, body.errors?.[0].pointer]).toEqual([422, code, '/data/meta']);
      }
      expect((await things({})).body.data.meta).toBeNull();
      const ask = (body: object) => ann.client.post(`${path}/query`, body);
      expect((await ask({ filter: 'meta is not null', count: 'exact' })).body.page.total).toBe(values.length + 1);
      expect((await ask({ filter: 'meta = $x', params: { x: 1 } })).body.errors[0].code).toBe('json_compared');
      expect((await ask({ sort: ['meta'] })).status).toBe(422);
      for (const key of ['meta', 'meta.color'])
        expect((await ann.client.get(`${path}?${key}=1`)).body.errors[0].detail).toMatch(/`filter=meta is not null`$/);
      const { body } = await things({ meta: 1, origin: { a: 1, b: [1] } });
      const patch = (data: object) => ann.client.patch(`${path}/${body.data.id}`, { data });
      expect((await patch({ origin: { b: [1], a: 1 }, meta: 2 })).status).toBe(200);
      expect((await patch({ origin: { b: [1], a: 2 } })).status).toBe(403);
    });

    test('rules read stored, written and requested lists', async () => {
      const { body } = await post({ region: 'new', labels: ['open', 'shared'], scores: [1] });
      const path = `/api/notes/${body.data.id}`;
      expect(body.data.secret).toBeNull();
      expect((await ann.client.patch(path, { data: { scores: [2] } })).status).toBe(403);
      expect((await ann.client.patch(path, { data: { scores: [1], labels: ['x', 'shared'] } })).status).toBe(200);
      expect((await ann.client.patch(path, { data: { scores: [2, 7] } })).status).toBe(200);
      expect((await ann.client.get(path)).body.data).not.toHaveProperty('secret');
      expect((await ann.client.delete(path)).status).toBe(403);
      await ann.client.patch(path, { data: { labels: [] } });
      expect((await ann.client.delete(path)).status).toBe(204);
    });
  },
  { schema: SCHEMA },
);
