import { StaticText } from '../../http/answer/static-text.ts';
import { memoizedBy } from '../../memoized.ts';
import { route } from '../define-route.ts';

/** A document lives as long as its schema. */
const documentText = memoizedBy(
  (document: object) => new StaticText('application/json; charset=utf-8', JSON.stringify(document)),
);

export const openapi = route({
  method: 'GET',
  path: '/openapi.json',
  door: 'public',
  id: 'openapi',
  summary: 'Get this document',
  answers: { 200: { description: 'OpenAPI 3.1.', shape: () => ({ type: 'object' }) } },
  problems: [],
  handle(ctx, app) {
    return documentText(app.document()).send(ctx);
  },
});
