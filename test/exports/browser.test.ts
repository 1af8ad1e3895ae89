// @module-tag long
/** The exports in a browser: the same decisions as in Node, with code generation and under a policy that forbids it; uploads with progress. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ErrorDetail } from '../../src/client/bylaw-error.ts';
import { compile, test as decide, policyCatalog, type Request, where } from '../../src/exports/policy.ts';
import { fill, PLAIN, randomSchema } from '../fuzz/doors/doors-world.ts';
import { loadDoors } from '../fuzz/doors/store-modules.ts';
import { WHOLE_FIELDS } from '../fuzz/doors/whole-values.ts';
import { Random } from '../fuzz/random.ts';
import { Browser } from '../support/browser/browser.ts';
import { bundleForBrowser } from '../support/browser/bundle.ts';
import { describeInBrowser } from '../support/browser/describe-in-browser.ts';
import type { Client } from '../support/client.ts';
import { describeOnOne } from '../support/service.ts';
import { type DrawnQuestion, QuestionMaker } from './drawn-questions.ts';

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

/** Serves modules, and pages that load one of them; only the page at `/eval` may generate code. */
class PageServer {
  readonly url: string;
  readonly #server: Server;

  private constructor(server: Server) {
    this.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    this.#server = server;
  }

  static async open(modules: Readonly<Record<string, string>>): Promise<PageServer> {
    const server = createServer(({ url = '' }, response) => {
      const script = modules[url];
      response.setHeader('Content-Type', script === undefined ? 'text/html' : 'text/javascript');
      response.setHeader('Content-Security-Policy', `script-src 'self'${url === '/eval' ? " 'unsafe-eval'" : ''}`);
      const run = url === '/small' ? '/run-small.js' : '/run.js';
      response.end(script ?? `<!doctype html><body><script type="module" src="${run}"></script>`);
    });
    await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
    return new PageServer(server);
  }

  close(): void {
    this.#server.close();
  }
}

