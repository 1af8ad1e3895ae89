// @module-tag long
/** The search box of a relation in Chromium: any part of a searched title, else the beginning of a title. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Browser } from '../support/browser/browser.ts';
import { describeInBrowser } from '../support/browser/describe-in-browser.ts';
import { describeOnOne, type TestService } from '../support/service.ts';
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
`;
const NAMES = ['A history of lighthouses', 'Lighthouses of the north', 'Bridges'];

describeOnOne('a relation in the studio', (service) => inBrowser(service), { schema: SCHEMA });

function inBrowser(service: TestService): void {
  describeInBrowser('in Chromium, the search box of a relation', () => {
    let browser: Browser;
    let studio: StudioPage;
    beforeAll(async () => {
      browser = await Browser.open();
      const ann = await service.user();
      for (const collection of ['books', 'shelves'])
        for (const name of NAMES) await ann.client.post(`/api/${collection}`, { data: { name } });
      studio = await StudioPage.open(browser, service.url);
      await studio.beginAs(ann);
      await studio.visit('/studio/data/copies?record=new', '.record-form');
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
      expect(await found('book', 'lighthouses')).toEqual([NAMES[0], NAMES[1]]);
      expect(await found('book', 'OF THE NÓRTH')).toEqual([NAMES[1]]);
      expect(await found('shelf', 'lighthouses')).toEqual([]);
      expect(await found('shelf', 'Light')).toEqual([NAMES[1]]);
      expect(await found('book', 'zeppelins')).toEqual([]);
    });
  });
}
