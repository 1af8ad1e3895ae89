/** The studio in Chromium: its first page, a grid that scrolls, an editor, a truth table, and a page that stays open. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Browser, hasBrowser, type Page } from '../test/support/browser/browser.ts';
import type { Bench, BenchOptions } from './support/bench.ts';
import { builtMain } from './support/built.ts';
import { median, verdict } from './support/measure.ts';
import { soakPage } from './support/page-soak.ts';
import { startServer } from './support/server.ts';

/** The documents have a feed. */
const SCHEMA = readFileSync(fileURLToPath(new URL('../bylaw.yaml', import.meta.url)), 'utf8').replace(
  '  documents:\n    fields:',
  '  documents:\n    changes: true\n    fields:',
);
const ADMIN = { email: 'admin@example.org', password: 'a password of benches' };
const [DOCUMENTS, BATCH, CALLERS, RECORDS] = [10_000, 100, 20, 50];
const DATA = '/studio/data/documents';
/** Others change a shown document ten times a second, and make one every second. */
const [CHANGE_EVERY_MS, CREATE_EVERY] = [100, 10];
/** The page stays open for so many times `--seconds`, and as long as its code takes to be compiled at least. */
const [SOAK_TIMES, LEAST_SOAK_SECONDS] = [30, 300];
/** As browsers name it: 150 ms there and back, 1.6 Mbit/s. */
const SLOW_4G = { offline: false, latency: 150, downloadThroughput: 200_000, uploadThroughput: 94_000 };
const FULL_SPEED = { offline: false, latency: 0, downloadThroughput: -1, uploadThroughput: -1 };

/** In the page, with the cookie of its session. */
const POST = `const post = (path, body) => fetch(path, {
  method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body),
}).then(async (answer) => { if (!answer.ok) throw new Error(await answer.text()); return answer.json(); });`;

async function fillDocuments(page: Page): Promise<void> {
  await page.evaluate(`(async () => { ${POST}
    for (let from = 0; from < ${DOCUMENTS}; from += ${BATCH}) {
      const operations = Array.from({ length: ${BATCH} }, (_, i) => ({
        op: 'create', collection: 'documents',
        data: { title: 'Document ' + (from + i), score: i, body: 'lorem ipsum '.repeat(12), status: 'published' },
      }));
      await post('/api/batch', { operations });
    }
  })()`);
}

/** Milliseconds from the start of the navigation until the expression holds. */
async function usableAfter(page: Page, url: string, expression: string): Promise<number> {
  await page.send('Page.navigate', { url: 'about:blank' });
  await page.until(`location.href === 'about:blank'`);
  await page.send('Page.navigate', { url });
  await page.until(
    `location.href !== 'about:blank' && globalThis.usableAt !== undefined || (${expression}) && (globalThis.usableAt ??= performance.now())`,
  );
  return page.evaluate<number>('usableAt');
}

const WATCH = `addEventListener('DOMContentLoaded', () => {
  const look = () => {
    if (document.querySelector('.grid .rows .row') !== null) globalThis.usableAt ??= performance.now();
    else requestAnimationFrame(look);
  };
  look();
});`;

async function scrolledFrames(page: Page): Promise<readonly number[]> {
  return page.evaluate(`(async () => {
    const grid = document.querySelector('.grid');
    const frames = [];
    let last = await new Promise(requestAnimationFrame);
    for (let i = 0; i < 180; i++) {
      grid.scrollTop += 120;
      const now = await new Promise(requestAnimationFrame);
      frames.push(now - last);
      last = now;
    }
    return frames;
  })()`);
}

/** Milliseconds from a typed letter to the note of its error. The letter goes through the browser's own editing. */
async function keystroke(page: Page, round: number): Promise<number> {
  const name = `stat${'s'.repeat(1 + (round % 7))}`;
  await page.evaluate(`(() => {
    const field = document.querySelector('.cm-content');
    field.focus();
    getSelection().selectAllChildren(field);
    globalThis.shownAt = undefined;
    // Before the editor itself, which shows the errors at once.
    document.addEventListener('beforeinput', () => {
      const began = performance.now();
      const look = () => {
        if (document.querySelector('.issues .error code')?.textContent === '${name}') globalThis.shownAt = performance.now() - began;
        else setTimeout(look);
      };
      look();
    }, { once: true, capture: true });
  })()`);
  await page.send('Input.insertText', { text: `@record.owner = @request.auth.id and @record.${name} = "draft"` });
  await page.until('globalThis.shownAt !== undefined');
  return page.evaluate<number>('globalThis.shownAt');
}

async function tableAfter(page: Page): Promise<number> {
  return page.evaluate(`(async () => { ${POST}
    const { data } = await post('/api/documents/query', { limit: ${RECORDS} });
    const callers = Array.from({ length: ${CALLERS} }, (_, i) => ({ roles: ['member'], id: crypto.randomUUID() }));
    const body = { collection: 'documents', action: 'update', callers, ids: data.map(({ id }) => id) };
    const began = performance.now();
    await post('/api/_matrix', body);
    return performance.now() - began;
  })()`);
}

