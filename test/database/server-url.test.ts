/** The keys of a database URL that are ours. */
import { describe, expect, it } from 'vitest';
import { readServerUrl, withSetting } from '../../src/database/server-url.ts';

describe('the URL of a server', () => {
  it('a URL keeps the keys of libpq without ours', () => {
    const { config, isPooled, maxLag } = readServerUrl(
      'postgres://me@h/d?sslmode=require&max_lag=2.5&pooler=transaction',
    );
    expect([config.connectionString, isPooled, maxLag]).toEqual(['postgres://me@h/d?sslmode=require', true, 2_500]);
  });

  it('settings decide the format of cells, and the operator overrules them', () => {
    const { config, isPooled, maxLag } = readServerUrl('postgres://h/d?options=-c%20statement_timeout%3D1');
    expect([isPooled, maxLag]).toEqual([false, 1_000]);
    expect(config.options).toMatch(/^-c TimeZone=UTC .*-c statement_timeout=1$/);
    // The server finds out that this host is lost.
    expect(config.options).toContain('-c tcp_keepalives_idle=10 ');
    expect(withSetting(config, '-c a=b').options).toBe(`-c a=b ${config.options}`);
  });

  it('a pooler gets no settings, and a URL with settings is rejected', () => {
    const { config } = readServerUrl('postgres://h/d?pooler=transaction');
    expect([config.options, withSetting(config, '-c a=b')]).toEqual([undefined, config]);
    const refused = ['?pooler=statement', '?pooler=transaction&options=-c%20a%3Db'];
    for (const query of refused) expect(() => readServerUrl(`postgres://h/d${query}`)).toThrow(RangeError);
    expect(() => readServerUrl(`postgres://h/d${refused[1]}`)).toThrow('ALTER ROLE');
  });

  it.each(['', '-1', 'soon', 'Infinity'])('a lag of %j means the default', (lag) => {
    expect(readServerUrl(`postgres://h/d?max_lag=${lag}`).maxLag).toBe(1_000);
  });
});
