/**
 * The requests and the answers of the routes of one record. A write has a body `{ "data": … }`, read
 * and checked once; its answer is a value that can be kept and sent again. Not a route.
 */
import type { Context } from 'koa';
import { inData } from '../../describe/collection-schemas.ts';
import type { OperationParameter, Shape } from '../../describe/operation.ts';
import { entityTagOf, sendJson } from '../../http/answer/send.ts';
import { notFoundProblem } from '../../http/gate.ts';
import { parseUuid } from '../../policy/values.ts';
import { addError, type ErrorDetail, Problem, pointerPart } from '../../problem.ts';
import { between, type JsonText } from '../../records/json-pieces.ts';
import type { WrittenAnswer } from '../../records/read.ts';
import { type Data, isObject } from '../../records/write/input.ts';
import { keyKindOf } from '../../schema/fields/index.ts';
import type { Collection } from '../../schema/model/model.ts';
import type { Body } from '../define-route.ts';

/** The UUID in the path. */
export const idInPath = (ctx: Context): string => requireFound(parseUuid(ctx.params.id as string));

/** The id of a record in the path. */
export const recordIdOf = (ctx: Context, collection: Collection): string =>
  requireRecordId(collection, ctx.params.id as string);

/** Text that is not an id of the collection identifies no record. */
export const requireRecordId = (collection: Collection, text: string): string =>
  String(requireFound(keyKindOf(collection).fromQuery(text)));

function requireFound<T>(id: T | undefined): T {
  if (id === undefined) throw notFoundProblem();
  return id;
}

export function headerOf(ctx: Context, name: string): string | undefined {
  const value = ctx.get(name);
  return value === '' ? undefined : value;
}

export const ifMatchParameter: OperationParameter = {
  name: 'If-Match',
  in: 'header',
  description: '`*`, or the ETags that the record may have. Any other version is `changed`.',
  schema: { type: 'string', pattern: '^(\\*|"[^"]+"( *, *"[^"]+")*)$' },
};

export const ifNoneMatchParameter: OperationParameter = {
  name: 'If-None-Match',
  in: 'header',
  description: '`*`, or the ETags that you have. The response is 304 where one of them is current.',
  schema: { type: 'string' },
};

// ---------------------------------------------------------------- writes

/**
 * The body of a write. An update reports its errors only to a caller who may change the record, so
 * they are not thrown.
 */
export interface Envelope {
  /** Empty where the body has no usable `data`. */
  readonly data: Data;
  readonly errors: readonly ErrorDetail[];
}

/** `data`: the schema of what the object under `data` takes. */
export const recordBody = (data: Shape): Body<Envelope> => ({
  type: 'application/json',
  shape: inData(data),
  read: async (ctx, app) => envelopeOf(await app.readJson(ctx)),
});

/** Throws `patch_empty`. */
export function requireChange(data: Data): void {
  if (Object.keys(data).length === 0) throw new Problem('patch_empty', 'a patch changes at least one field');
}

function envelopeOf(body: unknown): Envelope {
  if (!isObject(body)) {
    const detail = 'expected an object with the key `data`';
    return { data: {}, errors: [{ pointer: '', code: 'not_an_object', detail }] };
  }
  const errors: ErrorDetail[] = [];
  for (const key of Object.keys(body)) if (key !== 'data') addError(errors, unknownKey(key));
  const data = Object.hasOwn(body, 'data') ? body.data : undefined;
  if (isObject(data)) return { data, errors };
  const code = data === undefined ? 'required' : 'not_an_object';
  const detail = 'expected an object with the fields of the record';
  return { data: {}, errors: [...errors, { pointer: '/data', code, detail }] };
}

const unknownKey = (key: string): ErrorDetail => ({
  pointer: `/${pointerPart(key)}`,
  code: 'unknown_key',
  detail: 'unknown key; the fields of the record belong under `data`',
});

// ---------------------------------------------------------------- answers

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: JsonText;
}

export function answerCreated(path: string, collection: Collection, written: WrittenAnswer): Answer {
  const { headers, body } = answerWritten(collection, written);
  return { status: 201, headers: { Location: `${path}/${encodeURIComponent(written.id)}`, ...headers }, body };
}

/** Only the id where the caller may not read the result. */
export function answerWritten(collection: Collection, { id, json, version }: WrittenAnswer): Answer {
  if (json === undefined || version === undefined) {
    return { status: 200, headers: {}, body: `{"data":{"id":${keyKindOf(collection).toJson(id)}}}` };
  }
  return { status: 200, headers: { ETag: entityTagOf(version, json) }, body: between('{"data":', json, '}') };
}

export function sendAnswer(ctx: Context, { status, headers, body }: Answer): Promise<void> {
  for (const name in headers) ctx.res.setHeader(name, headers[name]!);
  return sendJson(ctx, body, status);
}
