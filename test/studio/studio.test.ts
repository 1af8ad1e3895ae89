// @module-tag long
/** `/studio`: how it is served, the schema that it reads, and its pages in Chromium. */
import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { codeOfApp } from '../auth/authenticator.ts';
import { Browser } from '../support/browser/browser.ts';
import { describeInBrowser } from '../support/browser/describe-in-browser.ts';
import { describeOnOne, type TestService, type User } from '../support/service.ts';
import { accountCases } from './account-cases.ts';
import { administrationCases } from './administration-cases.ts';
import { formCases } from './form-cases.ts';
import { keyCases } from './key-cases.ts';
import { policyCases } from './policy-cases.ts';
import { serviceCases } from './service-cases.ts';
import { StudioPage } from './studio-browser.ts';

const HTML = { Accept: 'text/html' };

/** `fetch` sends no other Host than that of the address. */
async function answerOf(url: string, host: string) {
  const sent = request(url, { headers: { ...HTML, Host: host } }).end();
  const [answer] = (await once(sent, 'response')) as [IncomingMessage];
  return { status: answer.statusCode, text: (await answer.setEncoding('utf8').toArray()).join('') };
}

describeOnOne('the studio', (service) => {
  test('the page is one for everybody, and its assets are immutable, small and from here', async () => {
    const { status, text: page, headers } = await service.anonymous.get('/studio/data/documents', HTML);
    expect([status, headers.get('cache-control')]).toEqual([200, 'no-cache']);
    const [, nonce] = page.match(/ nonce="([\w+/=]{24})"/)!;
    expect(headers.get('content-security-policy')).toBe(
      `default-src 'none'; script-src 'self'; style-src 'self' 'nonce-${nonce}'; img-src 'self' blob: data:; connect-src 'self'; ` +
        "font-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
    );
    expect((await service.anonymous.get('/studio', HTML)).text).not.toContain(nonce);
    expect(headers.get('cross-origin-opener-policy')).toBe('same-origin');
    const assets = [...page.matchAll(/(?:href|src)="(\/[^"]+\.(?:js|css))"/g)].map(([, path]) => path!);
    expect(assets).toHaveLength(2);
    let size = 0;
    for (const path of assets) {
      const file = await service.anonymous.get(path);
      expect([file.status, file.headers.get('cache-control')]).toEqual([200, 'public, max-age=31536000, immutable']);
      size += gzipSync(file.text, { level: 9 }).length;
    }
    expect(size).toBeLessThan(100_000);
    // The compiler and CodeMirror load with the first editor, uPlot with the first chart.
    let text = (await service.anonymous.get(assets.find((path) => path.endsWith('.js'))!)).text;
    for (const [chunk, most] of [
      [/code-field-[\w-]+\.js/, 116_000],
      [/drawn-line-[\w-]+\.js/, 23 * 1024],
      [/policy-tools-[\w-]+\.js/, 8 * 1024],
      // The compiler itself, which the tools import.
      [/lower-[\w-]+\.js/, 90 * 1024],
    ] as const) {
      const [name] = text.match(chunk)!;
      const loaded = await service.anonymous.get(`/studio/assets/${name}`);
      expect([name, gzipSync(loaded.text, { level: 9 }).length < most]).toEqual([name, true]);
      text += loaded.text;
    }
    expect((await service.anonymous.get('/studio/assets/other.js')).status).toBe(404);
    expect((await service.anonymous.get('/studio/a/b/c')).status).toBe(404);
  });

  test('the schema has rules for an administrator only, and no collection that is closed to the caller', async () => {
    const [ann, root] = [await service.user(), await service.user('admin')];
    expect((await service.anonymous.get('/api/_schema')).status).toBe(401);
    const [own, all] = [await ann.client.get('/api/_schema'), await root.client.get('/api/_schema')];
    expect([own.status, own.headers.get('cache-control')]).toEqual([200, 'no-store']);
    expect(own.body.data.me).toMatchObject({ id: ann.id, roles: ['member'] });
    expect(own.text).not.toMatch(/"rules"|"when"|"assigns"/);
    expect(own.body.data.catalog).toMatchObject({ roles: [], conditions: [] });
    const names = own.body.data.collections.map(({ name }: { name: string }) => name);
    expect(Object.keys(own.body.data.catalog.collections).sort()).toEqual(names.sort());
    expect(all.body.data.catalog.roles).toContain('admin');
    const documents = (body: typeof own.body) =>
      body.data.collections.find((each: { name: string }) => each.name === 'documents');
    expect(documents(own.body)).toMatchObject({
      title: 'title',
      key: { type: 'uuid', made_by: 'service' },
      can: { list: true, create: true },
      relations: expect.arrayContaining([
        {
          name: 'owner',
          kind: 'belongs_to',
          collection: 'users',
          required: true,
          read_only: false,
          default: '@request.auth.id',
        },
        {
          name: 'comments',
          kind: 'has_many',
          collection: 'comments',
          required: false,
          read_only: true,
          via: 'document',
        },
      ]),
    });
    expect(documents(own.body).fields.find((each: { name: string }) => each.name === 'status')).toEqual({
      name: 'status',
      type: 'string',
      required: true,
      read_only: false,
      unique: false,
      search: false,
      enum: ['draft', 'published'],
      default: 'draft',
    });
    expect(documents(all.body).rules.delete).toContainEqual({ roles: ['admin'] });
    expect(all.body.data.roles).toContainEqual({ name: 'admin', includes: ['member'], assigns: expect.any(Array) });
  });

  inBrowser(service);
});

