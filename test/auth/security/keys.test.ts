// @module-tag long
/** S12: signing keys can be revoked, and are of no use to a thief of the database. */
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Auth } from '../../../src/auth/auth.ts';
import { authTables } from '../../../src/auth/auth-tables.ts';
import { rotateKeys } from '../../../src/auth/keys/key-rotation.ts';
import { unwrapKey, wrapKey } from '../../../src/auth/keys/key-wrapping.ts';
import { ConfigError, readConfig } from '../../../src/config.ts';
import type { Database } from '../../../src/database/contract.ts';
import { applyMigration } from '../../../src/migrations/apply-migration.ts';
import { sql } from '../../../src/sql.ts';
import { openEmbeddedDatabase } from '../../support/embedded/embedded.ts';
import { cheapPasswords, describeOnBoth, schemaFrom } from '../../support/service.ts';
import { until } from '../../support/until.ts';
import { codeOf, newEmail, newPerson, PASSWORD, refresh, SCHEMA, tokensOf } from '../people.ts';

const SECRET = randomBytes(32);
const schema = schemaFrom(SCHEMA);

describe('S12: signing keys at rest', () => {
  let db: Database;
  const open: Auth[] = [];
  beforeAll(async () => {
    db = await openEmbeddedDatabase();
    await applyMigration(db, schema, { systemTables: authTables });
  });
  afterAll(async () => {
    for (const auth of open) await auth.close();
    await db.close();
  });
  const start = async (keySecret?: Buffer): Promise<Auth> => {
    const config = { baseUrl: 'http://127.0.0.1:8090', rateLimit: false, keySecret };
    const auth = await Auth.open({ db, schema, config, passwords: cheapPasswords() });
    open.push(auth);
    return auth;
  };
  const stored = async () => (await db.rows(sql`SELECT private_jwk FROM "_auth_keys"`)).map(([cell]) => cell!);
  const tokenOf = async (auth: Auth): Promise<string> => {
    const email = newEmail();
    await auth.accounts.register({ email, password: PASSWORD, client: {} });
    const signedIn = await auth.accounts.login({ email, password: PASSWORD, client: {} });
    if (!('cookie' in signedIn)) throw new Error('a new person has no second factor');
    return signedIn.body.access_token;
  };
  const isGood = async (auth: Auth, token: string): Promise<boolean> => {
    try {
      await auth.authenticator.authenticate({ authorization: `Bearer ${token}` });
      return true;
    } catch {
      return false;
    }
  };

  test('a start with a secret wraps the keys, which sign and verify as before', async () => {
    const plain = await start();
    const token = await tokenOf(plain);
    expect((await stored()).map((text) => Object.keys(JSON.parse(text)))).toEqual([expect.arrayContaining(['d'])]);
    const wrapping = await start(SECRET);
    expect(await stored()).toEqual([expect.stringMatching(/^A256GCM\.[\w-]{16}\.[\w-]+$/)]);
    expect([await isGood(wrapping, token), await isGood(wrapping, await tokenOf(wrapping))]).toEqual([true, true]);
    await rotateKeys(db, { keySecret: SECRET, tokenLifetime: 900, now: false });
    expect((await stored()).filter((text) => text.startsWith('A256GCM.'))).toHaveLength(2);
  });

  test('wrapped keys are useless without their secret, and the error names the remedy', async () => {
    await expect(start()).rejects.toThrow(
      /^the signing key [\w-]{43} is wrapped, and BYLAW_KEY_SECRET is not set; set BYLAW_KEY_SECRET to the secret/,
    );
    await expect(start(randomBytes(32))).rejects.toThrow(
      /^BYLAW_KEY_SECRET does not unwrap the signing key [\w-]{43}; .* or replace every key: `bylaw keys rotate --now`$/,
    );
  });

  test('a rotation replaces all keys after the secret is lost', async () => {
    const next = randomBytes(32);
    const kid = await rotateKeys(db, { keySecret: next, tokenLifetime: 900, now: true });
    expect(await stored()).toHaveLength(1);
    expect((await (await start(next)).tokens.jwks()).keys.map((key) => key.kid)).toEqual([kid]);
  });

  test('a wrapped key cannot be moved to another row or changed', () => {
    const wrapped = wrapKey('one', '{"d":"secret"}', SECRET);
    expect(unwrapKey({ kid: 'one', stored: wrapped }, SECRET)).toBe('{"d":"secret"}');
    expect(wrapped).not.toContain(Buffer.from('secret').toString('base64url'));
    expect(wrapKey('one', '{"d":"secret"}', SECRET)).not.toBe(wrapped);
    expect(() => unwrapKey({ kid: 'two', stored: wrapped }, SECRET)).toThrow('does not unwrap');
    for (const bad of [
      wrapped.slice(0, -2),
      `${wrapped.slice(0, -1)}${wrapped.endsWith('A') ? 'Q' : 'A'}`,
      'A256GCM.',
    ]) {
      expect(() => unwrapKey({ kid: 'one', stored: bad }, SECRET)).toThrow('does not unwrap');
    }
  });
});

describe('S12: BYLAW_KEY_SECRET', () => {
  const bytes = Buffer.alloc(32, 0xfb);
  test.each(['base64', 'base64url', 'hex'] as const)('the secret has 32 bytes in %s', (encoding) => {
    expect(readConfig({}, { BYLAW_KEY_SECRET: bytes.toString(encoding) }).keySecret).toEqual(bytes);
  });

  test.each(['secret', bytes.subarray(1).toString('base64'), `${bytes.toString('hex')}00`, 'a passphrase '.repeat(4)])(
    'the settings reject another secret: %s',
    (given) => {
      const expected = 'BYLAW_KEY_SECRET: expected 32 bytes in base64 or hex, as by `openssl rand -base64 32`';
      expect(() => readConfig({}, { BYLAW_KEY_SECRET: given })).toThrow(new ConfigError([expected]));
    },
  );
});

describeOnBoth(
  'S12: a key that leaked',
  (service) => {
    test('a revocation voids all tokens of the key at once, remembered ones too, and clients refresh', async () => {
      const person = await newPerson(service.anonymous);
      expect((await person.client.get('/api/auth/me')).status).toBe(200);
      const kid = await rotateKeys(service.app.db, { keySecret: undefined, tokenLifetime: 900, now: true });
      const isOut = async () => codeOf(await person.client.get('/api/auth/me')) === '401 invalid_token';
      await until('the old token is invalid', isOut);
      const { keys } = (await service.anonymous.get('/.well-known/jwks.json')).body;
      expect(keys.map((key: { kid: string }) => key.kid)).toEqual([kid]);
      const [count] = await service.app.db.rows(sql`SELECT count(*) FROM "_auth_keys"`);
      expect(count).toEqual(['1']);
      const fresh = tokensOf(service.anonymous, await refresh(service.anonymous, person.refresh));
      expect((await fresh.client.get('/api/auth/me')).status).toBe(200);
      expect((await person.cookieClient.get('/api/auth/me')).status).toBe(200);
      const [entry] = await service.app.auth.admin.audit({ event: 'keys_revoked', limit: 1 });
      expect(entry?.detail).toEqual({ kid });
    });
  },
  { schema: SCHEMA },
);
