/** A store under test, with the readers of the bodies of queries and aggregates. */
import { ROOT } from '../compiler.ts';
import { type Doors, loadDoors } from '../store-modules.ts';
import { loadQueryCompiler, type QueryCompiler } from './compiler.ts';

type QueryModule = typeof import('../../../src/routes/records/query-request.ts');
type AggregateModule = typeof import('../../../src/routes/records/aggregate-request.ts');

export interface QueryDoors extends Omit<Doors, 'compiler'> {
  readonly compiler: QueryCompiler;
  readonly queryRequestOf: QueryModule['queryRequestOf'];
  readonly aggregateRequestOf: AggregateModule['aggregateRequestOf'];
}

export async function loadQueryDoors(root: URL = ROOT): Promise<QueryDoors> {
  const load = async <T>(path: string): Promise<T> => (await import(new URL(path, root).href)) as T;
  const { queryRequestOf } = await load<QueryModule>('src/routes/records/query-request.ts');
  const { aggregateRequestOf } = await load<AggregateModule>('src/routes/records/aggregate-request.ts');
  const compiler = await loadQueryCompiler(root);
  return { ...(await loadDoors(root)), compiler, queryRequestOf, aggregateRequestOf };
}
