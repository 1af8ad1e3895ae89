/**
 * The settings of the service. SETTINGS is the only list: `--help`, docs/operations.md and the
 * check of unknown names follow from it.
 */
import { statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { z } from 'zod';
import { hintOf, nearest } from '../grammar/suggest.ts';
import type { Environment } from './schema/load.ts';

export interface Config {
  readonly schema: string;
  readonly host: string;
  /** 0 takes a free port. */
  readonly port: number;
  /** Has no trailing slash. Default: from host and port. */
  readonly baseUrl: string;
  readonly baseUrlGiven: boolean;
  /** Undefined: the embedded database in `data`. */
  readonly databaseUrl?: string;
  readonly replicaUrl?: string;
  readonly directUrl?: string;
  /** The node of a cluster that is asked about one tenant: its coordinator, or the worker that has the tenant's records. */
  readonly databaseWorkers: 'coordinator' | 'direct';
  readonly data: string;
  /** `s3://…`. Undefined: a folder in `data`. */
  readonly files?: string;
  /** `smtp://…` or `smtps://…`. Undefined: mails are written as files into `data`. */
  readonly smtpUrl?: string;
  /** Default: no-reply@ the host of the base URL. */
  readonly mailFrom?: string;
  readonly workers: number;
  /** 32 bytes. Undefined: the signing keys are stored in plain. */
  readonly keySecret?: Buffer;
  readonly admin?: { readonly email: string; readonly password: string };
  /** Webhooks may be sent to addresses of private networks. */
  readonly allowPrivate: boolean;
  /** False for load tests only. */
  readonly rateLimit: boolean;
  /** The readers of /metrics: programs on this machine, or everybody. */
  readonly metrics: 'local' | 'public';
  /** The limit of each process. */
  readonly maxConnections: number;
  /** A folder that is served as the front end. */
  readonly publicFolder?: string;
  /** The pages at `/studio` are served. */
  readonly studio: boolean;
  /** `bylaw dev`: all names of this machine count as one site. */
  readonly isDevelopment: boolean;
}

/** Flags by name, as given on the command line. */
export type FlagValues = Readonly<Record<string, string>>;

/** Every error of the command line and of the environment, one per line. */
export class ConfigError extends Error {
  readonly issues: readonly string[];
  constructor(issues: readonly string[]) {
    super(issues.join('\n'));
    this.name = 'ConfigError';
    this.issues = issues;
  }
}

export function unknownName(what: string, name: string, known: readonly string[]): string {
  const near = nearest(name, known);
  return `unknown ${what} \`${name}\`${hintOf(near)}`;
}

// ---------------------------------------------------------------- the settings

export interface Setting {
  readonly env: string;
  readonly flag?: string;
  /** The name of the value in usage lines. */
  readonly value: string;
  /** The value of the setting where the flag is given, which then takes none. */
  readonly flagMeans?: string;
  /** A line for `--help` and the docs. */
  readonly about: string;
  readonly default?: string;
  /** Describes what applies if the setting is not set and has no default value. */
  readonly otherwise?: string;
  readonly read: z.ZodType<unknown, string>;
}

const integer = (least: number, most: number) =>
  z
    .string()
    .regex(/^(?:0|[1-9][0-9]{0,8})$/, `expected an int from ${least} to ${most}`)
    .transform(Number)
    .refine((value) => value >= least && value <= most, `expected an int from ${least} to ${most}`);
/**
 * libpq accepts URLs without a host if there is a socket folder, also after a user
 * (`postgres://me@/name?host=/run/postgresql`). The URL standard requires a host there.
 */
const isPostgresUrl = (text: string): boolean => {
  const whole = withHost(text);
  return URL.canParse(whole) && /^postgres(?:ql)?:$/.test(new URL(whole).protocol);
};
export const withHost = (url: string): string => url.replace(/^(postgres(?:ql)?:\/\/[^/@?]*@)(?=\/)/, '$1localhost');
const postgresUrl = z.string().refine(isPostgresUrl, 'expected a URL such as postgres://user@host:5432/name');
const nonEmpty = z.string().min(1, 'expected a string that is not empty');

/** The settings, in the order of the manual. */
export const SETTINGS = {
  schema: {
    flag: 'schema',
    value: 'FILE',
    env: 'BYLAW_SCHEMA',
    default: 'bylaw.yaml',
    about: 'the schema file: collections, roles and policies',
    read: nonEmpty,
  },
  port: {
    flag: 'port',
    value: 'N',
    env: 'PORT',
    default: '8090',
    about: 'the port to listen on; 0 takes a free one and prints it',
    read: integer(0, 65_535),
  },
  host: {
    flag: 'host',
    value: 'H',
    env: 'HOST',
    default: '127.0.0.1',
    about: 'the address to listen on; 0.0.0.0 for all interfaces',
    read: nonEmpty,
  },
  databaseUrl: {
    flag: 'database-url',
    value: 'URL',
    env: 'DATABASE_URL',
    otherwise: 'the embedded database in the data folder',
    about: 'the PostgreSQL database (15 or newer)',
    read: postgresUrl,
  },
  replicaUrl: {
    value: 'URL',
    env: 'DATABASE_REPLICA_URL',
    otherwise: 'none',
    about: 'a read replica, for reads that may lag behind',
    read: postgresUrl,
  },
  directUrl: {
    value: 'URL',
    env: 'DATABASE_DIRECT_URL',
    otherwise: 'DATABASE_URL, unless that has `pooler=transaction`',
    about: 'the database past a pooler, for notifications between servers',
    read: postgresUrl,
  },
  databaseWorkers: {
    value: 'coordinator|direct',
    env: 'DATABASE_WORKERS',
    default: 'coordinator',
    about: '`direct` asks the workers of a cluster about one tenant without the coordinator, where they can be reached',
    read: z.enum(['coordinator', 'direct'], { error: 'expected `coordinator` or `direct`' }) as z.ZodType<
      'coordinator' | 'direct',
      string
    >,
  },
  data: {
    flag: 'data',
    value: 'DIR',
    env: 'BYLAW_DATA',
    default: './data',
    about: 'the data folder: embedded database, local files, mails without an SMTP server',
    read: nonEmpty.refine(canBeFolder, 'expected a folder; it, or a part of its path, is a file'),
  },
  files: {
    value: 'URL',
    env: 'BYLAW_FILES',
    otherwise: 'the folder `files` in the data folder',
    about: 'the bucket for uploaded files, such as s3://bucket/prefix?region=eu-central-1',
    read: z
      .string()
      .regex(
        /^s3:\/\/[^/?]+(?:\/[^?]*)?(?:\?(?:(?:region|endpoint|redirects)=[^&]*&?)*)?$/,
        'expected a place such as s3://bucket/prefix?region=eu-central-1',
      ),
  },
  baseUrl: {
    flag: 'base-url',
    value: 'URL',
    env: 'BASE_URL',
    otherwise: 'from host and port',
    about: 'the public URL of the service, for clients behind a proxy',
    read: z.string().refine(isBaseUrl, 'expected a URL such as https://api.example, without a query'),
  },
  workers: {
    flag: 'workers',
    value: 'N',
    env: 'BYLAW_WORKERS',
    default: '1',
    about: 'processes that serve one port; more than 1 needs PostgreSQL',
    read: integer(1, 256),
  },
  smtpUrl: {
    value: 'URL',
    env: 'SMTP_URL',
    otherwise: 'mails are written as files into the folder `mail` in the data folder',
    about: 'the mail server, such as smtp://user:password@host:587',
    read: z.string().refine(isSmtpUrl, 'expected a URL such as smtp://user:password@host:587'),
  },
  mailFrom: {
    value: 'ADDRESS',
    env: 'MAIL_FROM',
    otherwise: 'no-reply@ the host of the base URL',
    about: 'the sender of mails',
    read: z
      .string()
      .regex(
        /^(?:[^\s@<>]+@[^\s@<>]+|[^<>\r\n]*<[^\s@<>]+@[^\s@<>]+>)$/,
        'expected an address such as no-reply@example.com or `Example <no-reply@example.com>`',
      ),
  },
  adminEmail: {
    value: 'EMAIL',
    env: 'BYLAW_ADMIN_EMAIL',
    otherwise: 'none',
    about: 'creates this user with the role `admin` at a start where it does not exist',
    read: z.string().regex(/^[^\s@]+@[^\s@]+$/, 'expected an email address'),
  },
  adminPassword: {
    value: 'PASSWORD',
    env: 'BYLAW_ADMIN_PASSWORD',
    otherwise: 'none',
    about: 'the password of that user',
    read: z.string().min(8, 'expected 8 characters or more').max(256, 'expected 256 characters or less'),
  },
  keySecret: {
    value: 'SECRET',
    env: 'BYLAW_KEY_SECRET',
    otherwise: 'the signing keys of access tokens, and the key of second factors, are stored in plain',
    about: 'wraps these keys in the database: 32 bytes in base64 or hex, as by `openssl rand -base64 32`',
    read: z.string().transform(keySecretOf),
  },
  publicFolder: {
    flag: 'public',
    value: 'DIR',
    env: 'BYLAW_PUBLIC',
    otherwise: 'none',
    about: 'a folder that is served as the front end: unknown paths get its index.html',
    read: z.string().refine(isFolder, 'the folder does not exist'),
  },
  studio: {
    flag: 'no-studio',
    flagMeans: 'off',
    value: 'on|off',
    env: 'BYLAW_STUDIO',
    default: 'on',
    about: '`off` serves no studio, the pages at /studio',
    read: z.enum(['on', 'off'], { error: 'expected `on` or `off`' }) as z.ZodType<'on' | 'off', string>,
  },
  allowPrivate: {
    flag: 'allow-private',
    flagMeans: 'on',
    value: 'on|off',
    env: 'BYLAW_ALLOW_PRIVATE',
    default: 'off',
    about: '`on` sends webhooks to addresses of private networks too, also without TLS',
    read: z.enum(['on', 'off'], { error: 'expected `on` or `off`' }) as z.ZodType<'on' | 'off', string>,
  },
  rateLimit: {
    value: 'on|off',
    env: 'BYLAW_RATE_LIMIT',
    default: 'on',
    about: '`off` lifts the limits against guessing: for load tests only',
    read: z.enum(['on', 'off'], { error: 'expected `on` or `off`' }) as z.ZodType<'on' | 'off', string>,
  },
  metrics: {
    value: 'local|public',
    env: 'BYLAW_METRICS',
    default: 'local',
    about: 'who may read /metrics: only requests from this machine that no proxy forwarded, or every client',
    read: z.enum(['local', 'public'], { error: 'expected `local` or `public`' }) as z.ZodType<
      'local' | 'public',
      string
    >,
  },
  maxConnections: {
    value: 'N',
    env: 'BYLAW_MAX_CONNECTIONS',
    default: '4096',
    about:
      'connections that a process keeps open; one more closes the one that has waited longest for its first request, or is idle',
    read: integer(1, 1_000_000),
  },
} as const satisfies Readonly<Record<string, Setting>>;

export type SettingName = keyof typeof SETTINGS;
export const SETTING_NAMES = Object.keys(SETTINGS) as readonly SettingName[];

/** The parsed settings: undefined only without a default. */
type ServerSettings = {
  readonly [Name in SettingName]:
    | z.output<(typeof SETTINGS)[Name]['read']>
    | ((typeof SETTINGS)[Name] extends { readonly default: string } ? never : undefined);
};

function keySecretOf(given: string, ctx: z.RefinementCtx): Buffer {
  const isHex = /^[0-9a-f]{64}$/i.test(given);
  const isBase64 = /^[A-Za-z0-9+/_-]{43}=?$/.test(given);
  if (!isHex && !isBase64) {
    ctx.addIssue({ code: 'custom', message: 'expected 32 bytes in base64 or hex, as by `openssl rand -base64 32`' });
    return z.NEVER;
  }
  return Buffer.from(given, isHex ? 'hex' : 'base64');
}

function isBaseUrl(given: string): boolean {
  if (!URL.canParse(given)) return false;
  const { protocol, search, hash } = new URL(given);
  return /^https?:$/.test(protocol) && search === '' && hash === '';
}

function isFolder(given: string): boolean {
  return statSync(given, { throwIfNoEntry: false })?.isDirectory() === true;
}

/** A folder, or a name of one that can be made. */
function canBeFolder(given: string): boolean {
  const path = resolve(given);
  const found = statSync(path, { throwIfNoEntry: false });
  return found === undefined ? canBeFolder(dirname(path)) : found.isDirectory();
}

function isSmtpUrl(given: string): boolean {
  if (!URL.canParse(given)) return false;
  const { protocol, hostname } = new URL(given);
  return /^smtps?:$/.test(protocol) && hostname !== '';
}

// ---------------------------------------------------------------- reading them

/** Flags first, then the environment, then defaults. Throws ConfigError with every issue. */
export function readConfig(flags: FlagValues, env: Environment): Config {
  const { settings, issues } = readSettings(flags, env);
  if (issues.length > 0) throw new ConfigError(issues);
  return configOf(settings);
}

/** The issues that `readConfig` would throw. */
export const configIssues = (flags: FlagValues, env: Environment): readonly string[] => readSettings(flags, env).issues;

/** Serves commands that read nothing but the schema file. */
export const schemaFileOf = (flags: FlagValues, env: Environment): string => configured('schema', flags, env) as string;

/** Serves commands that start no process. */
export const processesOf = (flags: FlagValues, env: Environment): number => configured('workers', flags, env) as number;

export const asksWorkersDirectly = (flags: FlagValues, env: Environment): boolean =>
  configured('databaseWorkers', flags, env) === 'direct';

/** Throws ConfigError. */
function configured(name: SettingName, flags: FlagValues, env: Environment): unknown {
  const { value, issue } = readSetting(name, flags, env);
  if (issue !== undefined) throw new ConfigError([issue]);
  return value;
}

interface SettingRead {
  readonly value?: unknown;
  readonly issue?: string;
}

function readSetting(name: SettingName, flags: FlagValues, env: Environment): SettingRead {
  const setting: Setting = SETTINGS[name];
  const flag = setting.flag === undefined ? undefined : flags[setting.flag];
  const fromFlag = flag === undefined ? undefined : (setting.flagMeans ?? flag);
  // An empty variable counts as unset: compose files leave variables out in this way.
  const given = fromFlag ?? (env[setting.env] === '' ? undefined : env[setting.env]) ?? setting.default;
  if (given === undefined) return {};
  const read = setting.read.safeParse(given);
  if (read.success) return { value: read.data };
  const source = fromFlag === undefined ? setting.env : `--${setting.flag}`;
  return { issue: `${source}: ${read.error.issues[0]!.message}` };
}

function readSettings(
  flags: FlagValues,
  env: Environment,
): { readonly settings: ServerSettings; readonly issues: readonly string[] } {
  const read = SETTING_NAMES.map((name) => [name, readSetting(name, flags, env)] as const);
  const settings = Object.fromEntries(read.map(([name, { value }]) => [name, value])) as unknown as ServerSettings;
  const invalid = read.flatMap(([, { issue }]) => (issue === undefined ? [] : [issue]));
  const issues = [...unknownEnvironment(env), ...(invalid.length > 0 ? invalid : conflicts(settings))];
  return { settings, issues };
}

/** A variable of ours that is not a setting is most likely a typing error. */
function unknownEnvironment(env: Environment): readonly string[] {
  const known: readonly string[] = Object.values(SETTINGS).map(({ env: name }) => name);
  const ours = Object.keys(env).filter((name) => name.startsWith('BYLAW_') && env[name] !== undefined);
  return ours.filter((name) => !known.includes(name)).map((name) => unknownName('environment name', name, known));
}

function conflicts(settings: ServerSettings): readonly string[] {
  const { workers, databaseUrl, replicaUrl, databaseWorkers, adminEmail, adminPassword } = settings;
  const issues: string[] = [];
  if (workers > 1 && databaseUrl === undefined)
    issues.push('--workers: more than one needs --database-url (the embedded database serves one process)');
  if (replicaUrl !== undefined && databaseUrl === undefined)
    issues.push('DATABASE_REPLICA_URL: a replica needs DATABASE_URL');
  if (databaseWorkers === 'direct' && (databaseUrl === undefined || replicaUrl !== undefined))
    issues.push('DATABASE_WORKERS: direct needs DATABASE_URL, and excludes DATABASE_REPLICA_URL');
  if ((adminEmail === undefined) !== (adminPassword === undefined))
    issues.push('BYLAW_ADMIN_EMAIL and BYLAW_ADMIN_PASSWORD: one needs the other');
  return issues;
}

function configOf({
  adminEmail,
  adminPassword,
  baseUrl,
  rateLimit,
  studio,
  allowPrivate,
  ...rest
}: ServerSettings): Config {
  const isAdminGiven = adminEmail !== undefined && adminPassword !== undefined;
  return {
    ...rest,
    baseUrl: (baseUrl ?? urlOf(rest)).replace(/\/+$/, ''),
    baseUrlGiven: baseUrl !== undefined,
    rateLimit: rateLimit === 'on',
    studio: studio === 'on',
    allowPrivate: allowPrivate === 'on',
    isDevelopment: false,
    admin: isAdminGiven ? { email: adminEmail, password: adminPassword } : undefined,
  };
}

const urlOf = ({ host, port }: Pick<ServerSettings, 'host' | 'port'>): string =>
  `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