function inBrowser(service: TestService): void {
  describeInBrowser('in Chromium, the studio', () => {
    let browser: Browser;
    let studio: StudioPage;
    /** Presses *Export*, and reads the file that it makes. */
    const exportedText = (): Promise<string> =>
      studio.page.evaluate(`(async () => {
        const made = new Promise((done) => {
          const create = URL.createObjectURL;
          URL.createObjectURL = (blob) => { URL.createObjectURL = create; done(blob); return create.call(URL, blob); };
        });
        [...document.querySelectorAll('.bulk-bar button')].find(({ textContent }) => textContent === 'Export').click();
        return (await made).text();
      })()`);
    let ann: User;
    const created = (title: string, more: object = {}) =>
      ann.client.post('/api/documents', { data: { title, ...more } }).then(({ body }) => body.data.id as string);
    beforeAll(async () => {
      browser = await Browser.open();
      ann = await service.user();
      const operations = Array.from({ length: 100 }, (_, i) => ({
        op: 'create',
        collection: 'documents',
        data: {
          title: `Document ${i}`,
          score: i,
          body:
            i === 0 ? 'javascript:alert(1)' : i === 99 ? 'https://example.org/?a=1&b' : '<img src=x onerror=alert(1)>',
        },
      }));
      for (const round of [1, 2])
        expect([round, (await ann.client.post('/api/batch', { operations })).status]).toEqual([round, 200]);
      studio = await StudioPage.open(browser, service.url);
      await studio.visit('/studio', '.sign-in-page');
    });
    afterAll(() => browser?.close());

    test('a visitor signs in at the page of the service, and comes back to the address', async () => {
      await studio.visit('/studio/data/documents?sort=-score', '.sign-in-page');
      expect(await studio.faults()).toEqual([]);
      await studio.askSignIn({ email: ann.email, password: 'another password' });
      expect(await studio.page.evaluate('document.body.innerText')).toContain('wrong');
      expect(await studio.faults()).toEqual([]);
      await studio.fill({ email: ann.email, password: ann.password });
      await studio.sendForm();
      await studio.until('.grid .rows .row');
      expect(await studio.page.evaluate('location.pathname + location.search')).toBe(
        '/studio/data/documents?sort=-score',
      );
      await studio.until('.collections');
      expect(await studio.texts('.collections li')).toContain('documents');
      expect(await studio.texts('.top nav a')).toEqual(['Data', 'Files', 'API keys', 'API']);
    });

    test('a user with a second factor signs in in two steps', async () => {
      const password = 'a password of tests';
      const email = 'careful@example.org';
      await service.app.auth.admin.addUser({ email, password, roles: ['member'] });
      const { body } = await service.anonymous.post('/api/auth/login', { email, password });
      const user = service.anonymous.with({ Authorization: `Bearer ${body.access_token}` });
      const { secret } = (await user.post('/api/auth/totp/enrol')).body;
      const [code] = (await user.post('/api/auth/totp/confirm', { code: codeOfApp(secret) })).body.recovery_codes;
      await studio.page.send('Network.clearBrowserCookies');
      await studio.visit('/studio', '.sign-in-page');
      await studio.askSignIn({ email, password });
      await studio.until('form [name="code"]');
      expect(await studio.faults()).toEqual([]);
      await studio.fill({ code });
      await studio.sendForm();
      await studio.until('.collections');
      await studio.beginAs(ann);
      await studio.until('.collections');
    });

    test('the grid pages by scrolling, sorts and filters by the address, and makes no markup of texts', async () => {
      await studio.visit('/studio/data/documents?sort=-score', '.grid .rows .row');
      expect((await studio.texts('.rows [data-cell="0-0"]'))[0]).toBe('Document 99');
      expect(
        await studio.page.evaluate(`document.querySelectorAll('.grid img, .grid a[href^="javascript"]').length`),
      ).toBe(0);
      expect(
        await studio.page.evaluate(
          `[...document.querySelectorAll('.grid a[href^="http"]')].map(({ href, rel, target }) => [href, rel, target])[0]`,
        ),
      ).toEqual(['https://example.org/?a=1&b', 'noopener noreferrer', '_blank']);
      // A right-to-left text ends at the left of its cell, and begins at the right.
      const gaps = `(() => {
        const cell = document.querySelector('.rows [data-cell="0-0"]');
        const before = cell.textContent;
        const range = document.createRange();
        cell.textContent = 'שלום (1)';
        range.selectNodeContents(cell);
        const [text, box] = [range.getBoundingClientRect(), cell.getBoundingClientRect()];
        cell.textContent = before;
        return [text.left - box.left > 30, box.right - text.right < 30];
      })()`;
      expect(await studio.page.evaluate(gaps)).toEqual([true, true]);
      await studio.page.evaluate(`document.querySelector('[data-cell="0-0"]').focus()`);
      await studio.page.evaluate(`document.querySelector('.grid').scrollTop = 1e6`);
      await studio.page.until(`document.querySelector('.rows').style.height === '8000px'`);
      expect(await studio.page.evaluate(`document.querySelectorAll('.rows .row').length`)).toBeLessThan(60);
      await studio.page.until(`document.querySelector('[data-cell="5-0"]') === null`);
      // The row of the focus stays, and its next step scrolls there.
      expect(await studio.page.evaluate('document.activeElement.dataset.cell')).toBe('0-0');
      await studio.press('ArrowDown');
      await studio.page.until(
        `document.activeElement.dataset.cell === '1-0' && document.querySelector('.grid').scrollTop < 50`,
      );
      await studio.press('PageDown');
      await studio.page.until(`Number(document.activeElement.dataset.cell.split('-')[0]) > 4`);
      const isCovered = `(() => {
        const [cell, header] = [document.activeElement, document.querySelector('.grid .header')];
        return cell.getBoundingClientRect().top < header.getBoundingClientRect().bottom - 1;
      })()`;
      await studio.press('PageUp');
      await studio.page.until(`document.activeElement.dataset.cell === '1-0'`);
      expect(await studio.page.evaluate(isCovered)).toBe(false);
      await studio.click('.header button', 'score ↓');
      await studio.page.until(`new URLSearchParams(location.search).get('sort') === null`);
      await studio.visit(
        `/studio/data/documents?filter=${encodeURIComponent('score < 2 and title contains "1"')}`,
        '.grid',
      );
      expect(await studio.texts('.rows [data-cell$="-0"]')).toEqual(['Document 1', 'Document 1']);
      expect(await studio.texts('.terms code')).toEqual(['score < 2', 'title contains "1"']);
      await studio.click('.terms button', 'Remove: title contains "1"');
      await studio.page.until(`document.querySelectorAll('.rows .row').length === 4`);
      await studio.click('.toolbar button', 'Count');
      await studio.page.until(`document.querySelector('.count')?.textContent === '4 records'`);
    });

    test('selected records are edited, exported and deleted, and what fails is listed', async () => {
      const bob = await service.user();
      for (const title of ['Bulk 1', 'Bulk 2']) await created(title);
      const data = { title: 'Bulk 3', status: 'published', score: 55 };
      const { id } = (await bob.client.post('/api/documents', { data })).body.data;
      const filter = encodeURIComponent('title starts with "Bulk"');
      await studio.visit(`/studio/data/documents?filter=${filter}`, '.grid .rows .row');
      await studio.page.evaluate(`document.querySelector('[data-cell="0-0"]').focus()`);
      await studio.press(' ');
      await studio.page.until(`document.querySelector('.bulk-bar strong')?.textContent === '1 selected'`);
      await studio.click('.header input[type=checkbox]');
      await studio.page.until(`document.querySelector('.bulk-bar strong')?.textContent === '3 selected'`);
      expect(await studio.faults()).toEqual([]);
      await studio.click('.bulk-bar button', 'Edit one field');
      await studio.choose('.field-form select', 'score');
      await studio.until('.field-form input[name="score"]');
      await studio.fill({ score: '7' });
      await studio.click('.field-form button', 'Save');
      await studio.until('.bulk-bar li');
      expect(await studio.texts('.bulk-bar li')).toHaveLength(1);
      expect(
        (await ann.client.get(`/api/documents?filter=${filter}&sort=title`)).body.data.map(
          (each: { score: number }) => each.score,
        ),
      ).toEqual([7, 7, 55]);
      const exported = await exportedText();
      expect(
        exported
          .trim()
          .split('\n')
          .map((line) => JSON.parse(line).score),
      ).toEqual([7, 7, 55]);
      await studio.click('.bulk-bar button', 'Delete');
      await studio.click('dialog .danger', 'Delete');
      await studio.page.until(`document.querySelectorAll('.rows .row').length === 1`);
      expect(await studio.texts('.bulk-bar li')).toHaveLength(1);
      // The next tests have the grid for themselves.
      await (await service.user('admin')).client.delete(`/api/documents/${id}`);
    });

    test('200 selected records are exported whole, and written in batches of 100', async () => {
      const filter = encodeURIComponent('title starts with "Document"');
      await studio.visit(`/studio/data/documents?filter=${filter}`, '.grid .rows .row');
      await studio.page.evaluate(`document.querySelector('.grid').scrollTop = 1e6`);
      await studio.page.until(`document.querySelector('.rows').style.height === '8000px'`);
      await studio.click('.header input[type=checkbox]');
      await studio.page.until(`document.querySelector('.bulk-bar strong')?.textContent === '200 selected'`);
      const exported = await exportedText();
      expect(exported.trim().split('\n').length).toBe(200);
      await studio.click('.bulk-bar button', 'Edit one field');
      await studio.choose('.field-form select', 'pinned');
      await studio.until('.field-form select[name="pinned"]');
      await studio.choose('.field-form select[name="pinned"]', 'true');
      await studio.click('.field-form button', 'Save');
      const batches = `performance.getEntriesByType('resource').filter(({ name }) => name.endsWith('/api/batch')).length`;
      await studio.page.until(`${batches} === 2`);
      await expect
        .poll(
          async () =>
            (await ann.client.get('/api/documents?pinned=true&limit=1', { Prefer: 'count=exact' })).body.page.total,
        )
        .toBe(200);
    });

    test('an error of a filter is beside the filter, and an empty result says so', async () => {
      await studio.visit('/studio/data/documents?filter=scor%20%3D%201', '#filter-problem');
      expect((await studio.texts('#filter-problem'))[0]).toContain('did you mean `score`?');
      await studio.visit('/studio/data/documents?filter=score%20%3D%20777', '.data-page main .empty');
      await studio.page.until(`document.querySelector('main .empty').textContent === 'No record matches this filter.'`);
    });

    test('a filter is written by the keyboard, with completions and its errors', async () => {
      await studio.visit('/studio/data/documents', '.grid .rows .row');
      await studio.press('/');
      await studio.page.until(`document.activeElement.matches('.filter .cm-content')`);
      await studio.write('stat');
      await studio.until('.cm-tooltip-autocomplete');
      expect(await studio.texts('.cm-tooltip-autocomplete .cm-completionLabel')).toContain('status');
      await studio.press('Escape');
      expect((await studio.texts('.filter .issues .error'))[0]).toContain('did you mean `status`?');
      expect(await studio.faults()).toEqual([]);
      await studio.write('score = 777');
      await studio.press('Enter');
      await studio.until('.data-page main .empty');
      expect(await studio.page.evaluate('new URLSearchParams(location.search).get("filter")')).toBe('score = 777');
      expect(await studio.texts('.terms code')).toEqual(['score = 777']);
    });

    test('a record opens by keys, with its relations, and a missing record says so', async () => {
      const id = await created('A title that is so long that it has to wrap in the panel beside the grid');
      await studio.visit('/studio/data/documents?filter=score%20is%20null', '.grid .rows .row');
      await studio.page.evaluate(`document.querySelector('[data-cell="0-0"]').focus()`);
      await studio.press('ArrowRight');
      await studio.page.until(`document.activeElement.dataset.cell === '0-1'`);
      await studio.press('o');
      await studio.until('.record dl');
      expect(await studio.page.evaluate('location.search')).toContain(`record=${id}`);
      const members = await studio.texts('.record dd');
      expect(members).toContain(ann.email);
      expect(members.filter((text) => text === 'null').length).toBeGreaterThan(2);
      expect(await studio.texts('.related a')).toEqual(['comments']);
      expect(await studio.faults()).toEqual([]);
      await studio.visit(`/studio/data/documents?record=${ann.id}`, '.record .empty');
      await studio.press('k', 2);
      await studio.until('.palette[open]');
      await studio.press('t');
      await studio.press('a');
      await studio.press('g');
      await studio.page.until(`document.querySelectorAll('[role=option]').length === 1`);
      expect(await studio.texts('[role=option]')).toEqual(['tags']);
      expect(await studio.faults()).toEqual([]);
      await studio.press('Escape');
      await studio.page.until(`document.querySelector('.palette') === null`);
      // Actions of the page and of the studio are there, too.
      await studio.press('k', 2);
      await studio.until('.palette[open]');
      await studio.page.send('Input.insertText', { text: 'new rec' });
      await studio.page.until(`document.querySelectorAll('[role=option]').length === 1`);
      expect(await studio.texts('[role=option]')).toEqual(['New record (n)']);
      await studio.press('Enter');
      await studio.until('.record-form');
      await studio.click('.record-form .actions button', 'Cancel');
      await studio.page.evaluate('document.activeElement.blur()');
      await studio.press('k', 2);
      await studio.until('.palette[open]');
      await studio.page.send('Input.insertText', { text: 'theme: dark' });
      await studio.page.until(`document.querySelectorAll('[role=option]').length === 1`);
      await studio.press('Enter');
      await studio.page.until(`document.documentElement.dataset.theme === 'dark'`);
      await studio.press('k', 2);
      await studio.until('.palette[open]');
      await studio.page.send('Input.insertText', { text: 'theme: system' });
      await studio.page.until(`document.querySelectorAll('[role=option]').length === 1`);
      await studio.press('Enter');
      await studio.page.until(`document.querySelector('.palette') === null`);
    });

    test('the grid fits into 360, 768 and 1440 pixels, in both themes', async () => {
      await studio.expectFits('/studio/data/documents?filter=score%20%3C%205', '.grid .rows .row');
    });

    test('the menu of columns lies in the window, and the list of keys has those of the grid', async () => {
      for (const width of [360, 768, 1440]) {
        await studio.size(width);
        await studio.visit('/studio/data/documents', '.grid .rows .row');
        await studio.click('.menu-button summary');
        const isInside = `(() => {
          const { left, right } = document.querySelector('.column-choice').getBoundingClientRect();
          return [left >= 0, right <= innerWidth];
        })()`;
        expect([width, await studio.page.evaluate(isInside)]).toEqual([width, [true, true]]);
      }
      expect(await studio.faults()).toEqual([]);
      await studio.page.evaluate('document.activeElement.blur()');
      await studio.press('?');
      await studio.until('dialog[open] kbd');
      expect(await studio.texts('dialog kbd')).toEqual(
        expect.arrayContaining(['Ctrl K', '?', 'n', '/', 'Enter', 'o', 'Space', 'Ctrl Space']),
      );
      await studio.press('Escape');
    });

    test('a session that ends leaves the page open and asks for a sign-in', async () => {
      await ann.client.post('/api/auth/password', {
        password: ann.password,
        new_password: 'another password of tests',
      });
      await studio.click('.toolbar button', 'Reload');
      await studio.until('dialog a.primary');
      await studio.page.until(`document.querySelector('main > .grid + .problem') !== null`);
      expect(await studio.faults()).toEqual([]);
      await studio.signIn({ email: ann.email, password: 'another password of tests' });
      await studio.page.until(`document.querySelector('dialog') === null`);
      expect(await studio.page.evaluate('location.pathname')).toBe('/studio/data/documents');
    });

    formCases(service, () => studio);
    administrationCases(service, () => studio);
    policyCases(service, () => studio);
    accountCases(service, () => studio);
    serviceCases(service, () => studio);
    keyCases(service, () => studio);
  });
}

