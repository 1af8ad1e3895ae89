/**
 * Related rows of which a decision about a caller's filter may read a limited number, in rows and not in time: quantifiers
 * within quantifiers read the rows of one relation as often as there are rows, and hold up everybody else meanwhile.
 */
import type { Related } from '../../policy/types.ts';

export class TooManyRows extends Error {
  constructor() {
    super('a filter reads too many related rows');
    this.name = 'TooManyRows';
  }
}

/** The rows throw `TooManyRows` beyond the limit. */
export function boundedRelated(related: Related, most: number): Related {
  let left = most;
  const read = (rows: number): void => {
    left -= rows;
    if (left < 0) throw new TooManyRows();
  };
  return {
    one: (collection, id) => {
      read(1);
      return related.one(collection, id);
    },
    many: (collection, relation, id) => {
      const rows = related.many(collection, relation, id);
      read(rows.length + 1);
      return rows;
    },
  };
}
