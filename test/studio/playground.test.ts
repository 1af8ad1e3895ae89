// @module-tag long
/** `/playground`, and the same page as files: decisions in the page, the address that holds them, and the project. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCommand } from '../../src/cli/index.ts';
import { Browser } from '../support/browser/browser.ts';
import { describeInBrowser } from '../support/browser/describe-in-browser.ts';
import { describeOnOne, type TestService } from '../support/service.ts';
import { StudioPage } from './studio-browser.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const folder = mkdtempSync(join(tmpdir(), 'bylaw-playground-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('the playground is a folder of files with relative addresses, of at most 320 KB', () => {
  const script = join(ROOT, 'scripts/playground.ts');
  execFileSync(process.execPath, ['--import', join(ROOT, 'scripts/require-node.js'), script, folder], { cwd: ROOT });
  const html = readFileSync(join(folder, 'index.html'), 'utf8');
  const loaded = [...html.matchAll(/(?:href|src)="([^"]+\.(?:js|css))"/g)].map(([, path]) => path!);
  expect(loaded.map((path) => path.startsWith('./'))).toEqual([true, true]);
  expect(html).toContain("default-src 'none'; script-src 'self'");
  const sizes = readdirSync(folder).map((name) => gzipSync(readFileSync(join(folder, name)), { level: 9 }).length);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(320_000);
});

describeOnOne('the playground', (service) => inBrowser(service));

function inBrowser(service: TestService): void {
  describeInBrowser('in Chromium, the playground', () => {
    let browser: Browser;
    let page: StudioPage;
    const table = () => page.texts('.matrix tbody td');
    const write = (index: number, text: string): Promise<unknown> =>
      page.page.evaluate(`(() => {
        const field = document.querySelectorAll('textarea')[${index}];
        field.value = ${JSON.stringify(text)};
        field.dispatchEvent(new Event('input', { bubbles: true }));
      })()`);
    const textAt = (index: number): Promise<string> =>
      page.page.evaluate(`document.querySelectorAll('textarea')[${index}].value`);
    beforeAll(async () => {
      browser = await Browser.open();
      page = await StudioPage.open(browser, service.url);
      await page.size(1440);
      await page.visit('/playground', '.matrix');
    });
    afterAll(() => browser?.close());

    test('a recipe is decided in the page, and a change shows at once', async () => {
      // Columns are ada, ben, root and a guest; rows are a draft of ada, and the published news.
      expect(await table()).toEqual([
        ...['allowed', 'hidden', 'hidden', 'hidden'],
        ...['allowed', 'allowed', 'allowed', 'allowed'],
      ]);
      expect(await page.faults()).toEqual([]);
      const schema = await textAt(0);
      await write(0, schema.replace('@record.status = "published" or', '@record.status = "draft" or'));
      await page.page.until(`document.querySelector('.matrix tbody td:nth-child(3)').textContent === 'allowed'`);
      await write(0, schema.replace('@record.status', '@record.stat'));
      await page.until('.problem');
      expect((await page.texts('.problem li'))[0]).toMatch(/^line 12: .*did you mean/);
      expect(await page.faults()).toEqual([]);
      await write(0, schema);
      await page.until('.matrix');
    });

    test('relations are followed, and the address holds the page', async () => {
      await page.click('.actions button', 'Teams with members');
      await page.page.evaluate(`(() => {
        const choice = document.querySelectorAll('.question select')[1];
        choice.value = 'update';
        choice.dispatchEvent(new Event('change', { bubbles: true }));
      })()`);
      await page.page.until(`document.querySelector('.matrix tbody td').textContent === 'allowed'`);
      expect(await table()).toEqual(['allowed', 'refused', 'hidden', 'refused']);
      await page.page.until(`(async () => {
        const packed = atob(location.hash.slice(1).replaceAll('-', '+').replaceAll('_', '/'));
        const bytes = Uint8Array.from(packed, (letter) => letter.charCodeAt(0));
        const texts = new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw')));
        const { schema, action } = await texts.json();
        return action === 'update' && schema.includes('memberships');
      })()`);
      const hash = await page.page.evaluate<string>('location.hash');
      await page.page.send('Page.navigate', { url: 'about:blank' });
      await page.visit(`/playground${hash}`, '.matrix');
      await page.page.until(`document.querySelector('textarea').value.includes('memberships')`);
      expect(await table()).toEqual(['allowed', 'refused', 'hidden', 'refused']);
    });

    test('the project holds the decisions of the page, and bylaw test agrees with all of them', async () => {
      const bytes = await page.page.evaluate<readonly number[]>(`(async () => {
        const made = new Promise((done) => {
          const create = URL.createObjectURL;
          URL.createObjectURL = (blob) => { done(blob); URL.createObjectURL = create; return create.call(URL, blob); };
        });
        [...document.querySelectorAll('button')].find(({ textContent }) => textContent === 'Open as project').click();
        return [...new Uint8Array(await (await made).arrayBuffer())];
      })()`);
      writeFileSync(join(folder, 'project.zip'), Uint8Array.from(bytes));
      const project = mkdtempSync(join(folder, 'project-'));
      execFileSync('python3', ['-m', 'zipfile', '-e', join(folder, 'project.zip'), project]);
      const out: string[] = [];
      const stream = { write: (text: string) => out.push(text) };
      const io = { stdin: process.stdin, stdout: stream, stderr: stream, cwd: project, env: {} };
      const code = await runCommand(['test', '--schema', 'bylaw.yaml'], io as never);
      expect([code, out.join('')]).toEqual([0, expect.stringContaining('passed')]);
    });

    test('the page fits into 360, 768 and 1440 pixels, in both themes', async () => {
      await page.expectFits('/playground', '.matrix');
    });
  });
}
