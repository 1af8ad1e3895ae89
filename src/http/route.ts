/** A route is data: the list of routes is the manual, the gate is told by `door`, and a test lists all doors. */
import type { Context } from 'koa';
import type { Action } from '../policy/types.ts';
import type { App } from './app.ts';

/**
 * Who may come in. `public`: no credential is looked at. `session`: a valid caller. `optional`: a caller where a valid credential is sent.
 * An action: a valid caller, and the permit of that action on the collection that the path names (or on `collection`), made by the gate before the handler runs.
 * With `link`, a signed link (`?token=`) for the file `:id` says who the caller is, in place of a credential.
 */
export type Door =
  | 'public'
  | 'optional'
  | 'session'
  | { readonly action: Action; readonly collection?: string; readonly link?: true };

export interface Route {
  readonly method: 'GET' | 'HEAD' | 'POST' | 'PATCH' | 'DELETE';
  /** As @koa/router reads it. */
  readonly path: string;
  readonly door: Door;
  /** One sentence for the OpenAPI document. */
  readonly summary: string;
  readonly body?: 'json' | 'multipart' | 'none';
  /** `any`: the answer is not JSON, and Accept is the handler's own affair. */
  readonly accepts?: 'any';
  readonly handle: (ctx: Context, app: App) => Promise<void> | void;
}
