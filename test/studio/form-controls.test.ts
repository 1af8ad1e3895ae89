// @module-tag long
/** The controls of a form in Chromium: the search box of a relation, and one for each type of a field. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Browser } from '../support/browser/browser.ts';
import { describeInBrowser } from '../support/browser/describe-in-browser.ts';
import { describeOnOne, type TestService, type User } from '../support/service.ts';
import { StudioPage } from './studio-browser.ts';

const SCHEMA = `
roles: { admin: {}, member: {} }
register: { roles: [member] }
collections:
  books:
    fields: { name: { type: string, required: true, max: 200, search: true } }
    access: { list: true, read: true, create: [{ roles: [member] }] }
  shelves:
    fields: { name: { type: string, required: true, max: 200 } }
    access: { list: true, read: true, create: [{ roles: [member] }] }
  copies:
    fields: { mark: { type: string, max: 40 } }
    relations:
      book: { kind: belongs_to, collection: books }
      shelf: { kind: belongs_to, collection: shelves }
    access: { list: true, read: true, create: [{ roles: [member] }] }
  orders:
    id: { type: int }
    fields: { note: string }
    access: { list: true, read: true, create: [{ roles: [member] }] }
  customers:
    id: { type: string }
    fields: { note: { type: string, max: 40 } }
    relations: { order: { kind: belongs_to, collection: orders } }
    access: { list: true, read: true, create: [{ roles: [member] }] }
  values:
    fields:
      meta: json
      labels: { type: list, of: string }
      code: { type: string, max: 50 }
      kind: { type: string, enum: [open, 'in  progress', ''] }
    access: { list: true, read: true, create: [{ roles: [member] }], update: [{ roles: [member] }] }
`;
const NAMES = ['A history of lighthouses', 'Lighthouses of the north', 'Bridges'];

describeOnOne('the controls of a form', (service) => inBrowser(service), { schema: SCHEMA });

function inBrowser(service: TestService): void {
  describeInBrowser('in Chromium, the controls of a form', () => {
    let browser: Browser;
    let studio: StudioPage;
    let ann: User;
    beforeAll(async () => {
      browser = await Browser.open();
      ann = await service.user();
      for (const collection of ['books', 'shelves'])
        for (const name of NAMES) await ann.client.post(`/api/${collection}`, { data: { name } });
      studio = await StudioPage.open(browser, service.url);
      await studio.beginAs(ann);
    });
    afterAll(() => browser?.close());

    /** The titles that the box of the relation lists for the text. */
    async function found(relation: string, text: string): Promise<readonly string[]> {
      const box = `[...document.querySelectorAll('.member')]
        .find((each) => each.querySelector('label').textContent.startsWith('${relation}')).querySelector('.reference-box')`;
      await studio.page.evaluate(`${box}.querySelector('input').focus()`);
      await studio.page.send('Input.insertText', { text });
      await studio.page.until(`${box}.querySelector('input').ariaExpanded === 'true'`);
      const titles = await studio.page.evaluate<readonly string[]>(
        `[...${box}.querySelectorAll('[role=option]')].map(({ textContent }) => textContent)`,
      );
      await studio.press('Escape');
      return titles.toSorted();
    }

    test('a title with `search: true` is found by any part of it, another one by its beginning', async () => {
      await studio.visit('/studio/data/copies?record=.', '.record-form');
      expect(await found('book', 'lighthouses')).toEqual([NAMES[0], NAMES[1]]);
      expect(await found('book', 'OF THE NÓRTH')).toEqual([NAMES[1]]);
      expect(await found('shelf', 'lighthouses')).toEqual([]);
      expect(await found('shelf', 'Light')).toEqual([NAMES[1]]);
      expect(await found('book', 'zeppelins')).toEqual([]);
    });

    /** The values of the form's controls, by their names. */
    const shown = (): Promise<Readonly<Record<string, string>>> =>
      studio.page.evaluate(
        `Object.fromEntries([...document.querySelectorAll('.record-form [name]')].map(({ name, value }) => [name, value]))`,
      );
    const save = (): Promise<unknown> => studio.page.evaluate(`document.querySelector('.record-form').requestSubmit()`);
    const edit = async (id: string): Promise<void> => {
      await studio.visit(`/studio/data/values?record=${id}`, '.record dl');
      await studio.click('.record header button:not(:disabled)', 'Edit');
      await studio.until('.record-form');
    };

    test('a short string keeps its line breaks', async () => {
      const { id } = (await ann.client.post('/api/values', { data: { code: 'one\ntwo' } })).body.data;
      await edit(id);
      expect(await shown()).toMatchObject({ code: 'one\ntwo' });
      await studio.page.evaluate(`document.querySelector('[name=code]').focus()`);
      await studio.page.send('Input.insertText', { text: '!' });
      await save();
      await studio.until('.record dl');
      expect((await ann.client.get(`/api/values/${id}`)).body.data.code).toMatch(/^!?one\ntwo!?$/);
    });

    test('each value of an enum can be chosen, the empty string and null too', async () => {
      const { id } = (await ann.client.post('/api/values', { data: { kind: 'open' } })).body.data;
      const options = `[...document.querySelectorAll('.record-form [name=kind] option')]`;
      for (const [text, kind] of [
        ['in  progress', 'in  progress'],
        ['empty', ''],
        ['null', null],
      ]) {
        await edit(id);
        await studio.page.evaluate(`(() => {
          const option = ${options}.find(({ textContent }) => textContent === ${JSON.stringify(text)});
          option.selected = true;
          option.parentElement.dispatchEvent(new Event('change', { bubbles: true }));
        })()`);
        await save();
        await studio.until('.record dl');
        expect((await ann.client.get(`/api/values/${id}`)).body.data.kind).toBe(kind);
      }
      await studio.visit('/studio/data/values', '.builder select');
      await studio.choose('.builder select', 'kind');
      await studio.page.until(`document.querySelectorAll('.builder select').length === 3`);
      const choice = '.builder label:nth-of-type(3) select';
      await studio.choose(choice, 'in  progress');
      await studio.click('.builder button', 'Add');
      await studio.page.until(`new URLSearchParams(location.search).get('filter') === 'kind = "in  progress"'`);
    });

    test('a new record takes the id of its caller, such as `new`, and a reference by an int id', async () => {
      const { id } = (await ann.client.post('/api/orders', { data: {} })).body.data;
      await studio.visit('/studio/data/customers', '.toolbar');
      await studio.click('.toolbar button', 'New record');
      await studio.until('.record-form');
      await save();
      await studio.until('.field-problem');
      expect(await studio.texts('.field-problem')).toEqual(['`id` must have a value']);
      // The page takes the keyboard there.
      await studio.page.until(`document.activeElement?.name === 'id'`);
      await studio.fill({ id: 'new', note: 'Mrs New' });
      await studio.page.evaluate(`document.querySelector('.reference-box input').focus()`);
      await studio.page.send('Input.insertText', { text: String(id) });
      await studio.press('Tab');
      expect(await studio.faults()).toEqual([]);
      await save();
      await studio.until('.record dl');
      expect(await studio.page.evaluate('location.search')).toBe('?record=new');
      expect((await studio.texts('.record h2'))[0]).toBe('Mrs New');
      expect((await ann.client.get('/api/customers/new')).body.data).toMatchObject({ id: 'new', order: id });
    });

    test('JSON is edited as its text, and a broken text is shown at its field', async () => {
      const data = { meta: { a: 1 }, labels: ['a,b', 'c'] };
      const { id } = (await ann.client.post('/api/values', { data })).body.data;
      await edit(id);
      expect(await shown()).toMatchObject({ meta: '{"a":1}', labels: '["a,b","c"]' });
      await studio.fill({ meta: '{"a":2', labels: '["d"]' });
      await save();
      await studio.until('.field-problem');
      expect(await studio.texts('.field-problem')).toEqual([
        'JSON is expected, such as {"a": 1}, ["a", "b"] or "text".',
      ]);
      expect(await studio.faults()).toEqual([]);
      await studio.fill({ meta: '{"a":2}' });
      await save();
      await studio.until('.record dl');
      expect((await ann.client.get(`/api/values/${id}`)).body.data).toMatchObject({ meta: { a: 2 }, labels: ['d'] });
    });
  });
}
