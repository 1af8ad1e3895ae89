/** `--public DIR`: a front end beside the API, and nothing else of the disk. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { afterAll, describe, expect, test } from 'vitest';
import { contentSecurityPolicyOf, isHashed } from '../../src/http/answer/public-files.ts';
import { describeOnOne, type TestService } from '../support/service.ts';

const root = mkdtempSync(join(tmpdir(), 'bylaw-public-'));
const folder = join(root, 'site');
const PAGE = '<!doctype html><title>shop</title><script>start()</script><script src="/assets/a.js"></script>';
mkdirSync(join(folder, 'assets'), { recursive: true });
mkdirSync(join(folder, '.git'));
mkdirSync(join(folder, 'about'));
mkdirSync(join(folder, 'api'));
for (const [name, content] of Object.entries({
  'site/index.html': PAGE,
  'site/about/index.html': '<!doctype html>about',
  'site/assets/index-Diw3gTda.js': 'export {};',
  'site/theme.css': 'body{}',
  'site/empty.txt': '',
  'site/data.unknown': 'x',
  'site/.env': 'SECRET',
  'site/.git/config': 'SECRET',
  'site/api/posts': 'not the API',
  'secret.txt': 'SECRET',
})) {
  writeFileSync(join(root, name), content);
}
symlinkSync(join(root, 'secret.txt'), join(folder, 'out.txt'));
symlinkSync(root, join(folder, 'up'));
symlinkSync(join(folder, '.env'), join(folder, 'hidden.txt'));
symlinkSync(join(folder, 'theme.css'), join(folder, 'in.css'));
afterAll(() => rmSync(root, { recursive: true, force: true }));

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: string;
}

/** The path as it is: `fetch` would tidy it. */
function get(url: string, path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Answer> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve, reject) => {
    request({ hostname, port, path, headers, method }, (response) => {
      text(response).then((body) => resolve({ status: response.statusCode!, headers: response.headers, body }), reject);
    })
      .on('error', reject)
      .end();
  });
}

const HTML = { Accept: 'text/html,application/xhtml+xml,*/*;q=0.8' };

describeOnOne(
  'a front end',
  (service: TestService) => {
    test.each([
      ['/', 'text/html; charset=utf-8', 'no-cache', PAGE],
      ['/about/', 'text/html; charset=utf-8', 'no-cache', '<!doctype html>about'],
      ['/theme.css', 'text/css; charset=utf-8', 'no-cache', 'body{}'],
      ['/theme%2Ecss', 'text/css; charset=utf-8', 'no-cache', 'body{}'],
      ['/in.css', 'text/css; charset=utf-8', 'no-cache', 'body{}'],
      ['/empty.txt', 'text/plain; charset=utf-8', 'no-cache', ''],
      ['/data.unknown', 'application/octet-stream', 'no-cache', 'x'],
      [
        '/assets/index-Diw3gTda.js',
        'text/javascript; charset=utf-8',
        'public, max-age=31536000, immutable',
        'export {};',
      ],
    ])('%s', async (path, type, caching, body) => {
      const answer = await get(service.url, path);
      expect([answer.status, answer.headers['content-type'], answer.headers['cache-control'], answer.body]).toEqual([
        200,
        type,
        caching,
        body,
      ]);
      expect(answer.headers['x-content-type-options']).toBe('nosniff');
      const again = await get(service.url, path, { 'If-None-Match': String(answer.headers.etag) });
      expect([again.status, again.body]).toEqual([304, '']);
      // A browser keeps the headers of a 304 with the page that it has.
      expect(again.headers['content-security-policy']).toBe(answer.headers['content-security-policy']);
      const head = await get(service.url, path, {}, 'HEAD');
      expect([head.status, head.headers['content-length'], head.body]).toEqual([200, String(body.length), '']);
    });

    test('an unknown path gives index.html to a request for a page, and 404 to others', async () => {
      expect((await get(service.url, '/orders/7', HTML)).body).toBe(PAGE);
      expect((await get(service.url, '/orders/7', { Accept: '*/*' })).status).toBe(404);
      expect((await get(service.url, '/assets/gone.js')).status).toBe(404);
      expect((await get(service.url, '/orders/7', HTML, 'POST')).headers.allow).toBe('GET, HEAD');
    });

    test.each([
      '/.env',
      '/.git/config',
      '/%2eenv',
      '/%2e%2e/secret.txt',
      '/../secret.txt',
      '/assets/../../secret.txt',
      '/assets%2f..%2f..%2fsecret.txt',
      '/..%5csecret.txt',
      '/out.txt',
      '/up/secret.txt',
      '/hidden.txt',
      '/up/site/.env',
      '/theme.css%00.html',
      '/%',
      '//theme.css',
      '/assets',
      '/assets/',
    ])('the front end does not serve %s', async (path) => {
      const { status, body } = await get(service.url, path);
      expect([status, body.includes('SECRET')]).toEqual([404, false]);
      expect((await get(service.url, path, HTML)).body).not.toContain('SECRET');
    });

    test.each([
      ['/api/posts', 401],
      ['/%61pi/posts', 404],
      ['/API/posts', 404],
      ['/api', 404],
      ['/docs/theme.css', 404],
      ['/healthz/x', 404],
      ['/.well-known/x', 404],
    ])('the service keeps the path %s', async (path, status) => {
      const answer = await get(service.url, path, HTML);
      expect([answer.status, answer.headers['content-type']]).toEqual([status, 'application/problem+json']);
    });

    test('a page may run the scripts of its folder and its own, not those of other sites', async () => {
      const { headers } = await get(service.url, '/');
      expect(headers['content-security-policy']).toBe(contentSecurityPolicyOf(PAGE));
      expect(contentSecurityPolicyOf(PAGE)).toMatch(/script-src 'self' 'sha256-[\w+/]{43}='; /);
      expect(contentSecurityPolicyOf('<p>')).toContain("script-src 'self'; ");
    });
  },
  { env: { BYLAW_PUBLIC: folder } },
);

describeOnOne('without a front end', (service: TestService) => {
  test('the start page describes the service, and links to its pages', async () => {
    const { status, headers, body } = await get(service.url, '/', HTML);
    expect([status, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    expect(body).toMatch(/<a href="\/docs">[\s\S]*<a href="\/openapi\.json">/);
    expect(headers['content-security-policy']).toMatch(/^default-src 'none'; style-src 'sha256-/);
    for (const name of service.app.schema.collections.keys()) expect(body).not.toMatch(new RegExp(`\\b${name}\\b`));
    expect((await get(service.url, '/theme.css', HTML)).status).toBe(404);
  });
});

describe('names that are kept for a year', () => {
  test.each([
    ['main.8e0b3c4d.js', true],
    ['chunk-a1b2c3d4.css', true],
    ['assets/index-Diw3gTda.js', true],
    ['assets/index-B_x3-9Kd.js', false],
    ['index-Diw3gTda.js', false],
    ['assets/app-settings.js', false],
    ['report-20260102.csv', false],
    ['jquery-3.7.1.min.js', false],
    ['index.html', false],
  ])('%s: %s', (path, expected) => {
    expect(isHashed(path.split('/'))).toBe(expected);
  });
});
