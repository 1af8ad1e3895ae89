/** What the stages of a request leave for those after them, in `ctx.state`. */
import type { Caller } from '../auth/caller.ts';
import type { Admission } from './gate.ts';
import type { QueryPair } from './query.ts';
import type { Route } from './route.ts';

declare module 'koa' {
  interface DefaultState {
    requestId: string;
    caller: Caller | undefined;
    admission: Admission | undefined;
    route: Route | undefined;
    query: readonly QueryPair[] | undefined;
    bodyBytes: Uint8Array;
  }
}
