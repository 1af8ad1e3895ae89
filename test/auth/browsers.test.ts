// @module-tag long
/** The cookie and other sites: its flags, requests across origins, login CSRF. */
import { expect, test } from 'vitest';
import { describeOnOne } from '../support/service.ts';
import { codeOf, login, newPerson, PASSWORD, register, SCHEMA } from './people.ts';

const FRIEND = 'https://app.example';
const OPTIONS = { schema: `${SCHEMA}\norigins: ['${FRIEND}']\n` };

describeOnOne(
  'other sites',
  (service) => {
    const own = () => new URL(service.url).origin;
    const allowed = [
      ['neither header', () => ({})],
      ['same-origin', () => ({ 'Sec-Fetch-Site': 'same-origin', Origin: own() })],
      ['typed into the address bar', () => ({ 'Sec-Fetch-Site': 'none' })],
      ['the own origin', () => ({ Origin: own() })],
      ['a configured origin', () => ({ 'Sec-Fetch-Site': 'cross-site', Origin: FRIEND })],
    ] as const;
    const refused = [
      ['cross-site', () => ({ 'Sec-Fetch-Site': 'cross-site', Origin: 'https://evil.example' })],
      ['cross-site without an origin', () => ({ 'Sec-Fetch-Site': 'cross-site' })],
      ['same-site', () => ({ 'Sec-Fetch-Site': 'same-site', Origin: 'http://127.0.0.1:1' })],
      ['another origin', () => ({ Origin: 'https://evil.example' })],
      ['no origin of its own', () => ({ Origin: 'null' })],
      ['another port', () => ({ Origin: 'http://127.0.0.1:1' })],
      ['an origin that begins alike', () => ({ Origin: `${own()}.evil.example` })],
      [
        'a configured origin that begins alike',
        () => ({ Origin: `${FRIEND}.evil.example`, 'Sec-Fetch-Site': 'cross-site' }),
      ],
    ] as const;

    test.each(allowed)('a write with the cookie passes from: %s', async (_, headers) => {
      const { cookieClient } = await newPerson(service.anonymous);
      expect((await cookieClient.post('/api/notes', { data: { text: 'a' } }, headers())).status).toBe(201);
      expect((await cookieClient.post('/api/auth/logout', undefined, headers())).status).toBe(204);
    });

    test.each(refused)('a write with the cookie fails from: %s', async (_, headers) => {
      const { cookieClient, client } = await newPerson(service.anonymous);
      const { id } = (await client.post('/api/notes', { data: { text: 'a' } })).body.data;
      const answers = [
        await cookieClient.post('/api/notes', { data: { text: 'a' } }, headers()),
        await cookieClient.patch(`/api/notes/${id}`, { data: { text: 'b' } }, headers()),
        await cookieClient.delete(`/api/notes/${id}`, headers()),
        await cookieClient.post('/api/auth/logout', undefined, headers()),
        await cookieClient.post('/api/auth/password', { password: PASSWORD, new_password: 'x' }, headers()),
      ];
      expect(answers.map(codeOf)).toEqual(Array(5).fill('403 cross_origin'));
      expect((await cookieClient.get('/api/notes', headers())).body.data).toMatchObject([{ text: 'a' }]);
      expect((await client.post('/api/notes', { data: { text: 'a' } }, headers())).status).toBe(201);
    });

    test.each(refused)('a login fails from (login CSRF): %s', async (_, headers) => {
      const { email } = await register(service.anonymous);
      const attacker = await login(service.anonymous, email);
      const answers = [
        await service.anonymous.post('/api/auth/login', { email, password: PASSWORD }, headers()),
        await service.anonymous.post('/api/auth/token/refresh', { refresh_token: attacker.refresh }, headers()),
      ];
      expect(answers.map(codeOf)).toEqual(Array(2).fill('403 cross_origin'));
      expect(answers.flatMap((answer) => answer.headers.getSetCookie())).toEqual([]);
    });

    test.each(['text/plain', 'application/x-www-form-urlencoded', 'multipart/form-data; boundary=x'])(
      'a login rejects the types that a form can send: %s',
      async (type) => {
        const { email } = await register(service.anonymous);
        const answer = await service.anonymous.send('POST', '/api/auth/login', {
          headers: { 'Content-Type': type },
          raw: JSON.stringify({ email, password: PASSWORD }),
        });
        expect([codeOf(answer), answer.headers.getSetCookie()]).toEqual(['415 unsupported_media_type', []]);
      },
    );

    test('browsers of other sites see nothing, and those of a configured origin see the answer', async () => {
      const { cookieClient } = await newPerson(service.anonymous);
      const evil = await cookieClient.get('/api/auth/me', { Origin: 'https://evil.example' });
      expect(evil.headers.get('access-control-allow-origin')).toBeNull();
      const friend = await cookieClient.get('/api/auth/me', { Origin: FRIEND });
      expect(friend.headers.get('access-control-allow-origin')).toBe(FRIEND);
      expect(friend.headers.get('access-control-allow-credentials')).toBe('true');
      expect(friend.headers.get('vary')).toMatch(/\bOrigin\b/);
    });
  },
  OPTIONS,
);

describeOnOne(
  'a service that the world reaches by https',
  (service) => {
    test('sets its cookies for https only', async () => {
      const { email } = await register(service.anonymous);
      const answer = await service.anonymous.post('/api/auth/login', { email, password: PASSWORD });
      expect(answer.headers.getSetCookie()).toEqual([
        expect.stringMatching(/^svc_session=[\w-]{43}; Path=\/; Max-Age=1209600; HttpOnly; SameSite=Lax; Secure$/),
      ]);
      expect(JSON.parse(Buffer.from(answer.body.access_token.split('.')[1], 'base64url').toString())).toMatchObject({
        iss: 'https://api.example',
        aud: 'https://api.example',
      });
    });
  },
  { schema: SCHEMA, env: { BASE_URL: 'https://api.example/' } },
);

describeOnOne(
  'a service that the world reaches by http',
  (service) => {
    test('sets its cookies for https as well: only loopback is exempt', async () => {
      const { email } = await register(service.anonymous);
      const answer = await service.anonymous.post('/api/auth/login', { email, password: PASSWORD });
      expect(answer.headers.getSetCookie()[0]).toMatch(/; HttpOnly; SameSite=Lax; Secure$/);
    });
  },
  { schema: SCHEMA, env: { BASE_URL: 'http://127.0.0.1.evil.example' } },
);
