// @module-tag long
/** `/docs`: the page without script, its script in a browser, and that nothing of a schema becomes markup. */
import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ApiDocument, ShownOperation } from '../../../src/describe/api-document.ts';
import { renderDocs } from '../../../src/routes/system/docs/docs-page.ts';
import { Browser, type Page } from '../../support/browser/browser.ts';
import { describeInBrowser } from '../../support/browser/describe-in-browser.ts';
import { describeOnOne, type TestService } from '../../support/service.ts';

const HTML = { Accept: 'text/html' };

const SAMPLE = readFileSync(new URL('../../../bylaw.yaml', import.meta.url), 'utf8');
const WITH_FEEDS = SAMPLE.replace(/^ {2}documents:$/m, '$&\n    changes: true');

describeOnOne('the page', suiteOfPage, { schema: WITH_FEEDS });

function suiteOfPage(service: TestService): void {
  test('the page has every operation with parameters, an example, error codes and a curl line', async () => {
    const { text } = await service.anonymous.get('/docs', HTML);
    const { paths } = (await service.anonymous.get('/openapi.json')).body;
    const operations = Object.values<object>(paths).flatMap((item) =>
      Object.values<{ operationId: string }>(item as never),
    );
    expect(operations.length).toBeGreaterThan(40);
    for (const { operationId } of operations) expect(text).toContain(`id="op-${operationId}"`);
    const create = text.slice(text.indexOf('id="op-create_documents"'), text.indexOf('id="op-read_documents"'));
    expect(create).toContain('string, 1 to 200 characters');
    expect(create).toContain('one of <code>&quot;draft&quot;</code>, <code>&quot;published&quot;</code>');
    expect(create).toContain('&quot;title&quot;: &quot;title&quot;');
    expect(create).toContain('<code>forbidden</code>: Not allowed.<br><code>cross_origin</code>');
    expect(create).toContain('curl -X POST &quot;$BASE/api/documents&quot;');
    expect(create).not.toContain('&quot;type&quot;');
  });

  test('the page loads only its own two files, and runs no inline script', async () => {
    const { text, headers } = await service.anonymous.get('/docs', HTML);
    expect(headers.get('content-security-policy')).toMatch(
      /^default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; .*require-trusted-types-for 'script'/,
    );
    expect([...text.matchAll(/<script[^>]*>|<link[^>]*>|<style|<img|\son\w+=|\sstyle=/g)].map(([tag]) => tag)).toEqual([
      '<link rel="stylesheet" href="/docs/page.css">',
      '<script src="/docs/page.js" defer>',
    ]);
    for (const [path, type] of [
      ['/docs/page.js', 'text/javascript; charset=utf-8'],
      ['/docs/page.css', 'text/css; charset=utf-8'],
    ] as const) {
      const file = await service.anonymous.get(path);
      expect([file.status, file.headers.get('content-type')]).toEqual([200, type]);
    }
  });

  test('every filled-in body of the records of a schema succeeds as it is', async () => {
    const { client } = await service.user('admin');
    const document = (await service.anonymous.get('/openapi.json')).body as ApiDocument;
    const refused: string[] = [];
    for (const [path, item] of Object.entries(document.paths)) {
      for (const [method, operation] of Object.entries(item)) {
        const { requestBody } = operation as ShownOperation;
        const body = requestBody?.content?.['application/json']?.example;
        const isOfRecords = /^\/api\/(?:documents|teams|batch|_explain)\b/.test(path) && !path.includes('{');
        // A stream does not end.
        if (body === undefined || !isOfRecords || path.endsWith('/changes')) continue;
        const { status, body: answer } = await client.send(method.toUpperCase(), path, { json: body });
        if (status >= 300 && status !== 409) refused.push(`${method} ${path}: ${JSON.stringify(answer.errors)}`);
      }
    }
    expect(refused).toEqual([]);
  });

  inBrowser(service);
}

