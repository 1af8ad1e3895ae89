/** The form of a record in Chromium: create, edit, undo, delete, errors at their fields, and two versions side by side. */
import { beforeAll, describe, expect, test } from 'vitest';
import { OTHER_HOST } from '../support/browser/browser.ts';
import type { TestService, User } from '../support/service.ts';
import type { StudioPage } from './studio-browser.ts';

export function formCases(service: TestService, open: () => StudioPage): void {
  describe('a form', () => {
    let studio: StudioPage;
    let [ann, ben]: User[] = [];
    const read = (id: string) => ann!.client.get(`/api/documents/${id}?expand=tags`).then(({ body }) => body.data);
    const create = (title: string, more: object = {}): Promise<string> =>
      ann!.client.post('/api/documents', { data: { title, ...more } }).then(({ body }) => body.data.id);
    const openEdit = async (id: string): Promise<void> => {
      await studio.visit(`/studio/data/documents?record=${id}`, '.record dl');
      await studio.click('.record header button:not(:disabled)', 'Edit');
      await studio.until('.record-form');
    };
    const save = (): Promise<unknown> => studio.page.evaluate(`document.querySelector('.record-form').requestSubmit()`);

    beforeAll(async () => {
      [ann, ben] = [await service.user(), await service.user()];
      studio = open();
      await studio.beginAs(ann!);
    });

    test('a new record has errors at their fields, takes a reference by its title, and opens', async () => {
      const tag = (await ann!.client.post('/api/tags', { data: { label: 'a-rare-label' } })).body.data.id;
      await studio.visit('/studio/data/documents', '.toolbar');
      await studio.click('.toolbar button', 'New record');
      await studio.until('.record-form');
      expect(await studio.texts('.member > label')).toEqual(
        expect.arrayContaining(['title required', 'owner default @request.auth.id', 'team']),
      );
      await studio.fill({ score: '101' });
      await save();
      await studio.until('.field-problem');
      expect((await studio.texts('.field-problem')).length).toBe(2);
      await studio.page.until(`document.activeElement.name === 'title'`);
      expect(await studio.faults()).toEqual([]);
      await studio.fill({ title: 'Made by a form', score: '7', due_at: '2026-05-01T10:30' });
      await studio.page.evaluate(`document.querySelector('.links input').focus()`);
      await studio.page.send('Input.insertText', { text: 'a-rare' });
      await studio.page.until(`document.querySelectorAll('.links [role=option]').length === 1`);
      await studio.press('ArrowDown');
      await studio.press('Enter');
      await studio.page.until(`document.querySelector('.links li')?.textContent.startsWith('a-rare-label')`);
      await save();
      await studio.until('.record dl');
      const id = await studio.page.evaluate<string>(`new URLSearchParams(location.search).get('record')`);
      expect(await read(id)).toMatchObject({
        title: 'Made by a form',
        score: 7,
        body: null,
        expand: { tags: [{ id: tag }] },
      });
      expect((await read(id)).due_at).toMatch(/^2026-0[45]-\d\dT\d\d:\d0:00\.000000Z$/);
      await studio.page.until(
        `[...document.querySelectorAll('[data-cell="0-0"]')].some(({ textContent }) => textContent === 'Made by a form')`,
      );
    });

    test('a reference to a file takes an upload, with its progress', async () => {
      await studio.visit('/studio/data/covers', '.toolbar');
      await studio.click('.toolbar button', 'New record');
      const document = await create('With a cover');
      await studio.until('.record-form input[type=file]');
      await studio.page.evaluate(`(() => {
        globalThis.progressed = false;
        new MutationObserver(() => { progressed ||= document.querySelector('.uploads progress') !== null; })
          .observe(document.body, { childList: true, subtree: true });
        const files = new DataTransfer();
        files.items.add(new File(['x'.repeat(2_000_000)], 'cover.txt', { type: 'text/plain' }));
        const field = document.querySelector('.record-form input[type=file]');
        field.files = files.files;
        field.dispatchEvent(new Event('change', { bubbles: true }));
      })()`);
      await studio.page.until(
        `[...document.querySelectorAll('.reference-box input')].some(({ value }) => value === 'cover.txt')`,
      );
      expect(await studio.page.evaluate('progressed')).toBe(true);
      expect(await studio.faults()).toEqual([]);
      await studio.page.evaluate(`document.querySelector('.reference-box input').focus()`);
      await studio.page.send('Input.insertText', { text: document });
      await studio.press('Tab');
      await save();
      await studio.until('.record dl');
      const id = await studio.page.evaluate<string>(`new URLSearchParams(location.search).get('record')`);
      const { image, document: covered } = (await ann!.client.get(`/api/covers/${id}`)).body.data;
      expect(covered).toBe(document);
      expect((await ann!.client.get(`/api/files/${image}`)).body.data.name).toBe('cover.txt');
    });

    const offline = async (value: boolean): Promise<void> => {
      await studio.page.send('Network.enable');
      const conditions = { offline: value, latency: 0, downloadThroughput: -1, uploadThroughput: -1 };
      await studio.page.send('Network.emulateNetworkConditions', conditions);
    };

    test('a draft outlives a reload, is saved with If-Match, and is undone by Ctrl+Z', async () => {
      const id = await create('Before');
      await openEdit(id);
      await studio.fill({ title: 'After' });
      await studio.page.send('Page.reload');
      await studio.page.until(
        `document.querySelector('.record-form') === null && document.querySelector('.record dl') !== null`,
      );
      await studio.click('.record header button:not(:disabled)', 'Edit');
      await studio.page.until(`document.querySelector('[name=title]')?.value === 'After'`);
      await save();
      await studio.until('.record dl');
      expect((await read(id)).title).toBe('After');
      await studio.page.until(`document.querySelector('.record h2').textContent === 'After'`);
      await studio.click('.record header button:not(:disabled)', 'Edit');
      await studio.until('.record-form');
      await studio.fill({ title: 'Later' });
      await save();
      await studio.page.until(`document.querySelector('.record h2').textContent === 'Later'`);
      await studio.page.evaluate('document.activeElement.blur()');
      // An undo that does not reach the service is not lost.
      await offline(true);
      await studio.press('z', 2);
      await studio.page.until(
        `document.querySelector('.toasts').textContent.includes('The service cannot be reached')`,
      );
      await offline(false);
      await studio.press('z', 2);
      await studio.press('z', 2);
      await studio.page.until(`document.querySelector('.record h2').textContent === 'Before'`);
      expect((await read(id)).title).toBe('Before');
    });

    test('a record that changed meanwhile is shown in both versions, and saved over on demand', async () => {
      const id = await create('Before', { score: 1 });
      await openEdit(id);
      await studio.fill({ title: 'Mine' });
      await ann!.client.patch(`/api/documents/${id}`, { data: { title: 'Theirs', score: 2 } });
      await save();
      await studio.until('.conflict table');
      // The form is longer than the window.
      await studio.page.until(`document.activeElement.matches('.conflict')`);
      expect(await studio.texts('.conflict tbody tr')).toEqual(['titleMineTheirs', 'scoreunchanged2']);
      expect(await studio.faults()).toEqual([]);
      expect((await read(id)).title).toBe('Theirs');
      // The draft of the tab is for the record as it was when the form was opened.
      await studio.page.send('Page.reload');
      await studio.page.until(
        `document.querySelector('.record-form') === null && document.querySelector('.record dl') !== null`,
      );
      await studio.click('.record header button:not(:disabled)', 'Edit');
      await studio.page.until(`document.querySelector('[name=title]')?.value === 'Mine'`);
      await save();
      await studio.until('.conflict table');
      expect(await studio.texts('.conflict tbody tr')).toEqual(['titleMineTheirs', 'scoreunchanged2']);
      expect((await read(id)).title).toBe('Theirs');
      await studio.click('.conflict button', 'Save mine');
      await studio.until('.record dl');
      expect(await read(id)).toMatchObject({ title: 'Mine', score: 2 });
    });

    test('a cell is edited in its place by the keys, undone by Ctrl+Z, and shows a refusal of its value', async () => {
      const id = await create('In its place', { score: 3 });
      const filter = encodeURIComponent('title = "In its place"');
      await studio.visit(`/studio/data/documents?filter=${filter}&columns=score,title,owner`, '.grid .rows .row');
      const edit = async (text: string): Promise<void> => {
        await studio.page.evaluate(`document.querySelector('[data-cell="0-0"]').focus()`);
        await studio.press('Enter');
        await studio.page.until(`document.activeElement.matches('.cell-editor input')`);
        await studio.page.evaluate('document.activeElement.select()');
        await studio.page.send('Input.insertText', { text });
        await studio.press('Enter');
      };
      await edit('101');
      await studio.until('.cell-editor .field-problem');
      expect(await studio.faults()).toEqual([]);
      await studio.press('Escape');
      await studio.page.until(`document.activeElement.dataset.cell === '0-0'`);
      await edit('44');
      await studio.page.until(`document.querySelector('[data-cell="0-0"]').textContent === '44'`);
      expect(await read(id)).toMatchObject({ score: 44 });
      await studio.page.until(`document.activeElement.dataset.cell === '0-0'`);
      await studio.press('z', 2);
      await studio.page.until(`document.querySelector('[data-cell="0-0"]').textContent === '3'`);
      // Another user writes between the begin of the edit and its save.
      await studio.press('Enter');
      await studio.page.until(`document.activeElement.matches('.cell-editor input')`);
      await ann!.client.patch(`/api/documents/${id}`, { data: { score: 9 } });
      await studio.page.send('Input.insertText', { text: '7' });
      await studio.press('Enter');
      await studio.until('.record dl');
      expect((await read(id)).score).toBe(9);
    });

    test('this device keeps the order and the width of columns', async () => {
      await ann!.client.post('/api/tags', { data: { label: 'a tag with a width' } });
      await studio.visit('/studio/data/tags?columns=id,label', '.grid');
      await studio.click('.menu-button summary');
      await studio.click('.column-choice button', 'Move before: label');
      await studio.page.until(`location.search.includes('columns=label%2Cid')`);
      await studio.page.evaluate(`(() => {
        const field = document.querySelector('[aria-label="Width: label"]');
        field.value = '300';
        field.dispatchEvent(new Event('change', { bubbles: true }));
      })()`);
      expect(await studio.faults()).toEqual([]);
      await studio.visit('/studio/data/tags', '.grid .rows .row');
      expect(await studio.texts('[role=columnheader] button')).toEqual(['label', 'id']);
      expect(await studio.page.evaluate(`document.querySelector('[data-cell="0-0"]').offsetWidth`)).toBe(300);
    });

    test('a delete asks first, and an action that rules refuse is greyed with its reason', async () => {
      const id = await create('To be deleted');
      await studio.visit(`/studio/data/documents?record=${id}`, '.record dl');
      await studio.click('.record header button:not(:disabled)', 'Delete');
      await studio.until('dialog[open]');
      expect(await studio.faults()).toEqual([]);
      await studio.click('dialog .danger');
      await studio.page.until(`document.querySelector('.record') === null`);
      expect((await ann!.client.get(`/api/documents/${id}`)).status).toBe(404);
      const bens = (await ben!.client.post('/api/documents', { data: { title: 'Of Ben', status: 'published' } })).body
        .data.id;
      await studio.visit(`/studio/data/documents?record=${bens}`, '.record dl');
      await studio.page.until(
        `document.querySelector('.record header button').title === 'Your rules do not let you change this record.'`,
      );
      expect(
        await studio.page.evaluate(
          `[...document.querySelectorAll('.record header button')].map(({ ariaDisabled }) => ariaDisabled)`,
        ),
      ).toEqual(['true', 'true', null, null]);
      expect(await studio.faults()).toEqual([]);
      // A finger has no hover, and the Tab key stops at a greyed button as well.
      await studio.click('.record header button', 'Delete');
      await studio.page.until(
        `document.querySelector('.toasts')?.textContent.startsWith('Your rules do not let you delete this record.')`,
      );
      await studio.page.evaluate(`document.querySelector('.record header button').focus()`);
      await studio.press('Enter');
      await studio.page.until(
        `document.querySelector('.toasts').textContent.includes('Your rules do not let you change this record.')`,
      );
      expect(await studio.page.evaluate(`document.querySelector('dialog, .record-form')`)).toBe(null);
    });

    test('at a name of another machine nothing is written until editing is switched on', async () => {
      const id = await create('Far away');
      const path = `/studio/data/documents?record=${id}`;
      const isGreyed = `[...document.querySelectorAll('.toolbar .primary, .record header button')].map(({ title }) => title !== '')`;
      const knownHeader = '.record header:not(:has(:disabled))';
      await studio.visit(path, knownHeader);
      expect(await studio.page.evaluate(isGreyed)).toEqual([false, false, false, false, false]);
      expect(await studio.texts('.settings input')).toEqual([]);
      const far = service.url.replace('127.0.0.1', OTHER_HOST);
      const { cookies } = await studio.page.send('Network.getCookies');
      for (const { name, value, path: where, httpOnly } of cookies as readonly Record<string, string>[])
        await studio.page.send('Network.setCookie', { name, value, url: `${far}${where}`, httpOnly });
      const there = studio.at(far);
      const { config } = service.app as { config: { baseUrl: string } };
      config.baseUrl = far;
      await there.visit(path, knownHeader);
      expect(await there.page.evaluate(isGreyed)).toEqual([true, true, true, false, false]);
      for (const key of ['n', 'e', 'd']) await there.press(key);
      await there.page.until(`document.querySelectorAll('.toasts p').length === 3`);
      expect(await there.texts('.toasts p')).toEqual(
        Array(3).fill(expect.stringContaining('Switch editing on in the menu of your account first.')),
      );
      expect(await there.page.evaluate(`document.querySelector('dialog, .record-form')`)).toBe(null);
      // A cell opens its record instead of an editor.
      const edited = `/studio/data/documents?filter=${encodeURIComponent('title = "Far away"')}&columns=title`;
      const enter = async (prepare = async () => {}): Promise<void> => {
        await there.visit(edited, '[data-cell="0-0"]');
        await prepare();
        await there.page.evaluate(`document.querySelector('[data-cell="0-0"]').focus()`);
        await there.press('Enter');
      };
      await enter();
      await there.page.until(`location.search.includes('record=')`);
      expect(await there.page.evaluate(`document.querySelector('.cell-editor')`)).toBe(null);
      await there.click('.settings input');
      await there.until(knownHeader);
      await there.page.until(`!${isGreyed}.includes(true)`);
      await there.press('e');
      await there.until('.record-form');
      await enter(() => there.click('.settings input'));
      await there.until('.cell-editor');
      config.baseUrl = service.url;
    });

    test('a session that ends while a form is open leaves the form, and its draft outlives the sign-in', async () => {
      const id = await create('Before the end');
      await openEdit(id);
      await studio.fill({ title: 'After the end' });
      await studio.page.send('Network.clearBrowserCookies');
      await save();
      await studio.until('dialog a.primary');
      expect(await studio.page.evaluate(`document.querySelector('[name=title]').value`)).toBe('After the end');
      expect(await studio.faults()).toEqual([]);
      await studio.signIn(ann!);
      await studio.until('.record dl');
      expect((await read(id)).title).toBe('Before the end');
      await studio.click('.record header button:not(:disabled)', 'Edit');
      await studio.page.until(`document.querySelector('[name=title]')?.value === 'After the end'`);
      await save();
      await studio.page.until(`document.querySelector('.record h2')?.textContent === 'After the end'`);
      expect((await read(id)).title).toBe('After the end');
    });

    test('a lost connection is told in words, and the form stays', async () => {
      const id = await create('Offline');
      await openEdit(id);
      await studio.fill({ title: 'Online' });
      await offline(true);
      await save();
      await studio.page.until(
        `document.querySelector('.record-form .problem')?.textContent.startsWith('The service cannot be reached')`,
      );
      await offline(false);
      await save();
      await studio.until('.record dl');
      expect((await read(id)).title).toBe('Online');
    });

    test('each kind of error is in words, at its field or with its request, and the form stays', async () => {
      const id = await create('With errors');
      await openEdit(id);
      await studio.fill({ title: 'Without errors' });
      await studio.page.evaluate('globalThis.answered = fetch');
      const kinds: readonly (readonly [status: number, code: string, pointer?: string])[] = [
        [400, 'invalid_body'],
        [403, 'forbidden', '/data/title'],
        [404, 'not_found'],
        [409, 'conflict', '/data/title'],
        [413, 'body_too_large'],
        [422, 'validation_failed', '/data/title'],
        [428, 'precondition_required'],
        [429, 'rate_limited'],
        [500, 'internal_error'],
        [503, 'unavailable'],
      ];
      for (const [status, code, pointer] of kinds) {
        const detail = `The answer of ${code}.`;
        const problem = {
          type: 'about:blank',
          title: code,
          status,
          code,
          detail,
          request_id: `request-of-${code}`,
          ...(pointer !== undefined && { errors: [{ pointer, code, detail }] }),
        };
        const response = `new Response(${JSON.stringify(JSON.stringify(problem))}, {
          status: ${status}, headers: { 'Content-Type': 'application/problem+json' } })`;
        await studio.page.evaluate(
          `globalThis.fetch = async (...asked) => asked[1]?.method === 'PATCH' ? ${response} : answered(...asked)`,
        );
        await save();
        await studio.page.until(`document.querySelector('.record-form').textContent.includes('request-of-${code}')`);
        const shown = pointer === undefined ? '.record-form .problem p' : '.record-form .field-problem';
        expect([code, (await studio.texts(shown))[0]]).toEqual([code, detail]);
        expect(await studio.page.evaluate(`document.querySelector('[name=title]').value`)).toBe('Without errors');
        expect([code, await studio.faults()]).toEqual([code, []]);
      }
      await studio.page.evaluate('globalThis.fetch = answered');
      await save();
      await studio.until('.record dl');
      expect((await read(id)).title).toBe('Without errors');
    });
  });
}
