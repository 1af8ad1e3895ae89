/**
 * Each row of the table "Rolling a new version out" in docs/operations.md: services of two versions on one PostgreSQL, each with connections of its
 * own. They are in one process, which they share nothing in; `npm run test:faults -- --only rolling` has real processes under load.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, inject, test } from 'vitest';
import { readConfig } from '../../src/config.ts';
import { openDatabase } from '../../src/database/open-database.ts';
import { openLog } from '../../src/http/observe/log.ts';
import { applyMigration } from '../../src/migrations/apply-migration.ts';
import { type Service, startService } from '../../src/service/start-service.ts';
import { type Answer, Client } from '../support/client.ts';
import { isolatedUrl } from '../support/postgres.ts';
import { cheapPasswords, schemaFrom } from '../support/service.ts';

const ADMIN = { email: 'admin@example.org', password: 'a password of tests' };
// Tokens are good at nodes of one address.
const ENV = {
  BASE_URL: 'http://rolling.example',
  BYLAW_RATE_LIMIT: 'off',
  BYLAW_ADMIN_EMAIL: ADMIN.email,
  BYLAW_ADMIN_PASSWORD: ADMIN.password,
};
const ACCESS = 'access: { view: true, create: true, update: true }';

interface Version {
  readonly fields?: string;
  readonly relations?: string;
  /** Keys of the collection, such as `was`. */
  readonly more?: string;
  readonly name?: string;
  readonly others?: string;
}
const FIELDS = 'name: string, spare: string, code: { type: string, max: 9, unique: true }';
const RELATIONS = 'friend: { kind: belongs_to, collection: people }';
const OTHERS = `  others: { fields: { name: string }, ${ACCESS} }\n`;
const versionOf = ({ fields = FIELDS, relations = RELATIONS, more = '', name = 'things', others = OTHERS }: Version) =>
  schemaFrom(`roles: [admin]
collections:
  people: { ${ACCESS} }
${others}  ${name}: { ${more}fields: { ${fields} }, relations: { ${relations} }, ${ACCESS} }
`);
const OLD = versionOf({});

interface Node {
  readonly service: Service;
  readonly client: Client;
}

/** Two versions on one database, and what they do there. */
class Deployment {
  readonly #url: string;
  readonly #services: Service[] = [];
  #token = '';

  constructor(url: string) {
    this.#url = url;
  }

