/** A service whose schema is replaced while requests come, on both databases. */
import { once } from 'node:events';
import type { Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { openLog } from '../../src/http/observe/log.ts';
import { applyMigration } from '../../src/migrations/apply-migration.ts';
import { type Service, startService } from '../../src/service/start-service.ts';
import { systemTables } from '../../src/service/system-tables.ts';
import { openSocket, sendRaw } from '../security/raw.ts';
import { Client } from '../support/client.ts';
import { cheapPasswords, openKind, schemaFrom } from '../support/service.ts';

const MOST_CONNECTIONS = 16;
const ADMIN = { email: 'admin@example.org', password: 'a password of tests' };
const schema = (fields: string, list: string) =>
  schemaFrom(`roles: [admin]
collections:
  posts: { fields: { ${fields} }, access: { list: ${list}, create: true } }
`);

describe.each(['embedded', 'postgres'] as const)('replacing the schema (%s)', (kind) => {
  const skip = kind === 'postgres' && inject('postgresUrl') === '';
  let service: Service;
  let client: Client;
  beforeAll(async () => {
    if (skip) return;
    const config = readConfig(
      { port: '0' },
      {
        BYLAW_RATE_LIMIT: 'off',
        BYLAW_MAX_CONNECTIONS: `${MOST_CONNECTIONS}`,
        BYLAW_ADMIN_EMAIL: ADMIN.email,
        BYLAW_ADMIN_PASSWORD: ADMIN.password,
      },
    );
    const parts = { config, schema: schema('title: string', 'true'), db: await openKind(kind) };
    service = await startService({ ...parts, log: openLog('error'), passwords: cheapPasswords() });
    const { body } = await new Client(service.url).post('/api/auth/login', ADMIN);
    client = new Client(service.url, { Authorization: `Bearer ${body.access_token}` });
    await client.post('/api/posts', { data: { title: 'one' } });
  });
  afterAll(() => service?.stop());

  const migrateTo = (next: ReturnType<typeof schema>) => async (): Promise<void> => {
    await applyMigration(service.app.db, next, { systemTables, allowDestructive: true });
  };
  /** Asks all the while, and returns every status that it got. */
  async function during(work: () => Promise<void>): Promise<ReadonlySet<number>> {
    const statuses = new Set<number>();
    let isOver = false;
    const ask = async (): Promise<void> => {
      while (!isOver) statuses.add((await client.get('/api/posts')).status);
    };
    const asking = Promise.all([ask(), ask(), ask(), ask()]);
    await work();
    await sleep(50);
    isOver = true;
    await asking;
    return statuses;
  }

  test.skipIf(skip)('a replaced policy applies to existing sessions immediately', async () => {
    await service.replaceSchema(schema('title: string', 'false'));
    expect((await client.get('/api/posts')).status).toBe(403);
    await service.replaceSchema(schema('title: string', 'true'));
    expect((await client.get('/api/posts')).status).toBe(200);
  });

  test.skipIf(skip)('no request is lost while columns are dropped and added', async () => {
    const statuses = await during(async () => {
      for (const fields of ['title: string, n: int', 'n: int', 'n: float', 'title: string']) {
        const next = schema(fields, 'true');
        await service.replaceSchema(next, migrateTo(next));
      }
    });
    expect([...statuses]).toEqual([200]);
    expect(Object.keys((await client.get('/api/posts')).body.data[0])).toContain('title');
  });

  test.skipIf(skip)('a failed migration keeps the former schema', async () => {
    const failed = service.replaceSchema(schema('title: string', 'false'), async () => {
      throw new Error('no');
    });
    await expect(failed).rejects.toThrow('no');
    expect((await client.get('/api/posts')).status).toBe(200);
  });

  test.skipIf(skip)('a request that waits for the migration keeps its place before new connections', async () => {
    const next = schema('title: string', 'true');
    const [migrating, migrated] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const replaced = service.replaceSchema(next, () => {
      migrating.resolve();
      return migrated.promise;
    });
    await migrating.promise;
    const answer = sendRaw(service.url, 'GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n');
    await sleep(50);
    const silent: Socket[] = [];
    for (let i = 0; i < 2 * MOST_CONNECTIONS; i++) {
      silent.push(openSocket(service.url).resume());
      await once(silent[i]!, 'connect');
    }
    if (!silent[0]!.destroyed) await once(silent[0]!, 'close');
    migrated.resolve();
    await replaced;
    expect(await answer).toMatch(/^HTTP\/1\.1 200 /);
    for (const socket of silent) socket.destroy();
  });

  test.skipIf(skip)('a session that ends is invalid for the later schema too', async () => {
    const { body } = await new Client(service.url).post('/api/auth/login', ADMIN);
    const other = new Client(service.url, { Authorization: `Bearer ${body.access_token}` });
    expect((await other.get('/api/posts')).status).toBe(200);
    await service.replaceSchema(schema('title: string', 'true'));
    expect((await other.post('/api/auth/logout')).status).toBe(204);
    expect((await other.get('/api/posts')).status).toBe(401);
  });
});
