import type { Transaction } from '../../database/contract.ts';
import {
  createData,
  exclusionProblems,
  expandParameter,
  uniqueProblems,
  written,
} from '../../describe/collection-schemas.ts';
import { admissionOf } from '../../http/gate.ts';
import { Problem } from '../../problem.ts';
import { route } from '../define-route.ts';
import { createUnderKey, idempotencyKeyOf, idempotencyParameter, keyOwnerOf } from './idempotent.ts';
import { expandOf } from './query/query-string.ts';
import { answerCreated, recordBody, sendAnswer } from './request.ts';

export const createRecord = route({
  method: 'POST',
  path: '/api/:collection',
  door: { action: 'create', kind: 'plain' },
  id: 'create',
  summary: 'Create a record of {collection}',
  description: 'Omitted fields take their default, else null.',
  parameters: [idempotencyParameter, expandParameter],
  body: recordBody(createData),
  answers: {
    201: {
      description: 'The record, or only its id where you may not read it.',
      shape: written,
      headers: ['Location', 'ETag'],
    },
  },
  problems: ['invalid_parameter', 'unknown_expand', uniqueProblems, exclusionProblems, 'idempotency_mismatch'],
  async handle(ctx, app, envelope) {
    const { path } = ctx;
    const admission = admissionOf(ctx);
    const key = idempotencyKeyOf(ctx);
    const { data, errors } = envelope;
    const relations = expandOf(ctx, admission.collection);
    if (errors.length > 0) {
      throw new Problem('validation_failed', 'the body is not `{ "data": { … } }`', { errors });
    }
    const access = admission.access(data);
    const create = (tx?: Transaction) => app.records.create(access, { data, relations, tx });
    if (key === undefined) return await sendAnswer(ctx, answerCreated(path, admission.collection, await create()));
    const asked = { ...keyOwnerOf(ctx, admission.caller), path, key, bodyHash: ctx.state.bodyHash };
    const answer = await createUnderKey(ctx, app, { key: asked, collection: admission.collection, relations, create });
    await sendAnswer(ctx, answer);
  },
});
