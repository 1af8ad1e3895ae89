/** The description of a route: the vocabulary of routes, from which the OpenAPI document is made. */

import type { Action } from '../policy/types.ts';
import type { ProblemCode } from '../problem.ts';
import { keyKindIn } from '../schema/fields/index.ts';
import type { Collection, Feature, Schema } from '../schema/model/model.ts';

export type Json = { readonly [key: string]: unknown };

/** The subject of a description. A route of every collection is described once for each of them. */
export interface OperationScope {
  readonly schema: Schema;
  readonly collection: Collection | undefined;
  /** The name of the type of a collection's records. */
  typeName(collection: string): string;
  /** Adds a schema to the document under this name and returns a reference to it. */
  define(name: string, schema: Json): Json;
}

/** A JSON Schema that can depend on where it is used. */
export type Shape = (scope: OperationScope) => Json;

export interface OperationParameter {
  readonly name: string;
  readonly in: 'query' | 'header';
  readonly description: string;
  readonly schema: Json;
  readonly style?: 'form';
  readonly explode?: boolean;
}
/** A function where the parameters depend on the collection. */
type Parameters = OperationParameter | ((scope: OperationScope) => readonly OperationParameter[]);

/** A function where the codes depend on the collection. */
type Problems = ProblemCode | ((scope: OperationScope) => readonly ProblemCode[]);

export interface RequestBody {
  readonly type: 'application/json' | 'multipart/form-data' | 'application/x-www-form-urlencoded';
  readonly shape: Shape;
  /** The encoding of the parts of a form. */
  readonly encoding?: Shape;
}

export interface RouteAnswer {
  readonly description: string;
  /** Without one the response has no body. */
  readonly shape?: Shape;
  /** Default: application/json. */
  readonly type?: string;
  readonly headers?: readonly HeaderName[];
}

/** Response headers that clients may rely on. */
export const HEADERS = {
  'Accept-Ranges': 'Always `bytes`.',
  'Content-Disposition': '`inline` for types that cannot run script, else `attachment`, with the name of the file.',
  'Content-Range': 'The part of the content that follows.',
  ETag: 'A strong tag of the record as this caller sees it; send it as `If-Match` or `If-None-Match`.',
  Location: 'The address to go to.',
  'Preference-Applied': '`count=exact` where the total was asked for.',
  'Set-Cookie': 'The session cookie `svc_session`.',
} as const;
type HeaderName = keyof typeof HEADERS;

/**
 * A route of the table, as far as its description goes. `{collection}` in a text is replaced by the
 * collection's name.
 */
export interface RouteOperation {
  readonly method: string;
  readonly path: string;
  readonly door: 'public' | 'optional' | 'caller' | 'session' | 'user' | 'admin' | OperationDoor;
  /** A browser may call it only from the service's own site. */
  readonly ownSite?: true;
  /** `any`: the response is not JSON, so Accept is not checked. */
  readonly accepts?: 'any';
  /** The operationId; for a route of every collection, `_<collection>` follows. */
  readonly id: string;
  readonly summary: string;
  readonly description?: string;
  readonly parameters?: readonly Parameters[];
  readonly body?: RequestBody | undefined;
  readonly answers: Readonly<Record<number, RouteAnswer>>;
  /** The codes of this route; those of its door and its body are added. */
  readonly problems: readonly Problems[];
  /** False for collections that have no such route. Default: all that its door fits. */
  readonly concerns?: (collection: Collection) => boolean;
  /** Documents HEAD as well, under this id. */
  readonly head?: string;
}
interface OperationDoor {
  readonly action: Action;
  readonly collection?: string;
  readonly kind?: Collection['kind'];
  readonly needs?: Feature;
}

/** Every property is required unless it is named in `optional`. */
export function object(properties: Json, optional: readonly string[] = []): Json {
  const required = Object.keys(properties).filter((name) => !optional.includes(name));
  return { type: 'object', required, additionalProperties: false, properties };
}

/** An object of these members only, none of them required. */
export const closed = (properties: Json, more: Json = {}): Json => ({
  type: 'object',
  additionalProperties: false,
  properties,
  ...more,
});

/** A UUID. */
export const ID_SCHEMA: Json = { type: 'string', format: 'uuid' };
/** An id of the collection. */
export const idSchemaIn = ({ collections }: Pick<Schema, 'collections'>, name: string): Json =>
  keyKindIn({ collections }, name).jsonSchema({}) as Json;
/** An id of any collection. */
export function idSchemaOf({ collections }: Pick<Schema, 'collections'>): Json {
  const schemas = new Map(
    [...collections.keys()].map((name) => [JSON.stringify(idSchemaIn({ collections }, name)), name]),
  );
  const all = [...schemas.values()].map((name) => idSchemaIn({ collections }, name));
  return all.length === 1 ? ID_SCHEMA : { anyOf: all };
}
export const TEXT: Json = { type: 'string' };
export const TIMESTAMP: Json = { type: 'string', format: 'date-time' };
