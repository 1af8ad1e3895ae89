// @module-tag long
/** Passkeys, with the virtual authenticator of Chromium; and malformed responses, with one in memory. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { sql, uuid } from '../../../src/sql.ts';
import { Browser, type Page } from '../../support/browser/browser.ts';
import { describeInBrowser } from '../../support/browser/describe-in-browser.ts';
import type { Answer } from '../../support/client.ts';
import { describeOnBoth, describeOnOne } from '../../support/service.ts';
import { codeOfApp, newEnrolled, unspentCode } from '../authenticator.ts';
import { codeOf, login, newPerson, PASSWORD, type Tokens, tokensOf } from '../people.ts';
import { SoftwareAuthenticator } from './software-authenticator.ts';

const SCHEMA = `
roles: [member, admin]
register: { roles: [member] }
second_factor: { required_for: [admin] }
collections:
  vaults: { fields: { title: string }, access: { view: '@request.auth.second_factor' } }
`;
const idOf = (credential: object): string =>
  Buffer.from((credential as { credentialId: string }).credentialId, 'base64').toString('base64url');
type Credential = { id: string; response: Record<string, string> };

describeOnOne(
  'passkeys',
  (service) => {
    describeInBrowser('with a virtual authenticator', () => {
      let browser: Browser;
      let page: Page;
      let authenticatorId: unknown;
      beforeAll(async () => {
        browser = await Browser.open();
        page = await browser.page(service.url.replace('127.0.0.1', 'localhost'));
        await page.send('WebAuthn.enable');
        ({ authenticatorId } = await page.send('WebAuthn.addVirtualAuthenticator', { options: OPTIONS }));
      });
      afterAll(() => browser?.close());
      const OPTIONS = {
        protocol: 'ctap2',
        transport: 'internal',
        hasResidentKey: true,
        hasUserVerification: true,
        isUserVerified: true,
        automaticPresenceSimulation: true,
      };
      const created = (options: object) =>
        page.evaluate<Credential>(`(async () => {
          const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(${JSON.stringify(options)});
          return (await navigator.credentials.create({ publicKey })).toJSON();
        })()`);
      const asserted = (options: object) =>
        page.evaluate<Credential>(`(async () => {
          const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(${JSON.stringify(options)});
          return (await navigator.credentials.get({ publicKey })).toJSON();
        })()`);
      const forget = () => page.send('WebAuthn.clearCredentials', { authenticatorId });
      const creation = async ({ client }: Tokens) => created((await client.post('/api/auth/passkeys/options')).body);
      const add = async (person: Tokens, response?: Credential): Promise<Answer> => {
        if (response === undefined) await forget();
        return person.client.post('/api/auth/passkeys', {
          name: 'phone',
          response: response ?? (await creation(person)),
        });
      };
      const assertion = async () => asserted((await service.anonymous.post('/api/auth/passkeys/login/options')).body);
      const enter = async (response?: Credential): Promise<Answer> =>
        service.anonymous.post('/api/auth/passkeys/login', { response: response ?? (await assertion()) });

      test('a passkey signs in without an email, and the session has a second factor', async () => {
        const person = await newPerson(service.anonymous);
        const added = await add(person);
        const id = expect.any(String);
        expect([added.status, added.body.data]).toEqual([
          201,
          { id, name: 'phone', created_at: id, last_used_at: null },
        ]);
        const entered = await enter();
        expect([entered.status, entered.headers.getSetCookie().length]).toEqual([200, 1]);
        const tokens = tokensOf(service.anonymous, entered);
        expect((await tokens.client.get('/api/auth/me')).body).toMatchObject({
          user: { id: person.id },
          second_factor: 'used',
        });
        expect((await tokens.cookieClient.get('/api/vaults')).status).toBe(200);
        expect((await person.client.get('/api/vaults')).status).toBe(403);
        const [listed] = (await person.client.get('/api/auth/passkeys')).body.data;
        expect(listed.last_used_at).toMatch(/Z$/);
        const events = (await service.app.auth.admin.audit({ userId: person.id, limit: 10 })).map(({ event }) => event);
        expect(events).toEqual(expect.arrayContaining(['passkey_login', 'passkey_added']));
        expect(JSON.stringify((await service.anonymous.post('/api/auth/passkeys/login/options')).body)).not.toContain(
          'allowCredentials":[{',
        );
      });

      test('a role that needs a second factor is there, and no code is asked', async () => {
        const person = await newEnrolled(service.anonymous);
        await service.app.auth.admin.changeRoles(person.email, { add: ['admin'], remove: [] });
        expect((await add(person)).status).toBe(201);
        const tokens = tokensOf(service.anonymous, await enter());
        expect((await tokens.client.get('/api/_audit')).status).toBe(200);
      });

      test('a response works once, and one whose challenge was made for another use or user does not', async () => {
        const [ann, eve] = [await newPerson(service.anonymous), await newPerson(service.anonymous)];
        await forget();
        const made = await creation(ann);
        expect(codeOf(await add(eve, made))).toBe('422 validation_failed');
        expect((await add(ann, made)).status).toBe(201);
        expect(codeOf(await add(ann, made))).toBe('422 validation_failed');
        const response = await assertion();
        const answers = await Promise.all(Array.from({ length: 5 }, () => enter(response)));
        expect(answers.map(codeOf).toSorted()).toEqual(['200 undefined', ...Array(4).fill('401 invalid_credentials')]);
        const foreign = await asserted({
          ...(await service.anonymous.post('/api/auth/passkeys/login/options')).body,
          challenge: 'AAAA',
        });
        expect(codeOf(await enter(foreign))).toBe('401 invalid_credentials');
        const late = await assertion();
        await service.app.db.run(sql`UPDATE "_auth_passkey_challenges" SET expires_at = now()`);
        expect(codeOf(await enter(late))).toBe('401 invalid_credentials');
      });

      test('a changed response, another credential and a disabled user are the same refusal', async () => {
        const person = await newPerson(service.anonymous);
        await add(person);
        const [first, second, third] = [await assertion(), await assertion(), await assertion()];
        const flipped = (text: string) => `${text.startsWith('A') ? 'B' : 'A'}${text.slice(1)}`;
        const signature = flipped(first.response.signature!.slice(0, -8)) + first.response.signature!.slice(-8);
        const answers = [
          await enter({ ...first, response: { ...first.response, signature } }),
          await enter({ ...second, id: flipped(second.id) }),
          await enter({ id: third.id, response: {} }),
        ];
        const held = await assertion();
        await service.app.auth.admin.setDisabled(person.email, true);
        answers.push(await enter(held));
        expect(answers.map(codeOf)).toEqual(Array(4).fill('401 invalid_credentials'));
        expect(new Set(answers.map(({ body }) => body.detail)).size).toBe(1);
      });

      test('an authenticator that did not verify its user is refused', async () => {
        const person = await newPerson(service.anonymous);
        await add(person);
        const { credentials } = await page.send('WebAuthn.getCredentials', { authenticatorId });
        await page.send('WebAuthn.removeVirtualAuthenticator', { authenticatorId });
        // The same key in an authenticator that only asks for presence.
        const options = { ...OPTIONS, transport: 'usb', hasUserVerification: false, isUserVerified: false };
        const other = (await page.send('WebAuthn.addVirtualAuthenticator', { options })).authenticatorId;
        const [credential] = credentials as object[];
        await page.send('WebAuthn.addCredential', { authenticatorId: other, credential });
        const { body } = await service.anonymous.post('/api/auth/passkeys/login/options');
        const allowCredentials = [{ id: (credentials as Credential[]).map(idOf)[0], type: 'public-key' }];
        const response = await asserted({ ...body, allowCredentials, userVerification: 'discouraged' });
        const entered = await enter(response);
        const asked = (await person.client.post('/api/auth/passkeys/options')).body;
        const authenticatorSelection = { residentKey: 'discouraged', userVerification: 'discouraged' };
        const made = await created({ ...asked, excludeCredentials: [], authenticatorSelection });
        const added = await add(person, made);
        await page.send('WebAuthn.removeVirtualAuthenticator', { authenticatorId: other });
        ({ authenticatorId } = await page.send('WebAuthn.addVirtualAuthenticator', { options: OPTIONS }));
        expect([codeOf(entered), codeOf(added)]).toEqual(['401 invalid_credentials', '422 validation_failed']);
      });

      test('a counter that goes back is refused and audited', async () => {
        const person = await newPerson(service.anonymous);
        await add(person);
        expect((await enter()).status).toBe(200);
        await service.app.db.run(sql`UPDATE "_auth_passkeys" SET counter = 1000000 WHERE user_id = ${uuid(person.id)}`);
        expect(codeOf(await enter())).toBe('401 invalid_credentials');
        const [event] = await service.app.auth.admin.audit({ userId: person.id, limit: 1 });
        expect(event?.event).toBe('passkey_counter_went_back');
      });

      test('passkeys are renamed and removed by their user alone, and the last way in stays', async () => {
        const [ann, eve] = [await newPerson(service.anonymous), await newPerson(service.anonymous)];
        const [first, second] = [(await add(ann)).body.data.id, (await add(ann)).body.data.id];
        const rename = (client: Tokens['client'], name: string) =>
          client.patch(`/api/auth/passkeys/${first}`, { name });
        expect((await rename(ann.client, ' desk ')).body.data.name).toBe('desk');
        expect(codeOf(await rename(ann.client, ' '))).toBe('422 validation_failed');
        expect(codeOf(await rename(eve.client, 'mine'))).toBe('404 not_found');
        const remove = (client: Tokens['client'], id: string) => client.send('DELETE', `/api/auth/passkeys/${id}`);
        expect(codeOf(await remove(eve.client, first))).toBe('404 not_found');
        await service.app.db.run(sql`UPDATE "_auth_accounts" SET password_hash = NULL WHERE user_id = ${uuid(ann.id)}`);
        const removals = await Promise.all([remove(ann.client, first), remove(ann.client, second)]);
        expect(removals.map(({ status }) => status).toSorted()).toEqual([204, 409]);
        expect(removals.map(({ body }) => body?.code)).toContain('last_credential');
        expect((await ann.client.get('/api/auth/passkeys')).body.data).toHaveLength(1);
      });

      test('a user has twenty passkeys', async () => {
        const person = await newPerson(service.anonymous);
        await forget();
        const response = await creation(person);
        await service.app.db.run(sql`
          INSERT INTO "_auth_passkeys" (id, user_id, name, credential_id, public_key, counter, created_at)
          SELECT gen_random_uuid(), ${uuid(person.id)}, 'x', 'made ' || n || ${uuid(person.id)}, '', 0, now()
            FROM generate_series(1, 20) n`);
        expect(codeOf(await add(person, response))).toBe('409 too_many');
        expect(codeOf(await person.client.post('/api/auth/passkeys/options'))).toBe('409 too_many');
      });

      test('a session that lacks the second factor of its user adds no passkey', async () => {
        const person = await newPerson(service.anonymous);
        const older = await login(service.anonymous, person.email);
        const { secret } = (await person.client.post('/api/auth/totp/enrol')).body;
        await person.client.post('/api/auth/totp/confirm', { code: codeOfApp(secret) });
        expect(codeOf(await older.client.post('/api/auth/passkeys/options'))).toBe('403 forbidden');
        const code = await unspentCode(service.app.db, { id: person.id, secret });
        await older.client.post('/api/auth/confirm', { code });
        expect((await older.client.post('/api/auth/passkeys/options')).status).toBe(200);
        await older.client.send('DELETE', '/api/auth/totp', { json: { password: PASSWORD } });
        expect((await older.client.post('/api/auth/passkeys/options')).status).toBe(200);
      });
    });
  },
  { schema: SCHEMA },
);

describeOnBoth(
  'malformed passkeys',
  (service) => {
    const BAD = '401 invalid_credentials';
    const INVALID = '422 validation_failed';
    const authenticator = () => new SoftwareAuthenticator(service.url.replace('127.0.0.1', 'localhost'));
    const options = async ({ client }: Tokens) => (await client.post('/api/auth/passkeys/options')).body;
    const add = (person: Tokens, response: object, name = 'phone') =>
      person.client.post('/api/auth/passkeys', { name, response });
    const loginOptions = async () => (await service.anonymous.post('/api/auth/passkeys/login/options')).body;
    const enter = (response: unknown) => service.anonymous.post('/api/auth/passkeys/login', { response });
    const owner = async () => {
      const made = authenticator();
      const person = await newPerson(service.anonymous);
      await add(person, made.create(await options(person)));
      return made;
    };

    test.each([
      ['a NUL', '\0'],
      ['a lone surrogate', '\ud800'],
      ['no character', ''],
      ['a character outside base64url', 'a+b'],
      ['1,365 characters', 'z'.repeat(1_365)],
    ])('a login rejects a credential id with %s', async (_, id) => {
      const answer = await enter({ id, response: {} });
      expect([codeOf(answer), answer.body.errors[0].pointer]).toEqual([INVALID, '/response/id']);
      const page = await service.anonymous.send('POST', '/auth/passkey', {
        headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
        raw: new URLSearchParams({ response: JSON.stringify({ id, response: {} }) }).toString(),
      });
      expect(page.status).toBe(422);
    });

    test('a login takes a user handle that is null, and rejects one of another type', async () => {
      const known = await owner();
      const withHandle = async (userHandle: unknown) => {
        const made = known.get(await loginOptions()) as { response: object };
        return enter({ ...made, response: { ...made.response, userHandle } });
      };
      expect((await withHandle(null)).status).toBe(200);
      expect((await withHandle(undefined)).status).toBe(200);
      for (const handle of [5, true, {}, []]) expect(codeOf(await withHandle(handle))).toBe(INVALID);
      expect(codeOf(await withHandle('AAAA'))).toBe(BAD);
    });

    test('a challenge that is not a string is unknown', async () => {
      const known = await owner();
      const person = await newPerson(service.anonymous);
      for (const challenge of [5, { a: 1 }, null, [], true] as never[]) {
        expect(codeOf(await enter(known.get({ ...(await loginOptions()), challenge })))).toBe(BAD);
        const made = authenticator().create({ ...(await options(person)), challenge });
        expect(codeOf(await add(person, made))).toBe(INVALID);
      }
    });

    test('a credential id has at most 1,023 bytes, also where only the authenticator states it', async () => {
      const person = await newPerson(service.anonymous);
      const known = authenticator();
      expect((await add(person, known.create(await options(person), 1_023))).status).toBe(201);
      expect((await enter(known.get(await loginOptions()))).status).toBe(200);
      const long = authenticator().create(await options(person), 3_000);
      expect(codeOf(await add(person, long))).toBe(INVALID);
      const attested = authenticator().create(await options(person), 1_024);
      expect(codeOf(await add(person, { ...attested, id: 'AAAA', rawId: 'AAAA' }))).toBe(INVALID);
    });

    test('a name has 1 to 100 characters that can be stored', async () => {
      const person = await newPerson(service.anonymous);
      const { id } = (await add(person, authenticator().create(await options(person)), '🔑'.repeat(100))).body.data;
      const rename = (name: string) => person.client.patch(`/api/auth/passkeys/${id}`, { name });
      for (const name of ['a\0', '\ud800', ' ', '🔑'.repeat(101)]) {
        const made = authenticator().create(await options(person));
        for (const answer of [await add(person, made, name), await rename(name)])
          expect([codeOf(answer), answer.body.errors[0].pointer]).toEqual([INVALID, '/name']);
      }
      const [kept] = (await person.client.get('/api/auth/passkeys')).body.data;
      expect(kept.name).toBe('🔑'.repeat(100));
    });
  },
  { schema: SCHEMA },
);