describeOnOne(
  'the page of a service with a name',
  (service) => {
    test('the page, the document and the start page have the name of the service, as text', async () => {
      const { text } = await service.anonymous.get('/docs', HTML);
      expect(text).toContain('<title>Ada &amp; Sons &lt;b&gt;</title>');
      expect((await service.anonymous.get('/openapi.json')).body.info.title).toBe('Ada & Sons <b>');
      const start = await service.anonymous.get('/', HTML);
      expect(start.text).toContain('<h1>Ada &amp; Sons &lt;b&gt;</h1>');
      expect(start.text).not.toContain('<b>');
      expect(start.text).toMatch(
        /Begin here[\s\S]*\/auth\/setup[\s\S]*"\/auth\/sign-in\?redirect_to=\/docs"[\s\S]*"\/docs"/,
      );
    });
  },
  {
    schema: `mail: { app_name: 'Ada & Sons <b>' }\ncollections: { notes: { fields: { text: string }, access: { read: true } } }`,
  },
);

function inBrowser(service: TestService): void {
  describeInBrowser('in Chromium, /docs', () => {
    let browser: Browser;
    let page: Page;
    beforeAll(async () => {
      browser = await Browser.open();
      page = await browser.page(`${service.url}/docs`);
    });
    afterAll(() => browser?.close());

    const open = (id: string): Promise<unknown> =>
      page
        .evaluate(`document.getElementById('op-${id}').open = true`)
        .then(() => page.until(`document.querySelector('#op-${id} form') !== null`));
    /** Fills the fields by their labels, sends, and waits for the first line of the response. */
    const send = async (id: string, fields: Readonly<Record<string, string>>): Promise<string> => {
      await open(id);
      await page.evaluate(`(() => {
        const operation = document.getElementById('op-${id}');
        for (const [name, value] of Object.entries(${JSON.stringify(fields)})) {
          const label = [...operation.querySelectorAll('.labelled')].find((each) => each.textContent.startsWith(name));
          const input = label.querySelector('input, textarea');
          input.value = value;
          input.dispatchEvent(new Event('input', { bubbles: true }));
        }
        operation.querySelector('.answer').replaceChildren();
        operation.querySelector('form').requestSubmit();
      })()`);
      return page.until(`document.querySelector('#op-${id} .answer > p')?.textContent`);
    };
    const shown = (id: string, selector: string): Promise<string> =>
      page.evaluate(`document.querySelector('#op-${id} ${selector}').textContent`);

    test('the page signs in, and a filled-in body then succeeds at the first press', async () => {
      const { email, password, client } = await service.user();
      await client.post('/api/teams', { data: { name: `Engines of ${email}` } });
      await page.evaluate(`(() => {
        const form = document.getElementById('sign-in');
        form.querySelector('[type=email]').value = ${JSON.stringify(email)};
        form.querySelector('[type=password]').value = ${JSON.stringify(password)};
        form.requestSubmit();
      })()`);
      expect(await page.until(`document.querySelector('#sign-in p')?.textContent`)).toBe(`Signed in as ${email}`);
      expect(await send('create_documents', {})).toMatch(/^201 /);
      expect(await shown('create_documents', '.curl')).toContain('-H "Authorization: Bearer $TOKEN"');
      // A comment needs a document: the page fills in the id of one.
      const documentId = JSON.parse(await shown('create_documents', '.answer .content')).data.id;
      await open('create_comments');
      await page.until(`document.querySelector('#op-create_comments textarea').value.includes('${documentId}')`);
      expect(await send('create_comments', {})).toMatch(/^201 /);
      await page.evaluate(`document.querySelector('#sign-in button').click()`);
      await page.until(`document.querySelector('#sign-in [type=email]') !== null`);
      expect(await send('create_documents', {})).toMatch(/^401 /);
    });

    test('the page sends requests with the token of a login, and shows the curl line', async () => {
      const { email, password } = await service.user();
      expect(await send('login', { body: JSON.stringify({ email, password }) })).toMatch(/^200 /);
      expect(await page.evaluate('document.getElementById("token").value')).toMatch(/^eyJ/);
      expect(await send('create_documents', { body: `{"data": {"title": "Ada's"}}` })).toMatch(/^201 /);
      const { data } = JSON.parse(await shown('create_documents', '.answer .content')) as {
        data: { id: string; title: string };
      };
      expect(data.title).toBe("Ada's");
      expect(await shown('create_documents', '.curl')).toBe(
        [
          `curl -X POST '${service.url}/api/documents'`,
          '-H "Authorization: Bearer $TOKEN"',
          `-H 'Content-Type: application/json'`,
          `-d '{"data": {"title": "Ada'\\''s"}}'`,
        ].join(' \\\n  '),
      );
      expect(await send('read_documents', { 'id (path)': data.id, 'expand (query)': 'owner' })).toMatch(/^200 /);
      expect(await shown('read_documents', '.answer .content')).toContain(email);
      expect(await send('read_documents', { 'id (path)': 'no-id' })).toMatch(/^404 /);
    });

    test('the examples of queries and aggregates succeed as they are', async () => {
      for (const id of ['query_documents', 'aggregate_documents', 'query_teams', 'aggregate_teams']) {
        expect(await send(id, {})).toMatch(/^200 /);
      }
      expect(await shown('query_documents', '.answer .content')).toContain('"next_cursor": null');
      expect(JSON.parse(await shown('aggregate_documents', '.answer .content')).data).toEqual([
        { status: 'draft', records: 1 },
      ]);
    });

    test('the filled-in feeds begin a stream, of which the page shows the first part', async () => {
      expect(await send('subscribe_to_several', {})).toMatch(/^200 /);
      expect(await page.evaluate(`document.querySelector('#op-subscribe_to_several button').disabled`)).toBe(false);
      expect(await shown('subscribe_to_several', '.answer .content')).toMatch(/^(?:event|id|:|retry)/);
    });

    test('the page finds operations by words', async () => {
      const visible = await page.evaluate(`(() => {
        const search = document.getElementById('search');
        search.value = 'patch documents';
        search.dispatchEvent(new Event('input'));
        const left = [...document.querySelectorAll('.operation:not([hidden])')].map(({ id }) => id);
        search.value = '';
        search.dispatchEvent(new Event('input'));
        return [left, document.querySelectorAll('.operation[hidden]').length];
      })()`);
      expect(visible).toEqual([['op-update_documents'], 0]);
    });

    test('the page fits a screen of 360 pixels with everything open', async () => {
      const metrics = { width: 360, height: 800, deviceScaleFactor: 1, mobile: true };
      await page.send('Emulation.setDeviceMetricsOverride', metrics);
      await page.evaluate(`document.querySelectorAll('details').forEach((each) => { each.open = true; })`);
      await page.until(`document.querySelectorAll('.operation form').length > 40`);
      // Names of collections are as long as their authors like.
      await page.evaluate(
        `document.querySelectorAll('h2, nav summary').forEach((each) => { each.textContent = 'a_name'.repeat(12); })`,
      );
      expect(await page.evaluate('document.documentElement.scrollWidth')).toBeLessThanOrEqual(360);
    });
  });
}

