// @module-tag long
/** The studio of a service with long names and without records: empty states, first steps, and the keys alone. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Browser } from '../support/browser/browser.ts';
import { describeInBrowser } from '../support/browser/describe-in-browser.ts';
import { describeOnOne, type TestService, type User } from '../support/service.ts';
import { StudioPage } from './studio-browser.ts';

const LONG = 'a_collection_with_a_name_as_long_as_names_may_be';
const FIELD = 'a_field_with_a_name_as_long_as_a_collection_has';
const SCHEMA = `
roles: { admin: {}, member: {}, a_role_with_a_long_name_for_the_night_shift: {} }
register: { roles: [member] }
guests: true
conditions:
  'is_own(note: ${LONG})': 'note.owner = @request.auth.id'
collections:
  ${LONG}:
    changes: true
    title: text
    fields:
      ${FIELD}: { type: string, max: 200, access: { read: is_own(@record), write: [{ roles: [admin] }] } }
      text: { type: string, required: true, max: 200 }
      changes: string
    relations: { owner: { kind: belongs_to, collection: users, default: '@request.auth.id' } }
    access:
      list: is_own(@record) or @request.auth.roles contains "admin"
      read: is_own(@record) or @request.auth.roles contains "admin"
      create: [{ roles: [member] }]
      update: is_own(@record)
`;
const PAGES = [
  ['data', `/studio/data/${LONG}`, '.data-page main .empty'],
  ['policies', `/studio/policies/${LONG}?rules=update`, '.cm-content'],
  ['field', `/studio/policies/${LONG}?rules=${encodeURIComponent(`read ${FIELD}`)}`, '.cm-content'],
  ['none', `/studio/policies/${LONG}?rules=delete`, '.page .empty'],
  ['who', '/studio/who', '.who td'],
  ['as', `/studio/as/${LONG}?view=guest`, '.page > .empty'],
  ['why', `/studio/why/${LONG}?action=update&as=role:member`, '.verdict'],
  ['files', '/studio/files', '.page > .empty'],
  ['keys', '/studio/keys', '.page > .empty'],
  ['audit', '/studio/audit', '.events td'],
] as const;

describeOnOne('the studio of an empty service', (service) => inBrowser(service), { schema: SCHEMA });

function inBrowser(service: TestService): void {
  describeInBrowser('in Chromium, the studio of an empty service', () => {
    let browser: Browser;
    let studio: StudioPage;
    let root: User;
    beforeAll(async () => {
      browser = await Browser.open();
      root = await service.user('admin', 'member');
      studio = await StudioPage.open(browser, service.url);
      await studio.beginAs(root);
    });
    afterAll(() => browser?.close());

    test('every page has its empty state, holds long names, and breaks no rule of WCAG', async () => {
      for (const [name, path, selector] of PAGES) await studio.expectFits(path, selector, `empty-${name}`);
    });

    test('the table of a field is refused where the record is shown without it', async () => {
      const ann = await service.user();
      const { body } = await ann.client.post(`/api/${LONG}`, { data: { text: 'shown without the field' } });
      const set = encodeURIComponent(`read ${FIELD}`);
      const asked = `rules=${set}&callers=${ann.id},${root.id}&records=${body.data.id}`;
      await studio.visit(`/studio/policies/${LONG}?${asked}`, '.matrix tbody td');
      expect((await studio.texts('.matrix tbody td')).slice(0, 2)).toEqual(['allowed', 'refused']);
      expect(await studio.texts('.matrix thead a')).toEqual(['shown without the field']);
      await studio.write('is_own(@record) and @record.text = "other"');
      await studio.until('.changed');
      expect((await studio.texts('.matrix tbody td')).slice(0, 2)).toEqual(['allowed refused', 'refused']);
      await studio.click('.matrix tbody td a');
      await studio.until('.rule-outcome .verdict.refused');
      expect((await studio.texts('.rule-outcome li'))[0]).toContain('@record.text = "other"');
      await studio.click('.draft-actions button', 'Discard the edits');
    });

    test('the grid as another shows the values that this caller may read, and marks the others', async () => {
      const owner = await service.user('admin', 'member');
      await owner.client.post(`/api/${LONG}`, { data: { text: 'of the owner', [FIELD]: 'kept' } });
      const own = await root.client.post(`/api/${LONG}`, { data: { text: 'of the viewer', [FIELD]: 'mine' } });
      expect(own.status).toBe(201);
      const filter = encodeURIComponent('text starts with "of the"');
      const shownTo = async (caller: string) => {
        const view = caller === '' ? '' : `&view=${encodeURIComponent(caller)}`;
        const path = `/studio/data/${LONG}?columns=text,${FIELD}&sort=text&filter=${filter}${view}`;
        await studio.visit(path, '.grid .rows .row');
        return studio.texts('.grid .rows [data-cell]');
      };
      expect(await shownTo('')).toEqual(['of the owner', 'hidden', 'of the viewer', 'mine']);
      expect(await shownTo(owner.email)).toEqual(['of the owner', 'readable', 'of the viewer', 'hidden']);
      expect(await shownTo(root.email)).toEqual(['of the owner', 'hidden', 'of the viewer', 'mine']);
      expect(await studio.faults()).toEqual([]);
      await studio.page.evaluate(`document.querySelector('.grid .rows .row').click()`);
      await studio.page.until(`document.querySelectorAll('.record dd').length > 2`);
      expect(await studio.texts('.record dd')).toContain('hidden');
    });

    test('records of others come and change on the open page', async () => {
      const ann = await service.user();
      await studio.visit(`/studio/data/${LONG}`, '.grid .rows .row');
      const { body } = await ann.client.post(`/api/${LONG}`, { data: { text: 'before' } });
      await studio.page.until(`document.querySelector('.new-records')?.textContent.startsWith('1 new')`);
      expect(await studio.faults()).toEqual([]);
      await studio.click('.new-records button', 'Show');
      await studio.page.until(`document.querySelector('.rows').textContent.includes('before')`);
      await studio.page.until(`document.querySelector('.new-records') === null`);
      await ann.client.patch(`/api/${LONG}/${body.data.id}`, { data: { text: 'after', changes: 'of a member' } });
      await studio.page.until(`document.querySelectorAll('.cell.flash').length > 1`);
      expect(await studio.texts('.cell.flash')).toEqual(expect.arrayContaining(['after', 'of a member']));
      expect(await studio.page.evaluate(`document.querySelector('.new-records')`)).toBe(null);
    });

    test('the editor of a cell stays with its record while rows go, and keeps the text of one that goes', async () => {
      const write = async (text: string): Promise<string> =>
        (await root.client.post(`/api/${LONG}`, { data: { text } })).body.data.id;
      const [above, edited] = [await write('edit 1'), await write('edit 2'), await write('edit 3')];
      const filter = encodeURIComponent('text starts with "edit"');
      await studio.visit(`/studio/data/${LONG}?columns=text&sort=text&filter=${filter}`, '[data-cell="2-0"]');
      const shown = `[document.querySelector('.row.edited [data-cell]')?.textContent, document.activeElement.value]`;
      const untilRows = (count: number) =>
        studio.page.until(`document.querySelectorAll('.grid .rows .row').length === ${count}`);
      await studio.page.evaluate(`document.querySelector('[data-cell="1-0"]').focus()`);
      await studio.press('Enter');
      await studio.page.until(`document.activeElement.matches('.cell-editor input')`);
      await studio.page.evaluate('document.activeElement.select()');
      await studio.page.send('Input.insertText', { text: 'mine' });
      expect(await studio.page.evaluate(shown)).toEqual(['edit 2', 'mine']);
      await root.client.patch(`/api/${LONG}/${above}`, { data: { text: 'other' } });
      await untilRows(2);
      expect(await studio.page.evaluate(shown)).toEqual(['edit 2', 'mine']);
      await root.client.patch(`/api/${LONG}/${edited}`, { data: { text: 'theirs' } });
      await studio.until('.cell-editor [role=status]');
      expect(await studio.page.evaluate(shown)).toEqual(['edit 2', 'mine']);
      expect(await studio.faults()).toEqual([]);
      await studio.page.evaluate(`document.querySelector('.cell-editor button:not(.primary)').focus()`);
      await studio.press('Enter');
      await untilRows(1);
      // Enter on *Cancel* saves nothing: the panel shows no conflict.
      expect(await studio.page.evaluate(`document.querySelector('.cell-editor, .record')`)).toBe(null);
      await studio.page.until(`document.activeElement.textContent === 'edit 3'`);
      expect((await root.client.get(`/api/${LONG}/${edited}`)).body.data.text).toBe('theirs');
    });

    test('a page that is left ends its feed, and is loaded anew on the way back', async () => {
      const untilStreams = (count: number) =>
        expect
          .poll(() => service.app.metrics.read(), { timeout: 20_000 })
          .toMatch(new RegExp(`^bylaw_feed_streams ${count}$`, 'm'));
      await studio.visit(`/studio/data/${LONG}`, '.grid .rows .row');
      await untilStreams(1);
      await studio.page.evaluate('globalThis.isOld = true');
      await studio.visit('/studio/who', '.who td');
      await untilStreams(0);
      await studio.page.evaluate('void setTimeout(() => history.back())');
      await studio.page.until(
        `location.pathname !== '/studio/who' && document.querySelector('.grid .rows .row') !== null && globalThis.isOld === undefined`,
      );
    });

    test('a guest is a caller of who can, and named conditions are conditions there', async () => {
      await studio.size(1440);
      await studio.visit(`/studio/who?collection=${LONG}`, '.who td');
      expect(await studio.texts('.who tbody tr:last-child .value')).toEqual(['no', 'no', 'no', 'no', 'no']);
      expect((await studio.texts('.who tbody tr:last-child th'))[0]).toBe('guest');
      expect((await studio.texts('.who tbody tr:first-child td:nth-child(5)'))[0]).toContain('is_own(@record)');
    });

    test('the skip link leads to the content of the page, as often as it is followed', async () => {
      await studio.visit(`/studio/data/${LONG}?columns=text`, '.grid .rows .row');
      for (const _ of [1, 2]) {
        await studio.page.evaluate(`document.querySelector('.skip').focus()`);
        await studio.press('Enter');
        await studio.page.until(`document.activeElement.id === 'content'`);
      }
      expect(await studio.page.evaluate('location.search + location.hash')).toBe('?columns=text#content');
    });

    test('the keys alone reach a page, an editor, its completions, and the difference', async () => {
      await studio.visit('/studio/who', '.who td');
      await studio.press('g');
      await studio.press('p');
      await studio.until('.page select[name=rules]');
      await studio.visit(`/studio/policies/${LONG}?rules=update`, '.cm-content');
      const focused = (expression: string) => studio.page.until(`document.activeElement.${expression}`);
      await studio.until('.rule header button');
      await studio.page.evaluate(`document.querySelector('select[name=rules]').focus()`);
      await studio.press('Tab');
      await focused(`matches('.rule-roles summary')`);
      await studio.press('Tab');
      await focused(`matches('.rule header button')`);
      await studio.press('Tab');
      await focused(`matches('.cm-content')`);
      await studio.press('a', 2);
      await studio.page.send('Input.insertText', { text: 'is_own(@record) or @record.te' });
      await studio.press(' ', 2);
      await studio.until('.expression [role=option]');
      expect(await studio.faults()).toEqual([]);
      await studio.press('ArrowDown');
      await studio.press('ArrowUp');
      await studio.press('Enter');
      await studio.page.until(`document.activeElement.innerText === 'is_own(@record) or @record.text'`);
      await studio.page.send('Input.insertText', { text: ' = "all"' });
      await studio.page.until(`!document.querySelector('.draft-actions .primary').disabled`);
      await studio.page.evaluate(`document.querySelector('.draft-actions .primary').focus()`);
      await studio.press('Enter');
      await studio.until('.difference');
    });
  });
}
