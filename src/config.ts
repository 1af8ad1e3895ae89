/** What the operator sets: flags first, then the environment, then defaults. Anything unknown is an error. */
import { z } from 'zod';
import { nearest } from '../grammar/suggest.ts';

export interface Config {
  readonly schema: string;
  readonly host: string;
  /** 0 takes a free one. */
  readonly port: number;
  /** Without a slash at its end. Where it is not given, it follows from host and port. */
  readonly baseUrl: string;
  readonly baseUrlGiven: boolean;
  /** Without one: the embedded database in `data`. */
  readonly databaseUrl?: string;
  /** Reads that may be stale go there. */
  readonly replicaUrl?: string;
  readonly data: string;
  /** `s3://…`: where the bytes of files are. Without one: in `data`. */
  readonly files?: string;
  /** `smtp://user:password@host:587`, `smtps://…`: where mails go. Without one they are written as files into `data`. */
  readonly smtpUrl?: string;
  /** Whom mails come from. Without one: no-reply@ the host of the base URL. */
  readonly mailFrom?: string;
  readonly workers: number;
  readonly admin?: { readonly email: string; readonly password: string };
  /** False for load tests only. */
  readonly rateLimit: boolean;
}

export type Environment = Readonly<Record<string, string | undefined>>;

/** Every fault of the command line and of the environment, one a line. */
export class ConfigError extends Error {
  readonly faults: readonly string[];
  constructor(faults: readonly string[]) {
    super(faults.join('\n'));
    this.name = 'ConfigError';
    this.faults = faults;
  }
}

// ---------------------------------------------------------------- flags

/** `value`: what its value is called in the usage; without one the flag is a switch. */
export interface FlagSpec {
  readonly value?: string;
  readonly repeated?: boolean;
}
export interface Arguments {
  readonly positionals: readonly string[];
  has(flag: string): boolean;
  get(flag: string): string | undefined;
  all(flag: string): readonly string[];
}

/** `--flag value`, `--flag=value`, `--` before what is no flag. Throws ConfigError. */
export function readArguments(argv: readonly string[], specs: Readonly<Record<string, FlagSpec>>): Arguments {
  const { values, positionals, faults } = scan(argv, specs);
  if (faults.length > 0) throw new ConfigError(faults);
  return {
    positionals,
    has: (flag) => values.has(flag),
    get: (flag) => values.get(flag)?.at(-1),
    all: (flag) => values.get(flag) ?? [],
  };
}

function scan(argv: readonly string[], specs: Readonly<Record<string, FlagSpec>>) {
  const values = new Map<string, string[]>();
  const positionals: string[] = [];
  const faults: string[] = [];
  const rest = [...argv];
  for (let argument = rest.shift(); argument !== undefined; argument = rest.shift()) {
    if (argument === '--') {
      positionals.push(...rest.splice(0));
    } else if (!argument.startsWith('--')) {
      if (argument.length > 1 && argument.startsWith('-')) faults.push(unknown('flag', argument, flagNames(specs)));
      else positionals.push(argument);
    } else {
      const fault = take(argument, { rest, specs, values });
      if (fault !== undefined) faults.push(fault);
    }
  }
  return { values, positionals, faults };
}

interface Scanning {
  readonly rest: string[];
  readonly specs: Readonly<Record<string, FlagSpec>>;
  readonly values: Map<string, string[]>;
}

/** → what is wrong with it. */
function take(argument: string, { rest, specs, values }: Scanning): string | undefined {
  const equals = argument.indexOf('=');
  const flag = argument.slice(2, equals === -1 ? undefined : equals);
  if (!Object.hasOwn(specs, flag)) return unknown('flag', `--${flag}`, flagNames(specs));
  const { value: placeholder, repeated = false } = specs[flag]!;
  if (placeholder === undefined && equals !== -1) return `--${flag} takes no value`;
  const follows = equals === -1 ? rest[0] : argument.slice(equals + 1);
  if (placeholder !== undefined && (follows === undefined || (equals === -1 && follows.startsWith('--'))))
    return `--${flag} needs a value (${placeholder})`;
  if (placeholder !== undefined && equals === -1) rest.shift();
  if (values.has(flag) && !repeated) return `--${flag} is given twice`;
  values.set(flag, [...(values.get(flag) ?? []), placeholder === undefined ? 'true' : follows!]);
  return undefined;
}

