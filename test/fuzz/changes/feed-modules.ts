/** The modules of the feeds under test: this tree's, or those of a copy of it with a fault put in. */
import { loaderOf, ROOT } from '../policies/compiler.ts';

type FeedsModule = typeof import('../../../src/changes/change-feeds.ts');
type AccessModule = typeof import('../../../src/policy/access.ts');
type FilterModule = typeof import('../../../src/policy/filters/filter.ts');
type LoadModule = typeof import('../../../src/schema/load.ts');
type OpenModule = typeof import('../../../src/database/open-database.ts');
type MigrateModule = typeof import('../../../src/migrations/apply-migration.ts');
type RecordsModule = typeof import('../../../src/records/records.ts');

export interface FeedModules {
  readonly ChangeFeeds: FeedsModule['ChangeFeeds'];
  readonly decide: AccessModule['decide'];
  readonly compileFilter: FilterModule['compileFilter'];
  readonly parseSchema: LoadModule['parseSchema'];
  readonly openDatabase: OpenModule['openDatabase'];
  readonly applyMigration: MigrateModule['applyMigration'];
  readonly createRecords: RecordsModule['createRecords'];
}

export async function loadFeedModules(root: URL = ROOT): Promise<FeedModules> {
  const load = loaderOf(root);
  return {
    ...(await load<FeedsModule>('src/changes/change-feeds.ts')),
    ...(await load<AccessModule>('src/policy/access.ts')),
    ...(await load<FilterModule>('src/policy/filters/filter.ts')),
    ...(await load<LoadModule>('src/schema/load.ts')),
    ...(await load<OpenModule>('src/database/open-database.ts')),
    ...(await load<MigrateModule>('src/migrations/apply-migration.ts')),
    ...(await load<RecordsModule>('src/records/records.ts')),
  };
}
