/** The client's writes by a unique value and by a filter, deleted records, histories, and what each part of an account asks. */
import { beforeAll, expect, test } from 'vitest';
import { type Client, createClient } from '../../src/client/client.ts';
import { describeOnOne, type User } from '../support/service.ts';

const SCHEMA = `
roles: { admin: {}, member: {} }
register: { roles: [member] }
collections:
  notes:
    soft_delete: true
    history: true
    fields:
      slug: { type: string, unique: true }
      text: { type: string, max: 20 }
      done: { type: bool, required: true, default: false }
    relations: { owner: { kind: belongs_to, collection: users, default: '@request.auth.id' } }
    access:
      view: true
      create: '@record.owner = @request.auth.id'
      update: '@record.owner = @request.auth.id'
      delete: '@record.owner = @request.auth.id'
      restore: '@record.owner = @request.auth.id'
`;
const NOBODY = '0190b0a0-0000-7000-8000-000000000001';
const SECRET = 'A'.repeat(43);

describeOnOne(
  'the client',
  (service) => {
    let ann: User;
    let client: Client;
    let other: Client;
    const signedIn = async (user: User): Promise<Client> => {
      const made = createClient(service.url);
      await made.login({ email: user.email, password: user.password });
      return made;
    };
    beforeAll(async () => {
      ann = await service.user();
      [client, other] = [await signedIn(ann), await signedIn(await service.user())];
    });
    const notes = (of = client) => of.collection('notes');

    test('upsert creates a record, then updates it', async () => {
      const made = await notes().upsert('slug', 'a/b?', { text: 'one' });
      const again = await notes().upsert('slug', 'a/b?', { text: 'two' }, { expand: ['owner'] });
      expect(again).toMatchObject({ id: made.id, slug: 'a/b?', text: 'two', expand: { owner: { email: ann.email } } });
      await expect(notes(other).upsert('slug', 'a/b?', { text: 'theirs' })).rejects.toMatchObject({ status: 403 });
      await expect(notes().upsert('slug', 'c', { text: 'x'.repeat(21) })).rejects.toMatchObject({
        code: 'validation_failed',
        fields: { text: expect.any(String) },
      });
    });

    test('updateMatching and deleteMatching write the records that match, or none', async () => {
      for (const text of ['m1', 'm2', 'm3']) await notes().create({ text, slug: `by ${text}` });
      await notes(other).create({ text: 'm4' });
      const matching = { filter: 'text in $texts', params: { texts: ['m1', 'm2', 'm4'] } };
      const refused = await notes()
        .updateMatching(matching, { done: true })
        .catch((error: unknown) => error);
      expect(refused).toMatchObject({ status: 403, errors: [{ record: expect.any(String) }] });
      const skipping = { ...matching, skip_refused: true };
      expect(await notes().updateMatching(skipping, { done: true })).toEqual({ matched: 3, changed: 2 });
      const { data } = await notes().query({ filter: 'done = true', sort: ['text'] });
      expect(data.map(({ text }) => text)).toEqual(['m1', 'm2']);
      expect(await notes().deleteMatching({ filter: 'done = true', limit: 1 })).toEqual({ matched: 1, changed: 1 });
      expect(await notes().deleteMatching({ ...skipping })).toEqual({ matched: 2, changed: 1 });
      expect(
        (await notes().query({ filter: 'text starts with "m"', sort: ['text'] })).data.map(({ text }) => text),
      ).toEqual(['m3', 'm4']);
      await expect(notes().deleteMatching({ filter: 'nope = 1' })).rejects.toMatchObject({ code: 'filter_invalid' });
    });

    test('a deleted record is found, comes back, and has its history', async () => {
      const { id } = await notes().create({ text: 'first' });
      await notes().update(id, { text: 'second' });
      await notes().delete(id);
      const { data } = await notes().query({ deleted: true, filter: 'text = "second"' });
      expect(data.map((each) => each.id)).toEqual([id]);
      const gone = await notes().deleted({ sort: ['-deleted_at'], limit: 1 });
      expect(gone.data).toEqual([{ ...data[0], deleted_at: expect.any(String) }]);
      expect(await notes().restore(id)).toMatchObject({ id, text: 'second' });
      const { data: entries, page } = await notes().history(id, { limit: 3 });
      expect(entries.map(({ action }) => action)).toEqual(['create', 'delete', 'update']);
      const earlier = await notes().history(id, { before: page.next_before! });
      expect(earlier.data).toMatchObject([{ action: 'create', before: null, after: { text: 'first' } }]);
      await expect(notes(other).restore(id)).rejects.toMatchObject({ status: 404 });
    });

    test('a restore is retried with the same key if its response was lost', async () => {
      const { id } = await notes().create({ text: 'lost' });
      await notes().delete(id);
      const keys: (string | null)[] = [];
      const losing: typeof fetch = async (input, init) => {
        const answer = await fetch(input, init);
        if (!String(input).endsWith('/restore')) return answer;
        keys.push(new Headers(init?.headers).get('idempotency-key'));
        if (keys.length === 1) throw new TypeError('the connection was lost');
        return answer;
      };
      const restoring = createClient(service.url, { fetch: losing });
      await restoring.login({ email: ann.email, password: ann.password });
      expect(await restoring.collection('notes').restore(id)).toMatchObject({ id, text: 'lost' });
      expect([keys.length, new Set(keys).size, keys[0]]).toEqual([2, 1, expect.any(String)]);
    });

    test('the client asks what may be done at all, and upserts in batches', async () => {
      expect(await notes().allowed()).toEqual({ list: true, create: 'depends' });
      const [made, changed, gone] = await client.batch([
        { op: 'upsert', collection: 'notes', on: 'slug', data: { slug: 'batched', text: 'new' } },
        { op: 'upsert', collection: 'notes', on: 'slug', data: { slug: 'batched', text: 'newer' } },
        { op: 'create', collection: 'notes', data: { text: 'beside' } },
      ]);
      expect([made.status, changed.status, gone.status]).toEqual([201, 200, 201]);
      expect(changed.data).toMatchObject({ id: made.data.id, text: 'newer' });
    });

    // Each against the service: a wrong address, method or member of the body would be another error.
    test.each<[string, (of: Client) => Promise<unknown>, unknown]>([
      ['confirm', ({ account }) => account.confirm({ password: 'wrong' }), 'invalid_credentials'],
      ['secondFactor', ({ account }) => account.secondFactor(), 'none'],
      [
        'enrolTotp',
        ({ account }) => account.enrolTotp(),
        { secret: expect.any(String), uri: expect.stringMatching(/^otpauth:/) },
      ],
      ['confirmTotp', ({ account }) => account.confirmTotp('000000'), 'invalid_credentials'],
      ['renewRecoveryCodes', ({ account }) => account.renewRecoveryCodes('000000'), 'invalid_credentials'],
      ['removeTotp', ({ account }) => account.removeTotp({ password: ann.password }), 'not_found'],
      ['passkeyOptions', ({ account }) => account.passkeyOptions(), { challenge: expect.any(String) }],
      ['addPasskey', ({ account }) => account.addPasskey('phone', { id: 'x', response: {} }), 'validation_failed'],
      ['passkeys', ({ account }) => account.passkeys(), []],
      ['renamePasskey', ({ account }) => account.renamePasskey(NOBODY, 'phone'), 'not_found'],
      ['removePasskey', ({ account }) => account.removePasskey(NOBODY), 'not_found'],
      ['requestPasswordReset', ({ account }) => account.requestPasswordReset('x@example.org'), undefined],
      ['resetPassword', ({ account }) => account.resetPassword(SECRET, 'a rather long phrase'), 'validation_failed'],
      ['requestVerification', ({ account }) => account.requestVerification(), undefined],
      ['verifyEmail', ({ account }) => account.verifyEmail(SECRET), 'validation_failed'],
      ['setUp', ({ account }) => account.setUp(SECRET, 'x@example.org', 'a rather long phrase'), 'not_found'],
      ['acceptInvite', ({ account }) => account.acceptInvite(SECRET, 'a rather long phrase'), 'validation_failed'],
      [
        'requestEmailChange',
        ({ account }) => account.requestEmailChange('y@example.org', { password: 'wrong' }),
        'invalid_credentials',
      ],
      ['confirmEmailChange', ({ account }) => account.confirmEmailChange(SECRET), 'validation_failed'],
      ['requestCode', ({ account }) => account.requestCode('x@example.org'), 'not_found'],
      ['loginByMail', (of) => of.loginByMail({ token: SECRET }), 'not_found'],
      ['passkeyOptions of a sign-in', (of) => of.passkeyOptions(), { challenge: expect.any(String) }],
      ['loginWithPasskey', (of) => of.loginWithPasskey({ id: 'x', response: {} }), 'invalid_credentials'],
    ])('%s asks its route', async (_, ask, expected) => {
      const found = await ask(client).catch((error: { readonly code?: string }) => error.code ?? error);
      if (typeof expected === 'object' && !Array.isArray(expected)) expect(found).toMatchObject(expected as object);
      else expect(found).toEqual(expected);
    });
  },
  { schema: SCHEMA },
);
