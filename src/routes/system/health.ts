/** Alive: this process answers. Ready: it can do its work. */
import type { App } from '../../http/app.ts';
import type { Route } from '../../http/route.ts';
import { Problem } from '../../problem.ts';
import { isCurrent } from '../../store/migrations/migrate.ts';

export const healthz: Route = {
  method: 'GET',
  path: '/healthz',
  door: 'public',
  summary: 'Whether the process is alive',
  handle(ctx) {
    ctx.set('Cache-Control', 'no-store');
    ctx.body = { status: 'alive' };
  },
};

export const readyz: Route = {
  method: 'GET',
  path: '/readyz',
  door: 'public',
  summary: 'Whether the database is reachable and holds the tables of the schema',
  async handle(ctx, app) {
    ctx.set('Cache-Control', 'no-store');
    await checkReady(app);
    ctx.body = { status: 'ready' };
  },
};

async function checkReady({ db, schema }: App): Promise<void> {
  await db.ping();
  if (!(await isCurrent(db, schema))) {
    throw new Problem('unavailable', 'the database holds the tables of another schema', {
      headers: { 'Retry-After': '5' },
    });
  }
}
