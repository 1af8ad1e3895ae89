/** A URL without a host means the server that `createdb` finds. */
import { once } from 'node:events';
import { chownSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:net';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { atLocalServer } from '../../src/service/local-server.ts';

describe('a URL without a host', () => {
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
    const { host, port, user, database } = new pg.Client({ connectionString: atLocalServer(url) });
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
