// @module-tag long
/** The studio under `bylaw dev`: the story of a first policy down to its save, and the tests that hold it. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { Browser } from '../support/browser/browser.ts';
import { describeInBrowser } from '../support/browser/describe-in-browser.ts';
import { Client } from '../support/client.ts';
import { fillDataFolder } from '../support/embedded/embedded.ts';
import { dev, type Server } from '../support/process.ts';
import { StudioPage } from './studio-browser.ts';

const ADMIN = { email: 'admin@example.org', password: 'a password of tests' };
const SCHEMA = `# Kept as it is.
roles: { admin: {}, member: {} }
guests: true
collections:
  notes:
    fields: { text: { type: string, required: true, max: 100 }, public: { type: bool, required: true, default: false } }
    access:
      list: true
      read: 'true'
      create: [{ roles: [admin] }]
`;
const TESTS = `rows:
  notes:
    open: { text: a, public: true }
tests:
  - notes: open
    guest: { read: yes }
`;

describeInBrowser('in Chromium, the studio of bylaw dev', () => {
  const folder = mkdtempSync(join(tmpdir(), 'bylaw-dev-studio-'));
  const file = join(folder, 'bylaw.yaml');
  let server: Server;
  let browser: Browser;
  let studio: StudioPage;

  beforeAll(async () => {
    writeFileSync(file, SCHEMA);
    writeFileSync(join(folder, 'notes.policy.yaml'), TESTS);
    await fillDataFolder(join(folder, 'data'));
    const where = ['--schema', file, '--data', join(folder, 'data')];
    server = await dev(where, { BYLAW_ADMIN_EMAIL: ADMIN.email, BYLAW_ADMIN_PASSWORD: ADMIN.password });
    const { body } = await new Client(server.url).post('/api/auth/login', ADMIN);
    const root = new Client(server.url, { Authorization: `Bearer ${body.access_token}` });
    for (const data of [{ text: 'open', public: true }, { text: 'secret' }]) await root.post('/api/notes', { data });
    browser = await Browser.open();
    studio = await StudioPage.open(browser, server.url);
    await studio.size(1440);
    await studio.beginAs(ADMIN);
  });
  afterAll(async () => {
    await browser?.close();
    await server?.end('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  });

  test('a person sees the wrong cell, mends the rule, knows whom it concerns, and saves', async () => {
    await studio.visit('/studio/policies/notes?rules=read', '.matrix tbody td');
    expect(new Set(await studio.texts('.matrix tbody td'))).toEqual(new Set(['allowed']));
    expect(await studio.texts('.matrix tbody th')).toEqual([ADMIN.email, 'admin', 'member', 'guest']);
    await studio.write('@record.public');
    await studio.until('.changed');
    const save = `[...document.querySelectorAll('.draft-actions button')].find(({ textContent }) => textContent === 'Save and serve')`;
    expect(await studio.page.evaluate(`${save}.ariaDisabled`)).toBe('true');
    await studio.click('.draft-actions button', 'Show what changes');
    await studio.until('.difference');
    expect((await studio.texts('.difference'))[0]).toMatch(/notes: read.*narrower.*Can no longer do this: .*guest/);
    expect(readFileSync(file, 'utf8')).toBe(SCHEMA);
    await studio.click('.draft-actions button', 'Save and serve');
    await studio.page.until(`document.querySelector('.toasts')?.textContent.includes('Saved.')`);
    expect(readFileSync(file, 'utf8')).toBe(SCHEMA.replace(`'true'`, `'@record.public'`));
    await studio.page.until(
      `new Set([...document.querySelectorAll('.matrix tbody td')].map(({ textContent }) => textContent)).size === 2`,
    );
    expect(await studio.faults()).toEqual([]);
  });

  test('tests run in the page with coverage and mutants, and a test that kills one is added', async () => {
    await studio.visit('/studio/tests', '.test-file textarea');
    const shown =
      '[...document.querySelectorAll(".test-file label")].map((label) => [label.textContent, label.control.value])';
    expect(await studio.page.evaluate(shown)).toEqual([['notes.policy.yaml', TESTS]]);
    await studio.click('.page .actions button', 'Run, with mutants');
    await studio.until('.mutants, .page > .problem');
    expect(await studio.texts('.page > .problem')).toEqual([]);
    await studio.until('.mutants button');
    expect((await studio.texts('.page .verdict'))[0]).toBe('1 passed 0 failed');
    expect(await studio.faults()).toEqual([]);
    const survivors = (await studio.texts('.mutants tbody tr')).length;
    await studio.click('.mutants button', 'Add this test');
    await studio.page.until(`document.querySelectorAll('.test-file').length === 2`);
    await studio.click('.page .actions button', 'Run, with mutants');
    await studio.page.until(`document.querySelectorAll('.mutants tbody tr').length < ${survivors}`);
    await studio.expectFits('/studio/tests', '.test-file', 'tests-dev');
  });
});
