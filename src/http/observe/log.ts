/** Opens the log: lines of JSON on stderr. */
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
