/** `/docs` and its two static files. */
import { readFileSync } from 'node:fs';
import type { ApiDocument } from '../../../describe/api-document.ts';
import { type RouteOperation, TEXT } from '../../../describe/operation.ts';
import { StaticText } from '../../../http/answer/static-text.ts';
import { memoizedBy } from '../../../memoized.ts';
import { type DescribedRoute, route } from '../../define-route.ts';
import { renderDocs } from './docs-page.ts';

/** Only our own files; the script cannot make markup from text. */
const DOCS_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'",
  "trusted-types 'none'",
].join('; ');

/** A document lives as long as its schema: the page is made once for each. */
const renderedPage = memoizedBy(
  (document: object) => new StaticText('text/html; charset=utf-8', renderDocs(document as ApiDocument)),
);

export const docs = route({
  method: 'GET',
  path: '/docs',
  door: 'public',
  accepts: 'any',
  id: 'docs',
  summary: 'Read this document as a page',
  description: 'With search and a console. It reads without script, too.',
  answers: { 200: { description: 'HTML.', type: 'text/html', shape: () => TEXT } },
  problems: [],
  handle(ctx, app) {
    ctx.set('Content-Security-Policy', DOCS_POLICY);
    return renderedPage(app.document()).send(ctx);
  },
});

interface StaticFile extends Pick<RouteOperation, 'id' | 'summary'> {
  readonly name: string;
  readonly type: string;
}

function fileRoute({ name, type, id, summary }: StaticFile): DescribedRoute {
  const file = readFileSync(new URL(`./static/${name}`, import.meta.url), 'utf8');
  const content = new StaticText(`${type}; charset=utf-8`, file);
  return route({
    method: 'GET',
    path: `/docs/${name}`,
    door: 'public',
    accepts: 'any',
    id,
    summary,
    answers: { 200: { description: 'The file.', type, shape: () => TEXT } },
    problems: [],
    handle: (ctx) => content.send(ctx),
  });
}

export const docsScript = fileRoute({
  name: 'page.js',
  type: 'text/javascript',
  id: 'docs_script',
  summary: 'Get the script of that page',
});
export const docsStyle = fileRoute({
  name: 'page.css',
  type: 'text/css',
  id: 'docs_style',
  summary: 'Get the style of that page',
});
