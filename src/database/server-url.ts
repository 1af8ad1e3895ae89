/** The connections to a server, from its URL, which takes `pooler` and `max_lag` besides libpq's keys. */
import type pg from 'pg';
import { param, type Sql, sql } from '../sql.ts';

export const TIME_LIMIT_MS = 15_000;
/** Milliseconds that a write waits for a lock: some more than PostgreSQL takes to find a deadlock, which is retried. */
const LOCK_LIMIT_MS = 1_200;
const CONNECT_TIMEOUT_MS = 5_000;
/** Milliseconds of silence after which the kernel probes the other end. */
const KEEP_ALIVE_MS = 10_000;
const MAX_LAG_MS = 1_000;

/** Cells have one format on all servers, and in the embedded engine. */
export const CELL_FORMAT: Readonly<Record<string, string>> = {
  TimeZone: 'UTC',
  DateStyle: 'ISO',
  bytea_output: 'hex',
  extra_float_digits: '1',
};

/** Settings of every connection to a server. Times in milliseconds. */
const SESSION: Readonly<Record<string, string>> = {
  ...CELL_FORMAT,
  // Compiling takes seconds where a filter has hundreds of subqueries, and cannot be interrupted.
  jit: 'off',
  statement_timeout: String(TIME_LIMIT_MS),
  idle_in_transaction_session_timeout: '30000',
};

/** The server notices the loss of this host within half a minute, and ends its transactions with their locks. */
const KEEP_ALIVES: Readonly<Record<string, string>> = {
  tcp_keepalives_idle: '10',
  tcp_keepalives_interval: '5',
  tcp_keepalives_count: '3',
};

export interface ServerUrl {
  readonly config: pg.ClientConfig;
  /**
   * `?pooler=transaction`: a pooler gives each transaction any connection, so nothing may belong to a session: no
   * prepared statements, no settings, no LISTEN.
   */
  readonly isPooled: boolean;
  /** Milliseconds that a replica may lag behind. */
  readonly maxLag: number;
}

/** Throws a RangeError for a pooler of another kind. */
export function readServerUrl(url: string): ServerUrl {
  const [address = url, query = ''] = url.split(/\?(.*)/s);
  const keys = new URLSearchParams(query);
  const taken = (name: string): string | undefined => {
    const value = keys.get(name) ?? undefined;
    keys.delete(name);
    return value;
  };
  const pooler = taken('pooler');
  if (pooler !== undefined && pooler !== 'transaction') {
    throw new RangeError(
      `pooler=${pooler}: expected \`pooler=transaction\`; a pooler in session mode needs no setting`,
    );
  }
  const isPooled = pooler !== undefined;
  const lag = Number(taken('max_lag') || Number.NaN);
  const given = taken('options') ?? '';
  if (isPooled && given !== '') {
    throw new RangeError('with `pooler=transaction` the URL cannot have `options`; set them by ALTER ROLE … SET');
  }
  const flags = Object.entries({ ...SESSION, ...KEEP_ALIVES }).map(([name, value]) => `-c ${name}=${value}`);
  const rest = keys.size > 0 ? `?${keys}` : '';
  return {
    isPooled,
    maxLag: Number.isFinite(lag) && lag >= 0 ? lag * 1_000 : MAX_LAG_MS,
    config: {
      connectionString: `${address}${rest}`,
      // Later flags win, so the operator's flags in the address overrule ours.
      ...(isPooled ? {} : { options: [...flags, given].join(' ').trim() }),
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
      connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
      application_name: 'bylaw',
    },
  };
}

/** Adds a setting that the operator's flags overrule, unless a pooler keeps connections from having their own. */
export const withSetting = (config: pg.ClientConfig, flag: string): pg.ClientConfig =>
  config.options === undefined ? config : { ...config, options: `${flag} ${config.options}` };

/** The setting of connections for writes. A read waits longer: only a migration locks records from it. */
export const LOCK_LIMIT = `-c lock_timeout=${LOCK_LIMIT_MS}`;

/** Connections through a pooler are all alike. */
const ROLE: Readonly<Record<string, string>> = { ...SESSION, lock_timeout: String(LOCK_LIMIT_MS) };

/** Asks for the statements that give the role the settings which connections through a pooler lack. */
export const MISSING_SETTINGS: Sql = sql`
  SELECT format('ALTER ROLE %I SET %s = %L;', current_user, name, wanted)
    FROM unnest(${param('text[]', Object.keys(ROLE))}, ${param('text[]', Object.values(ROLE))}) AS own (name, wanted)
    JOIN pg_settings USING (name)
   -- \`ISO, MDY\` has the other order of days and months for input, which is never used.
   WHERE split_part(setting, ',', 1) <> wanted`;
