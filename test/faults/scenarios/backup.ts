/** The backup of a PostgreSQL as docs/operations.md has it, word for word, while it is written to. */
import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { chmodSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Client } from '../../support/client.ts';
import { findBinaries } from '../../support/postgres.ts';
import { Load } from '../load.ts';
import type { Scenario } from '../scenario.ts';
import { pause, SCHEMA } from '../world.ts';

const FILES = `${SCHEMA}  files: { access: { list: true, read: true, create: true, update: true, delete: true } }\n`;
const PAGE = readFileSync(join(import.meta.dirname, '../../../docs/operations.md'), 'utf8');
const COMMANDS = /\*\*PostgreSQL\.\*\*[\s\S]*?```sh\n([\s\S]*?)bylaw serve[^\n]*\n```/.exec(PAGE)![1]!;

export const BACKUP: Scenario = {
  name: 'backup-order',
  holds: 'the documented backup of a PostgreSQL and its files, taken under load, has everything acknowledged before it',
  skip: () => (process.env.TEST_DATABASE_URL === undefined ? undefined : 'it needs the tools of the server'),
  async run(world) {
    const server = await world.serve({ schema: FILES });
    const client = await world.login(server);
    const upload = async (bytes: string): Promise<string> => {
      const form = new FormData();
      form.set('file', new Blob([bytes]), 'a.txt');
      const { Authorization } = client.headers as { Authorization: string };
      const answer = await fetch(`${server.url}/api/files`, {
        method: 'POST',
        headers: { Authorization },
        body: form,
      });
      const { data } = (await answer.json()) as { data: { id: string } };
      return data.id;
    };
    const files = await Promise.all(Array.from({ length: 20 }, (_, n) => upload(`bytes ${n}`)));
    const load = new Load([client]);
    await pause(world.loadMs / 2);
    const before = (await world.query('SELECT count(*)::int AS n FROM notes'))[0]!.n;
    const uploading = (async () => {
      for (let n = 0; n < 20; n++) await upload(`later ${n}`);
    })();
    chmodSync(world.folder, 0o755);
    const host = new URL(world.postgres.url.replace('@/', '@localhost/')).searchParams.get('host')!;
    const env = { PATH: `${findBinaries()}:${process.env.PATH}`, PGHOST: host, PGUSER: 'postgres' };
    await promisify(execFile)('/bin/sh', ['-ec', COMMANDS], {
      cwd: world.folder,
      env: { ...env, DATABASE_URL: world.postgres.url },
    });
    await uploading;
    await load.stop();
    const restoredUrl = world.postgres.url.replace('/postgres?', '/restored?');
    const restored = await world.serve({
      schema: FILES,
      databaseUrl: restoredUrl,
      data: 'restored',
    });
    const there = await world.login(restored);
    const { rows } = await (await world.connect(restoredUrl)).query('SELECT count(*)::int AS n FROM notes');
    assert(rows[0].n >= before, `${rows[0].n} of ${before} notes`);
    const listed = (await there.get('/api/files?limit=100')).body.data as { id: string }[];
    assert(listed.length >= files.length);
    assert.deepEqual(
      files.filter((id) => !listed.some((file) => file.id === id)),
      [],
    );
    for (const { id } of listed) {
      const content = await there.get(`/api/files/${id}/content`);
      assert.equal(content.status, 200, `the bytes of ${id}`);
    }
    assert.equal((await new Client(server.url).get('/readyz')).status, 200);
  },
};
