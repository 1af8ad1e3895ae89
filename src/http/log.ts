/** Logs one JSON line per request to stderr, without tokens, passwords, cookies, bodies or query values. */
import type { Context, Next } from 'koa';
import { type Logger, pino } from 'pino';
import { requestIdOf } from './request-id.ts';

export type { Logger };

/** Writes are asynchronous: call `flush` before the process ends. */
export interface Log {
  readonly logger: Logger;
  flush(): void;
}

/** Takes lines of JSON. */
export interface LogLines {
  write(line: string): void;
}

/** `to`: default stderr. */
export function openLog(level = 'info', to?: LogLines): Log {
  const stderr = to === undefined ? pino.destination({ dest: 2, sync: false }) : undefined;
  const logger = pino(
    {
      level,
      base: { pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    to ?? stderr!,
  );
  return { logger, flush: () => stderr?.flushSync() };
}

export function logRequests(log: Logger, addressOf: (ctx: Context) => string) {
  return async (ctx: Context, next: Next): Promise<void> => {
    const start = performance.now();
    const address = addressOf(ctx);
    const write = (): void => {
      log.info(
        {
          request_id: requestIdOf(ctx),
          method: ctx.method,
          path: ctx.path,
          status: ctx.res.headersSent ? ctx.res.statusCode : 499,
          ms: Math.round((performance.now() - start) * 10) / 10,
          address,
          user: ctx.state.caller?.id,
        },
        'request',
      );
    };
    ctx.res.once('close', write);
    await next();
  };
}
