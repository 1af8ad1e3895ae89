/** The line of a request is written without pino's serialisers, and reads like one of pino's. */
import type { Context } from 'koa';
import { describe, expect, test } from 'vitest';
import { openLog } from '../../src/http/observe/log.ts';
import { logRequest } from '../../src/http/observe/request-record.ts';

const contextOf = (path: string, more: object = {}): Context =>
  ({
    method: 'GET',
    path,
    res: { headersSent: true, statusCode: 200 },
    state: { requestId: 'r"1', address: '::1', caller: { kind: 'user', principal: 'u' } },
    ...more,
  }) as unknown as Context;

function linesOf(level: string, work: (log: ReturnType<typeof openLog>) => void): readonly string[] {
  const lines: string[] = [];
  work(openLog(level, { write: (line) => lines.push(line) }));
  return lines;
}

describe('the line of a request', () => {
  test.each(['/api/posts', '/"\\\n\u0000\u2028é😀'])('the line of %j equals the line of pino', (path) => {
    const ctx = contextOf(path);
    const [own, pinos] = linesOf('info', ({ logger }) => {
      logRequest(logger, ctx, 1.26);
      const entry = { request_id: 'r"1', method: 'GET', path, status: 200, ms: 1.3, address: '::1', user: 'u' };
      logger.info(entry, 'request');
    });
    const untimed = (line: string) => line.replace(/"time":"[^"]+"/, '"time":""');
    expect(untimed(own!)).toBe(untimed(pinos!));
    expect(own!.endsWith('}\n')).toBe(true);
    expect(own!.slice(0, -1)).not.toContain('\n');
  });
  test('the line names no user without a caller, and 499 without a sent head', () => {
    const ctx = contextOf('/', {
      res: { headersSent: false, statusCode: 404 },
      state: { requestId: 'r', address: '' },
    });
    const [line] = linesOf('info', ({ logger }) => logRequest(logger, ctx, 0));
    const { time, pid, ...entry } = JSON.parse(line!);
    expect(entry).toEqual({
      level: 'info',
      request_id: 'r',
      method: 'GET',
      path: '/',
      status: 499,
      ms: 0,
      address: '',
      msg: 'request',
    });
    expect([Date.parse(time) <= Date.now(), pid]).toEqual([true, process.pid]);
  });
  test('the line is left out above its level', () => {
    expect(linesOf('warn', ({ logger }) => logRequest(logger, contextOf('/'), 1))).toEqual([]);
  });
});
