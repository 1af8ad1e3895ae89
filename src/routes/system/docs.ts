import { createHash } from 'node:crypto';
import { TEXT } from '../../describe/operation.ts';
import { route } from '../define-route.ts';
import { type ApiDocument, renderDocs, STYLE } from './docs-page.ts';

const POLICY = `default-src 'none'; style-src 'sha256-${createHash('sha256').update(STYLE).digest('base64')}'; frame-ancestors 'none'`;

export const docs = route({
  method: 'GET',
  path: '/docs',
  door: 'public',
  accepts: 'any',
  id: 'docs',
  summary: 'Read this document as a page',
  answers: { 200: { description: 'HTML without script.', type: 'text/html', shape: () => TEXT } },
  problems: [],
  handle(ctx, app) {
    ctx.set('Content-Security-Policy', POLICY);
    ctx.type = 'text/html; charset=utf-8';
    ctx.body = renderDocs(app.document() as ApiDocument);
  },
});
