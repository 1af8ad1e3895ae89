// @module-tag long
/** Access tokens: what is accepted, and every way in which a forged one is not. */
import { createPublicKey } from 'node:crypto';
import { expect, test } from 'vitest';
import { rotateKeys } from '../../../src/auth/keys/key-rotation.ts';
import { raw } from '../../../src/sql.ts';
import { describeOnOne, type TestService } from '../../support/service.ts';
import { until } from '../../support/until.ts';
import { es256, hs256, type Parts, partsOf, servicesKey, strangersKey, unsigned } from '../forge.ts';
import { codeOf, login, newPerson, SCHEMA } from '../people.ts';

const me = (service: TestService, token: string) =>
  service.anonymous.get('/api/auth/me', { Authorization: `Bearer ${token}` });
const now = (): number => Math.floor(Date.now() / 1000);

type Forge = (parts: Parts, service: TestService) => string | Promise<string>;
const signed =
  (change: (parts: Parts, service: TestService) => { header?: object; payload?: object }): Forge =>
  async (parts, service) => {
    const { header = {}, payload = {} } = change(parts, service);
    return es256({ ...parts.header, ...header }, { ...parts.payload, ...payload }, await servicesKey(service.app.db));
  };

const ATTACKS: readonly (readonly [string, Forge])[] = [
  ['alg none', ({ header, payload }) => unsigned({ ...header, alg: 'none' }, payload)],
  [
    'alg none with the signature left on',
    ({ header, payload, signature }) => unsigned({ ...header, alg: 'none' }, payload) + signature,
  ],
  ['alg NONE', ({ header, payload }) => unsigned({ ...header, alg: 'NONE' }, payload)],
  [
    'HMAC with the public key as PEM',
    async ({ header, payload }, service) => {
      const pem = createPublicKey(await servicesKey(service.app.db)).export({ type: 'spki', format: 'pem' });
      return hs256({ ...header, alg: 'HS256' }, payload, pem);
    },
  ],
  [
    'HMAC with the public key as JWK',
    async ({ header, payload }, service) => {
      const jwks = await service.anonymous.get('/.well-known/jwks.json');
      return hs256({ ...header, alg: 'HS256' }, payload, JSON.stringify(jwks.body.keys[0]));
    },
  ],
  ['HMAC with nothing', ({ header, payload }) => hs256({ ...header, alg: 'HS256' }, payload, '')],
  ["a stranger's key under the service's kid", ({ header, payload }) => es256(header, payload, strangersKey())],
  [
    'a key of its own in the header',
    ({ header, payload }) => {
      const key = strangersKey();
      return es256({ ...header, jwk: createPublicKey(key).export({ format: 'jwk' }) }, payload, key);
    },
  ],
  [
    'a jku of its own',
    ({ header, payload }) => es256({ ...header, jku: 'http://127.0.0.1:1/keys' }, payload, strangersKey()),
  ],
  ['an unknown kid', signed(() => ({ header: { kid: 'A'.repeat(43) } }))],
  ['no kid', signed(() => ({ header: { kid: undefined } }))],
  ['a kid that is a number', signed(() => ({ header: { kid: 7 } }))],
  ['a kid with a path', signed(() => ({ header: { kid: '../../../../dev/null' } }))],
  ['a kid with SQL', signed(() => ({ header: { kid: "x' UNION SELECT private_jwk FROM _auth_keys --" } }))],
  ['another typ', signed(() => ({ header: { typ: 'JWT' } }))],
  ['no typ', signed(() => ({ header: { typ: undefined } }))],
  ['an unknown critical header', signed(() => ({ header: { crit: ['exp'], exp: 1 } }))],
  ['another issuer', signed(() => ({ payload: { iss: 'https://elsewhere.example' } }))],
  ['an issuer that begins alike', signed(({ payload }) => ({ payload: { iss: `${payload.iss as string}/` } }))],
  ['no issuer', signed(() => ({ payload: { iss: undefined } }))],
  ['another audience', signed(() => ({ payload: { aud: 'https://elsewhere.example' } }))],
  ['no audience', signed(() => ({ payload: { aud: undefined } }))],
  ['expired', signed(() => ({ payload: { iat: now() - 900, exp: now() - 31 } }))],
  ['no expiry', signed(() => ({ payload: { exp: undefined } }))],
  ['an expiry that is a text', signed(() => ({ payload: { exp: '9999999999' } }))],
  ['an expiry too far away', signed(() => ({ payload: { exp: now() + 86_400 } }))],
  ['from the future', signed(() => ({ payload: { iat: now() + 120, exp: now() + 900 } }))],
  ['not valid yet', signed(() => ({ payload: { nbf: now() + 120 } }))],
  ['another subject on the session', signed(() => ({ payload: { sub: '01890000-0000-7000-8000-000000000000' } }))],
  ['a session that never was', signed(() => ({ payload: { sid: '01890000-0000-7000-8000-000000000000' } }))],
  ['a subject with SQL', signed(() => ({ payload: { sub: "' OR true --" } }))],
  ['no session', signed(() => ({ payload: { sid: undefined } }))],
  ['a subject that is a list', signed(({ payload }) => ({ payload: { sub: [payload.sub] } }))],
];

