/** The SQL of comparisons with each type: the bare column, and a value of its own type. */
import { expect, test } from 'vitest';
import { compilePolicy } from '../../src/policy/compile.ts';
import { SCALARS, type ScalarType } from '../../src/policy/scalar-types.ts';
import { schemaOf } from '../support/store-world.ts';

const VALUES: Readonly<Partial<Record<ScalarType, readonly [literal: string, printed: string]>>> = {
  time: ['"09:30:00"', "'09:30:00'::time"],
  decimal: ['12.50', "'12.5'::numeric"],
  bigint: ['5', "'5'::int8"],
  uuid: ['"0190B0A0-0000-7000-8000-00000000000A"', "'0190b0a0-0000-7000-8000-00000000000a'::uuid"],
  bytes: ['"YWI="', "E'\\\\x6162'::bytea"],
  date: ['"2024-02-29"', "'2024-02-29'::date"],
};

test.each(Object.entries(VALUES))('%s: no column is cast, and each value has the type of the column', (type, pair) => {
  const catalog = schemaOf(
    `collections: { docs: { fields: { v: { type: ${type}${type === 'decimal' ? ', precision: 12, scale: 2' : ''} } } } }`,
  );
  const [literal, printed] = pair;
  const kind = SCALARS[type as ScalarType];
  const text = JSON.parse(literal.startsWith('"') ? literal : `"${literal}"`);
  const request = { auth: null, query: { q: text, many: [text] }, now: '2024-01-01T00:00:00.000000Z' };
  const where = (policy: string) =>
    compilePolicy(policy, { catalog, collection: 'docs', action: 'list' }).specialise(request).where('d').text;
  for (const op of kind.ordered ? ['=', '<', '>='] : ['=']) {
    expect(where(`@record.v ${op} ${literal}`)).toBe(`"d"."v" ${op} ${printed}`);
    expect(where(`@record.v ${op} @request.query.q`)).toBe(`"d"."v" ${op} $1::${kind.sqlType}`);
  }
  expect(where('@record.v in @request.query.many')).toBe(`"d"."v" = ANY($1::${kind.sqlType}[])`);
});
