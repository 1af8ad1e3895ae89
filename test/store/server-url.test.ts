/** The keys of a database URL that are ours, and what a pooler's role must be given. */
import { rmSync, writeFileSync } from 'node:fs';
import { describe, expect, it, vi } from 'vitest';
import { missingSettings, readServerUrl, withSetting } from '../../src/store/database/server-url.ts';

describe('the URL of a server', () => {
  it('keeps the keys of libpq, and takes ours out', () => {
    const { config, isPooled, maxLag } = readServerUrl(
      'postgres://me@h/d?sslmode=require&max_lag=2.5&pooler=transaction',
    );
    expect([config.connectionString, isPooled, maxLag]).toEqual(['postgres://me@h/d?sslmode=require', true, 2_500]);
  });

  it('finds a server without a host where `createdb` does', () => {
    const socket = '/tmp/.s.PGSQL.59999';
    writeFileSync(socket, '');
    vi.stubEnv('PGPORT', '59999');
    try {
      const addressOf = (url: string) => readServerUrl(url).config.connectionString;
      expect([addressOf('postgres:///d'), addressOf('postgres:///d?host=%2Felsewhere')]).toEqual([
        'postgres:///d?host=%2Ftmp',
        'postgres:///d?host=%2Felsewhere',
      ]);
      expect(addressOf('postgres://me@localhost/d')).toBe('postgres://me@localhost/d');
      vi.stubEnv('PGHOST', 'db.example');
      expect(addressOf('postgres:///d')).toBe('postgres:///d');
    } finally {
      vi.unstubAllEnvs();
      rmSync(socket);
    }
  });

  it('sets what cells are printed by, and lets the operator overrule it', () => {
    const { config, isPooled, maxLag } = readServerUrl('postgres://h/d?options=-c%20statement_timeout%3D1', 'mine');
    expect([isPooled, maxLag]).toEqual([false, 1_000]);
    expect(config.options).toMatch(/^-c TimeZone=UTC .*-c search_path=mine -c statement_timeout=1$/);
    expect(withSetting(config, '-c a=b').options).toBe(`${config.options} -c a=b`);
  });

  it('sets nothing through a pooler, and refuses what could not be set', () => {
    const { config } = readServerUrl('postgres://h/d?pooler=transaction');
    expect([config.options, withSetting(config, '-c a=b')]).toEqual([undefined, config]);
    const refused = ['?pooler=statement', '?pooler=transaction&options=-c%20a%3Db'];
    for (const query of refused) expect(() => readServerUrl(`postgres://h/d${query}`)).toThrow(RangeError);
    expect(() => readServerUrl('postgres://h/d?pooler=transaction', 'mine')).toThrow('ALTER ROLE');
  });

  it.each(['', '-1', 'soon', 'Infinity'])('takes a lag of %j for the default', (lag) => {
    expect(readServerUrl(`postgres://h/d?max_lag=${lag}`).maxLag).toBe(1_000);
  });
});

it('names the statement for every setting that a role lacks', () => {
  const good = {
    TimeZone: 'UTC',
    DateStyle: 'ISO, DMY',
    bytea_output: 'hex',
    extra_float_digits: '1',
    statement_timeout: '15000',
    idle_in_transaction_session_timeout: '30000',
  };
  expect(missingSettings('me', new Map(Object.entries(good)))).toEqual([]);
  expect(
    missingSettings('"Me"', new Map(Object.entries({ ...good, TimeZone: 'Europe/Vienna', DateStyle: 'German, DMY' }))),
  ).toEqual([`ALTER ROLE "Me" SET TimeZone = 'UTC';`, `ALTER ROLE "Me" SET DateStyle = 'ISO';`]);
  expect(missingSettings('me', new Map())).toHaveLength(6);
});