describe('the text of a schema', () => {
  const EVIL = `"><script>alert(1)</script><img src=x onerror=alert(1)>'`;
  test('the text of a schema stays text everywhere', () => {
    const schema = {
      type: 'object',
      description: EVIL,
      required: [EVIL],
      properties: {
        [EVIL]: { type: 'string', enum: [EVIL], description: EVIL, default: EVIL },
        x: { type: EVIL, format: EVIL },
      },
    };
    const content = { [`${EVIL}json`]: { schema } };
    const operation = {
      operationId: EVIL,
      summary: EVIL,
      description: EVIL,
      tags: [EVIL],
      parameters: [
        { name: EVIL, in: EVIL, description: EVIL, schema: { items: { $ref: `#/components/schemas/${EVIL}` } } },
      ],
      requestBody: { content },
      responses: {
        [EVIL]: { description: EVIL, headers: { [EVIL]: { description: EVIL } }, content },
        401: { $ref: `#/components/responses/${EVIL}` },
      },
    };
    const document: ApiDocument = {
      info: { title: EVIL, version: EVIL, description: EVIL },
      tags: [{ name: EVIL, description: EVIL }],
      paths: { [EVIL]: { get: operation, post: operation } },
      components: { schemas: { [EVIL]: schema }, responses: { [EVIL]: { description: EVIL } } },
    };
    const page = renderDocs(document);
    expect(page).not.toMatch(/<script>|<img|alert\(1\)<\/|'>|"">/);
    expect(page.match(/<script/g)).toHaveLength(1);
  });
});
