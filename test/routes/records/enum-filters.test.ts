// @module-tag partitions
/** Filters that name a value which the enum on the other side does not have. */
import { expect, test } from 'vitest';
import { outcomeOf } from '../../support/records.ts';
import { describeRoutes } from '../../support/service.ts';

const SCHEMA = `
roles: [member]
register: { roles: [member] }
collections:
  tickets:
    fields:
      status: { type: string, enum: [open, pending, closed] }
      level: { type: int, enum: [1, 2] }
      title: string
    relations: { parent: { kind: belongs_to, collection: tickets }, parts: { kind: has_many, collection: tickets, via: parent } }
    access: { view: true, create: true }
`;

describeRoutes(
  'filters on enums',
  (service) => {
    const ask = async (filter: string, params: object = {}) => {
      const { client } = await service.user();
      return client.post('/api/tickets/query', { filter, params });
    };

    test.each([
      ['status = "opne"', 'did you mean `open`?', '"open"'],
      ['title is null and not (status in ["open", "clsed"])', 'did you mean `closed`?', '"closed"'],
      ['level = 3', 'expected `1`, `2`', undefined],
      ['parent.status != "opne"', 'did you mean `open`?', '"open"'],
      ['any(parts as p, p.status = "opne")', 'did you mean `open`?', '"open"'],
      ['count(parts as p, p.status = "opne") > 1', 'did you mean `open`?', '"open"'],
    ])('%s is 400', async (filter, hint, replacement) => {
      const { status, body } = await ask(filter);
      const [error] = body.errors;
      expect([status, body.code, error.pointer, error.code, error.fix?.replacement]).toEqual([
        400,
        'filter_invalid',
        '/filter',
        'enum_unknown',
        replacement,
      ]);
      expect(error.detail).toContain(hint);
    });

    test.each([
      ['status = $s', { s: 'opne' }, 'expected a value of the enum; did you mean `open`?'],
      ['status in $s', { s: ['open', 'clsed'] }, 'expected a value of the enum; did you mean `closed`?'],
      ['level = $s', { s: 3 }, 'expected `1`, `2`'],
      ['any(parts as p, p.status = $s)', { s: 'x' }, 'expected `open`, `pending`, `closed`'],
    ])('%s with %j is 422', async (filter, params, detail) => {
      const answer = await ask(filter, params);
      expect(outcomeOf(answer)).toEqual([422, 'validation_failed', '/params/s invalid_param']);
      expect(answer.body.errors[0].detail).toBe(detail);
    });

    test.each<[string, object?]>([
      ['status = "open" or status in ["pending"] or status > "a"'],
      ['status starts with "op" or status contains "lose" or title = "opne"'],
      ['status = $s', { s: null }],
      ['status in $s', { s: ['open', null] }],
      ['level = $s and title != $t', { s: 2, t: 'opne' }],
    ])('%s is taken', async (filter, params) => {
      const { status, text } = await ask(filter, params);
      expect(status, text).toBe(200);
    });
  },
  { schema: SCHEMA },
);
