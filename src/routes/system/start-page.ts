/** The page at `/`: what this is, and where to go on. With `--public`, the front end. */
import { createHash } from 'node:crypto';
import type { Context } from 'koa';
import { TEXT } from '../../describe/operation.ts';
import type { App } from '../../http/app.ts';
import { notFoundProblem } from '../../http/gate.ts';
import { route } from '../define-route.ts';
import { html } from '../pages/escaped.ts';
import { hasStudio } from '../studio/studio-origin.ts';

const START_STYLE = `
:root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}
body{max-width:36rem;margin:4rem auto;padding:0 1rem}
code{font:0.9em/1.45 ui-monospace,monospace}
dt{margin-top:.75rem}
dd{margin:0}`;

const PAGE_POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(START_STYLE).digest('base64')}'; frame-ancestors 'none'`;

/** The same for everybody: it shows nothing of the collections and of their records. */
function drawStartPage(ctx: Context, { schema, config, workshop }: App): string {
  const { appName } = schema.mail;
  const title = html(appName ?? 'bylaw');
  const change =
    workshop === undefined
      ? ''
      : '<li>Change <code>bylaw.yaml</code> and save it: this service follows, and its log shows each error.</li>';
  const studio =
    config.studio && hasStudio(ctx, schema)
      ? `<dt><a href="${schema.studio.path}">${schema.studio.path}</a></dt><dd>the records, for people, and the policies, for administrators</dd>`
      : '';
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>${title}</title><style>${START_STYLE}</style></head>
<body><h1>${title}</h1>
<p>This is the API of ${appName === undefined ? 'a service' : title}: collections of records, where policies decide every access.
It runs on bylaw.</p>
<h2>Begin here</h2>
<ol>
<li>Make the first administrator: open the address with <code>/auth/setup</code> that the start printed, or run
<code>bylaw user add you@example.com --role admin</code>.</li>
<li><a href="/auth/sign-in?redirect_to=/docs">Sign in</a>.</li>
<li>Send a first request from the console of <a href="/docs">/docs</a>.</li>
${change}</ol>
<h2>Pages</h2>
<dl>
<dt><a href="/docs">/docs</a></dt><dd>the API, to read and to try</dd>
${studio}
<dt><a href="/openapi.json">/openapi.json</a></dt><dd>the same for programs (OpenAPI 3.1)</dd>
<dt><a href="/readyz">/readyz</a></dt><dd>whether the service can do its work</dd>
</dl>
<p>A front end can be served from here: <code>bylaw serve --public DIR</code>.</p>
</body></html>
`;
}

export const startPage = route({
  method: 'GET',
  path: '/',
  door: 'public',
  accepts: 'any',
  id: 'start',
  summary: 'Read what this is',
  description: 'With `--public`, the front end.',
  answers: { 200: { description: 'HTML.', type: 'text/html', shape: () => TEXT } },
  problems: ['not_found'],
  async handle(ctx, app) {
    const { publicFiles } = app;
    if (publicFiles !== undefined) {
      if (!(await publicFiles.answer(ctx))) throw notFoundProblem();
      return;
    }
    ctx.set('Content-Security-Policy', PAGE_POLICY);
    ctx.type = 'text/html; charset=utf-8';
    ctx.body = drawStartPage(ctx, app);
  },
});
