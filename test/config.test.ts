import { expect, test } from 'vitest';
import { readyLine } from '../src/cli/server/server-process.ts';
import { ConfigError, type FlagValues, readConfig } from '../src/config.ts';

function issuesOf(flags: FlagValues, env: Record<string, string> = {}): readonly string[] {
  try {
    readConfig(flags, env);
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.issues;
  }
}

test('the settings have defaults', () => {
  expect(readConfig({}, { PATH: '/bin' })).toEqual({
    schema: 'bylaw.yaml',
    host: '127.0.0.1',
    port: 8090,
    data: './data',
    databaseWorkers: 'coordinator',
    workers: 1,
    baseUrl: 'http://127.0.0.1:8090',
    baseUrlGiven: false,
    rateLimit: true,
    allowPrivate: false,
    metrics: 'local',
    maxConnections: 4_096,
    studio: true,
    isDevelopment: false,
  });
});

test('the workers of a cluster are asked directly where that is set', () => {
  const env = { DATABASE_URL: 'postgres://h/d', DATABASE_WORKERS: 'direct' };
  expect(readConfig({}, env).databaseWorkers).toBe('direct');
});

test('a database URL may leave the host out, also after a user', () => {
  const given = ['postgresql://me@/name?host=%2Frun%2Fpg', 'postgresql://me:p%40ss@/name', 'postgres:///name'];
  for (const url of given) expect(readConfig({ 'database-url': url }, {}).databaseUrl).toBe(url);
  for (const url of ['http://me@/name', 'postgres://me@:x/name', 'postgres://me@'])
    expect(issuesOf({ 'database-url': url })).toHaveLength(1);
  const places = given.map((url) => readyLine('http://h', readConfig({ 'database-url': url }, {})));
  expect(places.map((line) => /PostgreSQL at (.*)\)/.exec(line)![1])).toEqual([
    '/run/pg/name',
    'localhost/name',
    'localhost/name',
  ]);
});

test('flags win over the environment, which wins over defaults', () => {
  const env = {
    PORT: '1',
    HOST: '::1',
    BYLAW_SCHEMA: 'e.yaml',
    BYLAW_DATA: '',
    DATABASE_URL: 'postgres://h/d',
    DATABASE_REPLICA_URL: 'postgresql://r/d',
    DATABASE_DIRECT_URL: 'postgresql://p/d',
    BYLAW_FILES: 's3://bucket',
    SMTP_URL: 'smtps://user:password@mail.example:465',
    MAIL_FROM: 'The Service <no-reply@b.example>',
    BYLAW_WORKERS: '4',
    BYLAW_ADMIN_EMAIL: 'a@b.example',
    BYLAW_ADMIN_PASSWORD: 'long enough',
    BYLAW_RATE_LIMIT: 'off',
    BYLAW_METRICS: 'public',
    BYLAW_MAX_CONNECTIONS: '9',
    BYLAW_PUBLIC: import.meta.dirname,
  };
  expect(readConfig({ port: '0', schema: 'f.yaml' }, env)).toEqual({
    schema: 'f.yaml',
    host: '::1',
    port: 0,
    data: './data',
    workers: 4,
    databaseUrl: 'postgres://h/d',
    replicaUrl: 'postgresql://r/d',
    directUrl: 'postgresql://p/d',
    databaseWorkers: 'coordinator',
    files: 's3://bucket',
    smtpUrl: 'smtps://user:password@mail.example:465',
    mailFrom: 'The Service <no-reply@b.example>',
    baseUrl: 'http://[::1]:0',
    baseUrlGiven: false,
    admin: { email: 'a@b.example', password: 'long enough' },
    rateLimit: false,
    allowPrivate: false,
    metrics: 'public',
    maxConnections: 9,
    publicFolder: import.meta.dirname,
    studio: true,
    isDevelopment: false,
  });
  expect(readConfig({ 'no-studio': '' }, {}).studio).toBe(false);
  expect(readConfig({}, { BYLAW_STUDIO: 'off' }).studio).toBe(false);
  expect(readConfig({ 'base-url': 'https://api.example/' }, {})).toMatchObject({
    baseUrl: 'https://api.example',
    baseUrlGiven: true,
  });
});

const PORT = 'expected an int from 0 to 65535';
const POSTGRES = 'expected a URL such as postgres://user@host:5432/name';
const DIRECT = 'DATABASE_WORKERS: direct needs DATABASE_URL, and excludes DATABASE_REPLICA_URL';
const SMTP = 'expected a URL such as smtp://user:password@host:587';
const SENDER = 'expected an address such as no-reply@example.com or `Example <no-reply@example.com>`';

test.each<[FlagValues, Record<string, string>, readonly string[]]>([
  [
    {},
    { BYLAW_SCEMA: 'x', BYLAW_ADMIN_EMAIL: 'a@b', PORT: '1e3' },
    ['unknown environment name `BYLAW_SCEMA`; did you mean `BYLAW_SCHEMA`?', `PORT: ${PORT}`],
  ],
  [
    { workers: '3' },
    { BYLAW_ADMIN_EMAIL: 'a@b', DATABASE_REPLICA_URL: 'postgres://r' },
    [
      '--workers: more than one needs --database-url (the embedded database serves one process)',
      'DATABASE_REPLICA_URL: a replica needs DATABASE_URL',
      'BYLAW_ADMIN_EMAIL and BYLAW_ADMIN_PASSWORD: one needs the other',
    ],
  ],
  [{}, { DATABASE_WORKERS: 'yes' }, ['DATABASE_WORKERS: expected `coordinator` or `direct`']],
  [{}, { DATABASE_WORKERS: 'direct' }, [DIRECT]],
  [{}, { DATABASE_WORKERS: 'direct', DATABASE_URL: 'postgres://h/d', DATABASE_REPLICA_URL: 'postgres://r' }, [DIRECT]],
  [
    { 'database-url': 'mysql://h/d', 'base-url': 'api.example', port: '65536' },
    { BYLAW_RATE_LIMIT: 'no' },
    [
      `--port: ${PORT}`,
      `--database-url: ${POSTGRES}`,
      '--base-url: expected a URL such as https://api.example, without a query',
      'BYLAW_RATE_LIMIT: expected `on` or `off`',
    ],
  ],
  [{ public: 'no/such/folder' }, {}, ['--public: the folder does not exist']],
  [{ data: `${import.meta.filename}/data` }, {}, ['--data: expected a folder; it, or a part of its path, is a file']],
  [{}, { BYLAW_DATA: import.meta.filename }, ['BYLAW_DATA: expected a folder; it, or a part of its path, is a file']],
  [{}, { SMTP_URL: 'mail.example:587' }, [`SMTP_URL: ${SMTP}`]],
  [{}, { SMTP_URL: 'https://mail.example' }, [`SMTP_URL: ${SMTP}`]],
  [{}, { SMTP_URL: 'smtp:///mail' }, [`SMTP_URL: ${SMTP}`]],
  [{}, { SMTP_URL: 'smtp://' }, [`SMTP_URL: ${SMTP}`]],
  [{}, { MAIL_FROM: 'nobody' }, [`MAIL_FROM: ${SENDER}`]],
  [{}, { MAIL_FROM: 'a@b <c>' }, [`MAIL_FROM: ${SENDER}`]],
  [{}, { MAIL_FROM: 'a@b\r\nBcc: c@d' }, [`MAIL_FROM: ${SENDER}`]],
  [{}, { MAIL_FROM: '<a@b> c' }, [`MAIL_FROM: ${SENDER}`]],
])('issues of %j %j', (flags, env, issues) => {
  expect(issuesOf(flags, env)).toEqual(issues);
});
