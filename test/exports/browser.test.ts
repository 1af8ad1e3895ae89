// @module-tag long
/** The exports in a browser: the same decisions as in Node, with code generation and under a policy that forbids it; uploads with progress. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { compile, test as decide, policyCatalog, type Request, where } from '../../src/exports/policy.ts';
import { Browser } from '../support/browser/browser.ts';
import { bundleForBrowser } from '../support/browser/bundle.ts';
import { describeInBrowser } from '../support/browser/describe-in-browser.ts';
import { describeOnOne } from '../support/service.ts';

const ADA = '0190b0a0-0000-7000-8000-000000000001';
const BEN = '0190b0a0-0000-7000-8000-000000000002';
const SCHEMA = `
collections:
  teams:
    fields: { name: string }
    relations: { memberships: { kind: has_many, collection: memberships, via: team } }
  memberships:
    fields: { role: string }
    relations: { team: { kind: belongs_to, collection: teams }, user: { kind: belongs_to, collection: users } }
  documents:
    fields: { status: string, score: int, due_at: datetime }
    relations: { owner: { kind: belongs_to, collection: users }, team: { kind: belongs_to, collection: teams } }
`;
const PLACE = { schema: SCHEMA, collection: 'documents', action: 'list' } as const;
type Case = readonly [text: string, record: Readonly<Record<string, unknown>>, request: Request];
const CASES: readonly Case[] = [
  ['@record.owner = @request.auth.id', { owner: ADA }, { auth: { id: ADA } }],
  ['@record.owner = @request.auth.id', { owner: BEN }, { auth: { id: ADA } }],
  ['@record.owner = @request.auth.id', { owner: null }, { auth: { id: ADA } }],
  ['@record.score > 3 or @record.status contains "x"', { score: 4 }, {}],
  ['@record.due_at < @now', { due_at: '2026-01-01T01:00:00+01:00' }, { now: '2026-01-01T00:00:01Z' }],
  [
    'any(@record.team.memberships as m, m.user = @request.auth.id and m.role in ["owner"])',
    { team: { memberships: [{ user: ADA, role: 'owner' }] } },
    { auth: { id: ADA } },
  ],
];

type Outcome = readonly [decision: boolean | null, sql: string] | string;
const here = (codegen: boolean): readonly Outcome[] =>
  CASES.map(([text, record, request]) => {
    const policy = compile(text, { ...PLACE, codegen });
    return [decide(policy, { record, request }), where(policy, { request }).sql];
  });

/** The same in the page; what it throws is its outcome. */
const RUN = `
import { compile, test, where } from './policy.js';
const run = (codegen) => ${JSON.stringify(CASES)}.map(([text, record, request]) => {
  try {
    const policy = compile(text, { ...${JSON.stringify(PLACE)}, codegen });
    return [test(policy, { record, request }), where(policy, { request }).sql];
  } catch (error) {
    return error.name;
  }
});
document.body.textContent = JSON.stringify({ on: run(true), off: run(false) });
document.body.id = 'done';
`;

/** The small export in the page, which takes a document in the place of the schema. */
const RUN_SMALL = `
import { compile, test } from './small.js';
const place = { catalog: ${JSON.stringify(policyCatalog(SCHEMA))}, collection: 'documents', action: 'list' };
const decisions = ${JSON.stringify(CASES)}.map(([text, record, request]) => test(compile(text, place), { record, request }));
document.body.textContent = JSON.stringify(decisions);
document.body.id = 'done';
`;

describeInBrowser('bylaw/policy in Chromium', () => {
  let browser: Browser;
  let server: Server;
  beforeAll(async () => {
    const modules: Readonly<Record<string, string>> = {
      '/policy.js': await bundleForBrowser('src/exports/policy.ts'),
      '/run.js': RUN,
      '/small.js': await bundleForBrowser('src/exports/policy-browser.ts'),
      '/run-small.js': RUN_SMALL,
    };
    server = createServer(({ url = '' }, response) => {
      const script = modules[url];
      response.setHeader('Content-Type', script === undefined ? 'text/html' : 'text/javascript');
      response.setHeader('Content-Security-Policy', `script-src 'self'${url === '/eval' ? " 'unsafe-eval'" : ''}`);
      const run = url === '/small' ? '/run-small.js' : '/run.js';
      response.end(script ?? `<!doctype html><body><script type="module" src="${run}"></script>`);
    });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    browser = await Browser.open();
  });
  afterAll(async () => {
    await browser?.close();
    server?.close();
  });

  async function outcomes<T = { readonly on: readonly Outcome[]; readonly off: readonly Outcome[] }>(
    path: string,
  ): Promise<T> {
    const page = await browser.page(`http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`);
    return JSON.parse(await page.until('document.body.id === "done" && document.body.textContent'));
  }

  test('the browser decides as Node does', async () => {
    expect(await outcomes('/eval')).toEqual({ on: here(true), off: here(false) });
  });

  test('the module needs eval for code generation only', async () => {
    const { on, off } = await outcomes('/strict');
    expect(off).toEqual(here(false));
    expect(on).toContain('EvalError');
  });

  test('`bylaw/policy/browser` decides as Node does, without eval', async () => {
    expect(await outcomes('/small')).toEqual(here(false).map(([decision]) => decision));
  });
});

describeOnOne('the service', (service) => {
  describeInBrowser('in Chromium, an upload of bylaw/client', () => {
    let browser: Browser;
    beforeAll(async () => {
      browser = await Browser.open();
    });
    afterAll(() => browser?.close());

    test('an upload reports progress up to the size of the file', async () => {
      const { email, password } = await service.user();
      const client = Buffer.from(await bundleForBrowser('src/client/client.ts')).toString('base64');
      const page = await browser.page(`${service.url}/healthz`);
      await page.send('Page.setBypassCSP', { enabled: true });
      await page.send('Page.navigate', { url: `${service.url}/docs` });
      await page.until(`location.pathname === '/docs' && document.readyState === 'complete'`);
      const size = 3_000_000;
      const { file, progress } = await page.evaluate<{
        readonly file: { readonly size: number };
        readonly progress: readonly { readonly sent: number; readonly total: number }[];
      }>(`(async () => {
        const { createClient } = await import('data:text/javascript;base64,${client}');
        const client = createClient(location.origin);
        await client.login(${JSON.stringify({ email, password })});
        const progress = [];
        const blob = new File(['x'.repeat(${size})], 'large.txt', { type: 'text/plain' });
        const file = await client.upload(blob, { onProgress: (each) => progress.push(each) });
        return { file, progress };
      })()`);
      expect(file.size).toBe(size);
      expect(progress.length).toBeGreaterThan(1);
      const sent = progress.map((each) => each.sent);
      expect(sent).toEqual(sent.toSorted((a, b) => a - b));
      expect([progress.at(-1), new Set(progress.map(({ total }) => total))]).toEqual([
        { sent: size, total: size },
        new Set([size]),
      ]);
    });
  });
});
