// @module-tag long
/**
 * A create on a cluster: rules that read the record and the request alone are decided in the process, so the statement only inserts.
 * INVARIANT: the outcome is that of the statement which decides and writes.
 */
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../../src/database/contract.ts';
import type { Row } from '../../../src/policy/types.ts';
import { asCluster } from '../../support/cluster/as-cluster.ts';
import { type Caller, ONE_KIND, openKind, refusal, World } from '../../support/store-world.ts';

/** The last one reads the body, so it is a rule of creates alone. */
const RULES = [
  '@record.owner = @request.auth.id',
  '@record.score < @record.rating',
  '@record.title starts with @record.slug or @record.title contains "é"',
  '@record.due_at > @now or @record.due_at is null and @record.pinned',
  'not (@record.rating >= 0.5) or @record.score in [1, 2, 3]',
  '@record.title < "m" and @record.slug is not null',
  '@record.title matches "a" or @record.title matches "É"',
  '@record.cover is null and @record.score != 2',
  '@request.data.score = @record.score or @record.created_at < @now',
];
const things = RULES.map(
  (rule, i) => `
  things${i}:
    fields:
      title: { type: string, search: true }
      slug: string
      score: { type: int, default: 2 }
      rating: { type: float, access: { write: '@record.score = 2 or @record.rating < 1' } }
      pinned: { type: bool, access: { read: '@record.score is null or @record.pinned' } }
      due_at: datetime
    relations:
      owner: { kind: belongs_to, collection: users, default: '@request.auth.id' }
      cover: { kind: has_one, collection: covers, via: thing${i} }
    access: { list: true, read: '${RULES[(i + 1) % (RULES.length - 1)]}', create: '${rule}' }
    checks: { held: { when: '${RULES[(i + 2) % (RULES.length - 1)]!.replaceAll('@record', '@next')}', message: m } }`,
);
const SCHEMA = `
roles: { member: }
register: { roles: [member] }
collections:
  users: { access: { view: true } }
  covers:
    relations:${RULES.map(
      (_, i) => `
      thing${i}: { kind: belongs_to, collection: things${i} }`,
    ).join('')}
    access: { view: true, create: true }
${things.join('')}
`;

const orNull = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: null });
const text = fc.constantFrom('', 'a', 'ab', 'A', 'é', 'z', 'ß', '%', '_', 'm', 'M', '𝒳', ' a ');
const request = fc.record({
  of: fc.nat(RULES.length - 1),
  data: fc.record<Row>(
    {
      title: orNull(text),
      slug: orNull(text),
      score: orNull(fc.constantFrom(-1, 0, 1, 2, 3, 2 ** 53 - 1)),
      rating: orNull(fc.constantFrom(-0, 0.1, 0.5, 1, 1.5, 1e300)),
      pinned: orNull(fc.boolean()),
      due_at: orNull(
        fc.constantFrom('2026-11-21T09:00:00Z', '2026-11-21T10:00:00.000001+01:00', '2027-01-01T00:00:00Z'),
      ),
    },
    { requiredKeys: [] },
  ),
});

describe.each(ONE_KIND)('on %s, a create that is decided in the process', (kind) => {
  let db: Database;
  let plain: Caller;
  let here: Caller;
  const sent: string[] = [];

  beforeAll(async () => {
    db = await openKind(kind);
    const world = await World.open(db, SCHEMA);
    plain = await world.user('ann@example.org');
    const cluster = await World.open(
      asCluster(db, ({ text: statement }) => sent.push(statement)),
      SCHEMA,
    );
    here = new (plain.constructor as new (world: World, auth: Row) => Caller)(cluster, plain.auth);
  });
  afterAll(() => db.close());

  const outcome = async (
    caller: Caller,
    { of, data }: { readonly of: number; readonly data: Row },
  ): Promise<unknown> => {
    const created = caller.create(`things${of}`, data);
    const record = await created.catch(() => undefined);
    return record === undefined ? refusal(created) : { ...record, id: undefined };
  };

  test('has the outcome of the statement that decides', async () => {
    const counts = { made: 0, refused: 0 };
    await fc.assert(
      fc.asyncProperty(request, async (given) => {
        const wanted = await outcome(plain, given);
        sent.length = 0;
        expect(await outcome(here, given)).toEqual(wanted);
        // No statement decides before an insert that is permitted.
        const isMade = sent.length === 1 && /^\s*INSERT INTO [^;]* VALUES /.test(sent[0]!);
        if (isMade) counts.made++;
        else counts.refused++;
      }),
      { numRuns: 400 },
    );
    expect(counts.made).toBeGreaterThan(25);
    expect(counts.refused).toBeGreaterThan(25);
  });
});
