/** Reads the head of a request: id, client address, credentials and query string. */
import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { BlockList, isIP } from 'node:net';
import type { Context } from 'koa';
import type { RequestClient, RequestCredentials } from '../auth/auth.ts';

// ---------------------------------------------------------------- the id

const REQUEST_ID = /^[\x21-\x7e]{1,128}$/;

/** Every answer names its request: by the caller's own `X-Request-Id` if it is harmless in a log, else by a new id. */
export function assignRequestId(ctx: Context): void {
  const given = ctx.get('X-Request-Id');
  const id = REQUEST_ID.test(given) ? given : randomUUID();
  ctx.state.requestId = id;
  ctx.res.setHeader('X-Request-Id', id);
}

// ---------------------------------------------------------------- the client

/** The client address of a request. `X-Forwarded-For` is trusted only as far as configured proxies wrote it. */
export type AddressReader = (request: IncomingMessage) => string;

/** `proxies`: addresses or CIDR ranges. */
export function addressReader(proxies: readonly string[]): AddressReader {
  if (proxies.length === 0) return peerOf;
  const trusted = new BlockList();
  for (const proxy of proxies) addNetwork(trusted, proxy);
  const isTrusted = (address: string): boolean => isIP(address) !== 0 && trusted.check(address, family(address));
  return (request) => {
    const peer = peerOf(request);
    if (!isTrusted(peer)) return peer;
    const hops = forwardedFor(request);
    // The search goes from the right: the first hop that is not our proxy is the client as our proxies saw it.
    const client = hops.findLast((hop) => !isTrusted(hop)) ?? hops[0];
    return client !== undefined && isIP(client) !== 0 ? client : peer;
  };
}

/** Unmapped: `::ffff:10.0.0.1` is 10.0.0.1. */
const peerOf = (request: IncomingMessage): string => unmapped(request.socket.remoteAddress ?? '');

function unmapped(address: string): string {
  return address.startsWith('::ffff:') && isIP(address.slice(7)) === 4 ? address.slice(7) : address;
}

function forwardedFor(request: IncomingMessage): readonly string[] {
  const header = request.headers['x-forwarded-for'];
  const text = Array.isArray(header) ? header.join(',') : (header ?? '');
  return text
    .split(',')
    .map((hop) => unmapped(hop.trim()))
    .filter((hop) => hop !== '');
}

const family = (address: string): 'ipv4' | 'ipv6' => (isIP(address) === 6 ? 'ipv6' : 'ipv4');

function addNetwork(list: BlockList, proxy: string): void {
  const [network = '', bits] = proxy.split('/');
  if (bits === undefined) list.addAddress(network, family(network));
  else list.addSubnet(network, Number(bits), family(network));
}

const FORWARDING_HEADERS = ['forwarded', 'via', 'x-forwarded-for', 'x-real-ip'];

const LOOPBACK_ADDRESSES = new BlockList();
LOOPBACK_ADDRESSES.addSubnet('127.0.0.0', 8, 'ipv4');
LOOPBACK_ADDRESSES.addAddress('::1', 'ipv6');

/**
 * Reports whether the client runs on this machine. Behind a local proxy that is not configured, every
 * client seems to, so a forwarded request counts only if a configured proxy reported its address.
 */
export function isLocal({ req, state: { address } }: Context): boolean {
  const isForwarded = FORWARDING_HEADERS.some((name) => req.headers[name] !== undefined);
  if (isIP(address) === 0) return false;
  return LOOPBACK_ADDRESSES.check(address, family(address)) && !(isForwarded && address === peerOf(req));
}

/** Describes the client to the audit trail and the rate limits. */
export const clientOf = (ctx: Context): RequestClient => ({
  ip: ctx.state.address,
  userAgent: ctx.get('User-Agent'),
  requestId: ctx.state.requestId,
  language: ctx.get('Accept-Language').slice(0, MOST_LANGUAGE_LENGTH),
});

const MOST_LANGUAGE_LENGTH = 200;

// ---------------------------------------------------------------- credentials

export const SESSION_COOKIE = 'svc_session';

/** The auth room decides which of them counts. */
export function credentialsOf(ctx: Context): RequestCredentials {
  const { authorization, cookie } = ctx.req.headers;
  // Koa would make a reader of cookies even without a cookie.
  return { authorization, cookie: cookie === undefined ? undefined : ctx.cookies.get(SESSION_COOKIE) };
}

// ---------------------------------------------------------------- the query string

/** A parameter as sent: in order, with repeated keys. */
export interface QueryPair {
  readonly key: string;
  /** Undefined: the percent-encoding is not valid UTF-8. */
  readonly value: string | undefined;
}

/** Decodes HTML forms, where `+` is a space. */
export function queryOf(ctx: Context): readonly QueryPair[] {
  if (ctx.state.query !== undefined) return ctx.state.query;
  const pairs: QueryPair[] = [];
  for (const part of ctx.querystring.split('&')) {
    if (part === '') continue;
    const at = part.indexOf('=');
    const key = at === -1 ? part : part.slice(0, at);
    pairs.push({ key: decodeComponent(key) ?? key, value: at === -1 ? '' : decodeComponent(part.slice(at + 1)) });
  }
  ctx.state.query = pairs;
  return pairs;
}

function decodeComponent(text: string): string | undefined {
  try {
    return decodeURIComponent(text.replaceAll('+', ' '));
  } catch {
    return undefined;
  }
}

const NO_QUERY = Object.freeze(Object.create(null));

/** The query as policies see it: one value is a string, several are a list, an undecodable one is null. */
export function policyQueryOf(pairs: readonly QueryPair[]): Readonly<Record<string, string | readonly string[]>> {
  if (pairs.length === 0) return NO_QUERY;
  const query: Record<string, string | string[]> = Object.create(null);
  for (const { key, value } of pairs) {
    if (value === undefined) continue;
    const before = query[key];
    if (before === undefined) query[key] = value;
    else if (typeof before === 'string') query[key] = [before, value];
    else before.push(value);
  }
  return query;
}
