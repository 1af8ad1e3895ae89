/** The pages of accounts and keys in Chromium. */
import { beforeAll, describe, expect, test } from 'vitest';
import { codeOfApp } from '../auth/authenticator.ts';
import type { TestService, User } from '../support/service.ts';
import type { StudioPage } from './studio-browser.ts';

export function accountCases(service: TestService, open: () => StudioPage): void {
  describe('the pages of accounts', () => {
    let studio: StudioPage;
    let [ann, root]: User[] = [];

    beforeAll(async () => {
      [ann, root] = [await service.user(), await service.user('admin')];
      studio = open();
      await studio.size(1440);
      await studio.beginAs(root!);
    });
    const submit = (selector: string): Promise<unknown> =>
      studio.page.evaluate(`document.querySelector(${JSON.stringify(selector)}).requestSubmit()`);

    test('a user is found, gets a role, loses the sessions, and is disabled after a question', async () => {
      const path = `/studio/users/${ann!.id}?email=${encodeURIComponent(ann!.email)}`;
      await studio.visit(path, '.panel table');
      expect(await studio.faults()).toEqual([]);
      await studio.page.evaluate(`document.querySelector('.panel [value=admin]').click()`);
      await submit('.panel form');
      await studio.page.until(`document.querySelector('.accounts .chosen').textContent.includes('admin')`);
      expect((await root!.client.get(`/api/users/${ann!.id}`)).body.data.roles).toEqual(
        expect.arrayContaining(['admin', 'member']),
      );
      await studio.click('.panel button', 'End all sessions');
      await studio.page.until(`document.querySelector('.panel .hint')?.textContent === 'No session.'`);
      const actions = (): Promise<readonly string[]> => studio.texts('.panel .actions button');
      // The user has no second factor.
      expect(await actions()).toEqual(['End all sessions', 'Mail a password reset', 'Disable']);
      await studio.click('.panel button', 'Disable');
      await studio.until('dialog[open]');
      expect(await studio.faults()).toEqual([]);
      await studio.click('dialog .danger');
      await studio.page.until(`document.querySelector('.toasts')?.textContent.includes('Disabled.')`);
      const login = { email: ann!.email, password: ann!.password };
      expect((await service.anonymous.post('/api/auth/login', login)).status).toBe(401);
      await studio.page.until(`document.querySelector('.accounts .chosen').textContent.includes('Disabled')`);
      await studio.page.until(`document.querySelector('.panel > .state').textContent.startsWith('Disabled')`);
      expect(await actions()).toEqual(['End all sessions', 'Mail a password reset', 'Enable']);
      await studio.click('.panel button', 'Enable');
      await studio.page.until(`document.querySelector('.toasts')?.textContent.includes('Enabled.')`);
      expect((await service.anonymous.post('/api/auth/login', login)).status).toBe(200);
      await studio.page.until(`document.querySelector('.accounts .chosen').textContent.includes('Enabled')`);
      await studio.page.until(`!document.querySelector('.panel > .state').textContent.startsWith('Disabled')`);
      expect(await actions()).toEqual(['End all sessions', 'Mail a password reset', 'Disable']);
    });

    test('a second factor is removed after a question, and the address opens a user whom the list has not', async () => {
      const { client, id, email } = await service.user();
      const { secret } = (await client.post('/api/auth/totp/enrol')).body;
      await client.post('/api/auth/totp/confirm', { code: codeOfApp(secret) });
      await studio.visit(`/studio/users/${id}?email=nobody-has-this`, '.panel .actions');
      expect((await studio.texts('.panel h2'))[0]).toBe(email);
      expect((await studio.texts('.panel > .state'))[0]).toBe('Enabled · has a second factor');
      await studio.click('.panel button', 'Remove the second factor');
      await studio.click('dialog .danger', 'Remove the second factor');
      await studio.page.until(`document.querySelector('.panel > .state').textContent === 'Enabled'`);
      await studio.visit('/studio/users/01890000-0000-7000-8000-000000000000', '.page > .empty');
      expect(await studio.texts('.page > .empty')).toEqual(['No user has this id.']);
    });

    test('a new user is invited, and a taken address is reported', async () => {
      await studio.visit('/studio/users', '.account-form');
      const email = `invited.${Date.now()}@example.org`;
      await studio.page.evaluate(`document.querySelector('.account-form [value=member]').click()`);
      await studio.fill({ email });
      await submit('.account-form');
      await studio.page.until(`document.querySelector('.toasts')?.textContent.includes('Created.')`);
      await studio.visit(`/studio/users?email=${encodeURIComponent(email)}`, '.accounts td');
      expect(await studio.texts('.accounts td')).toEqual([email, 'Enabled', 'no', 'member']);
      await studio.fill({ email });
      await submit('.account-form');
      await studio.until('.account-form .problem');
      const guest = `by.mail.${Date.now()}@example.org`;
      await studio.page.evaluate(`(() => {
        const form = document.querySelector('[aria-label="New invitation"] form');
        form.elements.email.value = ${JSON.stringify(guest)};
        form.querySelector('[value=member]').click();
        form.requestSubmit();
      })()`);
      await studio.page.until(`document.querySelector('.invitations td')?.textContent === ${JSON.stringify(guest)}`);
      expect(await studio.faults()).toEqual([]);
      await studio.click('.invitations button', `Remove: ${guest}`);
      await studio.page.until(`document.querySelector('.invitations') === null`);
      await studio.visit('/studio/users?email=nobody-has-this', '.page .empty');
    });

    test('a key is made with its secret once, rotated, and revoked', async () => {
      await studio.visit('/studio/keys', '.account-form');
      await studio.page.evaluate(`document.querySelector('.account-form [value=member]').click()`);
      // The list that arrives renders the page again, and leaves the form as it is.
      await studio.until('.page > .empty');
      await studio.fill({
        name: 'A key for the nightly export of all documents',
        collection: 'documents',
        addresses: '127.0.0.0/8, ::1',
      });
      await submit('.account-form');
      await studio.until('dialog .secret, .account-form .problem');
      expect(await studio.texts('.account-form .problem')).toEqual([]);
      expect(await studio.faults()).toEqual([]);
      const [secret] = await studio.texts('dialog .secret');
      const key = service.anonymous.with({ Authorization: `Bearer ${secret}` });
      expect((await key.get('/api/documents')).status).toBe(200);
      expect((await key.get('/api/teams')).status).toBe(403);
      await studio.click('dialog button', 'Close');
      await studio.until('.api-keys td');
      expect((await studio.texts('.api-keys td:nth-child(3)'))[0]).toBe('documents: list, read · 127.0.0.0/8 · ::1');
      await studio.click('.api-keys button', 'Rotate');
      await studio.click('dialog .danger', 'Rotate');
      await studio.until('dialog .secret');
      expect((await key.get('/api/documents')).status).toBe(401);
      await studio.click('dialog button', 'Close');
      await studio.click('.api-keys button', 'Revoke');
      await studio.click('dialog .danger', 'Revoke');
      await studio.page.until(`document.querySelector('.toasts')?.textContent.includes('Revoked.')`);
    });

    test('the forms of a user, an invitation and a key keep their drafts for the tab until they are sent', async () => {
      // Each form with what a person gives, and what the form then holds.
      const forms = [
        [
          '/studio/users',
          'New user',
          { email: `drafted.${Date.now()}@example.org` },
          { roles: 'member', invite: 'off' },
        ],
        ['/studio/users', 'New invitation', { email: `invited.${Date.now()}@example.com` }, { roles: 'member' }],
        [
          '/studio/keys',
          'New key',
          { name: 'drafted', collection: 'documents' },
          { roles: 'member', actions: 'delete' },
        ],
      ] as const;
      for (const [path, title, texts, boxes] of forms) {
        const form = `document.querySelector('form[aria-label="${title}"]')`;
        const held = (): Promise<unknown> =>
          studio.page.until(`${form} && [...new FormData(${form})].map((entry) => entry.join(' '))`);
        await studio.visit(path, `form[aria-label="${title}"]`);
        // A refused form of a test before has its draft.
        await studio.page.evaluate(`${form}.reset()`);
        const before = await held();
        await studio.page.evaluate(`(() => {
          for (const [name, value] of Object.entries(${JSON.stringify(texts)})) {
            ${form}.elements[name].value = value;
            ${form}.elements[name].dispatchEvent(new Event('input', { bubbles: true }));
          }
          for (const [name, value] of Object.entries(${JSON.stringify(boxes)}))
            ${form}.querySelector('[name=' + name + ']' + (value === 'off' ? '' : '[value=' + value + ']')).click();
        })()`);
        const given = await held();
        expect([title, given]).not.toEqual([title, before]);
        for (const text of Object.values(texts)) expect(String(given)).toContain(text);
        await studio.page.evaluate('globalThis.isBefore = true');
        await studio.page.send('Page.reload');
        await studio.page.until(`globalThis.isBefore === undefined && ${form} !== null`);
        expect([title, await held()]).toEqual([title, given]);
        await studio.page.evaluate(`${form}.requestSubmit()`);
        await studio.page.until(`document.querySelector('dialog .secret, .toasts p') !== null`);
        await studio.page.until(
          `${JSON.stringify(before)}.join() === [...new FormData(${form})].map((entry) => entry.join(' ')).join()`,
        );
        await studio.page.send('Page.reload');
        await studio.page.until(`document.querySelector('dialog, .toasts p') === null && ${form} !== null`);
        expect([title, await held()]).toEqual([title, before]);
      }
      expect(
        await studio.page.evaluate('Object.keys(sessionStorage).filter((key) => key.includes("inputs:"))'),
      ).toEqual([]);
    });

    test('a request, a new rule, a part of a filter and a field of selected records outlive a reload', async () => {
      const reload = async (ready: string): Promise<void> => {
        await studio.page.evaluate('globalThis.isBefore = true');
        await studio.page.send('Page.reload');
        await studio.page.until(`globalThis.isBefore === undefined && document.querySelector('${ready}') !== null`);
      };
      const value = (field: string): Promise<unknown> =>
        studio.page.evaluate(`document.querySelector('${field}').value`);
      await studio.visit('/studio/api/update_documents', '.console textarea');
      const example = await value('.console textarea');
      await studio.fill({ id: 'of-this-tab', body: '{ "data": { "title": "of this tab" } }' });
      await reload('.console textarea');
      expect([await value('[name=id]'), await value('.console textarea')]).toEqual([
        'of-this-tab',
        '{ "data": { "title": "of this tab" } }',
      ]);
      await studio.fill({ body: String(example) });
      // A body of the sign-in has a password.
      await studio.visit('/studio/api/login', '.console textarea');
      const login = await value('.console textarea');
      await studio.fill({ body: '{ "password": "of this tab" }' });
      await reload('.console textarea');
      expect(await value('.console textarea')).toBe(login);
      await studio.visit('/studio/policies/documents?rules=delete', '.new-rule');
      await studio.click('.new-rule summary');
      await studio.click('.new-rule [value=admin]');
      await reload('.new-rule[open] [value=admin]');
      expect(await studio.page.evaluate(`document.querySelector('.new-rule [value=admin]').checked`)).toBe(true);
      await studio.page.evaluate(`document.querySelector('.new-rule [value=admin]').focus()`);
      await studio.press('Enter', 2);
      await studio.page.until(`document.querySelector('.new-rule').open === false`);
      await reload('.new-rule');
      expect(await studio.page.evaluate(`document.querySelector('.new-rule').open`)).toBe(false);
      await studio.click('.draft-actions button', 'Discard the edits');
      await root!.client.post('/api/documents', { data: { title: 'Of this tab' } });
      await studio.visit('/studio/data/documents', '.grid .rows .row');
      await studio.click('.builder summary');
      await studio.choose('.builder select', 'score');
      await studio.page.evaluate(`(() => {
        const field = document.querySelector('.builder input');
        field.value = '41';
        field.dispatchEvent(new Event('input', { bubbles: true }));
      })()`);
      const begin = async (): Promise<void> => {
        await studio.page.evaluate(`document.querySelector('[data-cell="0-0"]').focus()`);
        await studio.press(' ');
        await studio.press('f');
        await studio.until('.field-form');
      };
      await begin();
      await studio.choose('.field-form select', 'score');
      await studio.until('.field-form input[name="score"]');
      await studio.fill({ score: '17' });
      await reload('.grid .rows .row');
      expect([await value('.builder select'), await value('.builder input')]).toEqual(['score', '41']);
      await begin();
      expect(await value('.field-form input[name="score"]')).toBe('17');
    });

    test('the pages fit into 360, 768 and 1440 pixels, in both themes', async () => {
      await root!.client.post('/api/auth/keys', { name: 'a'.repeat(100), roles: ['member'] });
      for (const path of [`/studio/users/${ann!.id}`, '/studio/keys']) {
        await studio.expectFits(path, '.page td');
      }
    });
  });
}