  async start(schema: ReturnType<typeof versionOf>): Promise<Node> {
    const db = await openDatabase({ url: this.#url, poolSize: 2, pipelines: 1 });
    const service = await startService({
      config: readConfig({ port: '0' }, ENV),
      schema,
      db,
      log: openLog('error'),
      passwords: cheapPasswords(),
    }).catch(async (error: unknown) => {
      await db.close();
      throw error;
    });
    this.#services.push(service);
    if (this.#token === '') {
      const { body } = await new Client(service.url).post('/api/auth/login', ADMIN);
      this.#token = body.access_token;
    }
    return { service, client: new Client(service.url, { Authorization: `Bearer ${this.#token}` }) };
  }

  /** As `bylaw migrate apply --allow-destructive` does. */
  async apply(schema: ReturnType<typeof versionOf>): Promise<void> {
    const db = await openDatabase({ url: this.#url, poolSize: 2, pipelines: 1 });
    await applyMigration(db, schema, { allowDestructive: true }).finally(() => db.close());
  }

  async close(): Promise<void> {
    await Promise.all(this.#services.map((service) => service.stop()));
  }
}

const create = (node: Node, data: object): Promise<Answer> => node.client.post('/api/things', { data });
const isReady = async ({ client }: Node): Promise<boolean> => (await client.get('/readyz')).status === 200;
const listOf = (node: Node): Promise<Answer> => node.client.get('/api/things');
async function serves(node: Node, data: object = { name: 'by the old version' }): Promise<void> {
  const made = await create(node, data);
  const { id } = made.body.data;
  const patched = await node.client.patch(`/api/things/${id}`, { data: { name: 'changed' } });
  expect([await isReady(node), made.status, patched.status, (await listOf(node)).status]).toEqual([
    true,
    201,
    200,
    200,
  ]);
}

type Check = (deployment: Deployment, old: Node) => Promise<void>;

/** The checks by the first cell of their row. The old version is running. */
const ROWS: Readonly<Record<string, Check>> = {
  'a collection, an optional field, a relation that is not required, an index': async (deployment, old) => {
    const newer = await deployment.start(
      versionOf({
        fields: `${FIELDS.replace('name: string', 'name: { type: string, index: true }')}, note: string`,
        relations: `${RELATIONS}, enemy: { kind: belongs_to, collection: people }`,
        others: `${OTHERS}  more: { fields: { name: string }, ${ACCESS} }\n`,
      }),
    );
    await serves(old);
    await serves(newer, { name: 'n', note: 'by the new version' });
    await serves(await deployment.start(OLD));
  },
  'a required field with a constant default': async (deployment, old) => {
    const newer = await deployment.start(
      versionOf({ fields: `${FIELDS}, kind: { type: string, required: true, default: plain }` }),
    );
    const { id } = (await create(old, { name: 'by the old version' })).body.data;
    expect((await newer.client.get(`/api/things/${id}`)).body.data.kind).toBe('plain');
    await serves(old);
    await serves(await deployment.start(OLD));
  },
  '`unique`': async (deployment, old) => {
    await deployment.start(
      versionOf({ fields: FIELDS.replace('name: string', 'name: { type: string, unique: true }') }),
    );
    expect((await create(old, { name: 'once' })).status).toBe(201);
    const twice = await create(old, { name: 'once' });
    expect([twice.status, await isReady(old)]).toEqual([409, true]);
    await serves(await deployment.start(OLD), { name: 'another' });
  },
  '`unique` with `where` or `ignore_case`': async (deployment, old) => {
    await deployment.start(
      versionOf({ fields: FIELDS.replace('name: string', 'name: { type: string, unique: { ignore_case: true } }') }),
    );
    expect((await create(old, { name: 'once' })).status).toBe(201);
    const twice = await create(old, { name: 'ONCE' });
    expect([twice.status, await isReady(old)]).toEqual([409, true]);
    await serves(await deployment.start(OLD), { name: 'another' });
  },
  '`no_overlap`': async (deployment) => {
    const fields = `${FIELDS}, starts: int, ends: int`;
    const before = versionOf({ fields });
    const old = await deployment.start(before);
    await deployment.start(versionOf({ fields, more: 'no_overlap: { on: [name], from: starts, to: ends }, ' }));
    const book = async (starts: number, ends: number) => (await create(old, { name: 'room', starts, ends })).status;
    expect([await book(1, 5), await book(2, 3), await book(5, 6)]).toEqual([201, 409, 201]);
    await serves(await deployment.start(before), { name: 'another' });
  },
  '`unique: true` made `unique: within_<relation>`': async (deployment) => {
    const relations = RELATIONS.replace('people', 'people, required: true');
    const before = versionOf({ relations });
    const old = await deployment.start(before);
    const within = versionOf({ relations, fields: FIELDS.replace('unique: true', 'unique: within_friend') });
    const newer = await deployment.start(within);
    const people = await Promise.all([1, 2].map(() => newer.client.post('/api/people', { data: {} })));
    const [one, two] = people.map(({ body }) => ({ name: 'x', code: 'a', friend: body.data.id }));
    const made = [];
    for (const [node, data] of [
      [newer, one],
      [old, two],
      [old, two],
      [newer, one],
    ] as const)
      made.push(await create(node, data!));
    expect(made.map(({ status }) => status)).toEqual([201, 201, 409, 409]);
    await serves(old, { ...one, code: 'c' });
    await expect(deployment.start(before)).rejects.toThrow(
      /"things"\."code" becomes unique.* SELECT "code" FROM "things" .* finds them/,
    );
    expect((await create(newer, one!)).status).toBe(409);
    await newer.client.patch(`/api/things/${made[1]!.body.data.id}`, { data: { code: 'b' } });
    await serves(await deployment.start(before), { ...one, code: 'd' });
    expect([(await create(newer, { ...two, code: 'd' })).status, await isReady(newer)]).toEqual([409, true]);
  },
  'a field, a collection or `unique` removed': async (deployment, old) => {
    const { id } = (await create(old, { name: 'x', spare: 'kept', code: 'a' })).body.data;
    const newer = await deployment.start(
      versionOf({ fields: 'name: string, code: { type: string, max: 9 }', others: '' }),
    );
    await serves(old);
    await serves(newer);
    expect((await newer.client.get(`/api/things/${id}`)).body.data).not.toHaveProperty('spare');
    expect((await newer.client.get('/api/others')).status).toBe(404);
    expect((await old.client.get(`/api/things/${id}`)).body.data.spare).toBe('kept');
    expect((await old.client.get('/api/others')).status).toBe(200);
    expect((await create(newer, { name: 'x', code: 'a' })).status).toBe(409);
    await serves(await deployment.start(OLD));
  },
  'a required field without a default, over no rows': async (deployment, old) => {
    const newer = await deployment.start(versionOf({ fields: `${FIELDS}, must: { type: int, required: true }` }));
    expect((await create(old, { name: 'x' })).status).toBeGreaterThanOrEqual(500);
    expect([(await listOf(old)).status, await isReady(old)]).toEqual([200, false]);
    await serves(newer, { name: 'n', must: 1 });
    await serves(await deployment.start(OLD));
  },
  'a field, relation or collection renamed by `was`, or a field of another type': async (deployment, old) => {
    const back = async (isMissing = true): Promise<void> => {
      const { status, body } = await create(old, { name: 'x', spare: 'x' });
      // A column of another type is not missing.
      if (isMissing) expect([status, body.code]).toEqual([503, 'unavailable']);
      else expect(status).toBeGreaterThanOrEqual(500);
      expect(await isReady(old)).toBe(false);
      await expect(deployment.start(OLD)).rejects.toThrow(/was|would/);
    };
    const renamed = FIELDS.replace('name: string', 'title: { type: string, was: name }');
    const newer = await deployment.start(versionOf({ fields: renamed }));
    expect((await create(newer, { title: 'by the new version' })).status).toBe(201);
    await back();
    await deployment.apply(versionOf({ fields: FIELDS.replace('name: string', 'name: { type: string, was: title }') }));
    await deployment.start(versionOf({ relations: RELATIONS.replace('friend: { ', 'mate: { was: friend, ') }));
    await back();
    await deployment.apply(versionOf({ relations: RELATIONS.replace('{ ', '{ was: mate, ') }));
    await deployment.start(versionOf({ name: 'items', more: 'was: things, ' }));
    await back();
    await deployment.apply(versionOf({ more: 'was: items, ' }));
    await deployment.apply(versionOf({ fields: FIELDS.replace('spare: string', 'spare: int') }));
    await back(false);
    await deployment.apply(OLD);
    await serves(await deployment.start(OLD));
  },
};

describe.skipIf(inject('postgresUrl') === '')('two versions on one database', () => {
  let deployment: Deployment | undefined;
  afterEach(async () => {
    await deployment?.close();
    deployment = undefined;
  });

  test('the test covers every row of the documented table', () => {
    const page = readFileSync(join(import.meta.dirname, '../../docs/operations.md'), 'utf8');
    const section = page.split('## Rolling a new version out')[1]!.split('\n\n')[2]!;
    const rows = section.split('\n').slice(2);
    expect(rows.map((row) => row.split(' | ')[0]!.slice(2))).toEqual(Object.keys(ROWS));
  });

  test.each(Object.keys(ROWS))('%s', async (change) => {
    deployment = new Deployment(await isolatedUrl(inject('postgresUrl')));
    await ROWS[change]!(deployment, await deployment.start(OLD));
  });
});
