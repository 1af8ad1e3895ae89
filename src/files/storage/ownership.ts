/**
 * Finds out if the bytes of a storage belong to this database. A copy of a database (a restored
 * backup, a staging system) has the same `store_id`, and would delete the original's files, for
 * which it has no records. So a claim writes a mark into the storage: the place of the database,
 * which a copy made by `pg_dump`, `CREATE DATABASE … TEMPLATE` or `cp` does not share, and an id,
 * which the database remembers. A snapshot of a whole server has the same place; it is detected by
 * ids: the database that finds an unknown id contests the storage, and neither deletes anything
 * until `bylaw files adopt` decides.
 */
import { v4 as uuidv4 } from 'uuid';
import type { Database } from '../../database/contract.ts';
import { sql, typedLiteral, uuid } from '../../sql.ts';
import type { Storage } from './storage.ts';

/** Claims that are remembered in any case: nodes that claim at once each write one, in any order. */
const MOST_CLAIMS = 64;
/**
 * Every running copy has found an unknown claim, and contested it, by its second hourly sweep. A claim
 * of this age is therefore not contested by a copy that runs.
 */
const SETTLED_SECONDS = 7_200;
const UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const CONTESTED = 'contested';

/** `adopt` decides between databases that share an adoption, or have none. */
interface Mark {
  readonly claim: string;
  /** Undefined: an earlier version wrote the mark. */
  readonly place: string | undefined;
  /** The claim that `bylaw files adopt` made. */
  readonly adoption: string | undefined;
}

const ADOPTION_ADVICE =
  'so this one deletes none of them; if this is the copy, give it files of its own (BYLAW_FILES or --data); if the files ' +
  'belong to this database, run `bylaw files adopt`';
const REASONS = {
  elsewhere: `the stored files were claimed by this database in another place, before it was copied, restored or moved, ${ADOPTION_ADVICE}`,
  claimed: `another copy of this database has claimed the stored files since, ${ADOPTION_ADVICE}`,
  contested: `two copies of this database have claimed the stored files, ${ADOPTION_ADVICE}`,
} as const;

export class Ownership {
  readonly #db: Database;
  readonly #storage: Pick<Storage, 'mark' | 'setMark'>;
  readonly #place: string;

  /** @param place the result of `placeOfDatabase` */
  constructor(db: Database, storage: Pick<Storage, 'mark' | 'setMark'>, place: string) {
    this.#db = db;
    this.#storage = storage;
    this.#place = place;
  }

  /** Returns why this database may delete nothing; undefined if it may, also in a storage without a claim. */
  async objection(): Promise<string | undefined> {
    const text = await this.#storage.mark();
    if (text === undefined) return undefined;
    if (text === CONTESTED) return REASONS.contested;
    const mark = parsedMark(text);
    if (mark === undefined) return REASONS.claimed;
    if (mark.place !== undefined && mark.place !== this.#place) return REASONS.elsewhere;
    if (await this.#knows(mark.claim)) return undefined;
    // The copy would not learn of this database in any other way. An adoption that this database
    // does not share has decided against it.
    if (mark.adoption === undefined || (await this.#knows(mark.adoption))) await this.#storage.setMark(CONTESTED);
    return REASONS.claimed;
  }

  /** Renews the claim of a database without an objection. */
  async claim(): Promise<void> {
    const mark = parsedMark((await this.#storage.mark()) ?? '');
    await this.#write(uuidv4(), mark?.adoption);
  }

  /** Claims the storage against every other copy. */
  async adopt(): Promise<void> {
    const claim = uuidv4();
    await this.#write(claim, claim);
  }

  /**
   * The age of the last claim that no running copy has contested, in milliseconds: newer bytes may
   * belong to a copy. Infinity before there is such a claim.
   */
  async settledAge(): Promise<number> {
    const [row] = await this.#db.rows(sql`
      SELECT extract(epoch FROM now() - max(at)) * 1000
        FROM "_files_marks"
       WHERE at <= now() - ${typedLiteral('int8', SETTLED_SECONDS)} * interval '1 second'`);
    const age = row?.[0];
    return age == null ? Number.POSITIVE_INFINITY : Number(age);
  }

  async #write(claim: string, adoption: string | undefined): Promise<void> {
    // INVARIANT: the database knows the claim before the storage has it, so that a crash between
    // the two leaves a mark that is known.
    await this.#db.run(sql`INSERT INTO "_files_marks" (mark, at) VALUES (${uuid(claim)}, now())`);
    await this.#storage.setMark([claim, this.#place, ...(adoption === undefined ? [] : [adoption])].join(' '));
    await this.#db.run(sql`
      DELETE FROM "_files_marks"
       WHERE at < now() - interval '1 day'
         AND mark <> ${uuid(adoption ?? claim)}
         AND mark NOT IN (
             SELECT mark
               FROM "_files_marks"
              ORDER BY at DESC
              LIMIT ${typedLiteral('int8', MOST_CLAIMS)})`);
  }

  async #knows(claim: string): Promise<boolean> {
    const found = await this.#db.rows(sql`
      SELECT 1
        FROM "_files_marks"
       WHERE mark = ${uuid(claim)}`);
    return found.length > 0;
  }
}

function parsedMark(text: string): Mark | undefined {
  const [claim = '', place, adoption] = text.split(' ');
  const isOurs = UUID.test(claim) && (adoption === undefined || UUID.test(adoption));
  return isOurs ? { claim, place, adoption } : undefined;
}
