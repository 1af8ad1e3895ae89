/** The front end (`--public`), at every path that belongs to no other route. Not in the OpenAPI document. */
import { notFoundProblem } from '../../http/gate.ts';
import type { Route } from '../../http/route.ts';

export const publicFile: Route = {
  method: 'GET',
  path: '/*path',
  door: 'public',
  accepts: 'any',
  isFallback: true,
  async handle(ctx, { publicFiles }) {
    if (!(await publicFiles?.answer(ctx))) throw notFoundProblem();
  },
};
