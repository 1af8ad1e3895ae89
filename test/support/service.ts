/** A whole service in this process, over real HTTP, on each of the two databases. */
import { readFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, inject } from 'vitest';
import { createPasswordPool, type PasswordPool } from '../../src/auth/accounts/passwords.ts';
import type { SetupOffer } from '../../src/auth/accounts/setup-offer.ts';
import { askWorkersDirectly } from '../../src/cluster/direct-workers.ts';
import { readConfig } from '../../src/config.ts';
import type { Database } from '../../src/database/contract.ts';
import { openDatabase } from '../../src/database/open-database.ts';
import type { App } from '../../src/http/app.ts';
import { type Log, openLog } from '../../src/http/observe/log.ts';
import type { ArrivalLimits } from '../../src/http/server/client-limits.ts';
import { parseSchema } from '../../src/schema/load.ts';
import type { Schema } from '../../src/schema/model/model.ts';
import { type Service, startService } from '../../src/service/start-service.ts';
import { type Check, Client } from './client.ts';
import { distributed, placeEverybody } from './cluster/distributed-schema.ts';
import { asWanted, hasPartitions } from './cluster/partitioned.ts';
import { documented } from './documented.ts';
import { openEmbeddedDatabase } from './embedded/embedded.ts';
import { judged } from './judge/judged-database.ts';
import { isolatedUrl } from './postgres.ts';

/** `cluster`: the coordinator of a Citus cluster, at `TEST_CITUS_URL`. */
export type Kind = 'embedded' | 'postgres' | 'cluster';

export interface User {
  readonly id: string;
  readonly email: string;
  readonly password: string;
  readonly token: string;
  readonly cookie: string;
  /** Sends the bearer token. */
  readonly client: Client;
}

/** A suite holds it before it runs; it answers once it has started. */
export class TestService {
  readonly kind: Kind;
  readonly #isDistributed: boolean;
  #running: Service | undefined;
  #users = 0;
  #check: Check | undefined;

  /** @param isDistributed all collections are distributed by one tenant, and each statement is judged */
  constructor(kind: Kind, isDistributed = false) {
    this.kind = kind;
    this.#isDistributed = isDistributed;
  }

  async start(options: ServiceOptions): Promise<void> {
    const open = this.#isDistributed && !options.schema?.includes('distribute:') ? openDistributed : openTestService;
    this.#running = await open(this.kind, options);
  }

  async stop(): Promise<void> {
    await this.#running?.stop();
  }

  get #service(): Service {
    if (this.#running === undefined) throw new Error('the service runs only while tests do');
    return this.#running;
  }

  get app(): App {
    return this.#service.app;
  }

  replaceSchema(schema: string): Promise<void> {
    return this.#service.replaceSchema(schemaFrom(schema));
  }

  get url(): string {
    return this.#service.url;
  }

