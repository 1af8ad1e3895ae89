/** The embedded engine from its start to its end, and the one connection to it. */
import { chmod } from 'node:fs/promises';
import type pg from 'pg';
import { ident } from '../../sql.ts';
import { codeOf } from '../../thrown.ts';
import { CellClient } from '../pg-internals.ts';
import { damaged, requireSameVersion } from './data-folder.ts';
import { EngineStream } from './engine-stream.ts';
import { EngineThread } from './engine-thread.ts';

export interface EngineOptions {
  /** In memory without it. */
  readonly folder: string | undefined;
  readonly snapshot?: Blob;
  readonly searchPath?: string;
}

export class RunningEngine {
  readonly client: pg.Client;
  readonly #thread: EngineThread;
  #end: Error | undefined;

  private constructor(thread: EngineThread, client: pg.Client) {
    this.#thread = thread;
    this.client = client;
    client.on('error', (error) => {
      this.#end ??= error;
    });
    client.on('end', () => {
      this.#end ??= new Error('its connection has ended');
    });
  }

  /** Throws what is wrong with the folder. */
  static async start(options: EngineOptions): Promise<RunningEngine> {
    const thread = await startThread(options);
    try {
      return new RunningEngine(thread, await connect(thread, options.searchPath));
    } catch (error) {
      await thread.close();
      throw error;
    }
  }

  /** Why it can be asked nothing any more. */
  get end(): Error | undefined {
    return this.#thread.failure ?? this.#end;
  }

  async close(): Promise<void> {
    await this.client.end();
    await this.#thread.close();
  }

  /** As if the process ended: it writes nothing more. */
  async kill(): Promise<void> {
    await this.#thread.kill();
    await this.client.end();
  }
}

async function startThread({ folder, snapshot }: EngineOptions): Promise<EngineThread> {
  if (folder === undefined) return EngineThread.start({ snapshot: await snapshot?.arrayBuffer() });
  await requireSameVersion(folder);
  const thread = await EngineThread.start({ folder }).catch((error: unknown) => {
    throw isOfSystem(error) ? error : damaged(folder, error);
  });
  await chmod(folder, 0o700);
  return thread;
}

/** Of a folder that may not be read or written, a thread that cannot be had, a package that is not there: none is damaged. */
const isOfSystem = (error: unknown): boolean =>
  error instanceof Error && ('syscall' in error || String(codeOf(error)).startsWith('ERR_'));

async function connect(thread: EngineThread, searchPath: string | undefined): Promise<pg.Client> {
  const stream = () => new EngineStream(thread);
  // Every option that the environment could change is set here.
  const client = new CellClient({
    stream,
    ssl: false,
    user: 'postgres',
    database: 'postgres',
  });
  client.on('error', () => undefined);
  await client.connect();
  await client.query(
    `SET TimeZone = 'UTC'; SET DateStyle = 'ISO'; SET bytea_output = 'hex'; SET extra_float_digits = 1`,
  );
  if (searchPath) await client.query(`SET search_path = ${ident(searchPath).text}`);
  return client;
}
