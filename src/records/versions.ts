/**
 * The state of a record as an opaque string, which changes with the record and with the members of
 * its many_to_many.
 */
import { createHmac, createSecretKey, type KeyObject } from 'node:crypto';
import { namedCells } from '../database/cells.ts';
import type { Queryable } from '../database/contract.ts';
import type { Collection } from '../schema/model/model.ts';
import { VERSION_COLUMN } from '../schema/model/stored-names.ts';
import { ident, raw, type Sql } from '../sql.ts';

/** The changes of the row named `alias`, as `Versions` takes them; NULL if its table does not count them. */
export const versionColumn = ({ countsChanges }: Pick<Collection, 'countsChanges'>, alias: string): Sql =>
  countsChanges ? ident(alias, VERSION_COLUMN) : raw('NULL');
/** The number of cells that a version adds before the record. */
export const VERSION_WIDTH = 1;

export async function readVersionKey(q: Queryable): Promise<Buffer> {
  const [row] = await q.rows(raw('SELECT key FROM bylaw_version_key'));
  if (row === undefined) throw new Error('the table `bylaw_version_key` is empty; migrate the database first');
  return Buffer.from(namedCells(row, 'key').key, 'base64url');
}

interface Changes {
  readonly collection: string;
  readonly id: string;
  /** The cell of `_version`, or the text of the record as the caller sees it where no changes are counted. */
  readonly count: string;
}

export class Versions {
  /** Made once: from bytes, each HMAC would make one, at seven times its own cost. */
  readonly #key: KeyObject;

  /**
   * Keyed, so that a version reveals neither how often a record changed nor anything that its
   * reader may not see.
   */
  constructor(key: Buffer) {
    this.#key = createSecretKey(key);
  }

  /** 96 bits: too many to guess one, or for two to meet. */
  of({ collection, id, count }: Changes): string {
    return createHmac('sha256', this.#key).update(`${collection}/${id}/${count}`).digest('base64url').slice(0, 16);
  }
}
