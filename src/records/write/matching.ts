/**
 * Writes the records that the caller may list and that match a filter, each under its own rule: all of them, or none.
 * The page is found as any list is; once its records are locked, the transaction finds it again, so that no record is
 * written which has ceased to match.
 */
import { invalid, Refusal } from '../../refusal.ts';
import { raw, sql } from '../../sql.ts';
import type { AccessContext, Reading, Store } from '../access-context.ts';
import type { PageReading, RecordPage } from '../page/list.ts';
import { idsOnPage, list } from '../page/list.ts';
import type { ListRequest } from '../page/page-plan.ts';
import { recordKeyOf } from '../record-key.ts';
import { inTenantOf, scopeOf } from '../scope.ts';
import { type Batch, batch } from './batch.ts';
import { type Data, guardedMembers, readInput } from './input.ts';

export interface MatchingWrite {
  readonly list: AccessContext;
  /** The access to the action. */
  readonly access: AccessContext;
  readonly filter: ListRequest['filter'];
  readonly limit: number;
  /** Undefined: the records are deleted. */
  readonly data?: Data;
  readonly skipsRefused: boolean;
}

export interface MatchedWrites {
  readonly matched: number;
  readonly changed: number;
  /** The refused records that the caller may read. Empty where they are skipped. */
  readonly refused: readonly RefusedRecord[];
  readonly isRefused: boolean;
}

interface RefusedRecord {
  readonly id: string;
  /** `forbidden`, by the rule of the record, or with the errors of its fields. */
  readonly refusal: Refusal;
}

/** @param end the last statements of the transaction; it throws to undo all writes */
export async function writeMatching<T>(
  pages: PageReading,
  write: MatchingWrite,
  end: (outcome: MatchedWrites, running: Batch) => Promise<T>,
): Promise<T> {
  const { store } = pages;
  const { access, data } = write;
  const { collection } = access;
  if (data !== undefined) requireValidData(store, access, data);
  const request = { filter: write.filter, limit: write.limit, offset: 0, members: ID_ALONE, isQuery: true };
  const wanted = idsIn(await list(pages, write.list, request));
  const action = data === undefined ? 'delete' : 'update';
  const locks = {
    values: data === undefined ? [] : [{ collection, data }],
    rows: wanted.map((id) => ({ access, action, id, ...(data && { data }) }) as const),
  };
  return batch(store, locks, async (running) => {
    const matching = new Set(wanted.length === 0 ? [] : await idsOnPage(pages, running.tx, write.list, request));
    const ids = wanted.filter((id) => matching.has(id));
    return end(await new MatchingRun(store, running, write).run(ids), running);
  });
}

const ID_ALONE: ReadonlySet<string> = new Set(['id']);
const idsIn = ({ json }: RecordPage): readonly string[] =>
  (JSON.parse(String(json)) as readonly { readonly id: string | number }[]).map(({ id }) => String(id));

/** Throws the errors that are the same for every record: `forbidden` and `validation_failed`. */
function requireValidData({ schema }: Store, access: AccessContext, data: Data): void {
  guardedMembers(access, data, 'update');
  const { errors } = readInput(schema, access, { mode: 'update', data });
  if (errors.length > 0) throw invalid(errors);
}

class MatchingRun {
  readonly #store: Store;
  readonly #batch: Batch;
  readonly #write: MatchingWrite;

  constructor(store: Store, running: Batch, write: MatchingWrite) {
    this.#store = store;
    this.#batch = running;
    this.#write = write;
  }

  async run(ids: readonly string[]): Promise<MatchedWrites> {
    const refused: RefusedRecord[] = [];
    let changed = 0;
    for (const id of ids) {
      const refusal = await this.#refusalOf(id);
      if (refusal === undefined) changed++;
      // A record that the caller may list and not read is not named.
      else if (refusal.code === 'forbidden') refused.push({ id, refusal });
    }
    const isRefused = changed < ids.length && !this.#write.skipsRefused;
    return { matched: ids.length, changed, refused: isRefused ? refused : [], isRefused };
  }

  /** Undefined: the record is written. */
  async #refusalOf(id: string): Promise<Refusal | undefined> {
    const { skipsRefused } = this.#write;
    const { tx } = this.#batch;
    // A refused write can have written a part, such as the other side of a has_one.
    if (skipsRefused) await tx.run(raw('SAVEPOINT matching'));
    try {
      await this.#writeOne(id);
      if (skipsRefused) await tx.run(raw('RELEASE SAVEPOINT matching'));
      return undefined;
    } catch (error) {
      if (!(error instanceof Refusal) || (error.code !== 'forbidden' && error.code !== 'not_found')) throw error;
      if (skipsRefused) await tx.run(raw('ROLLBACK TO SAVEPOINT matching'));
      return error.code === 'not_found' && (await this.#isGone(id)) ? undefined : error;
    }
  }

  async #writeOne(id: string): Promise<void> {
    const { access, data } = this.#write;
    if (data === undefined) await this.#batch.remove(access, { id });
    else await this.#batch.update(access, { id, data, errors: [], relations: [] });
  }

  /** The deletion of an earlier record has taken this one along. */
  async #isGone(id: string): Promise<boolean> {
    const { access, data } = this.#write;
    if (data !== undefined) return false;
    const asked: Reading = { store: this.#store, q: this.#batch.tx, access };
    const reading = await inTenantOf(asked, id, 'delete');
    const { collection } = access;
    const [row] = await reading.q.rows(sql`
      SELECT 1
        FROM ${scopeOf(reading).from(collection.name, 't').where(recordKeyOf(collection).is('t', id))}`);
    return row === undefined;
  }
}
