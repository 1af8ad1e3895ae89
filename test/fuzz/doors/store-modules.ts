/** The modules of a store under test. */
import { type Compiler, loadCompiler, loaderOf, ROOT } from '../policies/compiler.ts';

type AccessModule = typeof import('../../../src/policy/access.ts');
type LoadModule = typeof import('../../../src/schema/load.ts');
type OpenModule = typeof import('../../../src/database/open-database.ts');
type MigrateModule = typeof import('../../../src/migrations/apply-migration.ts');
type RecordsModule = typeof import('../../../src/records/records.ts');
type ContextModule = typeof import('../../../src/records/access-context.ts');
type SystemModule = typeof import('../../../src/records/system.ts');
type MessageModule = typeof import('../../../src/http/denial-message.ts');
type CallerModule = typeof import('../../../src/queued-caller.ts');
type HistoryModule = typeof import('../../../src/records/history.ts');
type DeletedModule = typeof import('../../../src/records/deleted-records.ts');
type KeptModule = typeof import('../../../src/schema/model/kept/kept-rules.ts');
type ServedModule = typeof import('../../../src/migrations/unmanaged/served-schema.ts');
type FilterModule = typeof import('../../../src/policy/filters/filter.ts');
type TraceModule = typeof import('../../../src/explain/trace.ts');

/** A store under test: this tree's, or a copy of it with a fault put in. */
export interface Doors {
  readonly compiler: Compiler;
  readonly decide: AccessModule['decide'];
  readonly parseSchema: LoadModule['parseSchema'];
  readonly openDatabase: OpenModule['openDatabase'];
  readonly applyMigration: MigrateModule['applyMigration'];
  readonly schemaServedBy: ServedModule['schemaServedBy'];
  readonly createRecords: RecordsModule['createRecords'];
  readonly Store: ContextModule['Store'];
  readonly system: SystemModule;
  readonly denialMessage: MessageModule['denialMessage'];
  readonly traceOf: TraceModule['traceOf'];
  readonly compileFilter: FilterModule['compileFilter'];
  readonly asCaller: CallerModule['asCaller'];
  readonly deletedRecordsOf: DeletedModule['deletedRecordsOf'];
  readonly keptRules: KeptModule['keptRules'];
  readonly historyTables: HistoryModule['historyTables'];
}

export async function loadDoors(root: URL = ROOT): Promise<Doors> {
  const load = loaderOf(root);
  const { decide } = await load<AccessModule>('src/policy/access.ts');
  const { parseSchema } = await load<LoadModule>('src/schema/load.ts');
  const { openDatabase } = await load<OpenModule>('src/database/open-database.ts');
  const { applyMigration } = await load<MigrateModule>('src/migrations/apply-migration.ts');
  const { schemaServedBy } = await load<ServedModule>('src/migrations/unmanaged/served-schema.ts');
  const { createRecords } = await load<RecordsModule>('src/records/records.ts');
  const { Store } = await load<ContextModule>('src/records/access-context.ts');
  const system = await load<SystemModule>('src/records/system.ts');
  const { denialMessage } = await load<MessageModule>('src/http/denial-message.ts');
  const { traceOf } = await load<TraceModule>('src/explain/trace.ts');
  const { compileFilter } = await load<FilterModule>('src/policy/filters/filter.ts');
  const { asCaller } = await load<CallerModule>('src/queued-caller.ts');
  const { deletedRecordsOf } = await load<DeletedModule>('src/records/deleted-records.ts');
  const { keptRules } = await load<KeptModule>('src/schema/model/kept/kept-rules.ts');
  const compiler = await loadCompiler(root);
  const records = { createRecords, Store, system, denialMessage, compileFilter };
  const { historyTables } = await load<HistoryModule>('src/records/history.ts');
  const kept = { asCaller, deletedRecordsOf, keptRules, historyTables };
  return { compiler, decide, parseSchema, openDatabase, applyMigration, schemaServedBy, ...records, ...kept, traceOf };
}
