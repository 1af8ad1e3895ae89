/**
 * A route is data: the list of routes is the manual, its `door` decides on entry, and a test lists all
 * doors.
 */
import type { Context } from 'koa';
import type { Action } from '../policy/types.ts';
import type { Collection, Feature } from '../schema/model/model.ts';
import type { App } from './app.ts';

/**
 * The requests that may enter. `public`: credentials are ignored. `optional`: a valid credential gives a
 * caller. `caller`: a valid credential is required. `session`: that of a user or a guest; `user`: that of a
 * user; `admin`: that of an admin, or of a key with the role whose limit names `users`. An action: a valid
 * caller with the permit for that action, which the gate decides before the handler runs.
 */
export type Door = 'public' | 'optional' | 'caller' | 'session' | 'user' | 'admin' | ActionDoor;

export interface ActionDoor {
  readonly action: Action;
  /** Default: the collection that the path names. */
  readonly collection?: string;
  /** Only collections of this kind have the route. */
  readonly kind?: Collection['kind'];
  /** Only collections with this feature have the route. */
  readonly needs?: Feature;
  /** The caller is admitted to the deleted records, under the rules for `restore`. */
  readonly deleted?: true;
  /** The rules for reading decide about former states of a record. */
  readonly former?: true;
  /** A signed link (`?token=`) for the file `:id` can replace a credential. */
  readonly link?: true;
}

export interface Route {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** A pattern of @koa/router. */
  readonly path: string;
  readonly door: Door;
  /** Browsers may call it only from the service's own site, with any credential or none (login CSRF). */
  readonly ownSite?: true;
  /** Signs in, keeps a session, or reports readiness: has the places that every queue keeps. */
  readonly isKept?: true;
  /** The response lasts as long as its reader: it counts neither as a request in flight nor as a duration. */
  readonly isStream?: true;
  /** `any`: the response is not JSON, so Accept is not checked. */
  readonly accepts?: 'any';
  /** Takes the paths whose first segment begins no path of another route. */
  readonly isFallback?: true;
  /** Reads the body, which the handler takes. */
  readonly body?: { read(ctx: Context, app: App): Promise<unknown> };
  readonly handle: (ctx: Context, app: App, body: never) => Promise<void> | void;
}
