/** The OpenAPI document of the running service, made once. Not a route. */

import { openapiOf } from '../../describe/openapi.ts';
import type { App } from '../../http/app.ts';

const known = new WeakMap<App, object>();

export function documentOf(app: App): object {
  const document = known.get(app) ?? openapiOf(app.schema);
  known.set(app, document);
  return document;
}
