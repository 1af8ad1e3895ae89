/** Filters whose rows the planner of the database estimates before their page is read. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../../src/database/contract.ts';
import { compileFilter } from '../../../src/policy/filter.ts';
import { raw, sql, uuid } from '../../../src/sql.ts';
import { KINDS, openKind, World } from '../../support/store-world.ts';
import { until } from '../../support/until.ts';

const SCHEMA = `
roles: { member: {} }
register: { roles: [member] }
collections:
  notes:
    fields:
      code: { type: string, index: true }
    relations:
      owner: { kind: belongs_to, collection: users, required: true }
    access: { view: '@record.owner = @request.auth.id', create: true }
`;
describe.each(KINDS)('estimates of filters (%s)', (kind) => {
  let db: Database;
  let world: World;
  const lanes = new Set<string | undefined>();

  beforeAll(async () => {
    db = await openKind(kind);
    const rows: Database['rows'] = (statement, options) => {
      if (statement.text.startsWith('EXPLAIN')) lanes.add(options?.lane);
      return db.rows(statement, options);
    };
    world = await World.open({ ...db, replicaFor: () => ({ run: db.run, rows }) } as unknown as Database, SCHEMA);
  });
  afterAll(() => db?.close());

  it('a filter is estimated in the lane of estimates', async () => {
    const ann = await world.user('ann@example.org');
    await db.run(sql`
      INSERT INTO notes (id, code, owner_id)
      SELECT gen_random_uuid(), 'c' || n, ${uuid(ann.id)} FROM generate_series(1, 12000) AS n`);
    await db.run(raw('ANALYZE notes'));
    const place = { catalog: world.schema, collection: 'notes', params: {} };
    const { filter } = compileFilter('code contains "c1"', place);
    // Statistics are read beside the first request.
    await until('an estimate', async () => {
      await world.records.list(ann.ask('notes'), { limit: 5, offset: 0, filter });
      return lanes.size > 0;
    });
    expect([...lanes]).toEqual(['estimate']);
  });
});
