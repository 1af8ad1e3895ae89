// @module-tag partitions
/** The first answer is the answer: also of requests that come at once, and never of one that failed. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../src/database/contract.ts';
import type { Row } from '../../src/policy/types.ts';
import { type IdempotencyKey, KeptAnswers } from '../../src/records/idempotency.ts';
import { param, raw, sql } from '../../src/sql.ts';
import { type Caller, KINDS, openKind, refusal, World } from '../support/store-world.ts';

describe.each(KINDS)('%s', (kind) => {
  let db: Database;
  let kept: KeptAnswers;
  let world: World;
  let ann: Caller;
  let bob: Caller;
  beforeAll(async () => {
    db = await openKind(kind);
    world = await World.open(
      db,
      'collections: { notes: { fields: { text: { type: string, required: true } }, access: { list: true, read: true, create: true } } }',
    );
    kept = await KeptAnswers.open(db);
    ann = await world.user('ann@example.org', []);
    bob = await world.user('bob@example.org', []);
  });
  afterAll(() => db?.close());

  const keyOf = (caller: Caller, more: Partial<IdempotencyKey> = {}): IdempotencyKey => ({
    principal: caller.id,
    kind: 'user' as const,
    path: '/api/notes',
    key: 'k',
    bodyHash: 'h',
    ...more,
  });

  /** Returns the answer of the request: its own record, or an earlier answer, which the caller then undoes. */
  const post = (caller: Caller, key: IdempotencyKey, data: object = { text: 'x' }): Promise<string> =>
    db
      .transaction(async (tx) => {
        const { id, json } = await world.records.create(caller.ask('notes', { data }), {
          data: data as Row,
          relations: [],
          tx,
        });
        const before = await kept.keep(tx, key, {
          schema: world.schema,
          answer: answerWith(String(json)),
          outline: answerWith(id),
          records: [{ collection: 'notes', id }],
        });
        if (before !== undefined) throw new Kept(before.body);
        return String(json);
      })
      .catch((error: unknown) => {
        if (error instanceof Kept) return error.message;
        throw error;
      });
  class Kept extends Error {}
  const answerWith = (body: string) => ({ status: 201, headers: {}, body });
  const notes = async () => (await ann.list('notes', { count: 'exact', limit: 1 })).total;

  it('gives the first answer again, to requests at once too', async () => {
    const before = await notes();
    const answers = await Promise.all(Array.from({ length: 10 }, () => post(ann, keyOf(ann))));
    answers.push(await post(ann, keyOf(ann)));
    expect(new Set(answers).size).toBe(1);
    expect(JSON.parse(answers[0]!)).toMatchObject({ text: 'x' });
    expect(await notes()).toBe(before + 1);
    expect((await kept.find(keyOf(ann)))?.body).toBe(answers[0]);
    expect(await kept.find(keyOf(bob))).toBe(undefined);
  });

  it('a kept answer belongs to one user, one path and one key', async () => {
    const before = await notes();
    await post(bob, keyOf(bob));
    await post(ann, keyOf(ann, { key: 'K' }));
    await post(ann, keyOf(ann, { path: '/api/other' }));
    expect(await notes()).toBe(before + 3);
    expect(await refusal(post(ann, keyOf(ann, { bodyHash: 'other' })))).toBe('idempotency_mismatch');
    expect(await notes()).toBe(before + 3);
  });

  it('keeps no failure: the next request is the first', async () => {
    const key = keyOf(ann, { key: 'fails' });
    const outcomes = await Promise.allSettled([post(ann, key, {}), post(ann, key, {}), post(ann, key, {})]);
    expect(outcomes.map((outcome) => outcome.status === 'rejected' && outcome.reason.code)).toEqual([
      'validation_failed',
      'validation_failed',
      'validation_failed',
    ]);
    expect(await kept.find(key)).toBe(undefined);
    expect(JSON.parse(await post(ann, key))).toMatchObject({ text: 'x' });
  });

  it('forgets after a day', async () => {
    const before = await notes();
    await db.run(
      sql`UPDATE bylaw_kept_answers SET created_at = now() - interval '25 hours' WHERE user_id = ${param('uuid', bob.id)}`,
    );
    expect(await kept.find(keyOf(bob))).toBe(undefined);
    const answer = await post(bob, keyOf(bob, { bodyHash: 'other' }));
    expect(await notes()).toBe(before + 1);
    expect((await kept.find(keyOf(bob, { bodyHash: 'other' })))?.body).toBe(answer);
    await db.run(raw(`UPDATE bylaw_kept_answers SET created_at = now() - interval '25 hours'`));
    expect(await kept.sweep(world.schema)).toBeGreaterThan(0);
    expect(await db.rows(raw('SELECT count(*) FROM bylaw_kept_answers'))).toEqual([['0']]);
  });
});
