/** The statements of one query, which share its time. */
import { type Queryable, type Reader, StoreError } from '../database/contract.ts';
import { Refusal } from '../refusal.ts';

/** Throws `query_too_expensive`. Plain reads are not held up: they have connections of their own. */
export function withDeadline(reader: Reader, ms: number): Pick<Queryable, 'rows'> {
  const end = performance.now() + ms;
  return {
    async rows(statement) {
      const left = end - performance.now();
      if (left < 1) throw tooExpensive();
      try {
        return await reader.slowRows(statement, left);
      } catch (error) {
        throw error instanceof StoreError && error.kind === 'time_limit' ? tooExpensive() : error;
      }
    },
  };
}

const tooExpensive = (): Refusal =>
  new Refusal('query_too_expensive', 'the query takes too long; ask for less, or filter and sort by indexed fields');