const flagNames = (specs: Readonly<Record<string, FlagSpec>>): readonly string[] =>
  Object.keys(specs).map((name) => `--${name}`);

function unknown(what: string, name: string, known: readonly string[]): string {
  const near = nearest(name, known);
  return `unknown ${what} \`${name}\`${near === undefined ? '' : `; did you mean \`${near}\`?`}`;
}

// ---------------------------------------------------------------- the settings of the service

export const SERVE_FLAGS = {
  schema: { value: 'FILE' },
  port: { value: 'N' },
  host: { value: 'H' },
  'database-url': { value: 'URL' },
  data: { value: 'DIR' },
  'base-url': { value: 'URL' },
  workers: { value: 'N' },
} as const satisfies Readonly<Record<string, FlagSpec>>;

/** Where a setting comes from, and what it is called in messages. */
interface Source {
  readonly flag?: keyof typeof SERVE_FLAGS;
  readonly env: string;
}
const SOURCES = {
  schema: { flag: 'schema', env: 'BYLAW_SCHEMA' },
  port: { flag: 'port', env: 'PORT' },
  host: { flag: 'host', env: 'HOST' },
  databaseUrl: { flag: 'database-url', env: 'DATABASE_URL' },
  replicaUrl: { env: 'DATABASE_REPLICA_URL' },
  data: { flag: 'data', env: 'BYLAW_DATA' },
  baseUrl: { flag: 'base-url', env: 'BASE_URL' },
  files: { env: 'BYLAW_FILES' },
  smtpUrl: { env: 'SMTP_URL' },
  mailFrom: { env: 'MAIL_FROM' },
  workers: { flag: 'workers', env: 'BYLAW_WORKERS' },
  adminEmail: { env: 'BYLAW_ADMIN_EMAIL' },
  adminPassword: { env: 'BYLAW_ADMIN_PASSWORD' },
  rateLimit: { env: 'BYLAW_RATE_LIMIT' },
} as const satisfies Readonly<Record<string, Source>>;
type Setting = keyof typeof SOURCES;

const whole = (least: number, most: number) =>
  z
    .string()
    .regex(/^(?:0|[1-9][0-9]{0,8})$/, `expected a whole number from ${least} to ${most}`)
    .transform(Number)
    .refine((value) => value >= least && value <= most, `expected a whole number from ${least} to ${most}`);
/** libpq leaves the host out where a parameter names a socket folder (`postgres://me@/name?host=/run/postgresql`); the URL standard wants one, and drivers let the parameter win. */
const postgresUrl = z
  .string()
  .transform((text) => text.replace(/^(postgres(?:ql)?:\/\/(?:[^/@?]*@)?)(?=\/)/, '$1localhost'))
  .refine(
    (text) => URL.canParse(text) && /^postgres(?:ql)?:$/.test(new URL(text).protocol),
    'expected a URL such as postgres://user@host:5432/name',
  );
const text = z.string().min(1, 'expected a text that is not empty');

const settings = z.object({
  schema: text.default('bylaw.yaml'),
  port: whole(0, 65_535).default(8090),
  host: text.default('127.0.0.1'),
  databaseUrl: postgresUrl.optional(),
  replicaUrl: postgresUrl.optional(),
  data: text.default('./data'),
  baseUrl: z.string().refine(isBaseUrl, 'expected a URL such as https://api.example, without a query').optional(),
  files: z
    .string()
    .regex(
      /^s3:\/\/[^/?]+(?:\/[^?]*)?(?:\?(?:(?:region|endpoint|redirects)=[^&]*&?)*)?$/,
      'expected a place such as s3://bucket/prefix?region=eu-central-1',
    )
    .optional(),
  smtpUrl: z.string().refine(isSmtpUrl, 'expected a URL such as smtp://user:password@host:587').optional(),
  mailFrom: z
    .string()
    .regex(
      /^(?:[^\s@<>]+@[^\s@<>]+|[^<>\r\n]*<[^\s@<>]+@[^\s@<>]+>)$/,
      'expected an address such as no-reply@example.com or `Example <no-reply@example.com>`',
    )
    .optional(),
  workers: whole(1, 256).default(1),
  adminEmail: z
    .string()
    .regex(/^[^\s@]+@[^\s@]+$/, 'expected an email address')
    .optional(),
  adminPassword: z
    .string()
    .min(8, 'expected 8 characters or more')
    .max(256, 'expected 256 characters or less')
    .optional(),
  rateLimit: z.enum(['on', 'off'], { error: 'expected `on` or `off`' }).default('on'),
});

