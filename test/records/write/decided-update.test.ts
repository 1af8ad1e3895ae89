// @module-tag long
/**
 * An update at the worker that has the records of its tenant: one statement decides, and the next writes the record that was decided
 * on. INVARIANT: the outcome is that of the statement which decides and writes.
 */
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Database, StatementTaker } from '../../../src/database/contract.ts';
import type { Row } from '../../../src/policy/types.ts';
import { createRecords } from '../../../src/records/records.ts';
import { type Sql, sql, uuid } from '../../../src/sql.ts';
import { asCluster } from '../../support/cluster/as-cluster.ts';
import { Caller, type Json, ONE_KIND, openKind, refusal, World } from '../../support/store-world.ts';

const SCHEMA = `
roles: { member: }
register: { roles: [member] }
collections:
  users: { relations: { team: { kind: belongs_to, collection: teams } }, access: { view: true } }
  teams:
    distribute: reference
    relations: { memberships: { kind: has_many, collection: memberships, via: team } }
    access: { view: true, create: true }
  memberships:
    distribute: reference
    fields: { role: string }
    relations:
      team: { kind: belongs_to, collection: teams, required: true }
      user: { kind: belongs_to, collection: users, required: true }
    access: { view: &own '@record.team = @request.auth.team', create: *own }
  documents:
    distribute: { by: team }
    fields:
      title: string
      status: string
      score: { type: int, access: { write: 'any(@record.team.memberships as m, m.user = @request.auth.id and m.role = "lead")' } }
    relations:
      team: { kind: belongs_to, collection: teams, required: true }
      owner: { kind: belongs_to, collection: users }
      cover: { kind: has_one, collection: covers, via: document }
    checks: { scored: { when: '@next.score < 3 or @next.owner.team = @record.team', message: the score is too high } }
    access:
      list: *own
      read: '@record.team = @request.auth.team and (@record.status != "hidden" or @record.owner = @request.auth.id)'
      create: *own
      update: >-
        @record.team = @request.auth.team and @record.status != "closed"
        and any(@record.team.memberships as m, m.user = @request.auth.id and m.role in ["lead", "editor"])
  covers:
    distribute: { by: team }
    fields: { caption: string }
    relations:
      team: { kind: belongs_to, collection: teams, required: true }
      document: { kind: belongs_to, collection: documents }
    access: { view: '@record.team = @request.auth.team and @record.caption = "shown"', create: *own }
`;

const ROLES = ['lead', 'editor', 'viewer'];
const orNull = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: null });
const request = fc.record({
  caller: fc.nat(ROLES.length),
  document: fc.nat(2),
  data: fc.record<Row>(
    {
      title: orNull(fc.constantFrom('', 'a', 'b')),
      status: orNull(fc.constantFrom('open', 'open', 'hidden')),
      score: orNull(fc.nat(4)),
    },
    { requiredKeys: [] },
  ),
  isOwned: fc.option(fc.boolean(), { nil: undefined }),
});

describe.each(ONE_KIND)('on %s, an update that is decided before it is written', (kind) => {
  let db: Database;
  let plain: readonly Caller[];
  let divided: readonly Caller[];
  /** Two documents of each content: the first is written by one statement, the second by two. */
  const twins: (readonly [string, string])[] = [];
  const sent: string[] = [];
  /** Runs between the two statements. */
  let change: Sql | undefined;
  let isHere = true;

  const nodeOf = (to: Database): StatementTaker => ({
    rows: (statement) => to.rows(statement),
    run: (statement) => to.run(statement),
    write: (statement, target) => to.write(statement, target),
    async writeDecided(decision, statement) {
      sent.push(statement.text);
      if (!isHere) return undefined;
      return to.transaction(async (tx) => {
        const decided = await tx.rows(decision);
        if (change !== undefined) await tx.run(change);
        return { decided, written: await tx.rows(statement) };
      });
    },
  });

  beforeAll(async () => {
    db = await openKind(kind);
    const world = await World.open(db, SCHEMA);
    const first = await world.user('first@example.org');
    const [team, other] = [await first.create('teams', {}), await first.create('teams', {})];
    const at = (name: string, of: Json) => world.user(`${name}@example.org`, ['member'], { team: of.id });
    plain = [...(await Promise.all(ROLES.map((role) => at(role, team)))), await at('other', other)];
    for (const [i, role] of ROLES.entries())
      await plain[i]!.create('memberships', { team: team.id, user: plain[i]!.id, role });
    const records = createRecords(
      asCluster(db, () => undefined, nodeOf),
      world.schema,
    );
    divided = plain.map(({ auth }) => new Caller({ db, schema: world.schema, records } as World, auth));
    for (const caption of ['shown', 'hidden', undefined]) {
      const [one, two] = [await newDocument(), await newDocument()];
      twins.push([one, two]);
      for (const document of caption === undefined ? [] : [one, two])
        await plain[0]!.create('covers', { team: team.id, document, caption });
    }

    async function newDocument(): Promise<string> {
      return (await plain[0]!.create('documents', { team: team.id, title: 'a', status: 'open' })).id;
    }
  });
  afterAll(() => db.close());

  const outcome = async (caller: Caller, id: string, data: Row): Promise<Json> => {
    const updated = caller.update('documents', id, data);
    const record = await updated.catch(() => undefined);
    return record === undefined ? refusal(updated) : record;
  };
  /** The ids of the two documents and of their covers differ. */
  const comparable = (record: Json): Json =>
    typeof record === 'object' && 'id' in record
      ? { ...record, id: '', created_at: '', cover: record.cover && 'one' }
      : record;

  const opened = (id: string): Sql =>
    sql`UPDATE documents SET title = 'before', status = 'open', score = NULL, owner_id = NULL WHERE id = ${uuid(id)}`;

  test('has the outcome of the one statement', async () => {
    const counts = { made: 0, refused: 0 };
    await fc.assert(
      fc.asyncProperty(request, async ({ caller, document, data, isOwned }) => {
        const owner = isOwned === undefined ? {} : { owner: isOwned ? plain[caller]!.id : null };
        const [one, two] = twins[document]!;
        const wanted = await outcome(plain[caller]!, one, { ...data, ...owner });
        sent.length = 0;
        const made = await outcome(divided[caller]!, two, { ...data, ...owner });
        expect(comparable(made)).toEqual(comparable(wanted));
        if (typeof made === 'object') counts.made++;
        else counts.refused++;
        expect(sent.length).toBeGreaterThan(0);
        // The second statement reads no other row.
        for (const text of sent) expect(/^\s*UPDATE .*SELECT/s.test(text)).toBe(false);
      }),
      { numRuns: 300 },
    );
    expect(counts.made).toBeGreaterThan(25);
    expect(counts.refused).toBeGreaterThan(25);
  });

  test('a record that changes after the decision is decided on again', async () => {
    const [, id] = twins[0]!;
    await db.run(opened(id));
    change = sql`UPDATE documents SET status = 'closed', _version = _version + 1 WHERE id = ${uuid(id)}`;
    expect(await outcome(divided[1]!, id, { title: 'after' })).toBe('forbidden');
    expect((await plain[0]!.read('documents', id)).title).toBe('before');
    change = undefined;
  });

  test('the one statement follows where the worker has no answer', async () => {
    const [, id] = twins[1]!;
    await db.run(opened(id));
    isHere = false;
    expect(await outcome(divided[0]!, id, { title: 'at the coordinator' })).toMatchObject({
      title: 'at the coordinator',
    });
    isHere = true;
  });
});
