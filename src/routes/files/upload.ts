import { createHash } from 'node:crypto';
import type { Context } from 'koa';
import { StoreError, type Transaction } from '../../database/contract.ts';
import {
  createData,
  exclusionProblems,
  expandParameter,
  uniqueProblems,
  written,
} from '../../describe/collection-schemas.ts';
import type { RequestBody } from '../../describe/operation.ts';
import { boundaryOf } from '../../files/receive/multipart.ts';
import { checkQuota, quotaOf, takeQuota } from '../../files/receive/quota.ts';
import { checkLength, type Received, receive } from '../../files/receive/receive.ts';
import type { Incoming } from '../../files/storage/storage.ts';
import type { App } from '../../http/app.ts';
import { askForBody, readJsonBody } from '../../http/body.ts';
import { admissionOf } from '../../http/gate.ts';
import { Problem } from '../../problem.ts';
import { currentCaller } from '../../queued-caller.ts';
import { newRecordId } from '../../record-id.ts';
import { Refusal } from '../../refusal.ts';
import type { Relation } from '../../schema/model/model.ts';
import { route } from '../define-route.ts';
import { createUnderKey, idempotencyKeyOf, idempotencyParameter, keyOwnerOf } from '../records/idempotent.ts';
import { expandOf } from '../records/query/query-string.ts';
import { answerCreated, sendAnswer } from '../records/request.ts';
import { drain } from './drain.ts';

/** The handler streams it. */
const form: RequestBody = {
  type: 'multipart/form-data',
  shape: (scope) => ({
    type: 'object',
    required: ['file'],
    additionalProperties: false,
    properties: { file: { type: 'string', contentMediaType: 'application/octet-stream' }, data: createData(scope) },
  }),
  encoding: ({ schema }) => ({
    file: { contentType: schema.uploads.types.length === 0 ? '*/*' : schema.uploads.types.join(', ') },
    data: { contentType: 'application/json' },
  }),
};

export const uploadFiles = route({
  method: 'POST',
  path: '/api/files',
  door: { action: 'create', collection: 'files' },
  id: 'create_files',
  summary: 'Upload a file',
  description: 'The part `file` has the bytes, the optional part `data` the fields of the record as JSON.',
  parameters: [idempotencyParameter, expandParameter],
  body: { ...form, read: async () => undefined },
  answers: {
    201: {
      description: 'The record of the file, or only its id where you may not read it.',
      shape: written,
      headers: ['Location', 'ETag'],
    },
  },
  problems: [
    'invalid_parameter',
    'unknown_expand',
    'malformed_multipart',
    uniqueProblems,
    exclusionProblems,
    'idempotency_mismatch',
  ],
  async handle(ctx, app) {
    try {
      const form = await checkedForm(ctx, app);
      await app.files.uploads.run(currentCaller().id, () => upload(ctx, app, form));
    } catch (error) {
      // A client that is still sending would not read the response before the end.
      await drain(ctx);
      throw error;
    }
  },
});

/** The facts of a request that are known before its body is read. */
interface Form {
  readonly key: string | undefined;
  readonly relations: readonly Relation[];
  readonly boundary: string;
  /** Bytes. Undefined: no limit. */
  readonly quota: number | undefined;
}

async function checkedForm(ctx: Context, app: App): Promise<Form> {
  const { uploads } = app.schema;
  const { caller, collection } = admissionOf(ctx);
  const key = idempotencyKeyOf(ctx);
  const relations = expandOf(ctx, collection);
  const boundary = checkedBoundary(ctx);
  checkLength(ctx.get('Content-Length'), uploads);
  const quota = quotaOf(uploads, caller.auth.roles);
  if (quota !== undefined) await checkQuota(app.db, { userId: caller.principal, quota, size: 1 });
  return { key, relations, boundary, quota };
}

async function upload(ctx: Context, app: App, { key, relations, boundary, quota }: Form): Promise<void> {
  const { uploads } = app.schema;
  const admission = admissionOf(ctx);
  const { principal } = admission.caller;
  const id = newRecordId();
  const incoming = await app.files.storage.incoming(id);
  const published = { done: false };
  try {
    askForBody(ctx);
    const received = await receive(ctx.req, { boundary, limits: uploads, incoming });
    const data = { name: received.name, ...partData(received) };
    const access = admission.access(data);
    await incoming.publish();
    published.done = true;
    const create = async (tx: Transaction) => {
      if (quota !== undefined) await takeQuota(tx, { userId: principal, quota, size: received.size });
      return app.records.create(access, { data, relations, given: givenOf(id, received), tx });
    };
    const { collection } = admission;
    const { path } = ctx;
    const answer =
      key === undefined
        ? answerCreated(path, collection, await app.db.transaction(create).finally(() => app.db.noteWrite(principal)))
        : await createUnderKey(ctx, app, {
            key: { ...keyOwnerOf(ctx, admission.caller), path, key, bodyHash: uploadHash(received) },
            collection,
            relations,
            create,
          });
    // The first request under this key stored a file already.
    if (answer.headers.Location !== `${ctx.path}/${id}`) await incoming.discard();
    await sendAnswer(ctx, answer);
  } catch (error) {
    await undo(incoming, error, published.done);
    throw error;
  }
}

/**
 * A commit whose result was lost may have happened: then the bytes have a record; otherwise the
 * sweeper deletes them.
 */
async function undo(incoming: Incoming, error: unknown, published: boolean): Promise<void> {
  const isSettled =
    error instanceof Problem ||
    error instanceof Refusal ||
    (error instanceof StoreError && error.kind !== 'unavailable');
  if (!published || isSettled) await incoming.discard();
}

function checkedBoundary(ctx: Context): string {
  const encoding = ctx.get('Content-Encoding').trim();
  if (encoding !== '') throw new Problem('unsupported_media_type', 'send the body without a Content-Encoding');
  return boundaryOf(ctx.get('Content-Type'));
}

function givenOf(id: string, { contentType, size, sha256 }: Received): Readonly<Record<string, string | number>> {
  return { id, content_type: contentType, size, sha256 };
}

function partData({ data }: Received): Readonly<Record<string, unknown>> {
  const read = data === undefined ? {} : readJsonBody(data);
  if (typeof read === 'object' && read !== null && !Array.isArray(read))
    return read as Readonly<Record<string, unknown>>;
  const detail = 'the part `data` must be a JSON object with the fields of the file';
  throw new Problem('validation_failed', detail, { errors: [{ pointer: '/data', code: 'not_an_object', detail }] });
}

/** Equal for forms of equal content with different boundaries. */
function uploadHash({ name, contentType, sha256, data }: Received): string {
  return createHash('sha256')
    .update(JSON.stringify([name, contentType, sha256, data?.toString('base64')]))
    .digest('hex');
}
