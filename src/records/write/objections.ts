/**
 * Refusals of a write that the rules of its record allow. They wait, because a later check may find
 * one that takes precedence: 403 and 404 are thrown where they are found, then come 422, 412 and
 * 409.
 */

import { StoreError, type Transaction } from '../../database/contract.ts';
import { Refusal, type RefusalCode } from '../../refusal.ts';
import { raw } from '../../sql.ts';

const BY_GRAVITY: readonly RefusalCode[] = ['validation_failed', 'changed', 'unique_violation'];

export class Objections {
  readonly #noted: Refusal[] = [];

  note(refusal: Refusal): void {
    this.#noted.push(refusal);
  }

  /** What `check` throws is raised later. */
  check(check: () => void): void {
    try {
      check();
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      this.note(error);
    }
  }

  /** Throws the refusal that takes precedence. */
  raise(): void {
    const [gravest] = this.#noted.toSorted((a, b) => BY_GRAVITY.indexOf(a.code) - BY_GRAVITY.indexOf(b.code));
    if (gravest !== undefined) throw gravest;
  }
}

/** Another record has a value that must be unique. */
export const isTaken = (error: unknown): error is StoreError => error instanceof StoreError && error.kind === 'unique';

export interface RowWrite<T> {
  readonly write: () => Promise<T>;
  /** Writes the row without the values that must be unique, so that what follows can be judged. */
  readonly standIn: () => Promise<T>;
  readonly onTaken: (error: StoreError) => void;
}

/** INVARIANT: `onTaken` keeps the transaction from committing, because it holds a stand-in by then. */
export async function unlessTaken<T>(tx: Transaction, { write, standIn, onTaken }: RowWrite<T>): Promise<T> {
  await tx.run(raw('SAVEPOINT own_row'));
  try {
    return await write();
  } catch (error) {
    if (!isTaken(error)) throw error;
    await tx.run(raw('ROLLBACK TO SAVEPOINT own_row'));
    onTaken(error);
    return standIn().catch((other) => {
      // Of an adopted table, which may have constraints that a stand-in breaks.
      throw isBroken(other) ? error : other;
    });
  }
}

const isBroken = (error: unknown): boolean =>
  error instanceof StoreError && ['unique', 'check', 'foreign_key'].includes(error.kind);
