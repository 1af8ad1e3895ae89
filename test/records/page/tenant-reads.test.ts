/** Pages of one tenant's records are read under one plan; others are planned for their values. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Database, ReadOptions } from '../../../src/database/contract.ts';
import { plannedParam, raw, sql } from '../../../src/sql.ts';
import { type Caller, hasPostgres, KINDS, openKind, World } from '../../support/store-world.ts';
import { watchedReads } from '../../support/watched-reads.ts';

const SCHEMA = `
roles: [admin, member]
register: { roles: [member] }
collections:
  users: { relations: { team: { kind: belongs_to, collection: teams } }, access: { view: true } }
  teams: { distribute: reference, access: { view: true, create: true } }
  documents:
    distribute: { by: team }
    fields: { status: { type: string, index: true } }
    relations: { team: { kind: belongs_to, collection: teams, required: true } }
    access: { view: &own '@record.team = @request.auth.team', create: *own }
`;
const MODE = raw(`SELECT current_setting('plan_cache_mode')`);

test.skipIf(!hasPostgres)('have one plan, but for a value that needs its own', async () => {
  const db = await openKind('postgres');
  try {
    expect(await db.rows(MODE, { plan: 'generic' })).toEqual([['force_generic_plan']]);
    expect(await db.rows(MODE)).toEqual([['auto']]);
    const planned = sql`SELECT current_setting('plan_cache_mode'), ${plannedParam('text', 'x')}`;
    expect(await db.rows(planned, { plan: 'generic' })).toEqual([['auto', 'x']]);
  } finally {
    await db.close();
  }
});

for (const kind of KINDS) {
  let db: Database;
  let world: World;
  let ann: Caller;
  let asked: ReadOptions['plan'][] = [];

  beforeAll(async () => {
    db = await openKind(kind);
    const watched = watchedReads(db, (_, options) => asked.push(options?.plan));
    world = await World.open(watched, SCHEMA);
    const creator = await world.user('creator@example.org');
    const team = await creator.create('teams', {});
    ann = await world.user('ann@example.org', ['member'], { team: team.id });
    await ann.create('documents', { team: team.id, status: 'draft' });
  });
  afterAll(() => db?.close());

  test(`pages without a filter are read so on ${kind}, others not`, async () => {
    const field = world.schema.collections.get('documents')!.fields.get('status')!;
    for (const [exact, plan] of [
      [[], 'generic'],
      [[{ kind: 'field', field, value: 'draft' }], undefined],
    ] as const) {
      asked = [];
      expect((await ann.list('documents', { exact })).data).toHaveLength(1);
      expect(asked).toEqual([plan]);
    }
  });
}
