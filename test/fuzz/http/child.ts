/** The service in a separate process, so that a crash, a hang and its memory are seen from outside. */
import { readFileSync } from 'node:fs';
import { createPasswordPool } from '../../../src/auth/accounts/passwords.ts';
import { readConfig } from '../../../src/config.ts';
import { openDatabase } from '../../../src/database/open-database.ts';
import { openLog } from '../../../src/http/observe/log.ts';
import { parseSchema } from '../../../src/schema/load.ts';
import { startService } from '../../../src/service/start-service.ts';
import { makePeople, shapesOf } from './service.ts';

/** The messages to the parent. */
export type ChildMessage =
  | { readonly kind: 'ready'; readonly url: string; readonly collections: ReturnType<typeof shapesOf> }
  /** Bytes, after a collection of garbage. */
  | { readonly kind: 'memory'; readonly rss: number; readonly used: number };

const { databaseUrl, data, schemaFile } = JSON.parse(process.argv[2]!) as Record<string, string>;
const { schema, issues } = parseSchema(readFileSync(schemaFile!, 'utf8'), 'fuzz.yaml');
if (schema === undefined) throw new Error(JSON.stringify(issues));
const config = readConfig({ port: '0' }, { BYLAW_RATE_LIMIT: 'off', BYLAW_DATA: data });
const service = await startService({
  config,
  schema,
  // A folder, as users have: a database in memory would count its own records as growth.
  db: await openDatabase(databaseUrl ? { url: databaseUrl } : { dataDir: data }),
  log: openLog('error'),
  passwords: createPasswordPool(undefined, { memoryCost: 8, timeCost: 1, parallelism: 1 }),
});
await makePeople(service.app);
const tell = (message: ChildMessage): void => void process.send!(message);
process.on('message', () => {
  globalThis.gc?.();
  const { rss, heapUsed, external } = process.memoryUsage();
  tell({ kind: 'memory', rss, used: heapUsed + external });
});
process.on('disconnect', () => process.exit());
tell({ kind: 'ready', url: service.url, collections: shapesOf(schema) });
