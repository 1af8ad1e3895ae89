/** A request of the console, and its notations: curl, and a call of the client. */
import type { WhyQuestion } from '../../data/why-question.ts';
import type { ApiOperation } from './operation-list.ts';

export interface ConsoleRequest {
  readonly operation: ApiOperation;
  /** Texts by `in` and name: `path id`. An empty text is left out. */
  readonly values: Readonly<Record<string, string>>;
  /** JSON, for operations that take it. */
  readonly body: string | undefined;
  /** The file of an upload. */
  readonly file?: File | undefined;
}

export const isUpload = ({ requestBody }: ApiOperation): boolean =>
  Object.hasOwn(requestBody?.content ?? {}, 'multipart/form-data');

export const exampleOf = ({ requestBody }: ApiOperation): string | undefined => {
  const { example } = requestBody?.content?.['application/json'] ?? {};
  return example === undefined ? undefined : JSON.stringify(example, null, 2);
};

type PlacedValues = readonly (readonly [name: string, value: string])[];
const valuesIn = ({ operation, values }: ConsoleRequest, place: string): PlacedValues =>
  (operation.parameters ?? []).flatMap(({ name, in: at }) => {
    const value = values[`${place} ${name}`];
    return at === place && value ? [[name, value] as const] : [];
  });

/** The path with its query. */
export function requestPathOf(request: ConsoleRequest): string {
  const path = valuesIn(request, 'path').reduce(
    (text, [name, value]) => text.replace(`{${name}}`, encodeURIComponent(value)),
    request.operation.path,
  );
  const query = new URLSearchParams(valuesIn(request, 'query').map(([name, value]) => [name, value]));
  return query.size === 0 ? path : `${path}?${query}`;
}

export const requestHeadersOf = (request: ConsoleRequest): Readonly<Record<string, string>> => ({
  ...Object.fromEntries(valuesIn(request, 'header')),
  ...(request.body !== undefined && !isUpload(request.operation) && { 'Content-Type': 'application/json' }),
});

const shellQuoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

export function curlLineOf(request: ConsoleRequest): string {
  const { operation, body, file } = request;
  const { method, security = [] } = operation;
  const verb = method === 'GET' ? '' : method === 'HEAD' ? ' -I' : ` -X ${method}`;
  const headers = Object.entries(requestHeadersOf(request)).map(
    ([name, value]) => `-H ${shellQuoted(`${name}: ${value}`)}`,
  );
  return [
    `curl${verb} ${shellQuoted(location.origin + requestPathOf(request))}`,
    ...(security.length === 0 ? [] : ['-H "Authorization: Bearer $TOKEN"']),
    ...headers,
    ...(isUpload(operation) ? [`-F ${shellQuoted(`file=@${file?.name ?? 'photo.png'}`)}`] : []),
    ...(body === undefined ? [] : [`-d ${shellQuoted(body)}`]),
  ].join(' \\\n  ');
}

const quoted = (text: string): string => JSON.stringify(text);

/** The collection of the path, and the rest of it after `/api/NAME`. */
function placeOf({ path, tags }: ApiOperation): { readonly collection: string; readonly rest: string } | undefined {
  const [, collection = '', rest = ''] = /^\/api\/(\w+)(.*)$/s.exec(path) ?? [];
  return collection === tags?.[0] ? { collection, rest } : undefined;
}

