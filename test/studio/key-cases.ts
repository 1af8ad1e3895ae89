/** The keys of the pages in Chromium: what `?` lists, and what a key does. */
import { beforeAll, describe, expect, test } from 'vitest';
import { upload } from '../files/sending.ts';
import type { TestService, User } from '../support/service.ts';
import type { StudioPage } from './studio-browser.ts';

export function keyCases(service: TestService, open: () => StudioPage): void {
  describe('the keys of a page', () => {
    let studio: StudioPage;
    let [ann, root]: User[] = [];
    let document: string;

    beforeAll(async () => {
      [ann, root] = [await service.user(), await service.user('admin')];
      document = (await root!.client.post('/api/documents', { data: { title: 'Under keys' } })).body.data.id;
      await root!.client.post('/api/auth/keys', { name: 'under keys', roles: ['member'] });
      await upload(root!.client, { bytes: 'text', name: 'under-keys.txt', type: 'text/plain' });
      studio = open();
      await studio.size(1440);
      await studio.beginAs(root!);
    });

    /** The visible buttons of the page that are primary, by their words. */
    const primary = (): Promise<readonly string[]> =>
      studio.page.evaluate(`[...document.querySelectorAll('#content button.primary, aside button.primary')]
        .filter((each) => each.checkVisibility()).map(({ textContent }) => textContent)`);
    const listed = async (): Promise<readonly string[]> => {
      await studio.page.evaluate('document.activeElement.blur()');
      await studio.press('?');
      await studio.until('dialog[open] kbd');
      const rows = await studio.page.evaluate<readonly string[]>(
        `[...document.querySelectorAll('dialog tr')].map((row) => [...row.cells].map(({ textContent }) => textContent).join(': '))`,
      );
      await studio.press('Escape');
      await studio.page.until(`document.querySelector('dialog') === null`);
      return rows;
    };

    test('the list of keys has each primary button of each page, and its other actions', async () => {
      const pages: readonly (readonly [path: string, ready: string, actions: readonly string[]])[] = [
        [
          `/studio/data/documents?record=${document}`,
          '.record dd',
          [
            'n: New record',
            'r: Reload',
            '/: Filter records',
            'e: Edit',
            'd: Delete',
            'w: Why',
            'c: Copy link',
            'x: Close',
          ],
        ],
        [
          '/studio/policies/documents?rules=delete',
          '.cm-content',
          [
            'Ctrl Enter: Show what changes',
            'Shift D: Discard the edits',
            'c: Copy the file',
            'Ctrl Shift F: Format',
            'n: New rule',
            'd: Remove',
          ],
        ],
        ['/studio/as/documents', '.question', ['/: Caller', 'Ctrl Enter: View as']],
        ['/studio/why/documents', '.question', ['/: Caller', 'Ctrl Enter: Ask']],
        ['/studio/tests', 'main textarea', ['Ctrl Enter: Run the tests', 'm: Run, with mutants', 'd: Remove']],
        ['/studio/files', '.file-grid li', ['u: Drop files here, or choose them', 'c: Copy a link for some minutes']],
        [
          `/studio/users/${ann!.id}`,
          '.panel .actions',
          [
            's: Save roles',
            'Shift X: End all sessions',
            'm: Mail a password reset',
            'd: Disable',
            'n: New user',
            'Ctrl Enter: Add the user',
            'v: New invitation',
            'Ctrl Enter: Mail the invitation',
          ],
        ],
        ['/studio/keys', '.api-keys td', ['n: New key', 'Ctrl Enter: Make the key', 't: Rotate', 'd: Revoke']],
        ['/studio/api/create_documents', '.console textarea', ['Ctrl Enter: Send the request', 'c: Copy: curl']],
      ];
      for (const [path, ready, actions] of pages) {
        await studio.visit(path, ready);
        const buttons = await primary();
        const keys = await listed();
        expect([path, keys]).toEqual([path, expect.arrayContaining([...actions])]);
        expect([path, keys.map((row) => row.replace(/^.*?: /, ''))]).toEqual([
          path,
          expect.arrayContaining([...buttons]),
        ]);
        expect([path, new Set(keys).size]).toEqual([path, keys.length]);
      }
    });

    test('a key leads to a form, Ctrl+Enter sends it, and letters of a text do nothing else', async () => {
      await studio.visit('/studio/keys', '.api-keys td');
      await studio.press('n');
      await studio.page.until(`document.activeElement.name === 'name'`);
      for (const letter of 'dt') await studio.press(letter);
      expect(await studio.page.evaluate(`[document.activeElement.value, document.querySelector('dialog')]`)).toEqual([
        'dt',
        null,
      ]);
      await studio.page.evaluate(`document.querySelector('.account-form [value=member]').click()`);
      await studio.press('Enter', 2);
      await studio.until('dialog .secret');
      // An open dialog has the keyboard for itself.
      await studio.press('n');
      await studio.press('Escape');
      await studio.page.until(
        `[...document.querySelectorAll('.api-keys td bdi')].some(({ textContent }) => textContent === 'dt')`,
      );
    });

    test('the key of a row goes to the row first, then acts there, and still asks', async () => {
      await studio.visit('/studio/keys', '.api-keys td');
      await studio.press('d');
      expect(
        await studio.page.evaluate(`[document.activeElement.textContent, document.querySelector('dialog')]`),
      ).toEqual(['Revoke', null]);
      await studio.press('d');
      await studio.until('dialog[open] .danger');
      await studio.press('Escape');
      await studio.page.until(`document.querySelector('dialog') === null`);
      await studio.visit(`/studio/users/${ann!.id}`, '.panel .actions');
      await studio.press('d');
      await studio.until('dialog[open] .danger');
      await studio.press('Escape');
      expect((await root!.client.get(`/api/auth/users?user=${ann!.id}`)).body.data[0].disabled).toBe(false);
      await studio.press('X', 8);
      await studio.page.until(`document.querySelector('.toasts')?.textContent.includes('All sessions have ended.')`);
    });

    test('an open dialog has its own keys, and the keys of the page rest', async () => {
      await studio.visit('/studio/keys', '.api-keys td');
      await studio.page.evaluate(`[...document.querySelectorAll('.api-keys button')].at(-1).focus()`);
      await studio.press('d');
      await studio.until('dialog[open] .danger');
      await studio.press('n');
      expect(await studio.page.evaluate(`document.activeElement.closest('dialog') !== null`)).toBe(true);
      await studio.press('Enter', 2);
      await studio.page.until(`document.querySelector('.toasts')?.textContent.includes('Revoked.')`);
      await studio.press('z');
      await studio.page.until(`document.querySelector('.toasts p') === null`);
    });

    test('the keys sort, select, move a column, drop a form, and end a filter', async () => {
      await studio.visit(
        `/studio/data/documents?columns=title,status&filter=${encodeURIComponent('title = "Under keys"')}`,
        '[data-cell="0-0"]',
      );
      const focusCell = (): Promise<unknown> =>
        studio.page.evaluate(`document.querySelector('[data-cell="0-0"]').focus()`);
      const isInAddress = (part: string): Promise<unknown> =>
        studio.page.until(`location.search.includes(${JSON.stringify(part)})`);
      await focusCell();
      await studio.press('S', 8);
      await isInAddress('sort=title');
      await studio.until('[data-cell="0-0"]');
      await focusCell();
      await studio.press('S', 8);
      await isInAddress('sort=-title');
      await studio.press('a');
      await studio.until('.bulk-bar');
      await studio.press('C', 8);
      await studio.page.until(`document.querySelector('.bulk-bar') === null`);
      await studio.press('v');
      await studio.page.until(`document.querySelector('.menu-button').open`);
      await studio.press('A', 8);
      // The key goes to the first column, and moves it from there.
      await studio.press('A', 8);
      await isInAddress('columns=status%2Ctitle');
      await studio.press('n');
      await studio.until('.record-form');
      await studio.page.evaluate(`document.querySelector('.record-form [name=title]').focus()`);
      await studio.press('X', 10);
      await studio.page.until(`document.querySelector('.record-form') === null`);
      await studio.page.evaluate('document.activeElement.blur()');
      await studio.press('F', 8);
      await studio.page.until(`!location.search.includes('filter=')`);
    });

    test('an error gives its request by a key, and the menu of the account signs out by one', async () => {
      await studio.page.send('Browser.grantPermissions', { permissions: ['clipboardReadWrite'] });
      await studio.visit('/studio/why/documents?as=unknown%40example.org', '.problem code');
      await studio.page.evaluate(
        `document.activeElement.blur(); navigator.clipboard.writeText = async (text) => void (globalThis.copied = text)`,
      );
      await studio.press('I', 8);
      await studio.page.until(`globalThis.copied === document.querySelector('.problem code').textContent`);
      await studio.press(',');
      await studio.page.until(`document.querySelector('.settings').open`);
      expect(await studio.faults()).toEqual([]);
      await studio.press('L', 8);
      await studio.page.until(`document.activeElement.matches('.settings select')`);
      await studio.page.evaluate(`document.querySelector('.settings summary').focus()`);
      await studio.press('O', 8);
      await studio.until('.sign-in-page');
      await studio.signIn(root!);
    });

    test('a greyed action has no key that works', async () => {
      await studio.visit(`/studio/users/${root!.id}?view=guest`, '.panel .actions');
      await studio.press('d');
      await studio.press('q');
      await studio.page.until(`location.search === ''`);
      expect(await studio.page.evaluate(`document.querySelector('dialog')`)).toBe(null);
      await studio.press('d');
      await studio.until('dialog[open] .danger');
      await studio.press('Escape');
    });
  });
}
