import { describe, expect, it } from 'vitest';
import { ConfigError, readArguments, readConfig } from '../src/config.ts';

const faultsOf = (argv: readonly string[], env: Record<string, string> = {}): readonly string[] => {
  try {
    readConfig(argv, env);
    return [];
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.faults;
  }
};

describe('the settings of the service', () => {
  it('have defaults', () => {
    expect(readConfig([], { PATH: '/bin' })).toEqual({
      schema: 'bylaw.yaml',
      host: '127.0.0.1',
      port: 8090,
      data: './data',
      workers: 1,
      baseUrl: 'http://127.0.0.1:8090',
      baseUrlGiven: false,
      rateLimit: true,
    });
  });

  it('take a database URL that names a socket folder instead of a host', () => {
    expect(readConfig(['--database-url', 'postgresql://me@/name?host=%2Frun%2Fpg'], {}).databaseUrl).toBe(
      'postgresql://me@localhost/name?host=%2Frun%2Fpg',
    );
    expect(readConfig(['--database-url', 'postgres:///name'], {}).databaseUrl).toBe('postgres://localhost/name');
  });

  it('come from flags first, then from the environment', () => {
    const env = {
      PORT: '1',
      HOST: '::1',
      BYLAW_SCHEMA: 'e.yaml',
      BYLAW_DATA: '',
      DATABASE_URL: 'postgres://h/d',
      DATABASE_REPLICA_URL: 'postgresql://r/d',
      BYLAW_FILES: 's3://bucket',
      SMTP_URL: 'smtps://user:password@mail.example:465',
      MAIL_FROM: 'The Service <no-reply@b.example>',
      BYLAW_WORKERS: '4',
      BYLAW_ADMIN_EMAIL: 'a@b.example',
      BYLAW_ADMIN_PASSWORD: 'long enough',
      BYLAW_RATE_LIMIT: 'off',
    };
    expect(readConfig(['--port', '0', '--schema=f.yaml'], env)).toEqual({
      schema: 'f.yaml',
      host: '::1',
      port: 0,
      data: './data',
      workers: 4,
      databaseUrl: 'postgres://h/d',
      replicaUrl: 'postgresql://r/d',
      files: 's3://bucket',
      smtpUrl: 'smtps://user:password@mail.example:465',
      mailFrom: 'The Service <no-reply@b.example>',
      baseUrl: 'http://[::1]:0',
      baseUrlGiven: false,
      admin: { email: 'a@b.example', password: 'long enough' },
      rateLimit: false,
    });
    expect(readConfig(['--base-url', 'https://api.example/'], {})).toMatchObject({
      baseUrl: 'https://api.example',
      baseUrlGiven: true,
    });
  });

  it('are refused together, with the nearest name', () => {
    expect(
      faultsOf(['--prot=1', '--workers', '3', 'x', '--host'], {
        BYLAW_SCEMA: 'x',
        BYLAW_ADMIN_EMAIL: 'a@b',
        PORT: '1e3',
      }),
    ).toEqual([
      'unknown flag `--prot`; did you mean `--port`?',
      '--host needs a value (H)',
      'unexpected argument `x`',
      'unknown environment name `BYLAW_SCEMA`; did you mean `BYLAW_SCHEMA`?',
      'PORT: expected a whole number from 0 to 65535',
    ]);
    expect(faultsOf(['--workers', '3'], { BYLAW_ADMIN_EMAIL: 'a@b', DATABASE_REPLICA_URL: 'postgres://r' })).toEqual([
      '--workers: more than one needs --database-url (the embedded database serves one process)',
      'DATABASE_REPLICA_URL: a replica needs DATABASE_URL',
      'BYLAW_ADMIN_EMAIL and BYLAW_ADMIN_PASSWORD: one needs the other',
    ]);
    expect(
      faultsOf(['--database-url', 'mysql://h/d', '--base-url', 'api.example', '--port', '65536'], {
        BYLAW_RATE_LIMIT: 'no',
      }),
    ).toEqual([
      '--port: expected a whole number from 0 to 65535',
      '--database-url: expected a URL such as postgres://user@host:5432/name',
      '--base-url: expected a URL such as https://api.example, without a query',
      'BYLAW_RATE_LIMIT: expected `on` or `off`',
    ]);
    for (const SMTP_URL of ['mail.example:587', 'https://mail.example', 'smtp:///mail', 'smtp://'])
      expect(faultsOf([], { SMTP_URL })).toEqual(['SMTP_URL: expected a URL such as smtp://user:password@host:587']);
    for (const MAIL_FROM of ['nobody', 'a@b <c>', 'a@b\r\nBcc: c@d', '<a@b> c'])
      expect(faultsOf([], { MAIL_FROM })).toEqual([
        'MAIL_FROM: expected an address such as no-reply@example.com or `Example <no-reply@example.com>`',
      ]);
    expect(faultsOf(['--port', '1', '--port', '2', '-p'])).toEqual(['--port is given twice', 'unknown flag `-p`']);
  });
});

describe('arguments', () => {
  it('are flags, switches, repeated flags and the rest', () => {
    const read = readArguments(['a', '--role', 'x', '--role=y', '--json', '--', '--b'], {
      role: { value: 'R', repeated: true },
      json: {},
    });
    expect([read.positionals, read.all('role'), read.has('json'), read.get('role'), read.get('other')]).toEqual([
      ['a', '--b'],
      ['x', 'y'],
      true,
      'y',
      undefined,
    ]);
    expect(() => readArguments(['--json=1'], { json: {} })).toThrow('--json takes no value');
  });
});
