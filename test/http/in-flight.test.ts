/**
 * One caller cannot take every place in the queues, and a database that does not answer is said so
 * in time.
 */
import { EventEmitter } from 'node:events';
import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, inject, it } from 'vitest';
import { InFlight } from '../../src/http/server/in-flight.ts';
import { raw } from '../../src/sql.ts';
import type { Client } from '../support/client.ts';
import { outcomeOf } from '../support/records.ts';
import { ROUTES_SCHEMA, TestService } from '../support/service.ts';

const response = (): ServerResponse => new EventEmitter() as unknown as ServerResponse;

describe('the requests of a caller', () => {
  it('are 128 at a time, and others have their own', () => {
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
  it('takes no place', () => {
    const inFlight = new InFlight();
    const closed = (): ServerResponse => Object.assign(response(), { closed: true });
    for (let i = 0; i < 200; i++) inFlight.enter('ann', closed());
    inFlight.enter('ann', response());
  });
});

describe.skipIf(inject('postgresUrl') === '')('while a table is locked', () => {
  const service = new TestService('postgres');
  let client: Client;
  beforeAll(async () => {
    await service.start({ schema: ROUTES_SCHEMA });
    client = (await service.user()).client;
  });
  afterAll(() => service.stop());

  it('a caller who does not wait for answers is told so, and others are served', async () => {
    const bob = (await service.user()).client;
    const { db } = service.app;
    const ended = Promise.withResolvers<void>();
    const locked = Promise.withResolvers<void>();
    const lock = db.transaction(async (tx) => {
      await tx.run(raw('LOCK TABLE posts IN ACCESS EXCLUSIVE MODE'));
      locked.resolve();
      await ended.promise;
    });
    await locked.promise;
    const waiting = Array.from({ length: 128 }, () => client.get('/api/posts?limit=1'));
    await new Promise((resolve) => setTimeout(resolve, 300));
    const refused = await client.get('/api/posts');
    expect([...outcomeOf(refused), refused.headers.get('retry-after')]).toEqual([429, 'rate_limited', '1']);
    expect((await bob.get('/api/auth/me')).status).toBe(200);
    expect((await bob.get('/readyz')).status).toBe(200);
    ended.resolve();
    await lock;
    const statuses = (await Promise.all(waiting)).map(({ status }) => status);
    expect([...new Set(statuses)]).toEqual([200]);
  }, 20_000);
});
