import { createHash } from 'node:crypto';
import type { Route } from '../../http/route.ts';
import { type ApiDocument, renderDocs, STYLE } from './docs-page.ts';
import { documentOf } from './document.ts';

const POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; frame-ancestors 'none'`;

export const docs: Route = {
  method: 'GET',
  path: '/docs',
  door: 'public',
  accepts: 'any',
  summary: 'The OpenAPI document for people',
  handle(ctx, app) {
    ctx.set('Content-Security-Policy', POLICY);
    ctx.type = 'text/html; charset=utf-8';
    ctx.body = renderDocs(documentOf(app) as ApiDocument);
  },
};
