/**
 * Finds the route of a request: the first in the list that matches path and method. `Allow` lists
 * the methods of all that match the path.
 */
import { createRequire } from 'node:module';
import type RouterOfKoa from '@koa/router';
import { present } from '../invariant.ts';
import { RESERVED_COLLECTIONS } from '../schema/model/model.ts';
import type { Route } from './route.ts';

/** Required: its ES module would load all of `node:http`. */
const Router = createRequire(import.meta.url)('@koa/router') as typeof RouterOfKoa;

export interface Match {
  readonly path: string;
  readonly params: Readonly<Record<string, string>>;
  readonly route: Route | undefined;
  /** The routes of this path, for all methods. */
  readonly candidates: readonly Candidate[];
}

interface Candidate {
  readonly route: Route;
}

interface TableEntry extends Candidate {
  readonly matches: (path: string) => boolean;
  readonly params: (path: string) => Record<string, string>;
}

/** The routes with one number of segments. */
interface Entries {
  /** Routes that end in a word where other routes have the id of a record. */
  readonly words: readonly TableEntry[];
  readonly others: readonly TableEntry[];
}

export class RouteTable {
  /** Entries by the number of segments, which every path of a route has as well. */
  readonly #segmentEntries: ReadonlyMap<number, Entries>;
  readonly #fallback: readonly TableEntry[];
  /** First segments of the paths that do not belong to the fallback. */
  readonly #taken: ReadonlySet<string>;

  constructor(routes: readonly Route[]) {
    const named = routes.filter(({ isFallback }) => !isFallback);
    this.#segmentEntries = new Map(
      [...Map.groupBy(named, ({ path }) => segmentCount(path))].map(([n, all]) => [n, segmentEntries(all)]),
    );
    this.#fallback = routes.filter(({ isFallback }) => isFallback).map(tableEntryOf);
    this.#taken = new Set(named.map(({ path }) => firstSegment(path)));
  }

  match(method: string, path: string): Match {
    const { words, others } = this.#segmentEntries.get(segmentCount(path)) ?? NO_ENTRIES;
    // `query` in `/api/posts/query` is not the id of a record, for any method.
    let found = entriesMatching(words, path);
    if (found.length === 0) found = entriesMatching(others, path);
    if (found.length === 0 && !this.#isTaken(path)) found = this.#fallback;
    // GET routes take HEAD too.
    const wanted = method === 'HEAD' ? 'GET' : method;
    for (const { route, params } of found) {
      if (route.method === wanted) return { path, params: params(path), route, candidates: found };
    }
    return { path, params: found[0]?.params(path) ?? {}, route: undefined, candidates: found };
  }

  /** A path is taken in any spelling: `/%61pi` and `/API` do not belong to the front end either. */
  #isTaken(path: string): boolean {
    try {
      return this.#taken.has(decodeURIComponent(firstSegment(path)).toLowerCase());
    } catch {
      return true;
    }
  }
}

const NO_ENTRIES: Entries = { words: [], others: [] };

function segmentEntries(routes: readonly Route[]): Entries {
  const endsInWord = ({ path }: Route): boolean => /^\/api\/:collection\/[a-z]+$/.test(path);
  return {
    words: routes.filter(endsInWord).map(tableEntryOf),
    others: routes.filter((route) => !endsInWord(route)).map(tableEntryOf),
  };
}

function entriesMatching(all: readonly TableEntry[], path: string): readonly TableEntry[] {
  const found: TableEntry[] = [];
  for (const entry of all) if (entry.matches(path)) found.push(entry);
  return found;
}

/** INVARIANT: no route but the fallback has a part of a path that matches several segments. */
function segmentCount(path: string): number {
  let count = 0;
  for (let at = path.indexOf('/'); at !== -1; at = path.indexOf('/', at + 1)) count++;
  return count;
}

const firstSegment = (path: string): string => path.split('/', 2)[1] ?? '';

/** Returns the value of `Allow`. */
export function allowOf(candidates: readonly Candidate[]): string {
  const methods = candidates.flatMap(({ route: { method } }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
  return [...new Set(methods)].join(', ');
}

function tableEntryOf(route: Route): TableEntry {
  const router = new Router({ sensitive: true, strict: true });
  router.register(route.path, [route.method], () => {});
  const layer = present(router.stack[0], 'the route');
  const fixed = !/[:*]/.test(route.path);
  // `/api/auth/login` is not the record `login` of a collection `auth`.
  const namesCollection = route.path.startsWith('/api/:collection');
  return {
    route,
    matches: fixed
      ? (path) => path === route.path
      : (path) => layer.match(path) && !(namesCollection && isReserved(path)),
    params: (path) => layer.params(path, layer.captures(path)),
  };
}

/** `path` begins with `/api/`. */
function isReserved(path: string): boolean {
  const start = '/api/'.length;
  const end = path.indexOf('/', start);
  return RESERVED_COLLECTIONS.includes(path.slice(start, end === -1 ? undefined : end));
}
