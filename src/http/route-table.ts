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

type Layer = RouterOfKoa['stack'][number];

export interface Match {
  readonly path: string;
  readonly params: Readonly<Record<string, string>>;
  readonly route: Route | undefined;
  /** The routes of this path, for all methods. */
  readonly candidates: readonly Route[];
}

interface TableEntry {
  readonly route: Route;
  readonly layer: Layer;
  readonly isFixed: boolean;
  /** The path begins with the name of a collection. */
  readonly namesCollection: boolean;
  /** The path ends in a word where other paths have the id of a record. */
  readonly endsInWord: boolean;
}

export class RouteTable {
  /**
   * Entries by the number of segments, the paths that end in a word first. INVARIANT: no route but the
   * fallback has a part of a path that matches several segments.
   */
  readonly #entries: ReadonlyMap<number, readonly TableEntry[]>;
  readonly #fallback: readonly TableEntry[];
  /** First segments of the paths that do not belong to the fallback. */
  readonly #taken: ReadonlySet<string>;

  constructor(routes: readonly Route[]) {
    const named = routes.filter(({ isFallback }) => !isFallback);
    const entries = named.map(tableEntryOf).sort((a, b) => Number(b.endsInWord) - Number(a.endsInWord));
    this.#entries = Map.groupBy(entries, ({ route }) => route.path.split('/').length);
    this.#fallback = routes.filter(({ isFallback }) => isFallback).map(tableEntryOf);
    this.#taken = new Set(named.map(({ path }) => path.split('/', 2)[1]!));
  }

  match(method: string, path: string): Match {
    const segments = path.split('/');
    // `/api/auth/login` is not the record `login` of a collection `auth`, and no collection begins with `_`.
    const isReserved = segments[2]?.startsWith('_') || RESERVED_COLLECTIONS.includes(segments[2] ?? '');
    const matching: TableEntry[] = [];
    // The router would take bytes that are not UTF-8 as the text of their encoding, which names another record.
    const isReadable = !path.includes('%') || isDecodable(path);
    for (const entry of (isReadable && this.#entries.get(segments.length)) || []) {
      // `query` in `/api/posts/query` is not the id of a record, for any method.
      if (matching[0]?.endsInWord && !entry.endsInWord) break;
      if (isReserved && entry.namesCollection) continue;
      if (entry.isFixed ? path === entry.route.path : entry.layer.match(path)) matching.push(entry);
    }
    const found = matching.length === 0 && !this.#isTaken(segments[1] ?? '') ? this.#fallback : matching;
    // GET routes take HEAD too.
    const wanted = method === 'HEAD' ? 'GET' : method;
    const entry = found.find(({ route }) => route.method === wanted);
    const layer = (entry ?? found[0])?.layer;
    return {
      path,
      params: layer === undefined ? {} : layer.params(path, layer.captures(path)),
      route: entry?.route,
      candidates: found.map(({ route }) => route),
    };
  }

  /** A path is taken in any spelling: `/%61pi` and `/API` do not belong to the front end either. */
  #isTaken(firstSegment: string): boolean {
    return !isDecodable(firstSegment) || this.#taken.has(decodeURIComponent(firstSegment).toLowerCase());
  }
}

function isDecodable(encoded: string): boolean {
  try {
    decodeURIComponent(encoded);
    return true;
  } catch {
    return false;
  }
}

/** Returns the value of `Allow`. */
export function allowOf(candidates: readonly Route[]): string {
  const methods = candidates.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method]));
  return [...new Set(methods)].join(', ');
}

function tableEntryOf(route: Route): TableEntry {
  const { path, method } = route;
  const router = new Router({ sensitive: true, strict: true });
  router.register(path, [method], () => {});
  return {
    route,
    layer: present(router.stack[0], 'the route'),
    isFixed: !/[:*]/.test(path),
    namesCollection: path.startsWith('/api/:collection'),
    endsInWord: /^\/api\/:collection\/[a-z]+$/.test(path),
  };
}
