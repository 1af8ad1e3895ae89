// @module-tag long
/** Each type of a field over HTTP: values in and out, errors, filters, order, pages, defaults and rules, on both databases. */
import { beforeAll, describe, expect, test } from 'vitest';
import { describeRoutes, type User } from '../../support/service.ts';

interface TypeCase {
  readonly type: string;
  /** `sorted`: lists sort by it, and `<` does not compare it. */
  readonly order?: 'sorted' | 'none';
  /** The declaration of the field, without its type. */
  readonly options?: string;
  /** The part of the declaration that each field of the type has. */
  readonly digits?: string;
  /** In their order, as a client writes them and as the service prints them. */
  readonly values: readonly (readonly [given: unknown, printed: unknown])[];
  readonly expected: string;
  readonly invalid: readonly unknown[];
  /** Texts of a URL that are not of the type. */
  readonly invalidTexts: readonly string[];
  /** Literals of a filter, and the printed values that they are less than. */
  readonly literals: readonly (readonly [literal: string, above: number])[];
  readonly malformed: readonly (readonly [literal: string, code: string])[];
}

const CASES: readonly TypeCase[] = [
  {
    type: 'date',
    options: ", min: '0001-01-01', default: '@today'",
    values: ['0001-01-01', '1999-12-31', '2000-02-29', '2024-02-29', '9999-12-31'].map((day) => [day, day]),
    expected: 'expected a date in the years 0001 to 9999, such as "2026-01-31"',
    invalid: [
      '2026-02-29',
      '1900-02-29',
      '0000-12-31',
      '10000-01-01',
      '2026-1-31',
      '2026-01-31T00:00:00Z',
      'today',
      5,
      {},
    ],
    invalidTexts: ['2026-02-29', '', 'today', '2026-01-31T00:00:00Z'],
    literals: [
      ['"1999-12-31"', 3],
      ['"2000-01-01"', 3],
      ['@today - 50000w', 4],
    ],
    malformed: [
      ['"2026-02-30"', 'date_malformed'],
      ['5', 'type_mismatch'],
      ['@now', 'type_mismatch'],
      ['@today - 1h', 'duration_malformed'],
    ],
  },
  {
    type: 'time',
    options: ", default: '08:00:00', max: '23:59:59.999999'",
    values: [
      ['00:00:00', '00:00:00'],
      ['09:30:00.000', '09:30:00'],
      ['09:30:00.050000', '09:30:00.05'],
      ['09:30:00.5', '09:30:00.5'],
      ['23:59:59.999999', '23:59:59.999999'],
    ],
    expected: 'expected a time of the day from 00:00:00 to 23:59:59.999999, such as "09:30:00"',
    invalid: ['24:00:00', '23:59:60', '09:30', '9:30:00', '09:30:00Z', '09:30:00.1234567', 'now', 930, true],
    invalidTexts: ['24:00:00', '', '09:30'],
    literals: [
      ['"09:30:00"', 3],
      ['"09:30:00.4"', 2],
    ],
    malformed: [
      ['"24:00:00"', 'time_malformed'],
      ['@today', 'type_mismatch'],
      ['930', 'type_mismatch'],
    ],
  },
  {
    type: 'bigint',
    options: ", default: '7', min: '-9223372036854775808'",
    values: ['-9223372036854775808', '-10', '9', '9007199254740993', '9223372036854775807'].map((n) => [n, n]),
    expected: 'expected a whole number from -9223372036854775808 to 9223372036854775807 as a string, such as "42"',
    invalid: ['9223372036854775808', '-9223372036854775809', '1.0', '1e3', '01', '+1', '', 1.5, true],
    invalidTexts: ['9223372036854775808', '', '1.5', '1e3'],
    literals: [
      ['9007199254740992', 2],
      ['8.5', 3],
      ['-1e400', 5],
    ],
    malformed: [
      ['"9"', 'type_mismatch'],
      ['@today', 'type_mismatch'],
    ],
  },
  {
    type: 'uuid',
    order: 'sorted',
    values: [
      ['00000000-0000-0000-0000-000000000000', '00000000-0000-0000-0000-000000000000'],
      ['01900000-0000-7000-8000-00000000000A', '01900000-0000-7000-8000-00000000000a'],
      ['ffffffff-ffff-ffff-ffff-ffffffffffff', 'ffffffff-ffff-ffff-ffff-ffffffffffff'],
    ],
    expected: 'expected a UUID with dashes, such as "01900000-0000-7000-8000-000000000000"',
    invalid: ['0190000000007000800000000000000a', '{01900000-0000-7000-8000-00000000000a}', '', 'x', 5],
    invalidTexts: ['x', ''],
    literals: [],
    malformed: [
      ['"x"', 'uuid_malformed'],
      ['5', 'type_mismatch'],
    ],
  },
  {
    type: 'bytes',
    order: 'none',
    values: [
      ['', ''],
      ['AA==', 'AA=='],
      ['+/8A', '+/8A'],
    ],
    expected: 'expected at most 65536 bytes in base64 with its padding, such as "aGVsbG8="',
    invalid: ['AA', 'AB==', '-_8A', '\\x00', 'A'.repeat(87_388), 5, []],
    invalidTexts: ['AA', 'AB=='],
    literals: [],
    malformed: [
      ['"AB=="', 'bytes_malformed'],
      ['@now', 'type_mismatch'],
    ],
  },
  {
    type: 'decimal',
    digits: ', precision: 38, scale: 10',
    options: ", default: '0.5', max: '9999999999999999999999999999'",
    values: [
      ['-9007199254740993.25', '-9007199254740993.2500000000'],
      [-10, '-10.0000000000'],
      ['9.5', '9.5000000000'],
      ['9.7500', '9.7500000000'],
      [12.5, '12.5000000000'],
      ['9999999999999999999999999999', '9999999999999999999999999999.0000000000'],
    ],
    expected: 'expected a decimal such as "12.50", of at most 38 digits',
    invalid: ['1e3', '01', '.5', '5.', '+1', 'NaN', '', true, []],
    invalidTexts: ['1e3', '', 'NaN'],
    literals: [
      ['9.50', 3],
      ['-9007199254740993.26', 6],
      ['9.4999999999999999999999999999999999999999999', 4],
      ['-1e400', 6],
    ],
    malformed: [
      ['"9.5"', 'type_mismatch'],
      ['@today', 'type_mismatch'],
    ],
  },
];

