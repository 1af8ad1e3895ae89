/**
 * Reads over a few connections on which statements are sent without waiting for the answers before them.
 * Each slot connects at its first use and again after a loss; a SELECT that a loss caught is asked once more.
 */
import pg from 'pg';
import type { Sql } from '../../sql.ts';
import { type Cells, StoreError } from './contract.ts';
import type { Statements } from './statements.ts';
import { isConnectionLoss, isStalePlan, toStoreError } from './to-store-error.ts';
import { mustNotHoldConnection } from './transaction.ts';

/** Above it, an answer would come too late to be of use. */
const MAX_PENDING = 2_000;

interface PipelineSlot {
  pending: number;
  client: pg.Client | undefined;
  connecting: Promise<pg.Client> | undefined;
}

export class Pipeline {
  readonly #config: pg.ClientConfig;
  readonly #statements: Statements;
  readonly #slots: PipelineSlot[];
  #closed = false;

  constructor(config: pg.ClientConfig, statements: Statements, size: number) {
    this.#config = config;
    this.#statements = statements;
    this.#slots = Array.from({ length: size }, () => ({ pending: 0, client: undefined, connecting: undefined }));
  }

  async rows(statement: Sql): Promise<readonly Cells[]> {
    mustNotHoldConnection();
    try {
      return await this.#ask(statement);
    } catch (error) {
      if (this.#closed || !(isConnectionLoss(error) || isStalePlan(error)) || !isSelect(statement)) {
        throw toStoreError(error);
      }
    }
    try {
      return await this.#ask(statement);
    } catch (error) {
      throw toStoreError(error);
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    await Promise.all(
      this.#slots.map(async (slot) => {
        const client = slot.client ?? (await slot.connecting?.catch(() => undefined));
        await client?.end();
      }),
    );
  }

  async #ask(statement: Sql): Promise<readonly Cells[]> {
    const slot = this.#leastBusy();
    if (slot.pending >= MAX_PENDING) throw new StoreError('unavailable', undefined, new Error('the queue is full'));
    slot.pending++;
    try {
      const client = slot.client ?? (await this.#connect(slot));
      return await this.#query(slot, client, statement);
    } finally {
      slot.pending--;
    }
  }

  async #query(slot: PipelineSlot, client: pg.Client, statement: Sql): Promise<readonly Cells[]> {
    try {
      gather(client);
      return (await this.#statements.send(client, statement)).rows;
    } catch (error) {
      if (isConnectionLoss(error) || isStalePlan(error)) discard(slot, client);
      throw error;
    }
  }

  #leastBusy(): PipelineSlot {
    let best = this.#slots[0]!;
    for (const slot of this.#slots) if (slot.pending < best.pending) best = slot;
    return best;
  }

  #connect(slot: PipelineSlot): Promise<pg.Client> {
    slot.connecting ??= this.#open(slot).finally(() => {
      slot.connecting = undefined;
    });
    return slot.connecting;
  }

  async #open(slot: PipelineSlot): Promise<pg.Client> {
    if (this.#closed) throw new StoreError('unavailable', undefined, new Error('the database is closed'));
    const client = new pg.Client({ ...this.#config, pipeline: true } as pg.ClientConfig);
    client.on('error', () => discard(slot, client));
    client.on('end', () => discard(slot, client));
    await client.connect();
    slot.client = client;
    return client;
  }
}

function isSelect(statement: Sql): boolean {
  return /^\s*SELECT\b/i.test(statement.text);
}

interface Corkable {
  readonly writableCorked: number;
  cork(): void;
  uncork(): void;
}

/**
 * Statements of one turn of the event loop go out in one write: the call costs as much as the rest
 * of a small read.
 */
function gather(client: pg.Client): void {
  const { stream } = (client as unknown as { readonly connection: { readonly stream: Corkable } }).connection;
  if (stream.writableCorked > 0) return;
  stream.cork();
  setImmediate(() => stream.uncork());
}

/** What is under way on it still gets its answer or its error; new statements go elsewhere. */
function discard(slot: PipelineSlot, client: pg.Client): void {
  if (slot.client !== client) return;
  slot.client = undefined;
  client.end().catch(() => undefined);
}
