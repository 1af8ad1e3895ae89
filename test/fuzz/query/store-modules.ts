/** The compiler of filters under test, beside that of policies, and the store with the readers of queries and aggregates. */
import { type Doors, loadDoors } from '../doors/store-modules.ts';
import { type Compiler, loadCompiler, loaderOf, ROOT } from '../policies/compiler.ts';

type FilterModule = typeof import('../../../src/policy/filters/filter.ts');
type AccessModule = typeof import('../../../src/policy/access.ts');
type CheckModule = typeof import('../../../src/policy/check/checker.ts');

export interface QueryCompiler extends Compiler {
  readonly compileFilter: FilterModule['compileFilter'];
  readonly examine: CheckModule['examine'];
  readonly decide: AccessModule['decide'];
}

export async function loadQueryCompiler(root: URL = ROOT): Promise<QueryCompiler> {
  const load = loaderOf(root);
  const { compileFilter } = await load<FilterModule>('src/policy/filters/filter.ts');
  const { examine } = await load<CheckModule>('src/policy/check/checker.ts');
  const { decide } = await load<AccessModule>('src/policy/access.ts');
  return { ...(await loadCompiler(root)), compileFilter, examine, decide };
}

type QueryModule = typeof import('../../../src/routes/records/query/query-request.ts');
type ServiceModule = typeof import('../../../src/service/start-service.ts');
type ConfigModule = typeof import('../../../src/config.ts');
type LogModule = typeof import('../../../src/http/observe/log.ts');
type PasswordsModule = typeof import('../../../src/auth/accounts/passwords.ts');
type UpdateBoundsModule = typeof import('../../../src/policy/analyse/update-bounds.ts');
type AggregateModule = typeof import('../../../src/routes/records/aggregate-request.ts');

export interface QueryDoors extends Omit<Doors, 'compiler'> {
  readonly compiler: QueryCompiler;
  readonly queryRequestOf: QueryModule['queryRequestOf'];
  readonly startService: ServiceModule['startService'];
  readonly readConfig: ConfigModule['readConfig'];
  readonly openLog: LogModule['openLog'];
  readonly createPasswordPool: PasswordsModule['createPasswordPool'];
  readonly updateBoundsOf: UpdateBoundsModule['updateBoundsOf'];
  readonly aggregateRequestOf: AggregateModule['aggregateRequestOf'];
}

export async function loadQueryDoors(root: URL = ROOT): Promise<QueryDoors> {
  const load = loaderOf(root);
  const { queryRequestOf } = await load<QueryModule>('src/routes/records/query/query-request.ts');
  const { aggregateRequestOf } = await load<AggregateModule>('src/routes/records/aggregate-request.ts');
  const { updateBoundsOf } = await load<UpdateBoundsModule>('src/policy/analyse/update-bounds.ts');
  const compiler = await loadQueryCompiler(root);
  const { startService } = await load<ServiceModule>('src/service/start-service.ts');
  const { readConfig } = await load<ConfigModule>('src/config.ts');
  const { openLog } = await load<LogModule>('src/http/observe/log.ts');
  const { createPasswordPool } = await load<PasswordsModule>('src/auth/accounts/passwords.ts');
  const service = { startService, readConfig, openLog, createPasswordPool };
  return {
    ...(await loadDoors(root)),
    ...service,
    compiler,
    queryRequestOf,
    aggregateRequestOf,
    updateBoundsOf,
  };
}
