/** A single caller cannot take every place in the queues. */
import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { afterAll, describe, expect, it, vi } from 'vitest';
import type { Database, Reader } from '../../src/database/contract.ts';
import { InFlight } from '../../src/http/server/client-limits.ts';
import type { Sql } from '../../src/sql.ts';
import { outcomeOf } from '../support/records.ts';
import { ROUTES_SCHEMA, TestService } from '../support/service.ts';

const response = (): ServerResponse => new EventEmitter() as unknown as ServerResponse;

describe('the requests of a caller', () => {
  it('a caller has 128 requests at a time, and other callers have their own', () => {
    const inFlight = new InFlight();
    const responses = Array.from({ length: 128 }, response);
    for (const each of responses) inFlight.enter('ann', each);
    expect(() => inFlight.enter('ann', response())).toThrow('more than 128 requests at a time');
    inFlight.enter('bob', response());
    responses[0]!.emit('close');
    inFlight.enter('ann', response());
    expect(() => inFlight.enter('ann', response())).toThrow('more than 128');
  });
});

describe('a client that left before its session was read', () => {
  it('a client that left takes no place', () => {
    const inFlight = new InFlight();
    const closed = (): ServerResponse => Object.assign(response(), { closed: true });
    for (let i = 0; i < 200; i++) inFlight.enter('ann', closed());
    inFlight.enter('ann', response());
  });
});

describe('a caller with 128 pending requests', () => {
  const service = new TestService('embedded');
  const answers = Promise.withResolvers<void>();
  afterAll(() => service.stop());

  it('the caller gets 429 for the next request, and other callers are served', async () => {
    await service.start({ schema: ROUTES_SCHEMA, watch: async (db) => holdingPosts(db, answers.promise) });
    const [ann, bob] = [(await service.user()).client, (await service.user()).client];
    const entered = vi.spyOn(service.app.inFlight, 'enter');
    const pending = Array.from({ length: 128 }, () => ann.get('/api/posts?limit=1'));
    await vi.waitFor(() => expect(entered).toHaveBeenCalledTimes(128), { timeout: 30_000, interval: 5 });
    const rejected = await ann.get('/api/posts');
    expect([...outcomeOf(rejected), rejected.headers.get('retry-after')]).toEqual([429, 'rate_limited', '1']);
    expect((await bob.get('/api/auth/me')).status).toBe(200);
    expect((await bob.get('/readyz')).status).toBe(200);
    answers.resolve();
    const statuses = (await Promise.all(pending)).map(({ status }) => status);
    expect([...new Set(statuses)]).toEqual([200]);
  });
});

/** Reads of posts wait for `release`. A lock in the database would hold them for a time that its queues limit. */
function holdingPosts(db: Database, release: Promise<void>): Database {
  const holding = <R extends Reader>(reader: R): R =>
    new Proxy(reader, {
      get(target, name) {
        const value: unknown = Reflect.get(target, name);
        if (typeof value !== 'function') return value;
        if (name === 'replicaFor') return (callerId: string) => holding(db.replicaFor(callerId));
        if (name !== 'rows') return value.bind(target);
        return async (statement: Sql) => {
          if (/\bposts\b/.test(statement.text)) await release;
          return target.rows(statement);
        };
      },
    });
  return holding(db);
}
