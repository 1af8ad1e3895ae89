/**
 * Defines a route: its door, its body, its answers and its problems in one value. The OpenAPI document
 * is generated from it. Not a route.
 */
import type { Context } from 'koa';
import type { RequestBody, RouteOperation } from '../describe/operation.ts';
import type { App } from '../http/app.ts';
import type { Route } from '../http/route.ts';

/** A route of the table. */
export type DescribedRoute = Route & RouteOperation;

/** Describes a body to the document, and reads it for the handler. */
export interface Body<B> extends RequestBody {
  /** Throws the problems of a body of its type. */
  read(ctx: Context, app: App): Promise<B>;
}

type Description = Omit<RouteOperation, 'body' | 'method' | 'path' | 'door' | 'ownSite' | 'accepts'>;

export interface Definition<B> extends Description, Omit<Route, 'body' | 'handle'> {
  readonly body?: Body<B>;
  readonly handle: (ctx: Context, app: App, body: B) => Promise<void> | void;
}

/** Checks that the handler takes what the body reads. */
export const route = <B = undefined>(definition: Definition<B>): DescribedRoute => definition;
