/** Reduces an address to the network that identifies one client in rate limits. */
import { isIPv6 } from 'node:net';

/** The well-known prefix of NAT64 (RFC 6052), written as six groups. */
const NAT64 = '64:ff9b:0:0:0:0';
const IPV4_MAPPED = '0:0:0:0:0:ffff';

/**
 * Returns an IPv4 address unchanged, and the /64 network of an IPv6 address, which one customer of a
 * provider has as a whole. IPv4-mapped and NAT64 addresses represent the IPv4 address in their last 32 bits.
 */
export function networkOf(ip = 'unknown'): string {
  if (!isIPv6(ip)) return ip;
  const groups = groupsOf(ip);
  const prefix = groups.slice(0, 6).join(':');
  if (prefix === IPV4_MAPPED || prefix === NAT64) return ipv4Of(groups.slice(6));
  return `${groups.slice(0, 4).join(':')}::/64`;
}

/** Returns all eight groups, in hexadecimal without leading zeros. */
function groupsOf(ip: string): readonly string[] {
  const withoutZone = ip.replace(/%.*$/s, '');
  // The URL parser writes every IPv6 address in one way: lower case, hexadecimal, the longest run
  // of zeros left out.
  const [head = '', tail] = new URL(`http://[${withoutZone}]`).hostname.slice(1, -1).split('::');
  const left = head === '' ? [] : head.split(':');
  if (tail === undefined) return left;
  const right = tail === '' ? [] : tail.split(':');
  return [...left, ...Array<string>(8 - left.length - right.length).fill('0'), ...right];
}

function ipv4Of(groups: readonly string[]): string {
  return groups
    .map((group) => Number.parseInt(group, 16))
    .flatMap((number) => [number >> 8, number & 255])
    .join('.');
}
