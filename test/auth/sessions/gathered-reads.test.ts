/** Sessions and keys that are read together, as those of streams: one statement finds what each would find alone. */
import { describe, expect, test } from 'vitest';
import type { Caller } from '../../../src/auth/caller.ts';
import type { LinkSigner } from '../../../src/auth/sessions/authenticator.ts';
import { GatheredReads } from '../../../src/auth/sessions/gathered-reads.ts';
import { sql, uuid } from '../../../src/sql.ts';
import { describeOnOne } from '../../support/service.ts';
import { GUESTS_SCHEMA, newApiKey } from '../keyed.ts';
import { newPerson } from '../people.ts';

describe('reads by id', () => {
  const asked: string[][] = [];
  const reads = (isWhole: boolean) =>
    new GatheredReads<string>(async (ids) => {
      asked.push([...ids]);
      if (ids.includes('bad') || (ids.length > 1 && !isWhole)) throw new Error('unreadable');
      return new Map(ids.filter((id) => id !== 'ended').map((id) => [id, id]));
    });
  const read = async (rows: GatheredReads<string>, ids: readonly string[]) => {
    asked.length = 0;
    return (await Promise.allSettled(ids.map((id) => rows.of(id)))).map((each) =>
      each.status === 'fulfilled' ? each.value : 'failed',
    );
  };

  test('reads that begin together share a statement, and an ended row is missing', async () => {
    expect(await read(reads(true), ['a', 'ended', 'b', 'a'])).toEqual(['a', undefined, 'b', 'a']);
    expect(asked).toEqual([['a', 'ended', 'b']]);
  });

  test('a single read has a statement of its own, and many share statements of 500 rows', async () => {
    const rows = reads(true);
    expect(await read(rows, ['a'])).toEqual(['a']);
    expect(asked).toEqual([['a']]);
    const ids = Array.from({ length: 501 }, (_, i) => `${i}`);
    expect(await read(rows, ids)).toEqual(ids);
    expect(asked.map(({ length }) => length)).toEqual([500, 1]);
  });

  test('a statement that fails leaves each row to itself', async () => {
    expect(await read(reads(false), ['a', 'ended', 'bad'])).toEqual(['a', undefined, 'failed']);
    expect(asked).toEqual([['a', 'ended', 'bad'], ['a'], ['ended'], ['bad']]);
  });
});

describeOnOne(
  'callers that are read together',
  (service) => {
    const sessionOf = async (userId: string): Promise<LinkSigner> => {
      const [row] = await service.app.db.rows(sql`SELECT id FROM "_auth_sessions" WHERE user_id = ${uuid(userId)}`);
      return { kind: 'session', sessionId: row![0]!, userId };
    };
    const keyOf = ({ id }: { readonly id: string }): LinkSigner => ({ kind: 'key', sessionId: id, userId: id });
    const present = (links: readonly LinkSigner[]): Promise<readonly (Caller | string)[]> =>
      Promise.all(
        links.map(async (link) => {
          try {
            return await service.app.auth.authenticator.callerOfLink(link, 0);
          } catch (error) {
            return String(error);
          }
        }),
      );

    test('a shared read finds the callers that single reads find, and only those in force', async () => {
      const { app } = service;
      const people = [];
      for (let i = 0; i < 4; i++) people.push(await newPerson(service.anonymous));
      const maker = await service.user('lead');
      const keys = [await newApiKey(service, maker.client), await newApiKey(service, maker.client)];
      const links = [...(await Promise.all(people.map(({ id }) => sessionOf(id)))), ...keys.map(keyOf)];
      const alone = [];
      for (const link of links) alone.push(...(await present([link])));
      expect(alone.map((each) => typeof each)).toEqual(links.map(() => 'object'));
      expect(await present(links)).toEqual(alone);
      // Another program ends them, so nothing is announced.
      await app.db.run(sql`DELETE FROM "_auth_sessions" WHERE user_id = ${uuid(people[0]!.id)}`);
      await app.db.run(sql`UPDATE users SET disabled = true WHERE id = ${uuid(people[1]!.id)}`);
      await app.db.run(sql`DELETE FROM "_auth_api_keys" WHERE id = ${uuid(keys[0]!.id)}`);
      const left = await present(links);
      const over = 'Problem: the access token is not valid or has expired';
      expect(left).toEqual([over, over, alone[2], alone[3], over, alone[5]]);
    });

    test('a state that was read before a revocation is not remembered', async () => {
      const { authenticator } = service.app.auth;
      const [ann, bob] = [await newPerson(service.anonymous), await newPerson(service.anonymous)];
      const links = await Promise.all([ann, bob].map(({ id }) => sessionOf(id)));
      await present(links);
      expect(links.map((link) => authenticator.callerOfLink(link) instanceof Promise)).toEqual([false, false]);
      const reading = present(links);
      await authenticator.sessionEnded(links[0]!.sessionId);
      await reading;
      expect(authenticator.callerOfLink(links[0]!)).toBeInstanceOf(Promise);
    });
  },
  { schema: GUESTS_SCHEMA },
);
