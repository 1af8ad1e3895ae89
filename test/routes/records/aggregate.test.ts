// @module-tag partitions
/** `POST /api/{collection}/aggregate` of the contract. */
import { beforeAll, expect, test } from 'vitest';
import type { Answer } from '../../support/client.ts';
import { outcomeOf } from '../../support/records.ts';
import { describeRoutes, type User } from '../../support/service.ts';

const SCHEMA = `
roles: [admin, member]
register: { roles: [member] }
collections:
  customers:
    fields: { name: { type: string, required: true }, secret: { type: bool, required: true, default: false } }
    access: { view: '@record.secret = false', create: true, update: '@next.id is not null' }
  orders:
    fields:
      status: { type: string, enum: [open, paid] }
      amount: int
      weight: float
      gift: { type: bool, required: true, default: false }
      at: datetime
      due: date
      note: string
    relations:
      owner: { kind: belongs_to, collection: users, required: true, default: '@request.auth.id' }
      customer: { kind: belongs_to, collection: customers }
    access: { view: '@record.owner = @request.auth.id or @record.gift', create: true, update: true, delete: true }
`;

type Record = { readonly [key: string]: unknown };

describeRoutes(
  'aggregates',
  (service) => {
    let ann: User;
    let bob: User;
    let acme: Record;
    let hidden: Record;

    const make = async (user: User, collection: string, data: object): Promise<Record> => {
      const { status, body, text } = await user.client.post(`/api/${collection}`, { data });
      if (status !== 201) throw new Error(text);
      return body.data;
    };
    const aggregate = (body: unknown, user = ann): Promise<Answer> => user.client.post('/api/orders/aggregate', body);
    const rows = async (body: object, user = ann): Promise<unknown> => {
      const { body: answer, text } = await aggregate(body, user);
      return answer.data ?? text;
    };

    beforeAll(async () => {
      [ann, bob] = await Promise.all([service.user(), service.user()]);
      acme = await make(ann, 'customers', { name: 'Acme' });
      hidden = await make(ann, 'customers', { name: 'Secret' });
      for (const data of [
        { status: 'open', amount: 10, weight: 0.1, at: '2024-03-10T23:59:59.999999Z', customer: acme.id, note: 'z' },
        {
          status: 'open',
          amount: 5,
          weight: 0.2,
          at: '2024-03-11T00:00:00Z',
          due: '2024-12-30',
          customer: hidden.id,
          note: 'a',
        },
        { status: 'paid', amount: -3, at: '2023-12-31T23:00:00-01:00', customer: acme.id, note: '\u{1F600}' },
        { status: 'paid', amount: 9007199254740991, weight: 1e308, note: '\uFFFF' },
        { gift: true, weight: 1e308 },
      ])
        await make(ann, 'orders', data);
      await make(bob, 'orders', { status: 'open', amount: 1000 });
      await ann.client.patch(`/api/customers/${hidden.id}`, { data: { secret: true } });
    });

    test('measure all records that may be listed', async () => {
      const measures = { n: 'count', sum: 'sum(amount)', least: 'min(note)', most: 'max(note)', last: 'max(at)' };
      expect(await rows({ measures })).toEqual([
        {
          n: 5,
          sum: null,
          least: 'a',
          most: '\u{1F600}',
          last: '2024-03-11T00:00:00.000000Z',
          errors: [{ measure: 'sum', code: 'out_of_range' }],
        },
      ]);
      expect(
        await rows({ measures: { n: 'count', a: 'avg(amount)' }, filter: 'amount < $most', params: { most: 100 } }),
      ).toEqual([{ n: 3, a: 4 }]);
      expect(
        await rows({ measures: { n: 'count', s: 'sum(amount)', a: 'avg(amount)', m: 'min(at)' }, filter: 'false' }),
      ).toEqual([{ n: 0, s: null, a: null, m: null }]);
      expect(await rows({ measures: { n: 'count' } }, bob)).toEqual([{ n: 2 }]);
    });

    test('sums and averages are exact, in any order of the records', async () => {
      expect(await rows({ filter: 'weight < 1', measures: { s: 'sum(weight)', a: 'avg(weight)' } })).toEqual([
        { s: 0.3, a: 0.15 },
      ]);
      const beyond = await rows({ filter: 'weight > 1', measures: { s: 'sum(weight)', a: 'avg(weight)' } });
      expect(beyond).toEqual([{ s: null, a: 1e308, errors: [{ measure: 's', code: 'out_of_range' }] }]);
      const edge = { filter: 'status = "paid"', measures: { s: 'sum(amount)', a: 'avg(amount)' } };
      expect(await rows(edge)).toEqual([{ s: 9007199254740988, a: 4503599627370494 }]);
    });

    test('group by fields, references and parts of datetimes', async () => {
      expect(await rows({ group_by: ['status'], measures: { n: 'count' } })).toEqual([
        { status: 'open', n: 2 },
        { status: 'paid', n: 2 },
        { status: null, n: 1 },
      ]);
      // A reference is the record's own value, also where its target is hidden.
      const ids = [acme.id, hidden.id].sort();
      expect(await rows({ group_by: ['customer'] })).toEqual([
        { customer: ids[0] },
        { customer: ids[1] },
        { customer: null },
      ]);
      expect(await rows({ filter: 'customer.name is not null', group_by: ['customer'] })).toEqual([
        { customer: acme.id },
      ]);
      expect(await rows({ group_by: ['month(at)', 'gift'], measures: { n: 'count' } })).toEqual([
        { 'month(at)': '2024-01', gift: false, n: 1 },
        { 'month(at)': '2024-03', gift: false, n: 2 },
        { 'month(at)': null, gift: false, n: 1 },
        { 'month(at)': null, gift: true, n: 1 },
      ]);
      expect(await rows({ group_by: ['year(at)'] })).toEqual([{ 'year(at)': '2024' }, { 'year(at)': null }]);
      expect(await rows({ group_by: ['day(at)'], filter: 'at is not null', sort: ['-day(at)'] })).toEqual([
        { 'day(at)': '2024-03-11' },
        { 'day(at)': '2024-03-10' },
        { 'day(at)': '2024-01-01' },
      ]);
    });

    test('group by the week, the hour and the day of the week, in a time zone', async () => {
      const periods = async (group: string, zone?: string) =>
        ((await rows({ group_by: [group], filter: 'at is not null', ...(zone && { zone }) })) as Record[]).map(
          (row) => row[group],
        );
      expect(await periods('week(at)')).toEqual(['2024-W01', '2024-W10', '2024-W11']);
      expect(await periods('hour(at)')).toEqual(['2024-01-01T00', '2024-03-10T23', '2024-03-11T00']);
      expect(await periods('weekday(at)')).toEqual([1, 7]);
      // The 10th of March has 23 hours there.
      expect(await periods('hour(at)', 'America/New_York')).toEqual([
        '2023-12-31T19',
        '2024-03-10T19',
        '2024-03-10T20',
      ]);
      expect(await periods('day(at)', 'Asia/Tokyo')).toEqual(['2024-01-01', '2024-03-11']);
      const days = { filter: 'due is not null', zone: 'America/New_York' };
      expect(await rows({ ...days, group_by: ['week(due)', 'weekday(due)', 'month(due)'] })).toEqual([
        { 'week(due)': '2025-W01', 'weekday(due)': 1, 'month(due)': '2024-12' },
      ]);
    });

    test('a period outside the years of four digits is null', async () => {
      const ids: unknown[] = [];
      for (const at of ['0001-01-01T00:00:00Z', '9999-12-31T23:59:59.999999Z'])
        ids.push((await make(ann, 'orders', { at, note: 'end' })).id);
      const periods = async (zone: string) => {
        const found = ['year', 'month', 'week', 'day', 'hour'].map(async (name) => {
          const asked = { group_by: [`${name}(at)`], filter: 'note = "end"', zone, sort: [`${name}(at)`] };
          return ((await rows(asked)) as Record[]).map((group) => group[`${name}(at)`]);
        });
        return Promise.all(found);
      };
      const [west, east] = [await periods('America/New_York'), await periods('Asia/Tokyo')];
      for (const id of ids) await ann.client.delete(`/api/orders/${id}`);
      expect(west).toEqual([
        ['9999', null],
        ['9999-12', null],
        ['9999-W52', null],
        ['9999-12-31', null],
        ['9999-12-31T18', null],
      ]);
      expect(east).toEqual([
        ['0001', null],
        ['0001-01', null],
        // The week of the first of January, a Saturday, began in the year before.
        ['0001-W01', '9999-W52'],
        ['0001-01-01', null],
        ['0001-01-01T09', null],
      ]);
    });

    test('group and measure through relations that may be read', async () => {
      expect(await rows({ group_by: ['customer.name'], measures: { n: 'count' } })).toEqual([
        { 'customer.name': 'Acme', n: 2 },
        { 'customer.name': null, n: 3 },
      ]);
      const measures = {
        customers: 'count(distinct customer)',
        seen: 'count(distinct customer.name)',
        last: 'max(customer.name)',
      };
      expect(await rows({ measures })).toEqual([{ customers: 2, seen: 1, last: 'Acme' }]);
      expect(await rows({ group_by: ['owner.email', 'month(customer.created_at)'], filter: 'gift' })).toEqual([
        { 'owner.email': ann.email, 'month(customer.created_at)': null },
      ]);
    });

    test('a measure has a filter of its own', async () => {
      const measures = {
        n: 'count',
        open: { of: 'count', where: 'status = $status' },
        sum: { of: 'sum(amount)', where: 'amount < 100' },
        mean: { of: 'avg(amount)', where: 'status = "open"' },
        kinds: { of: 'count(distinct status)', where: 'customer.name = "Acme"' },
      };
      expect(await rows({ measures, params: { status: 'open' } })).toEqual([
        { n: 5, open: 2, sum: 12, mean: 7.5, kinds: 2 },
      ]);
      expect(outcomeOf(await aggregate({ measures: { n: { of: 'count', where: 'statu = 1' } } }))).toEqual([
        400,
        'filter_invalid',
        '/measures/n/where name_unknown',
      ]);
    });

    test('a measure in the filter is an error that names having', async () => {
      const { body: answer } = await aggregate({ measures: { n: 'count' }, group_by: ['status'], filter: 'n > 1' });
      expect([answer.code, answer.detail]).toEqual([
        'filter_invalid',
        '`n` is a measure, and a filter is over records; expected it in `having`',
      ]);
    });

    test('a member of the records in having is an error that names the filter', async () => {
      for (const having of ['status = "open"', '"open" = status', 'status is null and n > 1']) {
        const { body: answer } = await aggregate({ measures: { n: 'count' }, group_by: ['status'], having });
        expect([answer.code, answer.errors]).toEqual([
          'filter_invalid',
          [
            expect.objectContaining({
              pointer: '/having',
              detail: '`status` is of the records, and `having` is over measures; expected it in `filter`',
            }),
          ],
        ]);
      }
      const near = await aggregate({ measures: { amounts: 'sum(amount)' }, filter: 'amounts > 1' });
      expect(near.body.detail).toBe('`amounts` is a measure, and a filter is over records; expected it in `having`');
    });

    test('an error of a measure is the only one where having names the measure', async () => {
      const { status, body } = await aggregate({ group_by: ['status'], measures: { n: 'count()' }, having: 'n > 1' });
      expect([status, body.errors.map(({ pointer }: { pointer: string }) => pointer)]).toEqual([422, ['/measures/n']]);
    });

    test('having keeps the groups whose measures meet it', async () => {
      const asked = {
        group_by: ['status'],
        measures: { n: 'count', total: 'sum(amount)', weight: 'sum(weight)', mean: 'avg(amount)', last: 'max(note)' },
      };
      const kept = async (having: string, params = {}) =>
        ((await rows({ ...asked, having, params })) as Record[]).map(({ status }) => status);
      expect(await kept('n > $least', { least: 1 })).toEqual(['open', 'paid']);
      expect(await kept('n = 1 or total = 15')).toEqual(['open', null]);
      expect(await kept('mean = 7.5')).toEqual(['open']);
      expect(await kept('weight < 1')).toEqual(['open']);
      expect(await kept('weight in [1e308]')).toEqual(['paid', null]);
      expect(await kept('last is null')).toEqual([null]);
      expect(await kept('last > "z"')).toEqual(['paid']);
      // A measure that is out of range is null.
      expect(await rows({ measures: { total: 'sum(amount)' }, having: 'total is null' })).toHaveLength(1);
      expect(await rows({ measures: { total: 'sum(amount)' }, having: 'total > 0' })).toEqual([]);
      expect((await aggregate({ ...asked, having: 'n >= 1', sort: ['-n', 'status'], limit: 1 })).body).toMatchObject({
        data: [{ status: 'open', n: 2 }],
        page: { has_more: true },
      });
      for (const [having, code] of [
        ['status = "open"', 'text_unquoted'],
        ['n = "x"', 'type_mismatch'],
      ])
        expect(outcomeOf(await aggregate({ ...asked, having }))).toEqual([400, 'filter_invalid', `/having ${code}`]);
    });

    test('having without measures keeps all groups or none', async () => {
      const groups = [{ status: 'open' }, { status: 'paid' }, { status: null }];
      const asked = { group_by: ['status'] };
      expect(await rows({ ...asked, having: 'true' })).toEqual(groups);
      expect(await rows({ ...asked, having: '$k = 1', params: { k: 1 }, measures: {} })).toEqual(groups);
      expect(await rows({ ...asked, having: 'false', measures: {} })).toEqual([]);
      expect((await aggregate({ ...asked, having: 'true', sort: ['-status'], limit: 1 })).body).toMatchObject({
        data: [{ status: 'paid' }],
        page: { has_more: true },
      });
    });

    test('sort and limit', async () => {
      const asked = { group_by: ['status'], measures: { s: 'sum(weight)' } };
      expect((await aggregate({ ...asked, sort: ['-s'], limit: 2 })).body).toEqual({
        data: [
          { status: 'paid', s: 1e308 },
          { status: null, s: 1e308 },
        ],
        page: { has_more: true },
      });
      const { body, headers } = await aggregate({ ...asked, sort: ['-status'] });
      expect([body.data.map(({ status }: Record) => status), body.page]).toEqual([
        ['paid', 'open', null],
        { has_more: false },
      ]);
      expect(headers.get('cache-control')).toBe('no-store');
    });

    test.each<[object, string[]]>([
      [{}, ['/measures required']],
      [{ measures: {} }, ['/measures wrong_type']],
      [{ group_by: [] }, ['/measures required']],
      [{ group_by: [], having: 'true' }, ['/measures required']],
      [{ group_by: [], measures: {} }, ['/measures wrong_type']],
      [{ measures: [] }, ['/measures wrong_type']],
      [{ measures: { n: 'count(id)' } }, ['/measures/n invalid_measure']],
      [
        { measures: { n: 'sum(note)', m: 'min(gift)', o: 'max(customer)', 'a b': 'count', errors: 'count' } },
        [
          '/measures/a b invalid_measure',
          '/measures/errors invalid_measure',
          '/measures/m invalid_measure',
          '/measures/n invalid_measure',
          '/measures/o invalid_measure',
        ],
      ],
      [{ group_by: ['status'], measures: { status: 'count' } }, ['/measures/status invalid_measure']],
      [{ group_by: ['status', 'status'] }, ['/group_by/1 repeated']],
      [
        { group_by: ['statu', 'year(note)', 'minute(at)'] },
        ['/group_by/0 unknown_name', '/group_by/1 unknown_name', '/group_by/2 unknown_name'],
      ],
      [{ group_by: ['status', 'amount', 'note', 'gift'] }, ['/group_by too_many']],
      [{ group_by: 'status' }, ['/group_by wrong_type']],
      [{ group_by: ['status'], sort: ['amount', 'status', '-status'] }, ['/sort/0 invalid_sort', '/sort/2 repeated']],
      [{ group_by: ['status'], limit: 1001, offset: 1 }, ['/limit invalid_value', '/offset unknown_key']],
      [{ group_by: ['status'], params: { a: 1 } }, ['/params/a invalid_param']],
      [{ group_by: ['day(at)'], zone: 'Europe/Berlim' }, ['/zone invalid_value']],
      [{ group_by: ['day(at)'], zone: '+02:00' }, ['/zone invalid_value']],
      [{ group_by: ['day(at)'], zone: 2 }, ['/zone wrong_type']],
      [{ group_by: ['hour(due)', 'customer.id'] }, ['/group_by/0 unknown_name', '/group_by/1 unknown_name']],
      [{ group_by: ['customer.owner', 'note.x'] }, ['/group_by/0 unknown_name', '/group_by/1 unknown_name']],
      [
        { measures: { a: { of: 'count', when: 'true' }, b: { where: 'true' }, c: 'count(note)', d: 'sum(customer)' } },
        ['a', 'b', 'c', 'd'].map((name) => `/measures/${name} invalid_measure`),
      ],
      [
        { measures: { a: { of: 'count', where: 1 } }, having: true },
        ['/having wrong_type', '/measures/a/where wrong_type'],
      ],
      [{ measures: { a: 'count' }, having: 'id is null' }, ['/having unknown_name']],
      [{ measures: { a: 'count' }, having: 'a > $x', params: { x: 'y' } }, ['/params/x invalid_param']],
    ])('%j is refused', async (body, expected) => {
      const [status, code, ...found] = outcomeOf(await aggregate(body));
      expect([status, code, found.toSorted()]).toEqual([422, 'validation_failed', expected]);
    });

    test('the filters of a body are of limited length together', async () => {
      const where = `note = "${'x'.repeat(1_000)}"`;
      const measures = (count: number, text = where): object =>
        Object.fromEntries(Array.from({ length: count }, (_, i) => [`m${i}`, { of: 'count', where: text }]));
      expect((await aggregate({ measures: measures(8) })).status).toBe(200);
      expect(outcomeOf(await aggregate({ measures: measures(9) }))).toEqual([
        400,
        'filter_invalid',
        '/measures/m8/where policy_too_long',
      ]);
      const { body } = await aggregate({ measures: measures(9) });
      expect(body.detail).toContain('longer than 8192 characters together');
      const long = outcomeOf(await aggregate({ measures: measures(9, `note = "${'x'.repeat(9_000)}"`) }));
      expect(long.slice(2)).toEqual(Array.from({ length: 9 }, (_, i) => `/measures/m${i}/where policy_too_long`));
    });

    test.each(['a'.repeat(49), '1a', 'errors'])('the measure %s is told which names there are', async (name) => {
      const { body } = await aggregate({ measures: { [name]: 'count' } });
      expect(body.errors[0].detail).toBe(
        'expected a name of at most 48 letters, digits and underscores, without a digit at its start, other than `errors`',
      );
    });

    test('report errors of their filter', async () => {
      const blank = await aggregate({ measures: { n: 'count' }, having: ' ' });
      expect([blank.body.errors[0].pointer, blank.body.errors[0].detail]).toEqual([
        '/having',
        'an empty filter; expected a condition, such as `status = "open"`',
      ]);
      expect(outcomeOf(await aggregate({ filter: 'x = 1' }))).toEqual([400, 'filter_invalid', '/filter text_unquoted']);
    });
  },
  { schema: SCHEMA },
);
