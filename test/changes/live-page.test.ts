// @module-tag long
/** The live page of docs/changes.md in two browsers, and a page with twenty live lists. */
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { sql, uuid } from '../../src/sql.ts';
import { Browser, type Page } from '../support/browser/browser.ts';
import { bundleForBrowser } from '../support/browser/bundle.ts';
import { describeInBrowser } from '../support/browser/describe-in-browser.ts';
import { TestService, type User } from '../support/service.ts';
import { hasPostgres } from '../support/store-world.ts';

const page = readFileSync(join(import.meta.dirname, '../../docs/changes.md'), 'utf8');
const blockOf = (language: string): string =>
  page
    .split('```')
    .find((each) => each.startsWith(`${language}\n`))!
    .slice(language.length + 1);
const SCHEMA = blockOf('yaml').replace(
  'collections:\n',
  'roles: [member]\nregister: { roles: [member] }\ncollections:\n  users: { access: { view: true } }\n',
);
const LISTS = 20;

/** Everything that reaches the page is kept, as its scripts see it. */
const RECORDER = `
globalThis.arrived = [];
const add = EventSource.prototype.addEventListener;
EventSource.prototype.addEventListener = function (type, listener) {
  return add.call(this, type, (event) => { arrived.push(event.data ?? ''); return listener.call(this, event); });
};
const ask = globalThis.fetch;
globalThis.fetch = async (...given) => {
  const answer = await ask(...given);
  if (answer.headers.get('content-type')?.includes('json')) arrived.push(await answer.clone().text());
  return answer;
};`;

describeInBrowser('live pages', () => {
  const service = new TestService(hasPostgres ? 'postgres' : 'embedded');
  const browsers: Browser[] = [];
  let ann: User;
  let bob: User;
  beforeAll(async () => {
    const folder = mkdtempSync(join(tmpdir(), 'bylaw-live-'));
    writeFileSync(join(folder, 'index.html'), '<!doctype html><title>empty</title>');
    writeFileSync(
      join(folder, 'live.html'),
      '<!doctype html><title>live</title><script src="/recorder.js"></script><script src="/live.js"></script>',
    );
    writeFileSync(join(folder, 'recorder.js'), RECORDER);
    writeFileSync(join(folder, 'live.js'), `${blockOf('js')}\nglobalThis.notes = notes;`);
    writeFileSync(join(folder, 'client.js'), await bundleForBrowser('src/client/client.ts'));
    await service.start({ schema: SCHEMA, env: { BYLAW_PUBLIC: folder } });
    [ann, bob] = await Promise.all([service.user(), service.user()]);
    browsers.push(await Browser.open(), await Browser.open());
  });
  afterAll(async () => {
    for (const browser of browsers) await browser.close();
    await service.stop();
  });

  const signedIn = async (browser: Browser, { email, password }: User, path: string): Promise<Page> => {
    const opened = await browser.page(`${service.url}/`);
    const body = JSON.stringify(JSON.stringify({ email, password }));
    const status = await opened.evaluate<number>(
      `fetch('/api/auth/login', { method: 'POST', headers: { 'content-type': 'application/json' }, body: ${body} }).then(({ status }) => status)`,
    );
    expect(status).toBe(200);
    await opened.send('Page.navigate', { url: service.url + path });
    await opened.until(`location.pathname === '${path}' && document.readyState === 'complete'`);
    return opened;
  };
  const make = async (user: User, data: object): Promise<string> => {
    const { body, status, text } = await user.client.post('/api/notes', { data });
    if (status !== 201) throw new Error(text);
    return body.data.id;
  };

  test('each browser shows the changes of its user, and nothing of the other one reaches it', async () => {
    const own = await make(ann, { title: 'before', secret: 'of ann' });
    const [hers, his] = [
      await signedIn(browsers[0]!, ann, '/live.html'),
      await signedIn(browsers[1]!, bob, '/live.html'),
    ];
    await hers.until(`notes.get('${own}')?.title === 'before'`);
    await ann.client.patch(`/api/notes/${own}`, { data: { title: 'after' } });
    await hers.until(`notes.get('${own}')?.title === 'after'`);
    const given = await make(bob, { title: 'by bob' });
    await his.until(`notes.get('${given}')?.title === 'by bob'`);
    // Another program deletes it.
    await service.app.db.run(sql`DELETE FROM notes WHERE id = ${uuid(own)}`);
    await hers.until(`!notes.has('${own}')`);
    const [atAnn, atBob] = [
      await hers.evaluate<string>('arrived.join()'),
      await his.evaluate<string>('arrived.join()'),
    ];
    expect(atAnn).toContain('of ann');
    for (const hidden of [own, 'before', 'after', 'of ann', ann.id]) expect(atBob).not.toContain(hidden);
    for (const hidden of [given, 'by bob', bob.id]) expect(atAnn).not.toContain(hidden);
    // A page that is left stays in the browser's cache for a minute, with its stream, and counts in the limit of its user.
    await hers.evaluate('stream.close()');
  });

  test('a page with twenty live lists leaves the API answering, and all of them are kept current', async () => {
    const opened = await signedIn(browsers[0]!, ann, '/');
    await opened.evaluate(`(async () => {
      const { createClient } = await import('/client.js');
      const client = createClient(location.origin, { auth: 'cookie' });
      globalThis.lists = Array.from({ length: ${LISTS} }, (_, i) => client.collection('notes').live({ filter: 'title = "list ' + i + '"' }));
      await Promise.all(lists.map(({ ready }) => ready));
    })()`);
    for (let i = 0; i < LISTS; i++) await make(ann, { title: `list ${i}` });
    await opened.until(`lists.every(({ records }) => records.length === 1)`);
    const answers = await opened.evaluate<readonly number[]>(
      `Promise.all(Array.from({ length: 5 }, () => fetch('/api/notes').then(({ status }) => status)))`,
    );
    expect(answers).toEqual([200, 200, 200, 200, 200]);
    const shown = await opened.evaluate<readonly string[]>(`lists.map(({ records }) => records[0].title)`);
    expect(shown).toEqual(Array.from({ length: LISTS }, (_, i) => `list ${i}`));
  });
});
