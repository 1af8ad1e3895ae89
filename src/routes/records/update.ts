import { dataOf } from '../../http/body.ts';
import { versionsOf } from '../../http/etag.ts';
import { admissionOf } from '../../http/gate.ts';
import type { Route } from '../../http/route.ts';
import { Problem } from '../../problem.ts';
import { Refusal } from '../../store/refusal.ts';
import { answerWritten, send } from './answer.ts';
import { announceUserChange, expandOf, headerOf, idOf } from './request.ts';

export const updateRecord: Route = {
  method: 'PATCH',
  path: '/api/:collection/:id',
  door: { action: 'update' },
  summary: 'Change fields of one record',
  body: 'json',
  async handle(ctx, app) {
    const { records, readJson } = app;
    const body = await readJson(ctx);
    const { collection, ask } = admissionOf(ctx);
    const expand = expandOf(ctx, collection);
    const { data, fault } = envelopeOf(body);
    if (data !== undefined && Object.keys(data).length === 0)
      throw new Problem('patch_empty', 'a patch changes one field at least');
    const ifVersion = versionsOf(headerOf(ctx, 'If-Match'));
    const asked = ask(data);
    const written = await records.update(asked, { id: idOf(ctx), data, expand, ifVersion }).catch((error: unknown) => {
      // A fault of the envelope is told only about a record that the caller may change.
      throw fault !== undefined && isInvalid(error) ? fault : error;
    });
    if (collection.kind === 'users') await announceUserChange(ctx, app, written.id);
    send(ctx, answerWritten(written));
  },
};

interface Envelope {
  readonly data?: Readonly<Record<string, unknown>>;
  readonly fault?: Problem | Refusal;
}

function envelopeOf(body: unknown): Envelope {
  try {
    return { data: dataOf(body) };
  } catch (error) {
    if (isInvalid(error)) return { fault: error };
    throw error;
  }
}

const isInvalid = (error: unknown): error is Problem | Refusal =>
  (error instanceof Problem || error instanceof Refusal) && error.code === 'validation_failed';
