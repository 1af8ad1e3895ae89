/**
 * Finds out if the bytes of a storage belong to this database. A copy of a database (a restored backup, a
 * staging system) has the same `store_id`, and would delete the original's files, for which it has
 * no records. So every claim writes a new mark, into the database and into the storage: where the
 * storage's mark is not one of the database's, another copy has claimed it since.
 */
import { v4 as uuidv4 } from 'uuid';
import type { Database } from '../../database/contract.ts';
import { sql, typedLiteral, uuid } from '../../sql.ts';
import type { Storage } from './storage.ts';

/** Marks that are remembered: nodes that claim at once each write one, in any order. */
const MOST_MARKS = 64;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export class Ownership {
  readonly #db: Database;
  readonly #storage: Pick<Storage, 'mark' | 'setMark'>;

  constructor(db: Database, storage: Pick<Storage, 'mark' | 'setMark'>) {
    this.#db = db;
    this.#storage = storage;
  }

  /** Returns true also for a storage without a claim. */
  async holds(): Promise<boolean> {
    const mark = await this.#storage.mark();
    if (mark === undefined) return true;
    if (!UUID.test(mark)) return false;
    const found = await this.#db.rows(sql`
      SELECT 1
        FROM "_files_marks"
       WHERE mark = ${uuid(mark)}`);
    return found.length > 0;
  }

  /** Claims the storage for this database, against every copy that was made before. */
  async claim(): Promise<void> {
    const mark = uuidv4();
    // INVARIANT: the database knows the mark before the storage has it, so that a crash between
    // the two leaves a mark that is known.
    await this.#db.run(sql`INSERT INTO "_files_marks" (mark, at) VALUES (${uuid(mark)}, now())`);
    await this.#storage.setMark(mark);
    await this.#db.run(sql`
      DELETE FROM "_files_marks"
       WHERE mark NOT IN (
             SELECT mark
               FROM "_files_marks"
              ORDER BY at DESC
              LIMIT ${typedLiteral('int8', MOST_MARKS)})`);
  }
}
