/** The OpenAPI 3.1 document: every route of the table, for the collections of a schema. */
import { present } from '../invariant.ts';
import { type Collection, offers, type Schema, uniqueFieldsOf } from '../schema/model/model.ts';
import type { ApiDocument } from './api-document.ts';
import { commonSchemas, schemasOf } from './collection-schemas.ts';
import { pathsWithExamples } from './example-value.ts';
import {
  HEADERS,
  ID_SCHEMA,
  idSchemaIn,
  type Json,
  type OperationScope,
  type RouteAnswer,
  type RouteOperation,
} from './operation.ts';
import { PROBLEM_SCHEMA, ProblemResponses } from './problems.ts';
import { typeNames } from './writable.ts';

/** `version`: of the package. */
export function openapiOf(schema: Schema, routes: readonly RouteOperation[], version: string): Json {
  const names = typeNames(schema.collections.keys());
  const typeName = (collection: string): string => present(names.get(collection), `the type of ${collection}`);
  const collections = [...schema.collections.values()];
  const { paths, schemas, responses } = new Document(schema, typeName).write(routes);
  const document = {
    openapi: '3.1.0',
    info: {
      title: schema.mail.appName ?? 'bylaw',
      version,
      description: 'Collections of records, where policies decide every access.',
    },
    servers: [{ url: '/' }],
    tags: [
      ...collections.map(({ name }) => ({ name, description: TAGS[name] ?? `The records of \`${name}\`.` })),
      { name: 'auth', description: 'Accounts, sessions, passwords and OAuth.' },
      { name: 'system', description: 'Health, metrics, keys and this document.' },
    ],
    paths,
    components: {
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', bearerFormat: 'JWT', description: 'The access token of a login.' },
        cookie: { type: 'apiKey', in: 'cookie', name: 'svc_session', description: 'For browsers; set by a login.' },
      },
      responses,
      schemas: Object.assign(
        { ...commonSchemas(schema), Problem: PROBLEM_SCHEMA, ...schemas },
        ...collections.map((collection) => schemasOf(collection, { schema, typeName })),
      ),
    },
  };
  return { ...document, paths: pathsWithExamples(document as unknown as ApiDocument) };
}

const TAGS: Readonly<Record<string, string>> = {
  users: 'Accounts as records. They are created by registering.',
  files: 'Files as records, and their content.',
};

const SIGNED_IN_SECURITY = [{ bearer: [] }, { cookie: [] }];

class Document {
  readonly #schema: Schema;
  readonly #typeName: OperationScope['typeName'];
  readonly #problems = new ProblemResponses();
  readonly #schemas: Record<string, Json> = {};
  readonly #paths: Record<string, Record<string, Json>> = {};
  readonly #ids = new Set<string>();

  constructor(schema: Schema, typeName: OperationScope['typeName']) {
    this.#schema = schema;
    this.#typeName = typeName;
  }

  /** The routes of each collection, then all others. */
  write(routes: readonly RouteOperation[]) {
    for (const collection of this.#schema.collections.values()) {
      for (const route of routes) if (concernsCollection(route, collection)) this.#add(route, collection);
    }
    for (const route of routes) if (isOfNoCollection(route) && this.#isOffered(route)) this.#add(route, undefined);
    return { paths: this.#paths, schemas: this.#schemas, responses: this.#problems.components };
  }

  /** Without a provider, the routes of OAuth only answer 404; without a feed, so does the stream of several. */
  #isOffered({ path }: RouteOperation): boolean {
    const { oauth, collections } = this.#schema;
    if (path.includes(':provider')) return oauth.size > 0;
    return path !== '/api/changes' || [...collections.values()].some(({ feed }) => feed !== undefined);
  }

  #add(route: RouteOperation, collection: Collection | undefined): void {
    const scope: OperationScope = {
      schema: this.#schema,
      collection,
      typeName: this.#typeName,
      define: (name, schema) => {
        this.#schemas[name] = schema;
        return { $ref: `#/components/schemas/${name}` };
      },
    };
    const path = documentedPath(route, collection);
    this.#paths[path] ??= {};
    const item = this.#paths[path];
    // If two routes fit a path and a method, the first one answers.
    if (item[route.method.toLowerCase()] !== undefined) return;
    item[route.method.toLowerCase()] = this.#operation(route, scope);
    if (route.head !== undefined) item.head = this.#headOf(route, scope);
  }

