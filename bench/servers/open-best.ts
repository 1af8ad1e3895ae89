/** The best ways to ask: pipelined connections of `pg`, or messages for PGlite that go in one call. Cells are text. */
import type pg from 'pg';
import { type Ask, type Cells, isUrl } from './ask.ts';

export interface Asks {
  readonly reads: Ask<Cells>;
  readonly writes: Ask<Cells>;
}

export const openBest = (place: string): Promise<Asks> => (isUrl(place) ? openLanes(place) : openFolder(place));

async function openLanes(url: string): Promise<Asks> {
  // More for writes, since each waits for the disk.
  const [reads, writes] = await Promise.all([Lanes.open(url, 4), Lanes.open(url, 16)]);
  return { reads: reads.ask, writes: writes.ask };
}

/** An engine has a single connection, for reads and writes. */
async function openFolder(folder: string): Promise<Asks> {
  const [{ openEngine }, { EngineClient }] = await Promise.all([
    import('./open-engine.ts'),
    import('./engine-client.ts'),
  ]);
  const { ask } = new EngineClient(await openEngine(folder));
  return { reads: ask, writes: ask };
}

const AS_TEXT = { getTypeParser: () => (cell: unknown) => cell } as unknown as pg.CustomTypesConfig;

/** Connections on which statements do not wait for the answers before them. */
class Lanes {
  readonly #clients: readonly pg.Client[];
  #next = 0;

  private constructor(clients: readonly pg.Client[]) {
    this.#clients = clients;
  }

  static async open(connectionString: string, size: number): Promise<Lanes> {
    const { default: pg } = await import('pg');
    const options = { connectionString, pipeline: true } as pg.ClientConfig;
    const clients = Array.from({ length: size }, () => new pg.Client(options));
    for (const client of clients) {
      await client.connect();
      await client.query(`SET TimeZone = 'UTC'`);
    }
    return new Lanes(clients);
  }

  readonly ask: Ask<Cells> = async (name, text, values) => {
    const client = this.#clients[this.#next++ % this.#clients.length]!;
    const query = { name, text, values: values as unknown[], rowMode: 'array' as const, types: AS_TEXT };
    const { rows, rowCount } = await client.query<(string | null)[]>(query);
    return { rows, count: rowCount ?? 0 };
  };
}
