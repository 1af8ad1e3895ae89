/** The keys of a database URL that are ours, and what a pooler's role must be given. */
import { once } from 'node:events';
import { chownSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { missingSettings, readServerUrl, withSetting } from '../../src/database/server-url.ts';

describe('the URL of a server', () => {
  it('a URL keeps the keys of libpq without ours', () => {
    const { config, isPooled, maxLag } = readServerUrl(
      'postgres://me@h/d?sslmode=require&max_lag=2.5&pooler=transaction',
    );
    expect([config.connectionString, isPooled, maxLag]).toEqual(['postgres://me@h/d?sslmode=require', true, 2_500]);
  });

  describe('without a host', () => {
    const socketOf = (port: number) => `/tmp/.s.PGSQL.${port}`;
    const listening: Server[] = [];
    const listen = async (port: number): Promise<void> => {
      rmSync(socketOf(port), { force: true });
      const server = createServer().listen(socketOf(port));
      await once(server, 'listening');
      listening.push(server);
    };
    /** The address that the driver connects to. */
    const placeOf = (url: string): readonly unknown[] => {
      const { host, port, user, database } = new pg.Client(readServerUrl(url).config);
      return [host, port, user, database];
    };
    beforeEach(() => {
      vi.stubEnv('PGHOST', '');
      vi.stubEnv('PGPORT', '');
      vi.stubEnv('PGUSER', 'me');
    });
    afterEach(async () => {
      vi.restoreAllMocks();
      vi.unstubAllEnvs();
      for (const server of listening.splice(0)) await new Promise((resolve) => server.close(resolve));
    });

    it('a server without a host is found where `createdb` finds it', async () => {
      await listen(59_991);
      vi.stubEnv('PGPORT', '59991');
      expect([
        placeOf('postgres:///d'),
        placeOf('postgresql://app@/d'),
        placeOf('postgresql://app:p%40ss@/d'),
        placeOf('postgres:///d?host=%2Felsewhere'),
        placeOf('postgres://app@/d?host=%2Felsewhere'),
        placeOf('postgres://app@localhost/d'),
      ]).toEqual([
        ['/tmp', 59_991, 'me', 'd'],
        ['/tmp', 59_991, 'app', 'd'],
        ['/tmp', 59_991, 'app', 'd'],
        ['/elsewhere', 59_991, 'me', 'd'],
        ['/elsewhere', 59_991, 'app', 'd'],
        ['localhost', 59_991, 'app', 'd'],
      ]);
      vi.stubEnv('PGHOST', 'db.example');
      expect([placeOf('postgres:///d'), placeOf('postgresql://app@/d')]).toEqual([
        ['db.example', 59_991, 'me', 'd'],
        ['db.example', 59_991, 'app', 'd'],
      ]);
    });

    it('the port of the URL overrules PGPORT', async () => {
      await listen(59_992);
      expect(placeOf('postgres:///d?port=59992')).toEqual(['/tmp', 59_992, 'me', 'd']);
      vi.stubEnv('PGPORT', '59992');
      expect(placeOf('postgres:///d?port=59993')).toEqual(['localhost', 59_993, 'me', 'd']);
    });

    it('a socket of another user in a folder that every user may write is not used', async () => {
      await listen(59_994);
      const mine = process.getuid!();
      if (mine === 0) chownSync(socketOf(59_994), 4_242, 4_242);
      else vi.spyOn(process, 'getuid').mockReturnValue(mine + 1);
      expect(placeOf('postgres://me:secret@/d?port=59994')[0]).toBe('localhost');
    });

    it('a file or a link does not pass for a socket', async () => {
      await listen(59_997);
      const [file, link] = [socketOf(59_995), socketOf(59_996)];
      for (const path of [file, link]) rmSync(path, { force: true });
      writeFileSync(file, '');
      symlinkSync(socketOf(59_997), link);
      try {
        const hosts = [59_995, 59_996].map((port) => placeOf(`postgres:///d?port=${port}`)[0]);
        expect(hosts).toEqual(['localhost', 'localhost']);
      } finally {
        for (const path of [file, link]) rmSync(path);
      }
    });
  });

  it('settings decide the format of cells, and the operator overrules them', () => {
    const { config, isPooled, maxLag } = readServerUrl('postgres://h/d?options=-c%20statement_timeout%3D1', 'mine');
    expect([isPooled, maxLag]).toEqual([false, 1_000]);
    expect(config.options).toMatch(/^-c TimeZone=UTC .*-c search_path=mine -c statement_timeout=1$/);
    // The server finds out that this host is lost.
    expect(config.options).toContain('-c tcp_keepalives_idle=10 ');
    expect(withSetting(config, '-c a=b').options).toBe(`${config.options} -c a=b`);
  });

  it('a pooler gets no settings, and a URL with settings is rejected', () => {
    const { config } = readServerUrl('postgres://h/d?pooler=transaction');
    expect([config.options, withSetting(config, '-c a=b')]).toEqual([undefined, config]);
    const refused = ['?pooler=statement', '?pooler=transaction&options=-c%20a%3Db'];
    for (const query of refused) expect(() => readServerUrl(`postgres://h/d${query}`)).toThrow(RangeError);
    expect(() => readServerUrl('postgres://h/d?pooler=transaction', 'mine')).toThrow('ALTER ROLE');
  });

  it.each(['', '-1', 'soon', 'Infinity'])('a lag of %j means the default', (lag) => {
    expect(readServerUrl(`postgres://h/d?max_lag=${lag}`).maxLag).toBe(1_000);
  });
});

it('missingSettings returns a statement for every setting that a role lacks', () => {
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
