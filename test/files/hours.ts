/** When bytes are removed: with their records, and by the sweep: at the start and every hour, one at a time, also after a failed one, not after the end. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import type { Database } from '../../src/database/contract.ts';
import { createFiles, type Files } from '../../src/files/files.ts';
import type { Storage, Sweep } from '../../src/files/storage/storage.ts';
import { seconds, sql } from '../../src/sql.ts';
import type { TestService } from '../support/service.ts';

const HOUR = 3_600_000;
/** The age of the last claim that no copy has contested. */
const SETTLED_AGE = 2.5 * HOUR;
/** Turns of the event loop without a statement under way, after which a sweep does nothing more by itself. */
const QUIET_TURNS = 10;

/** A storage that only sweeps and removes, each time as the test defines. */
class SweptStorage {
  readonly sweeps: Sweep[] = [];
  /** The ends of running sweeps. */
  readonly ends: PromiseWithResolvers<number>[] = [];
  /** The result of removing the bytes of a file. */
  remove: (id: string) => Promise<void> = async () => undefined;

  mark: () => Promise<string | undefined> = async () => undefined;
  setMark = async (): Promise<void> => undefined;

  sweep(order: Sweep): Promise<number> {
    this.sweeps.push(order);
    const end = Promise.withResolvers<number>();
    this.ends.push(end);
    return end.promise;
  }
}

/** Counts the statements of a database that are under way. */
class PendingStatements {
  #count = 0;

  of(db: Database): Database {
    const members = Object.entries(db).map(([name, member]) => [
      name,
      typeof member === 'function' ? this.#counted(member) : member,
    ]);
    return Object.fromEntries(members);
  }

  #counted(member: (...given: unknown[]) => unknown) {
    return (...given: unknown[]): unknown => {
      const answer = member(...given);
      if (!(answer instanceof Promise)) return answer;
      this.#count++;
      return answer.finally(() => {
        this.#count--;
      });
    };
  }

  async settled(): Promise<void> {
    for (let quiet = 0; quiet < QUIET_TURNS; quiet = this.#count === 0 ? quiet + 1 : 0)
      await new Promise((done) => setImmediate(done));
  }
}

export function describeHours(service: TestService): void {
  describe('the hours of the sweep', () => hoursOf(service));
}

function hoursOf(service: TestService): void {
  let storage: SweptStorage;
  let errors: unknown[];
  let files: Files;
  const statements = new PendingStatements();
  const settle = (): Promise<void> => statements.settled();
  const pass = async (milliseconds: number): Promise<void> => {
    vi.advanceTimersByTime(milliseconds);
    await settle();
  };
  const end = async (with_: number | Error): Promise<void> => {
    const running = storage.ends.at(-1)!;
    if (typeof with_ === 'number') running.resolve(with_);
    else running.reject(with_);
    await settle();
  };

  beforeEach(async () => {
    await service.app.db.run(sql`UPDATE "_files_marks" SET at = now() - ${seconds(SETTLED_AGE / 1_000)}`);
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
    storage = new SweptStorage();
    errors = [];
    const made = createFiles({
      db: statements.of(service.app.db),
      schema: service.app.schema,
      openStorage: async () => storage as unknown as Storage,
      place: 'here',
      onError: (what, error) => errors.push([what, (error as Error).message]),
    });
    while (storage.sweeps.length === 0) await settle();
    await end(0);
    files = await made;
  });
  afterEach(() => {
    files.close();
    vi.useRealTimers();
  });

  test('the sweep runs at the start, without grace if no other process can run, and every hour with grace before the settled claim', async () => {
    const atStart = service.kind === 'embedded' ? 0 : expect.closeTo(900_000 + SETTLED_AGE, -4);
    expect(storage.sweeps.map(({ grace }) => grace)).toEqual([atStart]);
    await pass(HOUR - 1);
    expect(storage.sweeps).toHaveLength(1);
    await pass(1);
    await end(0);
    await pass(HOUR);
    await end(3);
    const hourly = expect.closeTo(900_000 + SETTLED_AGE, -4);
    expect(storage.sweeps.map(({ grace }) => grace)).toEqual([atStart, hourly, hourly]);
    expect(errors).toEqual([]);
  });

  test('the sweep never runs twice at a time, not even on request', async () => {
    await pass(HOUR);
    await pass(3 * HOUR);
    expect(storage.sweeps).toHaveLength(2);
    const asked = files.sweep(1);
    await settle();
    expect(storage.sweeps).toHaveLength(2);
    await end(0);
    expect(storage.sweeps).toHaveLength(3);
    await end(7);
    expect(await asked).toBe(7);
    await pass(HOUR);
    expect(storage.sweeps).toHaveLength(4);
    await end(0);
  });

  test('the sweep reports a failure, and tries again an hour later', async () => {
    await pass(HOUR);
    await end(new Error('no bucket'));
    expect(errors).toEqual([['the sweep of the files failed', 'no bucket']]);
    await pass(HOUR);
    expect(storage.sweeps).toHaveLength(3);
    await end(0);
    expect(errors).toHaveLength(1);
  });

  test('the sweep ends with the service, also in the middle, and without an error', async () => {
    await pass(HOUR);
    const { alive } = storage.sweeps.at(-1)!;
    expect(await alive(['01900000-0000-7000-8000-000000000001', 'nonsense'])).toEqual(new Set());
    files.close();
    expect(vi.getTimerCount()).toBe(0);
    expect(() => alive([])).toThrow('the service is stopping');
    await end(new Error('the service is stopping'));
    await pass(5 * HOUR);
    expect(storage.sweeps).toHaveLength(2);
    expect(errors).toEqual([]);
  });

  test('bytes that cannot be deleted are reported, and delay neither other bytes nor a response', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const removed: string[] = [];
    storage.remove = async (id) => {
      if (id === 'never') await new Promise(() => undefined);
      if (id === 'not') throw new Error('no bucket');
      removed.push(id);
    };
    const ids = Array.from({ length: 20 }, (_, i) => String(i));
    await files.discard(['not', ...ids]);
    expect([removed, errors]).toEqual([ids, [['the bytes of a deleted file are left to the sweep', 'no bucket']]]);
    let isAnswered = false;
    const discarding = files.discard(['never']).then(() => {
      isAnswered = true;
    });
    await pass(1_999);
    expect(isAnswered).toBe(false);
    await pass(1);
    await discarding;
    expect(vi.getTimerCount()).toBe(0);
  });
}