async function measureAll(page: Page, url: string, rounds: number): Promise<void> {
  const hasRows = `document.querySelector('.grid .rows .row') !== null`;
  await page.send('Network.enable');
  await page.send('Network.setCacheDisabled', { cacheDisabled: true });
  await page.send('Page.enable');
  await page.send('Page.addScriptToEvaluateOnNewDocument', { source: WATCH });
  const repeated = async (measured: (round: number) => Promise<number>): Promise<number> => {
    const values: number[] = [];
    for (let i = 0; i < rounds; i++) values.push(await measured(i));
    return median(values);
  };
  const first = await repeated(() => usableAfter(page, url + DATA, hasRows));
  verdict('first page usable', first, { limit: 1_000, unit: 'ms' });
  await page.send('Network.emulateNetworkConditions', SLOW_4G);
  const slow = await repeated(() => usableAfter(page, url + DATA, hasRows));
  await page.send('Network.emulateNetworkConditions', FULL_SPEED);
  verdict('first page usable on slow 4G', slow, { limit: 2_500, unit: 'ms' });
  await usableAfter(page, url + DATA, hasRows);
  const frames: number[] = [];
  const longest = await repeated(async () => {
    const scrolled = await scrolledFrames(page);
    frames.push(...scrolled);
    return Math.max(...scrolled);
  });
  const mean = frames.reduce((sum, frame) => sum + frame, 0) / frames.length;
  console.log(`  ${(1_000 / mean).toFixed(0)} frames a second while the grid scrolls, of ${frames.length}`);
  verdict('longest frame while the grid scrolls', longest, { limit: 50, unit: 'ms' });
  await page.send('Page.navigate', { url: `${url}/studio/policies/documents?rules=update` });
  await page.until(`document.querySelector('.cm-content') !== null`);
  await keystroke(page, 0);
  verdict('keystroke to its errors', await repeated((round) => keystroke(page, round + 1)), { limit: 50, unit: 'ms' });
  const table = await repeated(() => tableAfter(page));
  verdict(`truth table of ${CALLERS} × ${RECORDS}`, table, { limit: 300, unit: 'ms' });
}

interface ServiceAnswer {
  readonly access_token?: string;
  readonly data?: readonly { readonly id: string }[];
}

/** Changes records until `stop` aborts. → the count of changes. */
async function changeRecords(url: string, stop: AbortSignal): Promise<number> {
  const send = async (path: string, method: string, body: object, token = ''): Promise<ServiceAnswer> => {
    const headers = { 'content-type': 'application/json', ...(token !== '' && { authorization: `Bearer ${token}` }) };
    const answer = await fetch(url + path, { method, headers, body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(await answer.text());
    return (await answer.json()) as ServiceAnswer;
  };
  let { access_token: token } = await send('/api/auth/login', 'POST', ADMIN);
  const { data } = await send('/api/documents/query', 'POST', { limit: BATCH }, token);
  const ids = data!.map(({ id }) => id);
  let changes = 0;
  for (; !stop.aborted; changes++) {
    const next = performance.now() + CHANGE_EVERY_MS;
    const written = { data: { score: changes % 100, title: `Document of change ${changes}` } };
    await send(`/api/documents/${ids[changes % ids.length]}`, 'PATCH', written, token);
    if (changes % CREATE_EVERY === 0) {
      const made = { data: { title: `Made after ${changes}`, status: 'published' } };
      await send('/api/documents', 'POST', made, token);
    }
    // A token lasts for 15 minutes.
    if (changes % 1_000 === 999) ({ access_token: token } = await send('/api/auth/login', 'POST', ADMIN));
    await new Promise((done) => setTimeout(done, Math.max(0, next - performance.now())));
  }
  return changes;
}

async function measureSoak(browser: Browser, page: Page, url: string, seconds: number): Promise<void> {
  await usableAfter(page, url + DATA, `document.querySelector('.grid .rows .row') !== null`);
  const stop = new AbortController();
  const changing = changeRecords(url, stop.signal);
  const { samples, afterHour, growth, process: size } = await soakPage(browser, page, seconds);
  const shown = await page.evaluate<string>(`document.querySelector('.new-records')?.textContent ?? ''`);
  stop.abort();
  const rate = (await changing) / seconds;
  const rates = `${rate.toFixed(1)} changes and ${(rate / CREATE_EVERY).toFixed(1)} new records a second`;
  console.log(`  ${seconds} s open, ${rates}, ${samples} collections; the page says "${shown}"`);
  verdict('heap of a page open for an hour', afterHour, {
    limit: 150,
    unit: 'MiB, by the line through the collections',
  });
  verdict('its growth in that hour', growth, { limit: 15, unit: 'MiB' });
  if (size !== undefined) verdict('process of the page at the end', size, { limit: 150, unit: 'MiB' });
}

async function run({ rounds, seconds }: BenchOptions): Promise<void> {
  if (!hasBrowser) {
    console.log('  not measured: there is no Chromium (Debian: apt-get install chromium-headless-shell)');
    return;
  }
  const data = mkdtempSync(join(tmpdir(), 'bylaw-studio-'));
  const schema = join(data, 'bylaw.yaml');
  writeFileSync(schema, SCHEMA);
  const args = ['serve', '--schema', schema, '--data', join(data, 'data'), '--port', '0'];
  const env = { BYLAW_RATE_LIMIT: 'off', BYLAW_ADMIN_EMAIL: ADMIN.email, BYLAW_ADMIN_PASSWORD: ADMIN.password };
  const server = await startServer(builtMain(), args, env);
  const browser = await Browser.open();
  try {
    const page = await browser.page(`${server.url}/studio`);
    await page.until(`document.querySelector('.sign-in-page') !== null`);
    await page.evaluate(`(async () => { ${POST} await post('/api/auth/login', ${JSON.stringify(ADMIN)}); })()`);
    await fillDocuments(page);
    await measureAll(page, server.url, rounds);
    await measureSoak(browser, page, server.url, Math.max(LEAST_SOAK_SECONDS, SOAK_TIMES * seconds));
  } finally {
    await browser.close();
    server.process.kill();
    rmSync(data, { recursive: true, force: true, maxRetries: 5 });
  }
}

const bench: Bench = { name: 'studio', question: 'how quick are the pages of the studio, in Chromium?', run };
export default bench;
