/** Two versions on one database, a migration behind a long reader, and a copy of a database beside the original's files. */
import assert from 'node:assert/strict';
import { readdirSync, utimesSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from '../../support/client.ts';
import { isolatedUrl } from '../../support/postgres.ts';
import { expectOnly, Load } from '../load.ts';
import type { Scenario } from '../scenario.ts';
import { isReady, pause, SCHEMA, untilGood } from '../world.ts';

const NEWER = SCHEMA.replace(
  'n: { type: int }',
  'n: { type: int }\n      note: string\n      kind: { type: string, required: true, default: plain }',
);

const rolling: Scenario = {
  name: 'rolling-deploy',
  holds: 'old nodes stay ready and write while a newer version runs, and the old version starts again',
  async run(world) {
    const old = await world.serve();
    const load = new Load([await world.login(old)]);
    await pause(500);
    const newer = await world.serve({ schema: NEWER });
    await untilGood(isReady(newer));
    assert.equal((await new Client(old.url).get('/readyz')).status, 200);
    await pause(world.loadMs);
    const again = await world.serve();
    await untilGood(isReady(again));
    assert.match(again.log(), /kept, though the schema does not have it: \\"notes\\".\\"kind\\"/);
    assert.equal((await new Client(newer.url).get('/readyz')).status, 200);
    expectOnly(await load.stop(), '200', '201');
    await load.check(world);
    const [row] = await world.query(`SELECT count(*)::int AS n FROM notes WHERE kind IS DISTINCT FROM 'plain'`);
    assert.equal(row!.n, 0);
  },
};

const migrationLock: Scenario = {
  name: 'migration-lock',
  holds: 'a migration behind a long reader blocks requests for no longer than its short wait for the lock',
  async run(world) {
    const old = await world.serve();
    const client = await world.login(old);
    const reader = await world.connect();
    await reader.query('BEGIN; SELECT count(*) FROM notes');
    const starting = world.serve({ schema: NEWER });
    let answered = 0;
    // On a busy machine, the start takes its time to come to the lock.
    const most = performance.now() + 60_000;
    let end = Number.POSITIVE_INFINITY;
    while (performance.now() < Math.min(end, most)) {
      assert.equal((await client.get('/api/notes?limit=1')).status, 200);
      answered++;
      if (end === Number.POSITIVE_INFINITY) {
        const waiting = await world.query('SELECT 1 FROM pg_locks WHERE NOT granted');
        if (waiting.length > 0) end = performance.now() + Math.max(5_000, world.loadMs);
      }
      await pause(5);
    }
    assert(answered > 50, `${answered} reads were answered`);
    await reader.query('COMMIT');
    const newer = await starting;
    assert.match(newer.log(), /in use by another program/);
    await untilGood(isReady(newer));
  },
};

const FILES = `
roles: { member: {}, admin: {} }
collections:
  files: { access: { list: true, read: true, create: true, update: true, delete: true } }
`;

const restoredCopy: Scenario = {
  name: 'restored-copy',
  holds: 'a copy of the database beside the files of the original deletes none of them, and says so at once',
  async run(world) {
    const original = await world.serve({ schema: FILES });
    const client = await world.login(original);
    const copyUrl = await isolatedUrl(world.postgres.url);
    const schema = decodeURIComponent(copyUrl).split('search_path=')[1]!;
    const tables = await world.query(`SELECT tablename FROM pg_tables WHERE schemaname = 'public'`);
    for (const { tablename } of tables) {
      await world.query(`CREATE TABLE ${schema}."${tablename}" (LIKE public."${tablename}" INCLUDING ALL)`);
      await world.query(`INSERT INTO ${schema}."${tablename}" SELECT * FROM public."${tablename}"`);
    }
    const form = new FormData();
    form.set('file', new Blob(['kept']), 'a.txt');
    const { authorization = '' } = Object.fromEntries(
      Object.entries(client.headers).map(([name, value]) => [name.toLowerCase(), value]),
    );
    const uploaded = await fetch(`${original.url}/api/files`, {
      method: 'POST',
      headers: { authorization },
      body: form,
    });
    const { data } = (await uploaded.json()) as { data: { id: string } };
    // The original has not claimed its files since the copy was made, and a sweep spares young ones.
    const then = new Date(Date.now() - 3_600_000);
    for (const entry of readdirSync(join(world.folder, 'data', 'files'), { recursive: true, withFileTypes: true }))
      if (entry.name === data.id) utimesSync(join(entry.parentPath, entry.name), then, then);
    const copy = await world.serve({ schema: FILES, databaseUrl: copyUrl });
    await untilGood(async () => /in another place.*nothing is swept/.test(copy.log()));
    const content = await client.get(`/api/files/${data.id}/content`);
    assert.deepEqual([content.status, content.text], [200, 'kept']);
    assert.doesNotMatch(original.log(), /nothing is swept/);
  },
};

export const DEPLOY_SCENARIOS: readonly Scenario[] = [rolling, migrationLock, restoredCopy];
