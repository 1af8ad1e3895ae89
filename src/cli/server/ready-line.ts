/** The line that `bylaw serve` prints when it listens. */
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

/** Without user name and password. */
function databasePlace(databaseUrl: string): string {
  const { host, pathname, searchParams } = new URL(withHost(databaseUrl));
  return `${searchParams.get('host') ?? (host === '' ? 'localhost' : host)}${pathname}`;
}
