/** The cookie of `cookie:` in the schema: pages of other sites, and the hosts of a domain. */
import { expect, test } from 'vitest';
import { checkCookieSite, cookieDomain } from '../../../src/http/server/cookie-site.ts';
import { describeOnOne } from '../../support/service.ts';
import { codeOf, login, newPerson, PASSWORD, register, SCHEMA } from '../people.ts';

const FRIEND = 'https://app.example.org';
const BASE_URL = 'https://api.example.com';

describeOnOne(
  'a cookie for other sites and a domain',
  (service) => {
    test('a login sets it with the domain, and clears the one of the host alone', async () => {
      const { email } = await register(service.anonymous);
      const answer = await service.anonymous.post('/api/auth/login', { email, password: PASSWORD });
      expect(answer.headers.getSetCookie()).toEqual([
        expect.stringMatching(
          /^svc_session=[\w-]{43}; Path=\/; Domain=example\.com; Max-Age=1209600; HttpOnly; SameSite=None; Secure$/,
        ),
        'svc_session=; Path=/; Max-Age=0; Expires=Thu, 01 Jan 1970 00:00:00 GMT; HttpOnly; SameSite=None; Secure',
      ]);
    });

    test('a logout clears both', async () => {
      const { cookieClient } = await newPerson(service.anonymous);
      const answer = await cookieClient.post('/api/auth/logout', undefined, { Origin: FRIEND });
      const cleared = (place: string) =>
        `svc_session=; Path=/${place}; Max-Age=0; Expires=Thu, 01 Jan 1970 00:00:00 GMT; HttpOnly; SameSite=None; Secure`;
      expect(answer.headers.getSetCookie()).toEqual([cleared('; Domain=example.com'), cleared('')]);
    });

    test('a write by cookie needs an origin of the list, or of the service', async () => {
      const { client, cookieClient } = await newPerson(service.anonymous);
      const headers: readonly Readonly<Record<string, string>>[] = [
        { Origin: FRIEND, 'Sec-Fetch-Site': 'cross-site' },
        { Origin: BASE_URL, 'Sec-Fetch-Site': 'same-origin' },
        {},
        { 'Sec-Fetch-Site': 'none' },
        { 'Sec-Fetch-Site': 'same-origin' },
        { Origin: 'null', 'Sec-Fetch-Site': 'same-origin' },
        { Origin: 'https://evil.example.com', 'Sec-Fetch-Site': 'same-site' },
        { Origin: 'https://evil.example', 'Sec-Fetch-Site': 'cross-site' },
        { Origin: `${FRIEND}.evil.example` },
      ];
      const answers = [];
      for (const each of headers) answers.push(await cookieClient.post('/api/notes', { data: { text: 'a' } }, each));
      expect(answers.map((answer) => answer.status)).toEqual([201, 201, ...Array(7).fill(403)]);
      expect(answers.slice(2).map(codeOf)).toEqual(Array(7).fill('403 cross_origin'));
      const form = { 'Content-Type': 'application/x-www-form-urlencoded' };
      const page = await cookieClient.send('POST', '/auth/second-factor', { headers: form, raw: 'step=enrol' });
      expect(page.status).toBe(403);
      expect((await client.post('/api/notes', { data: { text: 'a' } })).status).toBe(201);
      expect((await cookieClient.get('/api/notes', {})).body.data).toHaveLength(3);
    });

    test('programs sign in without an origin; a page of another site does not', async () => {
      const { email } = await register(service.anonymous);
      expect((await login(service.anonymous, email)).cookie).toMatch(/^svc_session=[\w-]{43}$/);
      const body = { email, password: PASSWORD };
      const evil = { Origin: 'https://evil.example', 'Sec-Fetch-Site': 'cross-site' };
      expect(codeOf(await service.anonymous.post('/api/auth/login', body, evil))).toBe('403 cross_origin');
    });
  },
  {
    schema: `${SCHEMA}\norigins: ['${FRIEND}']\ncookie: { same_site: none, domain: example.com }\n`,
    env: { BASE_URL },
  },
);

const NONE = { sameSite: 'none', domain: undefined } as const;
const DOMAIN = { sameSite: 'lax', domain: 'example.com' } as const;
const at = (baseUrl: string, isDevelopment = false) => ({ baseUrl, isDevelopment });

test.each([
  ['other sites by https', NONE, at('https://api.example.com'), undefined],
  ['other sites by http', NONE, at('http://api.example.com'), 'needs https'],
  ['other sites on this machine', NONE, at('http://127.0.0.1:8090'), 'needs https'],
  ['other sites under `bylaw dev`', NONE, at('http://127.0.0.1:8090', true), undefined],
  ['the domain itself', DOMAIN, at('https://example.com'), undefined],
  ['a host of the domain', DOMAIN, at('https://api.example.com'), undefined],
  ['a domain that ends alike', DOMAIN, at('https://api.notexample.com'), 'to hold the host'],
  ['a domain that begins alike', DOMAIN, at('https://example.com.evil.example'), 'to hold the host'],
  ['another host under `bylaw dev`', DOMAIN, at('http://127.0.0.1:8090', true), undefined],
] as const)('the cookie of %s is compared with the base URL', (_, cookie, site, error) => {
  if (error === undefined) expect(() => checkCookieSite(cookie, site)).not.toThrow();
  else expect(() => checkCookieSite(cookie, site)).toThrow(error);
});

test('a host outside of the domain has the cookie for itself', () => {
  expect(cookieDomain(DOMAIN, at('http://127.0.0.1:8090', true))).toBeUndefined();
  expect(cookieDomain(DOMAIN, at('https://api.example.com'))).toBe('example.com');
});