const SCHEMA = `
timezone: Pacific/Kiritimati
roles: [member]
register: { roles: [member] }
collections:
${CASES.map(
  ({ type, options = '', digits = '', order }) => `
  ${type}_records:
    fields:
      value: { type: ${type}${order === 'none' ? '' : ', unique: true'}${digits}${options} }
      other: { type: ${type}${digits} }
      hidden: { type: ${type}${digits}, access: { read: '@record.value = @record.other' } }
    access: { view: true, create: true, update: '@record.value is null or @record.value != @next.value', delete: true }
`,
).join('')}`;

describeRoutes(
  'field types',
  (service) => {
    let ann: User;
    beforeAll(async () => {
      ann = await service.user();
    });

    describe.each(CASES)(
      '$type',
      ({ type, values, expected, invalid, invalidTexts, literals, malformed, options, order }) => {
        const path = `/api/${type}_records`;
        const printed = values.map(([, value]) => value);
        const post = (data: object) => ann.client.post(path, { data });
        const query = async (body: object): Promise<unknown> => {
          const { body: answer, text } = await ann.client.post(`${path}/query`, body);
          return answer.data?.map(({ value }: { value: unknown }) => value) ?? text;
        };
        const ids = new Map<unknown, string>();

        beforeAll(async () => {
          for (const [given, value] of values.toReversed()) {
            const { status, body, text } = await post({ value: given, hidden: given });
            expect([status, body.data?.value], text).toEqual([201, value]);
            ids.set(value, body.data.id);
          }
        });

        test('invalid values are 422 with what was expected', async () => {
          for (const value of invalid) {
            const { status, body } = await post({ value });
            expect([status, body.errors?.[0]], JSON.stringify(value)).toEqual([
              422,
              { pointer: '/data/value', code: 'wrong_type', detail: expected },
            ]);
          }
        });

        test('a value is read back, filtered by and unique', async () => {
          for (const [given, value] of values) {
            const { body } = await ann.client.get(`${path}/${ids.get(value)}`);
            expect([body.data.value, body.data.other]).toEqual([value, null]);
            const found = await ann.client.get(`${path}?value=${encodeURIComponent(String(given))}`);
            expect(found.body.data.map(({ id }: { id: string }) => id)).toEqual([ids.get(value)]);
            expect(await query({ filter: 'value = $x', params: { x: given } })).toEqual([value]);
            expect(await query({ filter: 'value in $x', params: { x: [given, null] } })).toEqual([value]);
            if (order !== 'none') expect((await post({ value: given })).status).toBe(409);
          }
        });

        test('invalid filters are 400, and invalid params find nothing', async () => {
          for (const text of invalidTexts) {
            const { status, body } = await ann.client.get(`${path}?value=${encodeURIComponent(text)}`);
            expect([status, body.errors?.[0].code], text).toEqual([400, 'filter_invalid_value']);
          }
          for (const [literal, code] of malformed) {
            const { status, body } = await ann.client.post(`${path}/query`, { filter: `value = ${literal}` });
            expect([status, body.errors?.[0].code], literal).toEqual([400, code]);
          }
          for (const value of invalid) {
            const { status, body } = await ann.client.post(`${path}/query`, {
              filter: 'value = $x',
              params: { x: value },
            });
            expect([status, ...(body.data ?? [])], JSON.stringify(value)).toEqual([422]);
          }
        });

        test.runIf(order === 'none')('values without an order are no sort', async () => {
          const { status, body } = await ann.client.post(`${path}/query`, { sort: ['value'] });
          expect([status, body.errors?.[0].detail]).toEqual([422, `\`value\` is ${type}, which have no order`]);
        });

        test.runIf(order !== undefined)('values that are equal or not are not compared with <', async () => {
          for (const filter of ['value < other', 'value >= $x']) {
            const { status, body } = await ann.client.post(`${path}/query`, { filter, params: { x: values[0]![0] } });
            expect([status, body.errors?.[0].code], filter).toEqual([400, 'type_unordered']);
          }
          const { status } = await ann.client.post(`${path}/aggregate`, { measures: { a: 'min(value)' } });
          expect(status).toBe(422);
        });

        test.skipIf(order === 'none')('the order is that of the values, also over pages', async () => {
          expect(await query({ sort: ['value'], filter: 'value is not null' })).toEqual(printed);
          const back: unknown[] = [];
          for (let cursor: string | undefined, more = true; more; ) {
            const { body, text } = await ann.client.post(`${path}/query`, {
              sort: ['-value'],
              limit: 2,
              ...(cursor && { cursor }),
            });
            expect(body.data, text).toBeDefined();
            back.push(...body.data.map(({ value }: { value: unknown }) => value));
            cursor = body.page.next_cursor;
            more = cursor !== undefined && cursor !== null;
          }
          expect(back.filter((value) => value !== null)).toEqual(printed.toReversed());
          for (const [literal, above] of literals)
            expect(await query({ sort: ['value'], filter: `value > ${literal}` }), literal).toEqual(
              printed.slice(-above),
            );
          if (order === 'sorted') return;
          const { body } = await ann.client.post(`${path}/aggregate`, {
            measures: { a: 'min(value)', b: 'max(value)' },
          });
          expect(body.data).toEqual([{ a: printed[0], b: printed.at(-1) }]);
        });

        test('rules of records and of fields compare values', async () => {
          const id = ids.get(printed[1])!;
          const patch = (data: object) => ann.client.patch(`${path}/${id}`, { data });
          expect((await ann.client.get(`${path}/${id}`)).body.data).not.toHaveProperty('hidden');
          expect((await patch({ other: values[0]![0] })).status).toBe(403);
          expect((await patch({ value: null, other: values[1]![0] })).status).toBe(403);
          expect((await patch({ value: values[1]![0] })).status).toBe(403);
          const { body: created } = await post({ value: null, other: values[1]![0] });
          const given = { value: options?.includes('default') ? created.data.value : null, other: printed[1] };
          expect(created.data).toMatchObject(given);
          await ann.client.delete(`${path}/${created.data.id}`);
        });
      },
    );

    test('a decimal has the digits that were given, and more are an error', async () => {
      const given = ['0.12345678901', '12345678901234567890123456789', '-12345678901234567890123456789'];
      const codes = [];
      for (const other of given) {
        const { body } = await ann.client.post('/api/decimal_records', { data: { other } });
        codes.push(body.errors.map(({ code, detail }: { code: string; detail: string }) => `${code}: ${detail}`));
      }
      expect(codes).toEqual([
        ['too_precise: expected at most 10 digits after the point'],
        ['too_large: expected at most 28 digits before the point'],
        ['too_small: expected at most 28 digits before the point'],
      ]);
    });

    test('@today is the day in the time zone of the schema', async () => {
      const { body } = await ann.client.post('/api/date_records', { data: { other: '2000-01-01' } });
      const there = new Date(Date.now() + 14 * 3_600_000).toISOString().slice(0, 10);
      expect(body.data.value).toBe(there);
      const found = await ann.client.post('/api/date_records/query', {
        filter: 'value = @today and value < @today + 1d',
      });
      expect(found.body.data).toHaveLength(1);
      await ann.client.delete(`/api/date_records/${body.data.id}`);
    });
  },
  { schema: SCHEMA },
);
