import { collectionCapabilities } from '../../describe/capability-schemas.ts';
import { inData } from '../../describe/collection-schemas.ts';
import { type Admission, admitOf, requestedCollection } from '../../http/gate.ts';
import { Problem } from '../../problem.ts';
import { takesWrite } from '../../schema/model/model.ts';
import { route } from '../define-route.ts';

export const readCollectionCapabilities = route({
  method: 'GET',
  path: '/api/:collection/can',
  door: 'caller',
  id: 'canOf',
  summary: 'Ask what you may do with {collection}',
  description: '`depends`: the decision depends on the record that is created.',
  answers: { 200: { description: 'What you may do.', shape: inData(collectionCapabilities) } },
  problems: ['not_found'],
  async handle(ctx, app) {
    const collection = requestedCollection(ctx);
    const isMadeHere = collection.kind !== 'users' && takesWrite(collection, 'create');
    const list = admissible(() => admitOf(ctx, app)(collection, 'list'));
    const create = isMadeHere ? admissible(() => admitOf(ctx, app, 'POST')(collection, 'create')) : undefined;
    ctx.set('Cache-Control', 'no-store');
    ctx.body = { data: { list: list !== undefined, create: create?.certainty() ?? false } };
  },
});

/** Undefined where no request could be admitted. */
function admissible(admit: () => Admission): Admission | undefined {
  try {
    return admit();
  } catch (error) {
    if (error instanceof Problem && error.code === 'forbidden') return undefined;
    throw error;
  }
}
