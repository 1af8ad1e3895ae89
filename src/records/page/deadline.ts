/** The statements of one query, which share its time. */
import { type Queryable, type Reader, StoreError } from '../../database/contract.ts';
import { Refusal } from '../../refusal.ts';
import type { Store } from '../access-context.ts';

/** All statements of a query share the time that the schema gives it. */
export const limitedOf = (store: Store, reader: Reader): Pick<Queryable, 'rows'> =>
  withDeadline(reader, store.schema.limits.queryTime * 1000);

/**
 * Throws `query_too_expensive`. Plain reads are not held up: they have connections of their own.
 */
function withDeadline(reader: Reader, ms: number): Pick<Queryable, 'rows'> {
  const end = performance.now() + ms;
  return {
    async rows(statement) {
      const left = end - performance.now();
      if (left < 1) throw tooExpensive();
      try {
        return await reader.rows(statement, { lane: 'slow', limitMs: left });
      } catch (error) {
        throw error instanceof StoreError && error.kind === 'time_limit' ? tooExpensive() : error;
      }
    },
  };
}

const tooExpensive = (): Refusal =>
  new Refusal('query_too_expensive', 'the query takes too long; ask for less, or filter and sort by indexed fields');
