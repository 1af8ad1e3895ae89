/** A schema of a cluster for each tenant: the service of a schema that Citus has distributed answers as on one PostgreSQL. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Database } from '../../src/database/contract.ts';
import { raw } from '../../src/sql.ts';
import { isolatedUrl } from '../support/postgres.ts';
import { clusterUrl, TestService } from '../support/service.ts';
import { type Recorded, Recorder } from './recorder.ts';
import { runScript } from './script.ts';

const TEXT = readFileSync(join(import.meta.dirname, '../../docs/distributed.yaml'), 'utf8');
const PLAIN = TEXT.replaceAll(/^ +distribute: .*\n/gm, '');

async function recorded(service: TestService): Promise<readonly Recorded[]> {
  const recorder = new Recorder(service.url);
  await runScript(recorder, service.app);
  return recorder.steps;
}

describe.skipIf(clusterUrl === '')('a schema for a tenant (distributed)', () => {
  test('a service answers in a distributed schema as on one PostgreSQL', async () => {
    const one = new TestService('postgres');
    await one.start({ schema: PLAIN });
    const wanted = await recorded(one);
    await one.stop();
    const url = await isolatedUrl(clusterUrl);
    let db: Database | undefined;
    const start = async (): Promise<TestService> => {
      const service = new TestService('cluster');
      await service.start({ schema: PLAIN, connect: () => url, watch: async (opened) => (db = opened) });
      return service;
    };
    const first = await start();
    await db!.transaction((tx) => tx.run(raw(`SELECT citus_schema_distribute(current_schema()::regnamespace)`)), {
      unlimited: true,
    });
    await first.stop();
    const again = await start();
    try {
      expect(await recorded(again)).toEqual(wanted);
    } finally {
      await again.stop();
    }
  });
});
