/** Clients that create and read until they are stopped, and remember what was acknowledged. */
import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Client } from '../support/client.ts';
import type { FaultWorld } from './world.ts';

export interface Tally {
  /** Counts by status; `lost` is a connection that ended without an answer. */
  readonly statuses: Readonly<Record<string, number>>;
  /** Milliseconds of reads that were answered with 200. */
  readonly readTimes: readonly number[];
}

export class Load {
  readonly #clients: readonly Client[];
  readonly #statuses = new Map<string, number>();
  readonly #readTimes: number[] = [];
  readonly #acknowledged = new Set<string>();
  readonly #refused = new Set<string>();
  readonly #running: Promise<unknown>[];
  #isStopping = false;

  /** Half of the creates carry an Idempotency-Key, and are sent again until they are answered. */
  constructor(clients: readonly Client[], writers = 4, readers = 4) {
    this.#clients = clients;
    this.#running = [
      ...Array.from({ length: writers }, (_, n) => this.#write(n)),
      ...Array.from({ length: readers }, (_, n) => this.#read(n)),
    ];
  }

  async stop(): Promise<Tally> {
    this.#isStopping = true;
    await Promise.all(this.#running);
    return { statuses: Object.fromEntries(this.#statuses), readTimes: this.#readTimes };
  }

  /** Every acknowledged create is stored once, and none that was refused. */
  async check(world: FaultWorld): Promise<void> {
    const rows = await world.query('SELECT title, count(*)::int AS times FROM notes GROUP BY title');
    const times = new Map(rows.map((row) => [row.title as string, row.times as number]));
    const lost = [...this.#acknowledged].filter((title) => !times.has(title));
    const doubled = [...times].filter(([title, count]) => this.#acknowledged.has(title) && count > 1);
    const unasked = [...this.#refused].filter((title) => times.has(title));
    assert.deepEqual({ lost, doubled, unasked }, { lost: [], doubled: [], unasked: [] });
    assert(this.#acknowledged.size > 0, 'something was written');
  }

  #client(n: number): Client {
    return this.#clients[n % this.#clients.length]!;
  }

  async #write(n: number): Promise<void> {
    for (let i = 0; !this.#isStopping; i++) {
      const title = randomUUID();
      const key = i % 2 === 0 ? { 'Idempotency-Key': randomUUID() } : undefined;
      await this.#create(this.#client(n + i), title, key);
      await new Promise((resolve) => setTimeout(resolve, 10));
    }
  }

  async #create(client: Client, title: string, key: Record<string, string> | undefined): Promise<void> {
    for (let attempt = 0; attempt < 100; attempt++) {
      const answer = await client.post('/api/notes', { data: { title } }, key).catch(() => undefined);
      this.#count(answer?.status);
      if (answer?.status === 201) this.#acknowledged.add(title);
      // Without a key, a loss of the answer leaves open what happened; a 503 of a commit does, too.
      if (answer?.status === 201 || key === undefined || this.#isStopping) return;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    this.#refused.add(title);
  }

  async #read(n: number): Promise<void> {
    for (let i = 0; !this.#isStopping; i++) {
      const since = performance.now();
      const answer = await this.#client(n + i)
        .get('/api/notes?limit=10')
        .catch(() => undefined);
      this.#count(answer?.status);
      if (answer?.status === 200) this.#readTimes.push(performance.now() - since);
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }

  #count(status: number | undefined): void {
    const name = String(status ?? 'lost');
    this.#statuses.set(name, (this.#statuses.get(name) ?? 0) + 1);
  }
}

/** No answer but these. */
export function expectOnly({ statuses }: Tally, ...allowed: readonly string[]): void {
  const others = Object.entries(statuses).filter(([status]) => !allowed.includes(status));
  assert.deepEqual(others, [], `only ${allowed.join(', ')} are answered`);
}
