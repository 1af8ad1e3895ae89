/** A world as a document: the JSON of the commands. */
import type { World } from '../policy/analyse/solve/world.ts';
import type { RequestFacts, Row } from '../policy/types.ts';

export interface WorldDocument {
  readonly caller: 'guest' | Row | { readonly key: unknown; readonly roles: unknown };
  readonly request: { readonly now: string; readonly query: object; readonly data?: object } & RequestFacts;
  /** The stored record; on create the one that the request makes. */
  readonly record: Row;
  /** The result of an update. */
  readonly next?: Row;
  readonly related: Readonly<Record<string, readonly Row[]>>;
  readonly links: World['links'];
}

export function worldDocument(world: World): WorldDocument {
  const { request, record, written, rows, links, isGuest } = world;
  const related = [...rows].map(([name, all]) => [name, all.filter((row) => row !== record)] as const);
  return {
    caller: isGuest ? 'guest' : request.kind === 'key' ? keyAndRoles(request.auth!) : request.auth!,
    request: { now: request.now, query: request.query, ...request.facts, ...(request.data && { data: request.data }) },
    record: record ?? written!,
    ...(record !== undefined && written !== undefined && { next: written }),
    related: Object.fromEntries(related.filter(([, all]) => all.length > 0)),
    links,
  };
}

const keyAndRoles = ({ id, roles }: Row) => ({ key: id, roles });
