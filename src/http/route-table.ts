/**
 * Finds the route of a request: the first in the list that matches path and method. `Allow` lists
 * the methods of all that match the path.
 */
import { createRequire } from 'node:module';
import type RouterOfKoa from '@koa/router';
import { present } from '../invariant.ts';
import { RESERVED_COLLECTIONS } from '../schema/model/model.ts';
import type { Route } from './route.ts';

/** Its ES module would load all of `node:http`. */
const Router = createRequire(import.meta.url)('@koa/router') as typeof RouterOfKoa;

export interface Match {
  readonly path: string;
  readonly params: Readonly<Record<string, string>>;
  readonly route: Route | undefined;
  /** The routes of this path, for all methods. */
  readonly candidates: readonly Route[];
}

interface TableEntry {
  readonly route: Route;
  /** Its path ends in a word where others have the id of a record. */
  readonly endsInWord: boolean;
  readonly matches: (path: string) => boolean;
  readonly params: (path: string) => Record<string, string>;
}

export class RouteTable {
  /** By the number of segments, which a path of the route has as well. */
  readonly #entries: ReadonlyMap<number, readonly TableEntry[]>;
  readonly #fallback: readonly TableEntry[];
  /** First segments of the paths that are not the fallback's. */
  readonly #taken: ReadonlySet<string>;

  constructor(routes: readonly Route[]) {
    const named = routes.filter(({ isFallback }) => !isFallback);
    this.#entries = Map.groupBy(named.map(entryOf), ({ route }) => segmentCount(route.path));
    this.#fallback = routes.filter(({ isFallback }) => isFallback).map(entryOf);
    this.#taken = new Set(named.map(({ path }) => firstSegment(path)));
  }

  match(method: string, path: string): Match {
    const matching = (this.#entries.get(segmentCount(path)) ?? []).filter((entry) => entry.matches(path));
    // `query` in `/api/posts/query` is not the id of a record, whatever the method.
    const isWord = matching.some((entry) => entry.endsInWord);
    const found = isWord ? matching.filter((entry) => entry.endsInWord) : matching;
    return this.#pick(found.length === 0 && !this.#isTaken(path) ? this.#fallback : found, method, path);
  }

  /** However it is written: `/%61pi` and `/API` are not the front end's either. */
  #isTaken(path: string): boolean {
    try {
      return this.#taken.has(decodeURIComponent(firstSegment(path)).toLowerCase());
    } catch {
      return true;
    }
  }

  #pick(entries: readonly TableEntry[], method: string, path: string): Match {
    const found = entries.find(({ route }) => takes(route, method)) ?? entries[0];
    const candidates = entries.map(({ route }) => route);
    const route = found !== undefined && takes(found.route, method) ? found.route : undefined;
    return { path, params: found?.params(path) ?? {}, route, candidates };
  }
}

const endsInWord = ({ path }: Route): boolean => /^\/api\/:collection\/[a-z]+$/.test(path);

/** INVARIANT: no route but the fallback has a part of a path that matches several segments. */
function segmentCount(path: string): number {
  let count = 0;
  for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1)) count++;
  return count;
}

const firstSegment = (path: string): string => path.split('/', 2)[1] ?? '';

/** A route of GET takes HEAD too. */
const takes = (route: Route, method: string): boolean =>
  route.method === method || (method === 'HEAD' && route.method === 'GET');

export function allowOf(routes: readonly Route[]): string {
  const methods = routes.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
  return [...new Set(methods)].join(', ');
}

function entryOf(route: Route): TableEntry {
  const router = new Router({ sensitive: true, strict: true });
  router.register(route.path, [route.method], () => {});
  const layer = present(router.stack[0], 'the route');
  const fixed = !/[:*]/.test(route.path);
  // `/api/auth/login` is not the record `login` of a collection `auth`.
  const namesCollection = route.path.startsWith('/api/:collection');
  return {
    route,
    endsInWord: endsInWord(route),
    matches: fixed
      ? (path) => path === route.path
      : (path) => layer.match(path) && !(namesCollection && isReserved(path)),
    params: (path) => layer.params(path, layer.captures(path)),
  };
}

/** Of the paths that begin with `/api/`. */
function isReserved(path: string): boolean {
  const start = '/api/'.length;
  const end = path.indexOf('/', start);
  return RESERVED_COLLECTIONS.includes(path.slice(start, end === -1 ? undefined : end));
}