  /** Sends no credential; every answer is held to the OpenAPI document. */
  get anonymous(): Client {
    this.#check ??= documented(this.app.document());
    return new Client(this.url, {}, this.#check);
  }

  /** A new user with these roles, logged in. */
  async user(...roles: readonly string[]): Promise<User> {
    const email = `user${++this.#users}.${Date.now()}@example.org`;
    const password = 'a password of tests';
    const { id } = await this.app.auth.admin.addUser({
      email,
      password,
      roles: roles.length === 0 ? ['member'] : roles,
    });
    const { status, body, headers, text } = await this.anonymous.post('/api/auth/login', { email, password });
    if (status !== 200) throw new Error(`no login: ${text}`);
    const token = body.access_token as string;
    const cookie = headers.getSetCookie()[0]!.split(';')[0]!;
    return { id, email, password, token, cookie, client: this.anonymous.with({ Authorization: `Bearer ${token}` }) };
  }
}

/** Two members, an editor and an admin. */
export async function makePeople(service: TestService) {
  const made = [service.user(), service.user(), service.user('editor'), service.user('admin')] as const;
  const [ann, bob, ed, root] = await Promise.all(made);
  return { ann, bob, ed, root };
}

const readText = (file: string): string => readFileSync(join(import.meta.dirname, file), 'utf8');

/** The schema that the suites about routes are written for. */
export const ROUTES_SCHEMA = readText('bylaw.yaml');
const SAMPLE_SCHEMA = readText('../../bylaw.yaml');

export function schemaFrom(text: string, env: Readonly<Record<string, string>> = {}): Schema {
  const { schema, issues } = parseSchema(text, 'test.yaml', env);
  if (schema === undefined) throw new Error(`the schema of the test has errors: ${JSON.stringify(issues, null, 2)}`);
  return schema;
}

export interface ServiceOptions {
  /** Default: the sample, `bylaw.yaml`. */
  readonly schema?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** The schema as the service gets it. */
  readonly change?: (schema: Schema) => Schema;
  /** The address of the PostgreSQL server as the service gets it. */
  readonly connect?: (url: string) => string;
  /** The database as the service gets it. */
  readonly watch?: (db: Database, schema: Schema) => Promise<Database>;
  /** Default: hashed as cheaply as may be. */
  readonly passwords?: PasswordPool;
  readonly arrival?: ArrivalLimits;
  readonly setup?: SetupOffer;
  /** Default: errors, on standard error. */
  readonly log?: Log;
}

/** The least that argon2 takes: most suites have many people, and are about something else. */
export const cheapPasswords = (): PasswordPool =>
  createPasswordPool(undefined, { memoryCost: 8, timeCost: 1, parallelism: 1 });

async function openTestService(
  kind: Kind,
  {
    schema = SAMPLE_SCHEMA,
    env = {},
    change = (same) => same,
    connect = (same) => same,
    watch = async (same) => same,
    passwords = cheapPasswords(),
    arrival,
    setup,
    log = openLog('error'),
  }: ServiceOptions,
): Promise<Service> {
  const data = await mkdtemp(join(tmpdir(), 'bylaw-test-'));
  const config = readConfig({ port: '0' }, { BYLAW_RATE_LIMIT: 'off', BYLAW_DATA: data, ...env });
  const model = change(schemaFrom(schema, env));
  const db = await watch(asWanted(await openKind(kind, connect), model), model);
  const service = await startService({
    config,
    schema: model,
    db,
    log,
    passwords,
    ...(arrival === undefined ? {} : { arrival }),
    ...(setup === undefined ? {} : { setup }),
  });
  const stop = async (): Promise<void> => {
    await service.stop();
    await rm(data, { recursive: true, force: true });
  };
  return { ...service, stop };
}

/** The same, as a cluster has it: on the coordinator of one where `TEST_CITUS_URL` names it. */
async function openDistributed(kind: Kind, { schema = SAMPLE_SCHEMA, watch, ...options }: ServiceOptions) {
  let opened: Database | undefined;
  const service = await openTestService(clusterUrl === '' ? kind : 'cluster', {
    ...options,
    schema: distributed(schema),
    watch: async (db, model) => {
      opened = db;
      const held = await judged(db, model);
      return watch === undefined ? held : watch(held, model);
    },
  });
  await placeEverybody(opened!);
  return service;
}

/** A service in this process on a database that may have content, which ends with it. */
export const startServiceOn = (db: Database, schema: string, env: Readonly<Record<string, string>>): Promise<Service> =>
  startService({
    config: readConfig({ port: '0' }, { BYLAW_RATE_LIMIT: 'off', ...env }),
    schema: schemaFrom(schema),
    db,
    log: openLog('error'),
  });

export async function openKind(kind: Kind, connect = (url: string): string => url): Promise<Database> {
  if (kind === 'embedded') return openEmbeddedDatabase();
  const url = connect(await isolatedUrl(kind === 'cluster' ? clusterUrl : inject('postgresUrl')));
  const db = await openDatabase({ url });
  if (kind !== 'cluster' || !isDirect) return db;
  return askWorkersDirectly(db, { url, say: () => undefined });
}

/** True if all suites ask the workers of the cluster directly. */
const isDirect = process.env.TEST_CITUS_WORKERS === 'direct';

/** The coordinator of a Citus cluster; empty: there is none. */
export const clusterUrl = process.env.TEST_CITUS_URL ?? '';

/** The suite once for each database. Without a PostgreSQL (reported at the start) only on the embedded one. */
export function describeOnBoth(
  name: string,
  suite: (service: TestService) => void,
  options: ServiceOptions = {},
): void {
  for (const kind of ['embedded', 'postgres'] as const) {
    describe.skipIf(kind === 'postgres' && inject('postgresUrl') === '')(`${name} (${kind})`, () =>
      withService(kind, suite, options),
    );
  }
}

/**
 * Routes of records: the suite once for each database, and once with all collections distributed by one tenant. Its statements
 * have one text on both databases, so one of them is judged: PostgreSQL, which has a lane for statements of tenants.
 */
export function describeRoutes(
  name: string,
  suite: (service: TestService) => void,
  options: ServiceOptions = {},
): void {
  describeOnBoth(name, suite, options);
  describeAsDistributed(name, suite, options);
}

/** Routes of records that no database answers differently: the suite on one, and with all collections distributed. */
export function describeRoutesOnOne(
  name: string,
  suite: (service: TestService) => void,
  options: ServiceOptions = {},
): void {
  describeOnOne(name, suite, options);
  describeAsDistributed(name, suite, options);
}

function describeAsDistributed(name: string, suite: (service: TestService) => void, options: ServiceOptions): void {
  const skip = hasPartitions || (inject('postgresUrl') === '' && clusterUrl === '');
  describe.skipIf(skip)(`${name} (distributed)`, () => runWith(new TestService('postgres', true), suite, options));
}

/** Runs a suite of distributed collections on the cluster, or on partitions where there is none. */
export function describeDistributed(
  name: string,
  suite: (service: TestService) => void,
  options: ServiceOptions,
): void {
  if (clusterUrl === '') describeOnBoth(`${name}, distributed`, suite, options);
  else describe(`${name} (distributed)`, () => withService('cluster', suite, options));
}

/** Runs a suite once, on PostgreSQL if there is one: the two databases make no difference to it. */
export function describeOnOne(name: string, suite: (service: TestService) => void, options: ServiceOptions = {}): void {
  const kind = inject('postgresUrl') === '' ? 'embedded' : 'postgres';
  describe(`${name} (${kind})`, () => withService(kind, suite, options));
}

/** Runs a suite once, on this database. */
export const withService = (kind: Kind, suite: (service: TestService) => void, options: ServiceOptions): void =>
  runWith(new TestService(kind), suite, options);

function runWith(service: TestService, suite: (service: TestService) => void, options: ServiceOptions): void {
  beforeAll(() => service.start(options));
  afterAll(() => service.stop());
  suite(service);
}