/** Calls of a collection, by method and path. */
const COLLECTION_CALLS: Readonly<Record<string, (request: CallParts) => string>> = {
  'GET ': ({ query }) => `list(${query})`,
  'POST ': ({ data }) => `create(${data})`,
  'POST /query': ({ body }) => `query(${body})`,
  'POST /aggregate': ({ body }) => `aggregate(${body})`,
  'GET /can': () => 'allowed()',
  'POST /can': ({ body }) => `can(${body})`,
  'GET /{id}': ({ id }) => `read(${id})`,
  'PATCH /{id}': ({ id, data }) => `update(${id}, ${data})`,
  'DELETE /{id}': ({ id }) => `delete(${id})`,
  'GET /{id}/can': ({ id }) => `capabilities(${id})`,
  'GET /{id}/history': ({ id }) => `history(${id})`,
  'POST /{id}/restore': ({ id }) => `restore(${id})`,
};
const CLIENT_CALLS: Readonly<Record<string, (request: CallParts) => string>> = {
  'POST /api/files': () => 'upload(file)',
  'POST /api/files/{id}/link': ({ id }) => `link(${id})`,
  'POST /api/batch': ({ operations }) => `batch(${operations})`,
  'POST /api/auth/login': ({ body }) => `login(${body})`,
  'POST /api/auth/register': ({ body }) => `register(${body})`,
  'POST /api/auth/challenge': ({ body }) => `finishLogin(${body})`,
  'POST /api/auth/guest': () => 'beGuest()',
  'POST /api/auth/logout': () => 'logout()',
  'GET /api/auth/me': () => 'me()',
  'GET /api/auth/providers': () => 'providers()',
};

/** Texts of code. */
interface CallParts {
  readonly id: string;
  readonly query: string;
  readonly body: string;
  readonly data: string;
  readonly operations: string;
}

/** A call of `bylaw/client`; of an operation that it has no method for, a call of `fetch`. */
export function clientLineOf(request: ConsoleRequest): string {
  const { operation, body } = request;
  const { method, path } = operation;
  const place = placeOf(operation);
  const parts = callParts(request);
  const own = CLIENT_CALLS[`${method} ${path}`]?.(parts);
  if (own !== undefined) return `await client.${own}`;
  const call = place && COLLECTION_CALLS[`${method} ${place.rest}`]?.(parts);
  if (call !== undefined) return `await client.collection(${quoted(place!.collection)}).${call}`;
  const options = [
    ...(method === 'GET' ? [] : [`method: ${quoted(method)}`]),
    ...(body === undefined ? [] : [`headers: { "Content-Type": "application/json" }, body: JSON.stringify(${body})`]),
  ];
  return `await fetch(${quoted(requestPathOf(request))}${options.length === 0 ? '' : `, { ${options.join(', ')} }`})`;
}

function callParts(request: ConsoleRequest): CallParts {
  const { values, body = '' } = request;
  const query = valuesIn(request, 'query');
  const given = parsedBody(body);
  const memberOf = (name: string): string => (given?.[name] === undefined ? body : JSON.stringify(given[name]));
  return {
    id: quoted(values['path id'] ?? ''),
    query: query.length === 0 ? '' : JSON.stringify(Object.fromEntries(query)),
    body,
    data: memberOf('data'),
    operations: memberOf('operations'),
  };
}

function parsedBody(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    return JSON.parse(text) as Readonly<Record<string, unknown>>;
  } catch {
    return undefined;
  }
}

const ASKED_ACTIONS: Readonly<Record<string, string>> = {
  'GET ': 'list',
  'POST /query': 'list',
  'POST /aggregate': 'list',
  'POST ': 'create',
  'GET /{id}': 'read',
  'GET /{id}/content': 'read',
  'PATCH /{id}': 'update',
  'DELETE /{id}': 'delete',
};

/** The question for the rule that decides the request; undefined where no rule of a collection does. */
export function decisionQuestion(
  request: ConsoleRequest,
): { readonly question: WhyQuestion; readonly more: object } | undefined {
  const { operation, values, body } = request;
  const place = placeOf(operation);
  const action = place && ASKED_ACTIONS[`${operation.method} ${place.rest}`];
  if (action === undefined) return undefined;
  const data = parsedBody(body ?? '')?.data;
  const question = { collection: place!.collection, action, record: values['path id'] ?? '', as: '' };
  return { question, more: (action === 'create' || action === 'update') && data !== undefined ? { data } : {} };
}