function isBaseUrl(given: string): boolean {
  if (!URL.canParse(given)) return false;
  const { protocol, search, hash } = new URL(given);
  return /^https?:$/.test(protocol) && search === '' && hash === '';
}

function isSmtpUrl(given: string): boolean {
  if (!URL.canParse(given)) return false;
  const { protocol, hostname } = new URL(given);
  return /^smtps?:$/.test(protocol) && hostname !== '';
}

const KNOWN_ENV: readonly string[] = Object.values(SOURCES).map(({ env }) => env);

/** What is set in the environment but means nothing: most likely a slip of the pen. */
export function unknownEnvironment(env: Environment): readonly string[] {
  const ours = Object.keys(env).filter((name) => name.startsWith('BYLAW_') && env[name] !== undefined);
  return ours.filter((name) => !KNOWN_ENV.includes(name)).map((name) => unknown('environment name', name, KNOWN_ENV));
}

/** The flags of `serve` and the environment. Throws ConfigError with every fault. */
export function readConfig(argv: readonly string[], env: Environment): Config {
  const { values, positionals, faults } = scan(argv, SERVE_FLAGS);
  faults.push(...positionals.map((word) => `unexpected argument \`${word}\``), ...unknownEnvironment(env));
  const given: Partial<Record<Setting, string>> = {};
  const names = new Map<string, string>();
  for (const [setting, source] of Object.entries(SOURCES) as [Setting, Source][]) {
    const fromFlag = source.flag === undefined ? undefined : values.get(source.flag)?.[0];
    // An empty variable is one that is not set: that is how compose files leave one out.
    const value = fromFlag ?? (env[source.env] === '' ? undefined : env[source.env]);
    names.set(setting, fromFlag === undefined ? source.env : `--${source.flag}`);
    if (value !== undefined) given[setting] = value;
  }
  const read = settings.safeParse(given);
  if (!read.success)
    faults.push(...read.error.issues.map(({ path, message }) => `${names.get(String(path[0]))}: ${message}`));
  else faults.push(...conflicts(read.data));
  if (faults.length > 0 || !read.success) throw new ConfigError(faults);
  return configOf(read.data);
}

type Settings = z.infer<typeof settings>;

function conflicts({ workers, databaseUrl, replicaUrl, adminEmail, adminPassword }: Settings): readonly string[] {
  const faults: string[] = [];
  if (workers > 1 && databaseUrl === undefined)
    faults.push('--workers: more than one needs --database-url (the embedded database serves one process)');
  if (replicaUrl !== undefined && databaseUrl === undefined)
    faults.push('DATABASE_REPLICA_URL: a replica needs DATABASE_URL');
  if ((adminEmail === undefined) !== (adminPassword === undefined))
    faults.push('BYLAW_ADMIN_EMAIL and BYLAW_ADMIN_PASSWORD: one needs the other');
  return faults;
}

function configOf({
  adminEmail,
  adminPassword,
  baseUrl,
  databaseUrl,
  replicaUrl,
  files,
  smtpUrl,
  mailFrom,
  rateLimit,
  ...rest
}: Settings): Config {
  return {
    ...rest,
    baseUrl: (baseUrl ?? urlOf(rest)).replace(/\/+$/, ''),
    baseUrlGiven: baseUrl !== undefined,
    rateLimit: rateLimit === 'on',
    ...(databaseUrl === undefined ? {} : { databaseUrl }),
    ...(replicaUrl === undefined ? {} : { replicaUrl }),
    ...(files === undefined ? {} : { files }),
    ...(smtpUrl === undefined ? {} : { smtpUrl }),
    ...(mailFrom === undefined ? {} : { mailFrom }),
    ...(adminEmail === undefined || adminPassword === undefined
      ? {}
      : { admin: { email: adminEmail, password: adminPassword } }),
  };
}

const urlOf = ({ host, port }: Pick<Config, 'host' | 'port'>): string =>
  `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
