import { bodyHashOf, dataOf } from '../../http/body.ts';
import { admissionOf } from '../../http/gate.ts';
import type { Route } from '../../http/route.ts';
import type { Transaction } from '../../store/database/contract.ts';
import { answerCreated, send } from './answer.ts';
import { idempotencyKeyOf, withIdempotencyKey } from './idempotent.ts';
import { expandOf } from './request.ts';

export const createRecord: Route = {
  method: 'POST',
  path: '/api/:collection',
  door: { action: 'create' },
  summary: 'Create a record',
  body: 'json',
  async handle(ctx, app) {
    const key = idempotencyKeyOf(ctx);
    const body = await app.readJson(ctx);
    const { collection, ask, caller } = admissionOf(ctx);
    const expand = expandOf(ctx, collection);
    const data = dataOf(body);
    const asked = ask(data);
    const create = (tx?: Transaction) =>
      app.records.create(asked, { data, expand }, tx).then((written) => answerCreated(ctx.path, written));
    const answer =
      key === undefined
        ? await create()
        : await withIdempotencyKey(app, { userId: caller.id, path: ctx.path, key, bodyHash: bodyHashOf(ctx) }, create);
    send(ctx, answer);
  },
};
