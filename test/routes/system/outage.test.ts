// @module-tag long
/** The database goes away under a running service. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';
import { readConfig } from '../../../src/config.ts';
import { openDatabase } from '../../../src/database/open-database.ts';
import { openLog } from '../../../src/http/observe/log.ts';
import { startService } from '../../../src/service/start-service.ts';
import { Client } from '../../support/client.ts';
import { startPostgres } from '../../support/postgres.ts';
import { outcomeOf } from '../../support/records.ts';
import { schemaFrom } from '../../support/service.ts';

const SCHEMA = readFileSync(join(import.meta.dirname, '../../support/bylaw.yaml'), 'utf8');

// A server that was given is not ours to stop.
const skip = inject('postgresUrl') === '' || process.env.TEST_DATABASE_URL !== undefined;

test.skipIf(skip)(
  'an outage of the database gives 503 with Retry-After; the process stays alive',
  async () => {
    const postgres = (await startPostgres())!;
    const password = 'a password of tests';
    const config = readConfig(
      { port: '0', 'database-url': postgres.url },
      {
        BYLAW_RATE_LIMIT: 'off',
        BYLAW_ADMIN_EMAIL: 'admin@example.org',
        BYLAW_ADMIN_PASSWORD: password,
      },
    );
    const db = await openDatabase({ url: postgres.url });
    const service = await startService({ config, schema: schemaFrom(SCHEMA), db, log: openLog('silent') });
    try {
      const anonymous = new Client(service.url);
      const { body } = await anonymous.post('/api/auth/login', { email: 'admin@example.org', password });
      const client = anonymous.with({ Authorization: `Bearer ${body.access_token}` });
      expect((await client.get('/api/posts')).status).toBe(200);
      await postgres.stop();
      for (const answer of [
        await client.get('/api/posts'),
        await client.post('/api/posts', { data: { title: 'x' } }),
        await anonymous.post('/api/auth/login', { email: 'admin@example.org', password }),
        await anonymous.get('/readyz'),
      ]) {
        expect([...outcomeOf(answer), answer.headers.get('retry-after')]).toEqual([
          503,
          'unavailable',
          expect.stringMatching(/^\d+$/),
        ]);
        expect(answer.text).not.toMatch(/ECONN|postgres|socket|SQL/i);
      }
      expect((await anonymous.get('/healthz')).status).toBe(200);
    } finally {
      await service.stop();
    }
  },
  90_000,
);
