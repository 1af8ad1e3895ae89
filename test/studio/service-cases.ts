/** The pages of health, tests, files and the API in Chromium. */
import { beforeAll, describe, expect, test } from 'vitest';
import type { TestService, User } from '../support/service.ts';
import type { StudioPage } from './studio-browser.ts';

/** A PNG of one pixel. */
const PIXEL = Uint8Array.from(
  atob('iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='),
  (letter) => letter.charCodeAt(0),
);
const NAME = `a-photograph-with-a-very-long-name-${'x'.repeat(60)}.png`;

const TESTS = `as: { ann: { roles: [member] }, ben: { roles: [member] } }
rows: { documents: { draft: { title: A draft, owner: ann } } }
tests:
  - { documents: draft, ann: { read: yes, delete: yes }, ben: { read: no, delete: yes } }
  - { create: documents, as: ann, data: { title: Mine }, expect: 201 }
  - { list: documents, as: ann, expect: [draft] }
`;
/** The page renders before the next click. */
const writeTests = (studio: StudioPage, text: string): Promise<unknown> =>
  studio.page.evaluate(`(() => {
    const field = document.querySelector('.test-file textarea');
    field.value = ${JSON.stringify(text)};
    field.dispatchEvent(new Event('input', { bubbles: true }));
    return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  })()`);

