/** Reports health. Alive: this process responds. Ready: it can do its work. */
import { object } from '../../describe/operation.ts';
import type { App } from '../../http/app.ts';
import { Problem } from '../../problem.ts';
import { withDeadline } from '../../with-deadline.ts';
import { route } from '../define-route.ts';

export const healthz = route({
  method: 'GET',
  path: '/healthz',
  door: 'public',
  id: 'healthz',
  summary: 'Check that the process is alive',
  answers: { 200: { description: 'Alive.', shape: () => object({ status: { const: 'alive' } }) } },
  problems: [],
  handle(ctx) {
    ctx.set('Cache-Control', 'no-store');
    ctx.body = { status: 'alive' };
  },
});

export const readyz = route({
  method: 'GET',
  path: '/readyz',
  isKept: true,
  door: 'public',
  id: 'readyz',
  summary: 'Check that the service can do its work',
  description: 'The database is reachable and holds the tables of the schema.',
  answers: { 200: { description: 'Ready.', shape: () => object({ status: { const: 'ready' } }) } },
  problems: ['unavailable'],
  async handle(ctx, app) {
    ctx.set('Cache-Control', 'no-store');
    await checkReady(app);
    ctx.body = { status: 'ready' };
  },
});

/** Milliseconds; the clients of this route give up soon, too. */
const READY_DEADLINE_MS = 1_000;

async function checkReady({ isReady, isStopping }: App): Promise<void> {
  if (isStopping()) throw new Problem('unavailable', 'the service is stopping');
  const holdsSchema = await withDeadline(isReady(), READY_DEADLINE_MS, () => {
    throw unavailableNow('the database does not answer');
  });
  if (!holdsSchema) throw unavailableNow('the database lacks tables, columns or unique fields of the schema');
}

const unavailableNow = (detail: string): Problem =>
  new Problem('unavailable', detail, { headers: { 'Retry-After': '5' } });
