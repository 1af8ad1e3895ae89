/**
 * The shared parts of both handwritten servers: their tables, the rules in SQL, and the parsing of
 * requests. Its authentication is the cheapest there is, a look-up of the token in a Map.
 */
import cluster from 'node:cluster';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';

export const COLUMNS = [
  'id',
  'created_at',
  'updated_at',
  'title',
  'body',
  'status',
  'score',
  'pinned',
  'due_at',
  'owner_id',
  'team_id',
] as const;
/** The fields that a body may set, with their PostgreSQL types. */
export const WRITABLE = { title: 'text', body: 'text', status: 'text', score: 'int8', pinned: 'bool' } as const;

const TYPES = { text: 'string', int8: 'number', bool: 'boolean' };

const MEMBER = `EXISTS (SELECT 1 FROM memberships m WHERE m.team_id = t.team_id AND m.user_id = $1)`;

export interface Rules {
  readonly view: string;
  readonly change: string;
  /** The rule for the new row's team, $2. */
  readonly create: string;
}
/** $1 is the caller. */
export const RULES: Readonly<Record<string, Rules>> = {
  documents: {
    view: `(t.owner_id = $1 OR t.status = 'published')`,
    change: 't.owner_id = $1',
    create: 'TRUE',
  },
  team_documents: {
    view: `(t.owner_id = $1 OR ${MEMBER})`,
    change: `(t.owner_id = $1 OR ${MEMBER})`,
    create: `($2::uuid IS NULL OR EXISTS (SELECT 1 FROM memberships m WHERE m.team_id = $2 AND m.user_id = $1))`,
  },
};

export interface Window {
  readonly limit: number;
  readonly offset: number;
  readonly status: string | null;
  readonly count: boolean;
}
export interface Target {
  readonly table: string;
  readonly caller: string;
}
export type Data = Readonly<Record<string, unknown>>;

/** The status and the body of the answer; undefined for a missing record. */
export interface Handlers {
  list(target: Target, window: Window): Promise<string>;
  read(target: Target, id: string): Promise<string | undefined>;
  create(target: Target, data: Data): Promise<string | undefined>;
  patch(target: Target, id: string, data: Data): Promise<string | undefined>;
  remove(target: Target, id: string): Promise<boolean>;
}

export interface Asked extends Target {
  readonly id: string | undefined;
  readonly query: string;
}

/** `/api/documents/<id>?…`; undefined for a stranger and for another address. */
export function askedBy(request: IncomingMessage, callers: ReadonlyMap<string, string>): Asked | undefined {
  const caller = callers.get((request.headers.authorization ?? '').slice(7));
  const [path = '', query = ''] = (request.url ?? '/').split('?', 2);
  const [, , table = '', id] = path.split('/', 4);
  return caller === undefined || !Object.hasOwn(RULES, table) ? undefined : { caller, table, id, query };
}

export function windowOf(query: string, request: IncomingMessage): Window {
  const given = new URLSearchParams(query);
  return {
    limit: Number(given.get('limit') ?? 20),
    offset: Number(given.get('offset') ?? 0),
    status: given.get('status'),
    count: request.headers.prefer === 'count=exact',
  };
}

/** The columns that the body sets. Throws what a body of the wrong shape is rejected with. */
export async function dataOf(request: IncomingMessage): Promise<Data> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  const { data } = JSON.parse(Buffer.concat(chunks).toString()) as { data: Data };
  for (const [name, value] of Object.entries(data)) {
    if (name === 'team') continue;
    const type = WRITABLE[name as keyof typeof WRITABLE];
    if (type === undefined || (value !== null && typeof value !== TYPES[type])) throw new Error(`wrong ${name}`);
  }
  if (typeof data.title === 'string' && data.title.length > 200) throw new Error('the title is too long');
  return data;
}

/** Prints the address, unless the process that began the others does. */
export function listen(handle: (request: IncomingMessage, response: ServerResponse) => Promise<void>): void {
  const server = createServer((request, response) => {
    handle(request, response).catch((error: unknown) => {
      console.error(error);
      response.writeHead(500, { 'content-length': 0 }).end();
    });
  });
  server.listen(0, '127.0.0.1', () => {
    if (cluster.isPrimary) console.log(`listening on http://127.0.0.1:${(server.address() as { port: number }).port}`);
  });
}

/** @param send writes a status and a body of JSON, or none. */
export async function answer(
  handlers: Handlers,
  { asked, request }: { readonly asked: Asked | undefined; readonly request: IncomingMessage },
  send: (status: number, body?: string) => void,
): Promise<void> {
  if (asked === undefined) return send(401);
  const { id } = asked;
  if (request.method === 'GET' && id === undefined) {
    return send(200, await handlers.list(asked, windowOf(asked.query, request)));
  }
  if (request.method === 'POST') {
    const body = await handlers.create(asked, await dataOf(request));
    return send(body === undefined ? 403 : 201, body);
  }
  if (id === undefined) return send(404);
  if (request.method === 'DELETE') return send((await handlers.remove(asked, id)) ? 204 : 404);
  const body =
    request.method === 'PATCH'
      ? await handlers.patch(asked, id, await dataOf(request))
      : await handlers.read(asked, id);
  return send(body === undefined ? 404 : 200, body);
}
