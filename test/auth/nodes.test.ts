// @module-tag long
/** Two nodes on one PostgreSQL: changes on one reach the other within a second, also without notifications. */
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { rotateKeys } from '../../src/auth/keys/key-rotation.ts';
import { AUTH_CHANNEL } from '../../src/auth/sessions/authenticator.ts';
import { readConfig } from '../../src/config.ts';
import type { Database } from '../../src/database/contract.ts';
import { openDatabase } from '../../src/database/open-database.ts';
import { openLog } from '../../src/http/observe/log.ts';
import { type Service, startService } from '../../src/service/start-service.ts';
import { raw } from '../../src/sql.ts';
import { Client } from '../support/client.ts';
import { useStoppedNow } from '../support/own-clock.ts';
import { isolatedUrl } from '../support/postgres.ts';
import { cheapPasswords, schemaFrom } from '../support/service.ts';
import { until } from '../support/until.ts';
import { partsOf } from './forge.ts';
import { codeOf, login, newPerson, refresh, SCHEMA, tokensOf } from './people.ts';

/** The same database, whose notifications do not arrive; `up`: whether the channel reports that it is connected. */
function deaf(db: Database, up: boolean): Database {
  return new Proxy(db, {
    get(target, name) {
      if (name === 'listen') {
        return (async ({ onState }) => {
          onState(up);
          return async () => {};
        }) satisfies Database['listen'];
      }
      const value = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

describe.skipIf(inject('postgresUrl') === '')('two nodes', () => {
  const advance = useStoppedNow();
  const nodes: Service[] = [];
  let [here, there, deafNode, lostNode]: Client[] = [];
  beforeAll(async () => {
    const url = await isolatedUrl(inject('postgresUrl'));
    const start = async (wrap: (db: Database) => Database = (db) => db) => {
      const config = readConfig({ port: '0' }, { BYLAW_RATE_LIMIT: 'off', BASE_URL: 'http://127.0.0.1:8090' });
      const service = await startService({
        config,
        schema: schemaFrom(SCHEMA),
        db: wrap(await openDatabase({ url })),
        log: openLog('error'),
        passwords: cheapPasswords(),
      });
      nodes.push(service);
      return new Client(service.url);
    };
    here = await start();
    there = await start();
    lostNode = await start((db) => deaf(db, true));
    deafNode = await start((db) => deaf(db, false));
  });
  afterAll(async () => {
    for (const node of nodes) await node.stop();
  });
  const at = (node: Client, access: string) => node.get('/api/auth/me', { Authorization: `Bearer ${access}` });

  test('a token of one node works on the other, and both sign with one key', async () => {
    const person = await newPerson(here!);
    expect((await at(there!, person.access)).body.user.id).toBe(person.id);
    const other = await login(there!, person.email);
    expect(partsOf(other.access).header.kid).toBe(partsOf(person.access).header.kid);
    const next = await refresh(there!, person.refresh);
    expect(tokensOf(there!, next).cookie).toBe(person.cookie);
  });

  const hears = (node: Client): boolean => node === here || node === there;

  /** Checks that what another node changed holds: when the node hears of it, or at the latest after a second. */
  async function reaches(node: Client, what: string, holds: () => Promise<boolean>): Promise<void> {
    if (hears(node)) return until(what, holds);
    advance(1_000);
    expect(await holds(), what).toBe(true);
  }

  test.each([
    ['hears', () => there!],
    ['lost its channel and knows', () => deafNode!],
    ['gets no notification and does not know', () => lostNode!],
  ])('a logout on one node ends the session within a second on a node that %s', async (_, node) => {
    for (const age of [0, 150, 600]) {
      const person = await newPerson(here!);
      // Keeps the session in the other's memory until the end.
      expect((await at(node(), person.access)).status).toBe(200);
      advance(age);
      expect((await at(node(), person.access)).status).toBe(200);
      expect(
        (await here!.post('/api/auth/logout', undefined, { Authorization: `Bearer ${person.access}` })).status,
      ).toBe(204);
      await reaches(
        node(),
        'the session is over',
        async () => codeOf(await at(node(), person.access)) === '401 invalid_token',
      );
    }
  });

  test('a revoked key, a rotated one, and the end of its maker act on all nodes', async () => {
    const { apiKeys, admin, authenticator } = nodes[0]!.app.auth;
    const maker = await newPerson(here!);
    await admin.changeRoles(maker.email, { add: ['admin'], remove: [] });
    const caller = await authenticator.authenticate({ authorization: `Bearer ${maker.access}` });
    for (const node of [there!, lostNode!, deafNode!]) {
      for (const end of ['revoke', 'rotate', 'disable'] as const) {
        const { data, secret } = await apiKeys.create({ name: end, roles: ['member'] }, { caller, client: {} });
        const status = async () => (await node.get('/api/teams', { Authorization: `Bearer ${secret}` })).status;
        expect(await status()).toBe(200);
        if (end === 'revoke') await apiKeys.revoke(data.id);
        else if (end === 'rotate') await apiKeys.rotate(data.id, 0);
        else await admin.setDisabled(maker.email, true);
        await reaches(node, `the key is over: ${end}`, async () => (await status()) === 401);
      }
      await admin.setDisabled(maker.email, false);
    }
  });

  test('the fresh secret of a rotated key opens every node at once', async () => {
    const { apiKeys, admin, authenticator } = nodes[0]!.app.auth;
    const maker = await newPerson(here!);
    await admin.changeRoles(maker.email, { add: ['admin'], remove: [] });
    const caller = await authenticator.authenticate({ authorization: `Bearer ${maker.access}` });
    const { data, secret } = await apiKeys.create({ name: 'fresh', roles: ['member'] }, { caller, client: {} });
    const others = [there!, lostNode!, deafNode!];
    const statuses = (text: string) =>
      Promise.all(
        others.map(async (node) => (await node.get('/api/teams', { Authorization: `Bearer ${text}` })).status),
      );
    expect(await statuses(secret)).toEqual([200, 200, 200]);
    const rotated = await apiKeys.rotate(data.id, 60);
    expect(await statuses(rotated.secret)).toEqual([200, 200, 200]);
    expect(await statuses(secret)).toEqual([200, 200, 200]);
  });

  test('a disabled user, a removed role and a changed password act on all nodes', async () => {
    const [admin] = nodes.map((node) => node.app.auth.admin);
    const person = await newPerson(here!);
    for (const node of [there!, lostNode!, deafNode!]) {
      const may = async () =>
        (await node.post('/api/ranked', { data: {} }, { Authorization: `Bearer ${person.access}` })).status === 201;
      expect(await may()).toBe(false);
      await admin!.changeRoles(person.email, { add: ['lead'], remove: [] });
      await reaches(node, 'the role is given', may);
      await admin!.changeRoles(person.email, { add: [], remove: ['lead'] });
      await reaches(node, 'the role is taken', async () => !(await may()));
    }
    await admin!.setDisabled(person.email, true);
    for (const node of [there!, lostNode!, deafNode!]) {
      await reaches(node, 'the user is out', async () => (await at(node, person.access)).status === 401);
    }
  });

  test('a new key reaches all nodes without a restart, also nodes that missed its announcement', async () => {
    const person = await newPerson(here!);
    const kid = await rotateKeys(nodes[0]!.app.db, { keySecret: undefined, tokenLifetime: 900, now: false });
    let fresh = person.access;
    await until('the new key signs', async () => {
      fresh = (await login(here!, person.email)).access;
      return partsOf(fresh).header.kid === kid;
    });
    for (const node of [here!, there!, lostNode!, deafNode!]) {
      await reaches(node, 'the new token is good', async () => (await at(node, fresh)).status === 200);
      expect((await at(node, person.access)).status).toBe(200);
    }
  });

  test('hostile notifications change nothing but memory', async () => {
    const person = await newPerson(there!);
    for (const payload of ['', 'session', 'session:', 'user:x', 'nothing:at all', `session:${'x'.repeat(5_000)}`]) {
      await nodes[0]!.app.db.notify(AUTH_CHANNEL, payload);
    }
    expect((await at(there!, person.access)).status).toBe(200);
  });

  test('a session that another program deletes is over as soon', async () => {
    const person = await newPerson(here!);
    expect((await at(there!, person.access)).status).toBe(200);
    await nodes[0]!.app.db.run(raw(`DELETE FROM users WHERE email = '${person.email}'`));
    advance(1_000);
    expect((await at(there!, person.access)).status).toBe(401);
    expect(codeOf(await refresh(here!, person.refresh))).toBe('401 invalid_token');
  });
});
