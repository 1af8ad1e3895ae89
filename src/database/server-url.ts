/** The connections to a server, from its URL, which takes `pooler` and `max_lag` besides libpq's keys. */
import { existsSync, lstatSync, statSync } from 'node:fs';
import { join } from 'node:path';
import type pg from 'pg';

/** Milliseconds. */
export const TIME_LIMIT_MS = 15_000;
const CONNECT_TIMEOUT_MS = 5_000;
/** Milliseconds of silence after which the kernel probes the other end. */
const KEEP_ALIVE_MS = 10_000;
const MAX_LAG_MS = 1_000;

/** Settings of every connection, so that cells have one format on all servers. Times in milliseconds. */
const SESSION: Readonly<Record<string, string>> = {
  TimeZone: 'UTC',
  DateStyle: 'ISO',
  bytea_output: 'hex',
  extra_float_digits: '1',
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
export function readServerUrl(url: string, searchPath?: string): ServerUrl {
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
  if (isPooled && (given !== '' || searchPath !== undefined)) {
    throw new RangeError('with `pooler=transaction` the URL cannot have `options`; set them by ALTER ROLE … SET');
  }
  const settings = { ...SESSION, ...KEEP_ALIVES, ...(searchPath ? { search_path: searchPath } : {}) };
  const folder = NO_HOST.test(address) && !keys.has('host') ? socketFolder(keys.get('port')) : undefined;
  if (folder !== undefined) keys.set('host', folder);
  const flags = Object.entries(settings).map(([name, value]) => `-c ${name}=${value}`);
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

const NO_HOST = /^postgres(?:ql)?:\/\/(?:[^/@]*@)?(?:\/|$)/;

/** The folder where libpq, and so `createdb`, finds a server without a host. Undefined: PGHOST, or this machine. */
function socketFolder(port: string | null): string | undefined {
  if (process.env.PGHOST) return undefined;
  const socket = `.s.PGSQL.${port || process.env.PGPORT || 5432}`;
  return ['/var/run/postgresql', '/tmp'].find((folder) => isServedBy(folder, socket));
}

/**
 * In a folder that every user may write, a socket counts only if it belongs to root, the folder's owner or this user,
 * because its listener gets the password.
 */
function isServedBy(folder: string, socket: string): boolean {
  const path = join(folder, socket);
  if (!existsSync(path)) return false;
  // The target of a link could change later.
  const found = lstatSync(path);
  const { mode, uid: keeper } = statSync(folder);
  const isGuarded = (mode & WRITABLE_BY_ALL) === 0 || [0, keeper, process.getuid?.()].includes(found.uid);
  return found.isSocket() && isGuarded;
}
const WRITABLE_BY_ALL = 0o002;

/** Adds settings, unless a pooler keeps connections from having their own. */
export const withSetting = (config: pg.ClientConfig, flag: string): pg.ClientConfig =>
  config.options === undefined ? config : { ...config, options: `${config.options} ${flag}` };

/** The statements that give a role the settings of connections through a pooler, for each that differs. */
export function missingSettings(role: string, actual: ReadonlyMap<string, string>): readonly string[] {
  return Object.entries(SESSION).flatMap(([name, wanted]) => {
    const found = actual.get(name) ?? '';
    // `ISO, MDY` has the other order of days and months for input, which is never used.
    const isGood = name === 'DateStyle' ? found.startsWith('ISO') : found === wanted;
    return isGood ? [] : [`ALTER ROLE ${role} SET ${name} = '${wanted}';`];
  });
}

export const SESSION_SETTINGS: readonly string[] = Object.keys(SESSION);
