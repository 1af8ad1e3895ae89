/** The usual ways to ask: a pool of `pg` with named statements, or `query` of PGlite. Both parse rows into objects. */
import { type Ask, isUrl } from './ask.ts';

export const openUsual = (place: string): Promise<Ask<object>> => (isUrl(place) ? openPool(place) : openFolder(place));

async function openPool(connectionString: string): Promise<Ask<object>> {
  const { default: pg } = await import('pg');
  pg.types.setTypeParser(pg.types.builtins.INT8, Number);
  const pool = new pg.Pool({ connectionString, max: 10 });
  return async (name, text, values) => {
    const { rows, rowCount } = await pool.query({ name, text, values: values as unknown[] });
    return { rows, count: rowCount ?? 0 };
  };
}

async function openFolder(folder: string): Promise<Ask<object>> {
  const { openEngine } = await import('./open-engine.ts');
  const engine = await openEngine(folder);
  return async (_name, text, values) => {
    const { rows, affectedRows = 0 } = await engine.query<object>(text, values as unknown[]);
    return { rows, count: affectedRows };
  };
}