describeInBrowser('bylaw/policy in Chromium', () => {
  let browser: Browser;
  let pages: PageServer;
  beforeAll(async () => {
    pages = await PageServer.open({
      '/policy.js': await bundleForBrowser('src/exports/policy.ts'),
      '/run.js': RUN,
      '/small.js': await bundleForBrowser('src/exports/policy-browser.ts'),
      '/run-small.js': RUN_SMALL,
    });
    browser = await Browser.open();
  });
  afterAll(async () => {
    await browser?.close();
    pages?.close();
  });

  async function outcomes<T = { readonly on: readonly Outcome[]; readonly off: readonly Outcome[] }>(
    path: string,
  ): Promise<T> {
    const page = await browser.page(`${pages.url}${path}`);
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

const SEED = 20261129;
const drawn = new Random(SEED);
const DRAWN_SCHEMA = withLists(randomSchema(drawn, WHOLE_FIELDS));
const [POLICIES, SPOILT] = [500, 250];
/** Questions that wait for the service at a time. */
const AT_ONCE = 8;

function withLists(text: string): string {
  const schema = JSON.parse(text) as { readonly collections: Readonly<Record<string, object>> };
  const collections = Object.entries(schema.collections).map(
    ([name, each]) => [name, { ...each, access: { list: true, read: true } }] as const,
  );
  return JSON.stringify({ ...schema, guests: true, collections: Object.fromEntries(collections) });
}

/** The place of an error, and the error; or, for each caller, the records that the policy allows. */
type Answer =
  | { readonly errors: readonly (readonly [offset: number, length: number, code: string, detail: string])[] }
  | { readonly allowed: readonly (readonly boolean[])[] };

/** The answers of the page to all questions. */
const answersInPage = (catalog: object, questions: readonly DrawnQuestion[]): string => `(async () => {
  const { check, compile, test } = await import('/small.js');
  const catalog = ${JSON.stringify(catalog)};
  return ${JSON.stringify(questions)}.map(({ collection, action, text, callers, facts, records }) => {
    const place = { catalog, collection, action };
    const errors = check(text, place).filter(({ severity }) => severity === 'error');
    if (errors.length > 0)
      return { errors: errors.map(({ span, code, message }) => [span.start, span.end - span.start, code, message]) };
    const policy = compile(text, place);
    const allowed = callers.map(({ auth, kind }) =>
      records.map((record) => test(policy, { record, request: { auth, kind, facts } }) === true));
    return { allowed };
  });
})()`;

async function answerOfService(client: Client, question: DrawnQuestion, anyId: string): Promise<Answer> {
  const { collection, action, text, callers, records } = question;
  const ids = records.length === 0 ? [anyId] : records.map(({ id }) => id);
  const { status, body } = await client.post('/api/_matrix', {
    collection,
    action,
    callers: callers.map(({ asked }) => asked),
    ids,
    rules: text,
  });
  if (status === 422) {
    const errors = body.errors as readonly ErrorDetail[];
    return { errors: errors.map(({ offset, length, code, detail }) => [offset!, length!, code, detail]) };
  }
  expect([status, question.text]).toEqual([200, question.text]);
  const rows = body.data.rows as readonly { readonly drafted: readonly string[] }[];
  return {
    allowed: rows.map(({ drafted }) => (records.length === 0 ? [] : drafted.map((each) => each === 'allowed'))),
  };
}

describeOnOne(
  'a schema of the fuzz',
  (service) => {
    describeInBrowser('in Chromium, `bylaw/policy/browser`', () => {
      let browser: Browser;
      let pages: PageServer;
      beforeAll(async () => {
        browser = await Browser.open();
        pages = await PageServer.open({ '/small.js': await bundleForBrowser('src/exports/policy-browser.ts') });
      });
      afterAll(async () => {
        await browser?.close();
        pages?.close();
      });

      test('the page and the service answer 500 policies alike, and report the same errors of other texts', async () => {
        const { schema, db } = service.app;
        await fill({ doors: await loadDoors(), schema, db }, drawn);
        const { client } = await service.user('admin');
        const names = ['users', ...PLAIN];
        const records = new Map<string, readonly Readonly<Record<string, unknown>>[]>();
        for (const name of names) {
          const links = [...schema.collections.get(name)!.relations.values()].filter(
            ({ kind }) => kind === 'many_to_many',
          );
          const expand = links.length === 0 ? '' : `&expand=${links.map((each) => each.name)}`;
          records.set(name, (await client.get(`/api/${name}?limit=100${expand}`)).body.data);
        }
        const { catalog } = (await client.get('/api/_schema')).body.data;
        const maker = new QuestionMaker(schema, records, drawn);
        const questions = [...maker.policies(POLICIES), ...maker.spoilt(SPOILT)];
        const byService: Answer[] = [];
        for (let i = 0; i < questions.length; i += AT_ONCE) {
          const batch = questions.slice(i, i + AT_ONCE);
          const idOf = ({ collection }: DrawnQuestion) => String(records.get(collection)![0]!.id);
          byService.push(...(await Promise.all(batch.map((each) => answerOfService(client, each, idOf(each))))));
        }
        const page = await browser.page(`${pages.url}/strict`);
        const inPage = await page.evaluate<readonly Answer[]>(answersInPage(catalog, questions));
        const differing = questions.flatMap(({ collection, action, text }, i) =>
          JSON.stringify(inPage[i]) === JSON.stringify(byService[i])
            ? []
            : [{ collection, action, text, inPage: inPage[i], byService: byService[i] }],
        );
        expect(differing).toEqual([]);
        const isAllowed = byService.flatMap((each) => ('allowed' in each ? each.allowed.flat() : []));
        const faulty = byService.map((each) => 'errors' in each);
        expect(isAllowed.length).toBeGreaterThan(5_000);
        const share = isAllowed.filter(Boolean).length / isAllowed.length;
        expect([share > 0.1, share < 0.9]).toEqual([true, true]);
        // The texts of the fuzz mean something, and the others mostly nothing.
        expect(faulty.slice(0, POLICIES).filter(Boolean).length).toBeLessThan(POLICIES / 20);
        expect(faulty.slice(POLICIES).filter(Boolean).length).toBeGreaterThan(SPOILT / 2);
      });
    });
  },
  { schema: DRAWN_SCHEMA },
);
