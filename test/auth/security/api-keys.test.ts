/** Attacks with API keys: forged ones, keys in the wrong place, and secrets where they must not be. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { newKeyToken, readKeyToken } from '../../../src/auth/api-keys/key-token.ts';
import { openLog } from '../../../src/http/observe/log.ts';
import { raw } from '../../../src/sql.ts';
import { describeOnOne, type User } from '../../support/service.ts';
import { enrol } from '../authenticator.ts';
import { GUESTS_SCHEMA, type Keyed, newApiKey } from '../keyed.ts';
import { codeOf, login } from '../people.ts';

const lines: string[] = [];
const log = openLog('info', { write: (line) => lines.push(line) });
afterAll(() => {
  lines.length = 0;
});

describeOnOne(
  'attacks with API keys',
  (service) => {
    let admin: User;
    let key: Keyed;
    beforeAll(async () => {
      admin = await service.user('admin');
      key = await newApiKey(service, admin.client);
    });

    test('the checksum finds every change of one character', () => {
      const { token } = newKeyToken('0190b0a0-0000-7000-8000-000000000001');
      expect(readKeyToken(token)?.id).toBe('0190b0a0-0000-7000-8000-000000000001');
      const changed = [...token].map((char, i) => token.slice(0, i) + (char === 'a' ? 'b' : 'a') + token.slice(i + 1));
      expect(changed.filter((text) => readKeyToken(text) !== undefined)).toEqual([]);
    });

    test('every forged key gets one and the same answer', async () => {
      const { secret, id } = key;
      const forged = [
        'bylaw_',
        secret.slice(0, -1),
        `${secret}x`,
        secret.toUpperCase(),
        secret.replace('bylaw_', 'bylaw_bylaw_'),
        `${secret.slice(0, -6)}000000`,
        // The checksum is right, and the secret is another.
        newKeyToken(id).token,
        newKeyToken('01890000-0000-7000-8000-000000000000').token,
        `bylaw_${id}_' OR 1=1 --`,
        `bylaw_${'x'.repeat(8_000)}`,
      ];
      const answers = await Promise.all(
        forged.map((text) =>
          service.anonymous.get('/api/shelves', { Authorization: `Bearer ${text}`, 'X-Request-Id': 'r' }),
        ),
      );
      expect(answers.map(codeOf)).toEqual(Array(forged.length).fill('401 invalid_token'));
      expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
      expect((await key.client.get('/api/shelves')).status).toBe(200);
    });

    test('a session that lacks the second factor of its user makes and rotates no key', async () => {
      const { email, password, client: older } = await service.user('admin');
      const { id } = await newApiKey(service, older);
      const enrolled = await enrol((await login(service.anonymous, email, password)).client);
      const answers = [
        await older.post('/api/auth/keys', { name: 'another way in', roles: ['reader'] }),
        await older.post(`/api/auth/keys/${id}/rotate`, {}),
      ];
      expect(answers.map(codeOf)).toEqual(Array(2).fill('403 forbidden'));
      expect((await older.post('/api/auth/confirm', { code: enrolled.recoveryCodes[0] })).status).toBe(200);
      expect((await older.post(`/api/auth/keys/${id}/rotate`, {})).status).toBe(200);
    });

    test('a key is a bearer token only, and a bad one does not fall back to a good cookie', async () => {
      const { secret } = key;
      const codes = await Promise.all(
        [
          service.anonymous.get('/api/shelves', { Cookie: `svc_session=${secret}` }),
          service.anonymous.get(`/api/shelves?token=${secret}`),
          service.anonymous.get('/api/shelves', { Authorization: `Basic ${secret}` }),
          service.anonymous.get('/api/shelves', { Authorization: 'Bearer bylaw_x', Cookie: admin.cookie }),
          service.anonymous.post('/api/auth/token/refresh', { refresh_token: secret }),
        ].map(async (answer) => codeOf(await answer)),
      );
      expect(codes).toEqual([
        '401 unauthenticated',
        '401 unauthenticated',
        '401 unauthenticated',
        '401 invalid_token',
        '401 invalid_token',
      ]);
    });

    test('a key of one role cannot reach another role by any header or body', async () => {
      const { client, id } = key;
      for (const body of [{ data: { roles: { add: ['admin'] } } }, { data: { email_verified: true } }]) {
        expect((await client.patch(`/api/users/${admin.id}`, body)).status).toBeGreaterThanOrEqual(403);
        expect((await client.patch(`/api/users/${id}`, body)).status).toBeGreaterThanOrEqual(403);
      }
      expect(codeOf(await client.post('/api/books', { data: { title: 'x' } }, { 'X-Role': 'writer' }))).toBe(
        '403 forbidden',
      );
    });

    test('a flood with a publishable key stops at the address, not at the key', async () => {
      const { client, id } = await newApiKey(service, admin.client, { publishable: true, roles: undefined });
      await client.get('/api/shelves');
      const caller = await service.app.auth.authenticator.authenticate({ authorization: client.headers.Authorization });
      expect(caller).toMatchObject({ kind: 'guest', principal: id, isShared: true, auth: { roles: ['guest'] } });
      expect(Object.keys(caller.auth)).toEqual(['roles', 'second_factor']);
    });

    test('no secret is in the log, the metrics, the audit trail, an error or a table', async () => {
      const { secret, client, id } = await newApiKey(service, admin.client, { name: 'watched' });
      await client.get(`/api/shelves?name=${secret}`);
      await client.get(`/api/${secret.slice(0, 20)}`);
      await client.get('/api/nothing');
      const rotated = (await admin.client.post(`/api/auth/keys/${id}/rotate`, { overlap: 9 })).body.secret as string;
      await client.post('/api/auth/keys', { name: secret });
      await admin.client.delete(`/api/auth/keys/${id}`);
      const names = await service.app.db.rows(
        raw(
          `SELECT relname
            FROM pg_class
           WHERE relkind = 'r'
             AND relnamespace = current_schema()::regnamespace
             AND (relname LIKE '\\_auth%' OR relname LIKE 'bylaw%')`,
        ),
      );
      const tables = await Promise.all(
        names.map(([name]) => service.app.db.rows(raw(`SELECT t::text FROM "${name}" t`))),
      );
      const seen = [lines.join(''), await service.app.metrics.read(), JSON.stringify(tables)];
      expect(seen.map((text) => text.length > 300)).toEqual([true, true, true]);
      // The 43 characters behind the id are the secret.
      for (const token of [secret, rotated]) {
        for (const text of seen) expect(text).not.toContain(token.slice(-49, -6));
      }
    });
  },
  { schema: GUESTS_SCHEMA, log },
);