describeOnOne(
  'a studio at another path, for one origin',
  (service) => {
    test('its pages and assets are there and nowhere else, for the host of the origin alone', async () => {
      const [inner, other] = ['admin.example.org', 'app.example.org'];
      const at = (path: string, host: string) => answerOf(`${service.url}${path}`, host);
      const { status, text } = await at('/ops/admin/data/documents', inner);
      expect([status, text.includes('data-root="/ops/admin"')]).toEqual([200, true]);
      const [, script] = text.match(/src="(\/ops\/admin\/assets\/[^"]+)"/)!;
      const paths = ['/ops/admin', script!, '/playground'];
      const statuses = async (host: string) =>
        (await Promise.all(paths.map((path) => at(path, host)))).map((each) => each.status);
      expect(await statuses(inner)).toEqual([200, 200, 200]);
      expect(await statuses(other)).toEqual([404, 404, 404]);
      expect((await at('/studio', inner)).status).toBe(404);
      expect((await at('/', inner)).text).toContain('href="/ops/admin"');
      expect((await at('/', other)).text).not.toContain('/ops/admin');
    });
  },
  { schema: `studio: { path: /ops/admin, origins: ['https://admin.example.org'] }\n` },
);

describeOnOne(
  'a service without the studio',
  (service) => {
    test('its addresses do not exist', async () => {
      expect((await service.anonymous.get('/studio', HTML)).status).toBe(404);
    });

    test('a user asks for the schema 10 times a second at most', async () => {
      const { client } = await service.user();
      const answers = await Promise.all(Array.from({ length: 40 }, () => client.get('/api/_schema')));
      expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200, 429]));
    });
  },
  { env: { BYLAW_STUDIO: 'off', BYLAW_RATE_LIMIT: 'on' } },
);