  #operation(route: RouteOperation, scope: OperationScope): Json {
    const parameters = operationParameters(route, scope);
    const { summary, description, body, answers } = route;
    const named = (text: string): string => text.replaceAll('{collection}', scope.collection?.name ?? '');
    return {
      operationId: this.#operationId(route, scope),
      tags: [operationTag(route, scope)],
      summary: named(summary),
      description: description && named(description),
      security: isOpen(route) ? [] : SIGNED_IN_SECURITY,
      ...(parameters.length === 0 ? {} : { parameters }),
      requestBody: body && requestBodyOf(body, scope),
      responses: { ...answersOf(answers, scope), ...this.#problems.of(route, scope) },
    };
  }

  #headOf(route: RouteOperation, scope: OperationScope): Json {
    const head = { ...route, id: route.head!, summary: 'Get the headers of GET without its body' };
    return this.#operation({ ...head, answers: withoutBodies(route.answers) }, scope);
  }

  /** A collection can be called so that two routes come to one id: the later one is numbered. */
  #operationId(route: RouteOperation, { collection }: OperationScope): string {
    const base = isGeneral(route) ? `${route.id}_${collection!.name}` : route.id;
    let id = base;
    for (let i = 2; this.#ids.has(id); i++) id = `${base}_${i}`;
    this.#ids.add(id);
    return id;
  }
}

const isOpen = ({ door }: RouteOperation): boolean => door === 'public' || door === 'optional';
const isGeneral = ({ path }: RouteOperation): boolean => path.includes(':collection');

const isOfNoCollection = (route: RouteOperation): boolean =>
  !isGeneral(route) && !(typeof route.door === 'object' && route.door.collection !== undefined);

function concernsCollection(route: RouteOperation, collection: Collection): boolean {
  const { door } = route;
  if (route.concerns?.(collection) === false) return false;
  if (typeof door !== 'object') return isGeneral(route);
  if (!offers(collection, door)) return false;
  return door.collection === undefined ? isGeneral(route) : door.collection === collection.name;
}

function operationTag({ path }: RouteOperation, { collection }: OperationScope): string {
  const isOfAccounts = ['/api/auth/', '/api/users/', '/api/_audit'].some((prefix) => path.startsWith(prefix));
  return collection?.name ?? (isOfAccounts ? 'auth' : 'system');
}

/** `/api/:collection/:id` → `/api/posts/{id}` */
function documentedPath({ path }: RouteOperation, collection: Collection | undefined): string {
  return path.replace(':collection', collection?.name ?? '').replaceAll(/:(\w+)/g, '{$1}');
}

function operationParameters({ path, parameters = [] }: RouteOperation, scope: OperationScope): readonly Json[] {
  const inPath = [...path.matchAll(/:(\w+)/g)].flatMap(([, name = '']) =>
    name === 'collection' ? [] : [{ name, in: 'path', required: true, schema: pathSchema(name, scope) }],
  );
  const others = parameters.flatMap((each) => (typeof each === 'function' ? each(scope) : [each]));
  return [...inPath, ...others.map((parameter) => ({ ...parameter }))];
}

function pathSchema(name: string, { schema, collection }: OperationScope): Json {
  if (name === 'field' && collection !== undefined)
    return { type: 'string', enum: uniqueFieldsOf(collection).map((field) => field.name) };
  if (name === 'value') return { type: 'string', minLength: 1 };
  if (name === 'provider') return { type: 'string', enum: [...schema.oauth.keys()] };
  return collection === undefined ? ID_SCHEMA : idSchemaIn(schema, collection.name);
}

function requestBodyOf({ type, shape, encoding }: NonNullable<RouteOperation['body']>, scope: OperationScope): Json {
  const content = { schema: shape(scope), encoding: encoding?.(scope) };
  return { required: true, content: { [type]: content } };
}

const answersOf = (answers: RouteOperation['answers'], scope: OperationScope): Json =>
  Object.fromEntries(Object.entries(answers).map(([status, answer]) => [status, responseOf(answer, scope)]));

function responseOf(
  { description, shape, type = 'application/json', headers = [] }: RouteAnswer,
  scope: OperationScope,
): Json {
  const described = headers.map((name) => [name, { description: HEADERS[name], schema: { type: 'string' } }]);
  return {
    description,
    ...(headers.length === 0 ? {} : { headers: Object.fromEntries(described) }),
    content: shape && { [type]: { schema: shape(scope) } },
  };
}

const withoutBodies = (answers: RouteOperation['answers']): RouteOperation['answers'] =>
  Object.fromEntries(
    Object.entries(answers).map(([status, { description, headers }]) => [
      status,
      headers === undefined ? { description } : { description, headers },
    ]),
  );
