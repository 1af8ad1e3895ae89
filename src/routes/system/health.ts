/** Alive: this process responds. Ready: it can do its work. */
import { object } from '../../describe/operation.ts';
import type { App } from '../../http/app.ts';
import { Problem } from '../../problem.ts';
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

/** Milliseconds. What asks for readiness gives up soon, too. */
const PATIENCE_MS = 1_000;

async function checkReady({ isReady, isStopping }: App): Promise<void> {
  if (isStopping()) throw new Problem('unavailable', 'the service is stopping');
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(
    () => reject(new Problem('unavailable', 'the database does not answer', { headers: { 'Retry-After': '5' } })),
    PATIENCE_MS,
  );
  const ready = isReady();
  // It may fail after the answer.
  ready.catch(() => undefined);
  try {
    await requireCurrent(Promise.race([ready, late]));
  } finally {
    clearTimeout(timer);
  }
}

async function requireCurrent(isReady: Promise<boolean>): Promise<void> {
  if (!(await isReady)) {
    throw new Problem('unavailable', 'the database lacks tables, columns or unique fields of the schema', {
      headers: { 'Retry-After': '5' },
    });
  }
}
