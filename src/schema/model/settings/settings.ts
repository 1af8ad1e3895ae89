/** The settings of the file: roles, sessions, limits, uploads, origins, proxies. */
import { z } from 'zod';
import { nearest } from '../../../../grammar/suggest.ts';
import { UTC } from '../../../policy/values.ts';
import type { DocumentPath, Report } from '../../file/issue.ts';
import type { SchemaFile } from '../../file/shape.ts';
import { rateOf, secondsOf, sizeInBytes } from '../../file/units.ts';
import type { Limits, Role, Schema, Uploads } from '../model.ts';
import { nameIssue } from '../names.ts';
import { DEFAULT_FEED_STREAMS, DEFAULT_LIMITS, DEFAULT_SESSIONS, DEFAULT_UPLOADS, MOST_BODY } from './defaults.ts';

export interface Settings {
  readonly report: Report;
  readonly roles: ReadonlyMap<string, Role>;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Always declared: the first administrator has it, and it assigns every role. */
const ADMIN = 'admin';

// ---------------------------------------------------------------- roles

type RoleShape = {
  readonly assigns?: readonly string[] | undefined;
  readonly includes?: readonly string[] | undefined;
};

export function readRoles({ roles = [] }: SchemaFile, report: Report): ReadonlyMap<string, Role> {
  const shapes = new Map<string, RoleShape>();
  const paths = new Map<string, DocumentPath>();
  const entries: readonly (readonly [string, RoleShape, DocumentPath])[] = Array.isArray(roles)
    ? roles.map((name, i) => [name, {}, ['roles', i]] as const)
    : Object.entries(roles).map(([name, shape]) => [name, shape ?? {}, ['roles', name]] as const);
  for (const [name, shape, path] of entries) {
    if (name === '') continue;
    const issue = nameIssue(name);
    if (issue !== undefined) report({ ...issue, path, at: 'key' });
    else if (shapes.has(name))
      report({ code: 'duplicate_value', message: `the role \`${name}\` is declared twice; remove one of them`, path });
    else {
      shapes.set(name, shape);
      paths.set(name, path);
    }
  }
  if (!shapes.has(ADMIN)) shapes.set(ADMIN, {});
  const known = (names: readonly string[] | undefined, path: DocumentPath): readonly string[] =>
    (names ?? []).filter((name, i) => knownRole(name, { path: [...path, i], roles: shapes, report }));
  const read = new Map<string, RoleShape>();
  for (const [name, { assigns, includes }] of shapes) {
    const path = paths.get(name) ?? [];
    read.set(name, { assigns: known(assigns, [...path, 'assigns']), includes: known(includes, [...path, 'includes']) });
  }
  return new Map(
    [...read].map(([name, { assigns }]) => [
      name,
      { name, assigns: assignsOf(name, assigns!, read), includes: closure(name, read) },
    ]),
  );
}

const assignsOf = (name: string, assigns: readonly string[], all: ReadonlyMap<string, RoleShape>): readonly string[] =>
  name === ADMIN ? [...all.keys()] : [...new Set(assigns)];

/**
 * Every role that `name` includes, directly or through another, without itself. Roles in a circle
 * have the same rights.
 */
function closure(name: string, roles: ReadonlyMap<string, RoleShape>): readonly string[] {
  const reached = new Set<string>();
  const open = [...(roles.get(name)?.includes ?? [])];
  for (let next = open.shift(); next !== undefined; next = open.shift()) {
    if (reached.has(next)) continue;
    reached.add(next);
    open.push(...(roles.get(next)?.includes ?? []));
  }
  reached.delete(name);
  return [...reached];
}

export interface RolePlace {
  readonly path: DocumentPath;
  readonly roles: ReadonlyMap<string, unknown>;
  readonly report: Report;
}

/** `false` if the role is not declared, which is reported. The shape has reported an empty name. */
export function knownRole(name: string, { path, roles, report }: RolePlace): boolean {
  if (roles.has(name)) return true;
  if (name === '') return false;
  const near = nearest(name, roles.keys());
  const hint = near === undefined ? `; declare it under \`roles\`` : `; did you mean \`${near}\`?`;
  report({ code: 'role_unknown', message: `unknown role \`${name}\`${hint}`, path, replacement: near });
  return false;
}

export function readRegister({ register }: SchemaFile, { report, roles }: Settings): Schema['register'] {
  const names = register?.roles ?? [];
  return {
    open: register?.open ?? true,
    verify: register?.verify ?? false,
    roles: [...new Set(names.filter((name, i) => knownRole(name, { path: ['register', 'roles', i], roles, report })))],
  };
}

export function readSecondFactorRoles(
  { second_factor: given }: SchemaFile,
  { report, roles }: Settings,
): ReadonlySet<string> {
  const path = ['second_factor', 'required_for'];
  const required = (given?.required_for ?? []).filter((name, i) =>
    knownRole(name, { path: [...path, i], roles, report }),
  );
  const needs = ({ name, includes }: Role): boolean =>
    required.some((each) => each === name || includes.includes(each));
  return new Set([...roles.values()].filter(needs).map(({ name }) => name));
}

export function readPasskeys({ passkeys: given = {} }: SchemaFile, { report }: Settings): Schema['passkeys'] {
  const { rp_id: id, rp_name: name, origins } = given;
  for (const [i, origin] of (origins ?? []).entries()) {
    const url = URL.canParse(origin) ? new URL(origin) : undefined;
    const isOfSite = id === undefined || url?.hostname === id || url?.hostname.endsWith(`.${id}`) === true;
    if (url?.origin === origin && isOfSite) continue;
    const message = `\`${origin}\` is not an origin of ${id ?? 'a site'}; expected one such as \`https://app.example.com\``;
    report({ code: 'invalid_origin', message, path: ['passkeys', 'origins', i] });
  }
  return { id, name, origins };
}

export function readTimezone({ timezone = UTC }: SchemaFile, report: Report): string {
  if (isZone(timezone)) return timezone;
  const near = nearest(timezone, Intl.supportedValuesOf('timeZone'));
  const hint = near === undefined ? 'expected a name of IANA such as `Europe/Amsterdam`' : `did you mean \`${near}\`?`;
  const message = `unknown time zone \`${timezone}\`; ${hint}`;
  report({ code: 'invalid_timezone', message, path: ['timezone'], replacement: near });
  return UTC;
}

/** A time zone as IANA names it. Offsets (`+02:00`) name no zone: they have no daylight saving. */
export function isZone(name: string): boolean {
  try {
    return /^[A-Za-z]/.test(name) && new Intl.DateTimeFormat('en-US', { timeZone: name }) !== undefined;
  } catch {
    return false;
  }
}

// ---------------------------------------------------------------- sessions, audit, limits, uploads

export const readAuditSettings = ({ audit: { keep } = {} }: SchemaFile): Schema['audit'] =>
  keep === undefined ? {} : { keep: secondsOf(keep) };

export function readSessions({ sessions }: SchemaFile, { report }: Settings): Schema['sessions'] {
  const given = { ...DEFAULT_SESSIONS, ...sessions };
  const read = { access: secondsOf(given.access), refresh: secondsOf(given.refresh), idle: secondsOf(given.idle) };
  if (read.access > read.refresh) {
    const message = `an access token (${given.access}) would outlive its session (${given.refresh}); expected a shorter \`access\``;
    report({
      code: 'invalid_sessions',
      message,
      path: ['sessions', sessions?.access === undefined ? 'refresh' : 'access'],
    });
  }
  return read;
}

export function readLimits({ limits }: SchemaFile, { report }: Settings): Limits {
  const given = { ...DEFAULT_LIMITS, ...limits };
  if (sizeInBytes(given.body) > sizeInBytes(MOST_BODY)) {
    const message = `a JSON body is in memory as a whole; expected at most ${MOST_BODY}, got ${given.body}`;
    report({ code: 'invalid_limits', message, path: ['limits', 'body'], replacement: MOST_BODY });
  }
  return {
    loginAccount: rateOf(given.login_account),
    loginAddress: rateOf(given.login_address),
    register: rateOf(given.register),
    refresh: rateOf(given.refresh),
    reset: rateOf(given.reset),
    guest: rateOf(given.guest),
    body: sizeInBytes(given.body),
    answer: sizeInBytes(given.answer),
    queryTime: secondsOf(given.query_time),
    writeTime: secondsOf(given.write_time),
    feeds: { user: limits?.feeds?.user ?? DEFAULT_FEED_STREAMS, node: limits?.feeds?.node },
  };
}

const MEDIA_TYPE = /^[a-z0-9][a-z0-9!#$&^_.+-]*\/(?:\*|[a-z0-9][a-z0-9!#$&^_.+-]*)$/;

export function readUploads({ uploads = {} }: SchemaFile, { report, roles }: Settings): Uploads {
  const { types = [], quota = {}, images = {} } = uploads;
  types.forEach((type, i) => {
    if (type === '' || MEDIA_TYPE.test(type)) return;
    const message = `\`${type}\` is not a media type; expected one such as \`image/png\` or \`image/*\``;
    report({ code: 'invalid_media_type', message, path: ['uploads', 'types', i] });
  });
  const quotas = Object.entries(quota).filter(([name]) => {
    return (
      name === 'default' ||
      knownRole(name, {
        path: ['uploads', 'quota', name],
        roles,
        report: (finding) => report({ ...finding, at: 'key' }),
      })
    );
  });
  return {
    maxSize: sizeInBytes(uploads.max_size ?? DEFAULT_UPLOADS.max_size),
    types,
    quota: new Map(quotas.map(([name, size]) => [name, sizeInBytes(size)])),
    images: {
      widths: images.widths ?? DEFAULT_UPLOADS.image_lengths,
      heights: images.heights ?? DEFAULT_UPLOADS.image_lengths,
      maxPixels: images.max_pixels ?? DEFAULT_UPLOADS.max_pixels,
    },
  };
}

// ---------------------------------------------------------------- origins, proxies

export function readOrigins({ origins = [] }: SchemaFile, { report }: Settings): readonly string[] {
  return origins.filter((origin, i) => {
    const url = URL.canParse(origin) ? new URL(origin) : undefined;
    if (origin === '' || (url !== undefined && /^https?:$/.test(url.protocol) && url.origin === origin))
      return origin !== '';
    const exact = url !== undefined && /^https?:$/.test(url.protocol) ? url.origin : undefined;
    const hint = exact === undefined ? 'expected one such as `https://app.example`' : `did you mean \`${exact}\`?`;
    const message = `\`${origin}\` is not an origin; ${hint}`;
    report({ code: 'invalid_origin', message, path: ['origins', i], replacement: exact });
    return false;
  });
}

export function readProxies({ proxies = [] }: SchemaFile, { report }: Settings): readonly string[] {
  return proxies.filter((proxy, i) => {
    if (proxy === '') return false;
    const [address = '', bits, ...rest] = proxy.split('/');
    const most = z.ipv4().safeParse(address).success ? 32 : z.ipv6().safeParse(address).success ? 128 : -1;
    const valid =
      most !== -1 &&
      rest.length === 0 &&
      (bits === undefined || (/^(?:0|[1-9]\d{0,2})$/.test(bits) && Number(bits) <= most));
    if (!valid) {
      const message = `\`${proxy}\` is not an address or a range; expected one such as \`10.0.0.0/8\``;
      report({ code: 'invalid_proxy', message, path: ['proxies', i] });
    }
    return valid;
  });
}
