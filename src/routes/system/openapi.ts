import type { App } from '../../http/app.ts';
import { documentOf } from './document.ts';
import type { Route } from '../../http/route.ts';

export const openapi: Route = {
  method: 'GET',
  path: '/openapi.json',
  door: 'public',
  summary: 'This interface as an OpenAPI 3.1 document',
  handle(ctx, app) {
    ctx.body = documentOf(app);
  },
};
