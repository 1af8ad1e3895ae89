import type { Route } from '../../http/route.ts';
import { documentOf } from './document.ts';

export const openapi: Route = {
  method: 'GET',
  path: '/openapi.json',
  door: 'public',
  summary: 'This interface as an OpenAPI 3.1 document',
  handle(ctx, app) {
    ctx.body = documentOf(app);
  },
};
