/**
 * A Citus cluster answers as one PostgreSQL does: the same script on both, with statuses and bodies compared. The cluster's own
 * log of remote commands shows that each request of one tenant meets one shard.
 */

import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../src/database/contract.ts';
import { routes } from '../../src/routes/index.ts';
import { clusterUrl, type ServiceOptions, TestService } from '../support/service.ts';
import { DirectDatabase } from './direct.ts';
import { type Recorded, Recorder } from './recorder.ts';
import { logged, type Reached, type RemoteCommand, RemoteCommands } from './remote-commands.ts';
import { runScript } from './script.ts';

const SCHEMA = readFileSync(join(import.meta.dirname, '../../docs/distributed.yaml'), 'utf8');

interface Observed extends Recorded {
  readonly reached: Reached;
  readonly commands: readonly RemoteCommand[];
}

/** Routes about no record, of the schema, of mail, and of other services. */
const NOT_IN_SCRIPT = [
  /^\/(?:$|\*|metrics|openapi|docs|\.well-known|api\/_(?:schema|matrix|diff|test|status|uploads))/,
  /oauth|auth\/(?:providers|identities)|otp|challenge|second-factor|passkeys|\/email\/|password\/reset|token\/refresh|sessions\/:id|\/(?:restore|history)$/,
];

/**
 * Requests that name no tenant, or are about records that every machine has: a record of a filtered collection by its id, the
 * delete of a tag, a file or a user that the records of every tenant may refer to, a batch for two tenants, and an explanation, which
 * looks for its record in all tenants.
 */
const MEETS_MORE = [
  /^(?:GET|PATCH|DELETE) \/api\/events\/<id/,
  /^DELETE \/api\/(?:tags|files|users)\/<id/,
  /^POST \/api\/batch .*in the other/,
  /^POST \/api\/_explain/,
];

describe.skipIf(clusterUrl === '')('a script of requests (distributed)', () => {
  const observed: Observed[] = [];
  /** The same from a service that asks the workers directly. */
  const asked: Observed[] = [];
  let plain: readonly Recorded[] = [];
  let reached: RemoteCommands;
  const services: TestService[] = [];
  const started = async (kind: 'postgres' | 'cluster', options: ServiceOptions): Promise<TestService> => {
    const service = new TestService(kind);
    services.push(service);
    await service.start({ schema: SCHEMA, ...options });
    return service;
  };

  beforeAll(async () => {
    const one = await started('postgres', {});
    const recorder = new Recorder(one.url);
    await runScript(recorder, one.app);
    plain = recorder.steps;
    let db: Database | undefined;
    const cluster = await started('cluster', { connect: logged, watch: async (opened) => (db = opened) });
    reached = await RemoteCommands.of(db!);
    const onCluster = new Recorder(cluster.url, async (step) => {
      const commands = reached.take();
      observed.push({ ...step, reached: reached.reached(commands), commands });
    });
    await runScript(onCluster, cluster.app);
    reached.stop();
    await cluster.stop();

    const direct = new DirectDatabase();
    const asking = await started('cluster', { connect: (url) => direct.connect(logged(url)), watch: direct.watch });
    await direct.knows('documents', randomUUID());
    reached = await RemoteCommands.of(direct.db);
    const onWorkers = new Recorder(asking.url, async (step) => {
      const commands = reached.take();
      asked.push({ ...step, reached: reached.reached(commands), commands });
    });
    await runScript(onWorkers, asking.app);
  });
  afterAll(async () => {
    reached?.stop();
    for (const service of services) await service.stop();
  });

  test('the script has requests of each kind of route', () => {
    const sent = plain.map(({ request }) => request.split(' ').slice(0, 2).join(' '));
    const missing = routes
      .map(({ method, path }) => ({ method, path: String(path) }))
      .filter(({ path }) => !NOT_IN_SCRIPT.some((each) => each.test(path)))
      .filter(({ method, path }) => {
        const pattern = path.replaceAll(/:\w+/g, '[^/ ?]+');
        return !sent.some((each) => new RegExp(`^${method} ${pattern}(?:\\?|$)`).test(each));
      });
    expect(missing).toEqual([]);
    expect(plain.length).toBeGreaterThan(223);
  });

  test('statuses and bodies are those of one PostgreSQL', () => {
    expect(observed.map(({ request, status, body }) => ({ request, status, body }))).toEqual(plain);
    expect(plain.filter(({ status }) => status >= 500)).toEqual([]);
  });

  test('statuses and bodies are those of one PostgreSQL, where the workers are asked directly', () => {
    expect(asked.map(({ request, status, body }) => ({ request, status, body }))).toEqual(plain);
  });

  test('each request of one tenant meets one shard', () => {
    for (const steps of [observed, asked]) {
      const more = steps.filter(
        ({ request, reached: { shards } }) => shards > 1 && !MEETS_MORE.some((exception) => exception.test(request)),
      );
      expect(more.map(({ request, reached: { shards } }) => `${shards}: ${request}`)).toEqual([]);
      expect(steps.filter(({ reached: { shards } }) => shards === 1).length).toBeGreaterThan(100);
    }
  });

  test('a read of one tenant meets its worker alone, if the workers are asked directly', () => {
    const reads = asked.filter(
      ({ request, reached: { shards } }) => shards === 1 && /^(?:GET|POST \S+\/(?:query|aggregate)) /.test(request),
    );
    const others = reads.filter(({ reached }) => reached.isForwarded || reached.asked.length > 1);
    expect(others.map(({ request }) => request)).toEqual([]);
    expect(reads.length).toBeGreaterThan(50);
    const coordinator = Number(new URL(clusterUrl).port);
    const planned = reads.flatMap(({ commands }) =>
      commands.filter(({ asked: port, text }) => port !== coordinator && !text.startsWith('SELECT * FROM (')),
    );
    // A read that names no shard is planned by Citus.
    expect(planned.map(({ text }) => text.slice(0, 200))).toEqual([]);
  });

  test('a write of one statement meets its worker alone, if the workers are asked directly', () => {
    const writes = asked.filter(
      ({ status, commands, reached: { isForwarded } }) =>
        status < 300 && !isForwarded && commands.some(({ text }) => /^(?:INSERT|UPDATE) .*documents_\d/i.test(text)),
    );
    expect(writes.filter(({ reached }) => reached.asked.length > 1)).toEqual([]);
    expect(writes.length).toBeGreaterThan(10);
  });

  test('no worker gets a statement about the tables of the service', () => {
    const coordinator = Number(new URL(clusterUrl).port);
    const ofService = asked.flatMap(({ commands }) =>
      commands.filter((each) => each.asked !== coordinator && /\b(?:bylaw|_auth|_files)_/.test(each.text)),
    );
    expect(ofService.map(({ text }) => text.slice(0, 200))).toEqual([]);
  });

  test('a create of a divided record is committed in one phase', () => {
    // A kept answer is on the coordinator.
    const creates = observed.filter(
      ({ request, status }) =>
        /^POST \/api\/(?:documents|comments|covers|events) /.test(request) &&
        status === 201 &&
        !request.includes('Idempotency-Key'),
    );
    const prepared = creates.filter(({ reached: { isPrepared } }) => isPrepared);
    expect(prepared.map(({ request }) => request)).toEqual([]);
    expect(creates.length).toBeGreaterThan(10);
  });
});
