/** Logs one JSON line per request to stderr, without tokens, passwords, cookies, bodies or query values. */
import type { Context } from 'koa';
import { type Logger, pino } from 'pino';

export type { Logger };

/** Writes are asynchronous: call `flush` before the process ends. */
export interface Log {
  readonly logger: Logger;
  flush(): void;
}

/** A destination for lines of JSON. */
export interface LogLines {
  write(line: string): void;
}

/** `to`: default stderr. */
export function openLog(level = 'info', to?: LogLines): Log {
  const stderr = to === undefined ? new GatheredLines() : undefined;
  const logger = pino(
    {
      level,
      base: { pid: process.pid },
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
    },
    to ?? stderr!,
  );
  return { logger, flush: () => stderr?.flush() };
}

/** Milliseconds that a line may wait for the next lines. A call for each line costs a fifteenth of a small write. */
const GATHER_MS = 10;

/** Writes lines to stderr, many in one call. */
class GatheredLines implements LogLines {
  readonly #stderr = pino.destination({ dest: 2, sync: false });
  #lines = '';

  write(line: string): void {
    if (this.#lines === '') setTimeout(() => this.#send(), GATHER_MS);
    this.#lines += line;
  }

  flush(): void {
    this.#send();
    this.#stderr.flushSync();
  }

  #send(): void {
    if (this.#lines !== '') this.#stderr.write(this.#lines);
    this.#lines = '';
  }
}

/**
 * Writes the line of a request that took `ms` milliseconds. The line is joined here, as pino would
 * write it: its serialisers cost more than a small request's rules.
 */
export function logRequest(log: Logger, ctx: Context, ms: number): void {
  if (!log.isLevelEnabled('info')) return;
  const status = ctx.res.headersSent ? ctx.res.statusCode : 499;
  const user = ctx.state.caller?.id;
  const stream = (log as unknown as { readonly [pino.symbols.streamSym]: LogLines })[pino.symbols.streamSym];
  stream.write(
    `{"level":"info","time":"${new Date().toISOString()}","pid":${process.pid},"request_id":${JSON.stringify(ctx.state.requestId)}` +
      `,"method":${JSON.stringify(ctx.method)},"path":${JSON.stringify(ctx.path)},"status":${status}` +
      `,"ms":${Math.round(ms * 10) / 10},"address":${JSON.stringify(ctx.state.address)}` +
      `${user === undefined ? '' : `,"user":${JSON.stringify(user)}`},"msg":"request"}\n`,
  );
}