describeOnOne(
  'access tokens',
  (service) => {
    test('a token made by hand with the right key and claims passes: the attacks fail for their claims', async () => {
      const person = await newPerson(service.anonymous);
      const made = await signed(() => ({ payload: { iat: now() - 1, exp: now() + 60 } }))(
        partsOf(person.access),
        service,
      );
      expect((await me(service, made)).status).toBe(200);
    });

    test('an access token holds the user and the session only', async () => {
      const person = await newPerson(service.anonymous);
      const { header, payload } = partsOf(person.access);
      const [key] = (await service.anonymous.get('/.well-known/jwks.json')).body.keys;
      expect(header).toEqual({ alg: 'ES256', typ: 'at+jwt', kid: key.kid });
      const { iat, exp } = payload as { iat: number; exp: number };
      expect(payload).toEqual({
        iss: service.url,
        aud: service.url,
        sub: person.id,
        sid: expect.any(String),
        iat,
        exp,
      });
      expect(exp - iat).toBe(900);
    });

    test.each(ATTACKS)('%s', async (_, forge) => {
      const person = await newPerson(service.anonymous);
      const forged = await forge(partsOf(person.access), service);
      const answer = await me(service, forged);
      expect(codeOf(answer)).toBe('401 invalid_token');
      expect(answer.headers.get('www-authenticate')).toBe('Bearer error="invalid_token"');
      expect(codeOf(await service.anonymous.get('/api/notes', { Authorization: `Bearer ${forged}` }))).toBe(
        '401 invalid_token',
      );
      expect((await me(service, person.access)).status).toBe(200);
    });

    test.each([
      ['nothing', ''],
      ['two parts', 'a.b'],
      ['four parts', 'a.b.c.d'],
      ['padding', (token: string) => `${token}=`],
      ['base64 instead of base64url', (token: string) => `${token.slice(0, -3)}+/+`],
      ['a space', (token: string) => token.replace('.', '. ')],
      ['a space inside', (token: string) => `${token.slice(0, 30)} ${token.slice(30)}`],
      ['a percent', (token: string) => `%20${token}`],
      [
        'one character changed in the payload',
        (token: string) => token.replace(/\.(.)/, (_, c) => `.${c === 'e' ? 'f' : 'e'}`),
      ],
      [
        'one character changed in the signature',
        (token: string) => token.replace(/(.)(.{20})$/, (_, c, rest) => (c === 'A' ? 'B' : 'A') + rest),
      ],
      ['very long', `${'a'.repeat(6_000)}.b.c`],
    ])('the gate rejects text that is not a token: %s', async (_, change) => {
      const person = await newPerson(service.anonymous);
      const text = typeof change === 'string' ? change : change(person.access);
      expect(codeOf(await me(service, text))).toBe('401 invalid_token');
    });

    test('the bearer token decides over the cookie, and a bad one does not fall back to it', async () => {
      const [one, other] = [await newPerson(service.anonymous), await newPerson(service.anonymous)];
      const both = (authorization: string) =>
        service.anonymous.get('/api/auth/me', { Authorization: authorization, Cookie: other.cookie });
      expect((await both(`Bearer ${one.access}`)).body.user.id).toBe(one.id);
      expect((await both(`bearer   ${one.access}`)).body.user.id).toBe(one.id);
      expect(codeOf(await both(`Bearer ${one.access}x`))).toBe('401 invalid_token');
      expect(codeOf(await both('Bearer'))).toBe('401 invalid_token');
      expect((await both('Basic eDp5')).body.user.id).toBe(other.id);
    });

    test('a request fails without a credential, and with a bad cookie', async () => {
      const answer = await service.anonymous.get('/api/auth/me');
      expect([codeOf(answer), answer.headers.get('www-authenticate')]).toEqual(['401 unauthenticated', 'Bearer']);
      for (const cookie of [
        'svc_session=',
        'svc_session=x',
        `svc_session=${'A'.repeat(43)}`,
        `svc_session=${'A'.repeat(5_000)}`,
      ]) {
        expect(codeOf(await service.anonymous.get('/api/notes', { Cookie: cookie }))).toBe('401 unauthenticated');
      }
    });

    test('rotating the key: new tokens have the new one, old ones stay good, both are published, a retired one is not', {
      tags: ['long'],
    }, async () => {
      const old = await newPerson(service.anonymous);
      const before = partsOf(old.access).header.kid;
      const kid = await rotateKeys(service.app.db, { keySecret: undefined, tokenLifetime: 900, now: false });
      expect(kid).not.toBe(before);
      const keys = async () => (await service.anonymous.get('/.well-known/jwks.json')).body.keys;
      await until('both are published', async () => (await keys()).length === 2);
      const published = await keys();
      expect(published.map((key: { kid: string }) => key.kid)).toEqual([before, kid]);
      for (const key of published) {
        expect(Object.keys(key).sort()).toEqual(['alg', 'crv', 'kid', 'kty', 'use', 'x', 'y']);
        expect([key.kty, key.crv, key.alg, key.use]).toEqual(['EC', 'P-256', 'ES256', 'sig']);
      }
      let fresh = await login(service.anonymous, old.email);
      await until('the new key signs', async () => {
        fresh = await login(service.anonymous, old.email);
        return partsOf(fresh.access).header.kid === kid;
      });
      expect((await me(service, fresh.access)).status).toBe(200);
      expect((await me(service, old.access)).status).toBe(200);
      await service.app.db.run(
        raw(`UPDATE "_auth_keys" SET retired_at = now() - interval '1 second' WHERE retired_at IS NOT NULL`),
      );
      await until(
        'the old key is gone',
        async () => (await service.anonymous.get('/.well-known/jwks.json')).body.keys.length === 1,
      );
      // Tokens verified before may be remembered; others fail.
      const unseen = es256(
        partsOf(old.access).header,
        { ...partsOf(old.access).payload, iat: now() - 2 },
        await servicesKey(service.app.db),
      );
      expect(codeOf(await me(service, unseen))).toBe('401 invalid_token');
      expect((await me(service, fresh.access)).status).toBe(200);
    });
  },
  { schema: SCHEMA },
);
