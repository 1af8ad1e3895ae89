import { route } from '../define-route.ts';

export const openapi = route({
  method: 'GET',
  path: '/openapi.json',
  door: 'public',
  id: 'openapi',
  summary: 'Get this document',
  answers: { 200: { description: 'OpenAPI 3.1.', shape: () => ({ type: 'object' }) } },
  problems: [],
  handle(ctx, app) {
    ctx.body = app.document();
  },
});