export function serviceCases(service: TestService, open: () => StudioPage): void {
  describe('the pages of the service', () => {
    let studio: StudioPage;
    let [ann, root]: User[] = [];

    beforeAll(async () => {
      [ann, root] = [await service.user(), await service.user('admin')];
      studio = open();
      await studio.size(1440);
      await studio.beginAs(root!);
    });

    test('health shows the state, the routes of the last minute, and lines that grow', async () => {
      await studio.visit('/studio/health', '.figures canvas');
      expect((await studio.texts('.figures dd'))[4]).toBe('ready');
      expect((await studio.texts('.rates th[scope=row]')).join()).toContain('POST /api/auth/login');
      expect(await studio.faults()).toEqual([]);
      // The pixels of the line's colour, by column: a first value is a point, and the next ones make a line.
      await studio.page.evaluate(`globalThis.drawnColumns = () => {
        const canvas = document.querySelector('.chart canvas');
        const { data, width } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height);
        const columns = new Set();
        for (let i = 0; i < data.length; i += 4)
          if (data[i] === 0x1a && data[i + 1] === 0x5f && data[i + 2] === 0xb4) columns.add((i / 4) % width);
        return columns.size;
      }`);
      await studio.page.until('drawnColumns() > 50');
      const [box] = await studio.page.evaluate<readonly { readonly x: number; readonly y: number }[]>(
        `[document.querySelector('.chart .u-over').getBoundingClientRect()].map(({ x, y }) => ({ x, y }))`,
      );
      await studio.page.send('Input.dispatchMouseEvent', { type: 'mouseMoved', x: box!.x + 5, y: box!.y + 5 });
      await studio.page.until(`/^[0-9:]{8}$/.test(document.querySelector('.figures dd .hint')?.textContent.trim())`);
    });

    test('tests run in the page without bylaw dev, with coverage on the rules and mutants', async () => {
      await studio.visit('/studio/tests', '.test-file textarea');
      expect((await studio.texts('.page > .hint'))[0]).toContain('The rules decide in this page');
      await writeTests(studio, 'rows: { documents: { one: { ownr: x } } }\ntests: []');
      await studio.click('.page .primary');
      await studio.until('.page > .problem li');
      expect((await studio.texts('.page > .problem li'))[0]).toMatch(
        /^bylaw\.policy\.yaml:1: .*`ownr`; did you mean `owner`/,
      );
      await writeTests(studio, TESTS);
      await studio.click('.page .actions button', 'Run, with mutants');
      await studio.until('.mutants');
      expect((await studio.texts('.page .verdict'))[0]).toBe('5 passed 1 failed');
      expect(await studio.texts('.page .scroll[aria-label=failed] td:nth-child(n + 2)')).toEqual([
        'ben',
        'delete',
        'documents draft',
        'yes',
        '404',
      ]);
      expect(await studio.texts('.covered-text .cover.partly')).toContain('@record.owner = @request.auth.id');
      expect((await studio.texts('.covered-text .cover.unseen')).length).toBeGreaterThan(0);
      await studio.page.evaluate(`document.querySelector('.legend').scrollIntoView()`);
      await studio.shot('tests-painted');
      expect(await studio.faults()).toEqual([]);
      await studio.click('.mutants button', 'Add this test');
      await studio.page.until(`document.querySelectorAll('.test-file').length === 2`);
      await studio.expectFits('/studio/tests', '.test-file textarea');
    });

    test('the console of the API sends a request, prints it twice, and shows the rule that decided', async () => {
      await studio.visit('/studio/api', '.operations li a');
      await studio.page.evaluate(`document.querySelector('.operations input').focus()`);
      await studio.page.send('Input.insertText', { text: 'post documents create' });
      await studio.page.until(`document.querySelectorAll('.operations li').length === 1`);
      await studio.click('.operations li a');
      await studio.until('.console textarea');
      expect(await studio.texts('.operation table code')).toContain('title');
      await studio.fill({ body: '{ "data": { "title": "By the console" } }' });
      expect(await studio.texts('.request-line pre')).toEqual([
        expect.stringContaining(`-d '{ "data": { "title": "By the console" } }'`),
        'await client.collection("documents").create({"title":"By the console"})',
      ]);
      await studio.click('.console form button', 'Send the request');
      await studio.until('.console-answer .verdict.allowed');
      const [sent] = (await root!.client.get('/api/documents?filter=title%3D%22By%20the%20console%22')).body.data;
      expect((await studio.texts('.console-answer pre')).at(-1)).toContain(sent.id);
      expect((await studio.texts('.console .explanation .rule.decisive'))[0]).toContain(
        '@record.owner = @request.auth.id',
      );
      await studio.visit('/studio/api/read_documents', '.console [name=id]');
      await studio.fill({ id: sent.id });
      await studio.click('.console form button', 'Send the request');
      await studio.until('.console-answer .verdict.allowed');
      expect((await studio.texts('.console .explanation .rule.decisive'))[0]).toContain(
        '@record.owner = @request.auth.id',
      );
      await studio.fill({ id: ann!.id });
      await studio.click('.console form button', 'Send the request');
      await studio.until('.console-answer .verdict.refused');
      expect((await studio.texts('.console-answer .verdict'))[0]).toMatch(/^404 /);
      await studio.expectFits('/studio/api/create_documents', '.console textarea');
      await studio.expectFits('/studio/api', '.operations li', 'api-list');
    });

    test('a file is uploaded with its preview, and a refusal stays beside its name', async () => {
      await studio.beginAs(ann!);
      await studio.visit('/studio/files', '.file-drop');
      await studio.page.until(`document.querySelector('.page > .empty') !== null`);
      const drop = (type: string, name: string) =>
        studio.page.evaluate(`(() => {
          const data = new DataTransfer();
          const bytes = Uint8Array.from(${JSON.stringify([...PIXEL])});
          data.items.add(new File([bytes], ${JSON.stringify(name)}, { type: ${JSON.stringify(type)} }));
          const field = document.querySelector('.file-drop input');
          field.files = data.files;
          field.dispatchEvent(new Event('change', { bubbles: true }));
        })()`);
      await drop('image/png', NAME);
      await studio.page.until(`document.querySelector('.preview img')?.complete`);
      expect(await studio.texts('.file-grid li > p > a')).toEqual([NAME]);
      expect(await studio.faults()).toEqual([]);
      await studio.page.until(
        `document.querySelector('.file-usage')?.textContent.startsWith('${PIXEL.length} B stored by you')`,
      );
      expect((await service.anonymous.get('/api/files')).status).toBe(401);
    });

    test('the pages fit into 360, 768 and 1440 pixels, in both themes', async () => {
      for (const path of ['/studio/files', '/studio/tests', '/studio/health']) {
        if (path !== '/studio/files') await studio.beginAs(root!);
        await studio.expectFits(path, '.file-grid li, .test-file, .figures');
      }
    });
  });
}
