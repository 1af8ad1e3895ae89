/** The embedded database as a lane of the fuzz. */
import pg from 'pg';
import type { Lane } from './run.ts';

/** Nothing cancels a statement of minutes, after which the run would have no time for another. */
const MOST_REST_MS = 5_000;

interface EmbeddedOptions {
  /** Default: a new database, which takes a second or two to make. */
  readonly snapshot?: Blob;
  /** Pause after each statement, in multiples of its duration: the database blocks this process while it works. Default 0. */
  readonly rest?: number;
}

export async function openEmbeddedLane(
  stops: (() => Promise<void>)[],
  { snapshot, rest = 0 }: EmbeddedOptions = {},
): Promise<Lane> {
  const { PGlite } = await import('@electric-sql/pglite');
  const { createPgConfig } = await import('@electric-sql/pglite/node-postgres');
  const engine = await PGlite.create(snapshot === undefined ? {} : { loadDataDir: snapshot });
  const client = new pg.Client(createPgConfig(engine) as unknown as pg.ClientConfig);
  await client.connect();
  stops.push(async () => {
    await client.end();
    await engine.close();
  });
  let restUntil = 0;
  const query = async (text: string, values?: readonly unknown[]) => {
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, restUntil - performance.now())));
    const start = performance.now();
    const result = await client.query(text, values as unknown[]);
    restUntil = performance.now() + Math.min(MOST_REST_MS, rest * (performance.now() - start));
    return result as { rows: Record<string, unknown>[] };
  };
  return { database: { query }, backend: 'PGlite' };
}
