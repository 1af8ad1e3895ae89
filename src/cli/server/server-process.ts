/** The process of a server: the line that it prints when it listens, and the signals that stop it. */
import { type Config, withHost } from '../../config.ts';

export function readyLine(url: string, { databaseUrl, data, rateLimit, workers }: Config): string {
  const database =
    databaseUrl === undefined ? `embedded database in ${data}` : `PostgreSQL at ${databasePlace(databaseUrl)}`;
  const notes = [
    database,
    ...(workers > 1 ? [`${workers} workers`] : []),
    ...(rateLimit ? [] : ['rate limits are OFF']),
  ];
  return `bylaw listening on ${url} (${notes.join(', ')})`;
}

/** Shows the operator how to make the first administrator. `site`: the base URL. */
export const setupLine = (site: string, token: string): string =>
  `no user is an admin yet; within an hour, make the first one at ${site}/auth/setup#token=${token}`;

/** The server and the database, without user name and password. */
function databasePlace(databaseUrl: string): string {
  const { host, pathname, searchParams } = new URL(withHost(databaseUrl));
  return `${searchParams.get('host') ?? (host === '' ? 'localhost' : host)}${pathname}`;
}

/** Milliseconds. Ctrl-C in a shell and some supervisors send two signals at once. */
const SAME_SIGNAL_MS = 1_000;

/**
 * The first signal asks the service to stop; another one, a second later, ends the process at once.
 */
export function stopSignal(): Promise<void> {
  return new Promise((resolve) => {
    let since: number | undefined;
    const onSignal = (): void => {
      if (since !== undefined && performance.now() - since > SAME_SIGNAL_MS) process.exit(1);
      since ??= performance.now();
      resolve();
    };
    process.on('SIGTERM', onSignal);
    process.on('SIGINT', onSignal);
  });
}
