/**
 * The client address of a request. `X-Forwarded-For` is trusted only as far as configured proxies
 * wrote it.
 */
import type { IncomingMessage } from 'node:http';
import { BlockList, isIP } from 'node:net';

export type AddressReader = (request: IncomingMessage) => string;

/** `proxies`: addresses or CIDR ranges. */
export function addressReader(proxies: readonly string[]): AddressReader {
  const trusted = new BlockList();
  for (const proxy of proxies) add(trusted, proxy);
  const isTrusted = (address: string): boolean =>
    proxies.length > 0 && isIP(address) !== 0 && trusted.check(address, family(address));
  const read = (request: IncomingMessage): string => {
    const peer = peerOf(request);
    if (!isTrusted(peer)) return peer;
    const hops = forwardedFor(request);
    // From the right: the first hop that is not one of our proxies is the client as our proxies saw it.
    const client = hops.findLast((hop) => !isTrusted(hop)) ?? hops[0];
    return client !== undefined && isIP(client) !== 0 ? client : peer;
  };
  // Remembered from the arrival of the request: a closed socket no longer knows its peer.
  const known = new WeakMap<IncomingMessage, string>();
  return (request) => {
    const address = known.get(request) ?? read(request);
    known.set(request, address);
    return address;
  };
}

const peerOf = (request: IncomingMessage): string => unmapped(request.socket.remoteAddress ?? '');

const FORWARDING_HEADERS = ['forwarded', 'via', 'x-forwarded-for', 'x-real-ip'];

/**
 * Whether the client runs on this machine. Behind a local proxy that is not configured, every
 * client seems to, so a forwarded request counts only if a configured proxy reported its address.
 */
export function isLocal(request: IncomingMessage, addressOf: AddressReader): boolean {
  const address = addressOf(request);
  const isForwarded = FORWARDING_HEADERS.some((name) => request.headers[name] !== undefined);
  if (isIP(address) === 0) return false;
  return LOOPBACK_ADDRESSES.check(address, family(address)) && !(isForwarded && address === peerOf(request));
}

const LOOPBACK_ADDRESSES = new BlockList();
LOOPBACK_ADDRESSES.addSubnet('127.0.0.0', 8, 'ipv4');
LOOPBACK_ADDRESSES.addAddress('::1', 'ipv6');

function forwardedFor(request: IncomingMessage): readonly string[] {
  const header = request.headers['x-forwarded-for'];
  const text = Array.isArray(header) ? header.join(',') : (header ?? '');
  return text
    .split(',')
    .map((hop) => unmapped(hop.trim()))
    .filter((hop) => hop !== '');
}

/** `::ffff:10.0.0.1` is 10.0.0.1. */
const unmapped = (address: string): string =>
  address.startsWith('::ffff:') && isIP(address.slice(7)) === 4 ? address.slice(7) : address;

const family = (address: string): 'ipv4' | 'ipv6' => (isIP(address) === 6 ? 'ipv6' : 'ipv4');

function add(list: BlockList, proxy: string): void {
  const [network = '', bits] = proxy.split('/');
  if (bits === undefined) list.addAddress(network, family(network));
  else list.addSubnet(network, Number(bits), family(network));
}
