/** A cluster whose nodes and service prove who they are: passwords by SCRAM, certificates, and a role that is not a superuser. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { appendFile, chmod, chown, copyFile, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { askWorkersDirectly } from '../../src/cluster/direct-workers.ts';
import { CitusCluster, citusBinaries, type PrepareNode } from '../support/cluster/citus.ts';
import { HOST } from '../support/postgres.ts';
import { clusterUrl, TestService } from '../support/service.ts';
import { Recorder } from './recorder.ts';
import { runScript } from './script.ts';

const SCHEMA = readFileSync(join(import.meta.dirname, '../../docs/distributed.yaml'), 'utf8');
const PASSWORD = 'of the nodes';
const WAYS = ['coordinator', 'direct'];
const KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];

const run = promisify(execFile);

/** An authority, and a certificate of the host that it has signed. */
async function makeCertificates(folder: string, name: string): Promise<void> {
  const ssl = (...args: readonly string[]) => run('openssl', [...args], { cwd: folder });
  await ssl(
    'req',
    '-x509',
    ...KEY,
    '-keyout',
    `${name}.key`,
    '-out',
    `${name}.crt`,
    '-subj',
    `/CN=${name}`,
    '-days',
    '2',
  );
  await ssl('req', ...KEY, '-keyout', `${name}-server.key`, '-out', `${name}.csr`, '-subj', `/CN=${HOST}`);
  await writeFile(join(folder, 'names'), `subjectAltName = IP:${HOST}`);
  const signed = ['-req', '-in', `${name}.csr`, '-CA', `${name}.crt`, '-CAkey', `${name}.key`, '-CAcreateserial'];
  await ssl('x509', ...signed, '-days', '2', '-extfile', 'names', '-out', `${name}-server.crt`);
}

describe.skipIf(clusterUrl === '' || citusBinaries() === undefined)('a secured cluster (distributed)', () => {
  let folder: string;
  let cluster: CitusCluster;
  const urlOf = (schema: string): string => {
    const keys = `sslmode=verify-full&sslrootcert=${encodeURIComponent(join(folder, 'ours.crt'))}`;
    const options = encodeURIComponent(`-c search_path=${schema}`);
    const login = `app:${encodeURIComponent(PASSWORD)}`;
    return `postgres://${login}@${HOST}:${cluster.coordinator.port}/postgres?${keys}&options=${options}`;
  };

  /** Everybody but the test signs in by a password, over TLS. The certificate of the second worker is of another authority. */
  const prepare: PrepareNode = async (data, owner) => {
    const authority = data.endsWith('worker-2') ? 'other' : 'ours';
    const own = async (file: string): Promise<void> => {
      await chmod(file, 0o600);
      if (owner !== undefined) await chown(file, owner.uid, owner.gid);
    };
    for (const kind of ['key', 'crt']) {
      const file = join(data, `server.${kind}`);
      await copyFile(join(folder, `${authority}-server.${kind}`), file);
      await own(file);
    }
    await appendFile(join(data, 'postgresql.conf'), 'ssl = on\n');
    const access = [`host all postgres ${HOST}/32 trust`, `hostssl all app ${HOST}/32 scram-sha-256`];
    await writeFile(join(data, 'pg_hba.conf'), `${access.join('\n')}\n`);
    const passwords = join(dirname(data), '.pgpass');
    await writeFile(passwords, `*:*:*:app:${PASSWORD}\n`);
    await own(passwords);
  };

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'bylaw-secured-'));
    for (const name of ['ours', 'other']) await makeCertificates(folder, name);
    cluster = await CitusCluster.start(2, prepare);
    await cluster.coordinator.query(`CREATE ROLE app LOGIN PASSWORD '${PASSWORD}'`);
    for (const way of WAYS) await cluster.coordinator.query(`CREATE SCHEMA ${way} AUTHORIZATION app`);
  });
  afterAll(async () => {
    await cluster?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  test.each(WAYS)('a service whose role is not a superuser serves (%s)', async (way) => {
    const url = urlOf(way);
    const said: string[] = [];
    const service = new TestService('cluster');
    await service.start({
      schema: SCHEMA,
      connect: () => url,
      watch: async (db) =>
        way === 'direct' ? askWorkersDirectly(db, { url, say: (message) => void said.push(message) }) : db,
    });
    try {
      const recorder = new Recorder(service.url);
      await runScript(recorder, service.app);
      expect(recorder.steps.filter(({ status }) => status >= 500)).toEqual([]);
      const [first, second] = cluster.workers.map(({ port }) => `the worker ${HOST}:${port} is asked`);
      const reports = [`${first} directly`, expect.stringContaining(`${second} through the coordinator`)];
      expect(said.length).toBe(way === 'direct' ? 2 : 0);
      if (way === 'direct') expect(said).toEqual(expect.arrayContaining(reports));
    } finally {
      await service.stop();
    }
  });
});
