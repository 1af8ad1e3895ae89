/**
 * Posts reach public addresses only. The address that a name means is judged where the connection is made, so that a name
 * that means another address a moment later opens nothing.
 */
import { type LookupAddress, type LookupOptions, lookup } from 'node:dns';
import type { LookupFunction } from 'node:net';
import { isInNetwork, type Network, parseAddress, parseNetwork } from '../policy/request/networks.ts';

/** The special-purpose registries of IANA (RFC 6890), multicast, and the ways that IPv6 writes IPv4 addresses. */
const NOT_PUBLIC: readonly Network[] = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
  '::/96',
  '64:ff9b::/96',
  '64:ff9b:1::/48',
  '100::/64',
  '2001::/23',
  '2001:db8::/32',
  '2002::/16',
  '3fff::/20',
  '5f00::/16',
  'fc00::/7',
  'fe80::/10',
  'fec0::/10',
  'ff00::/8',
].map((text) => {
  const network = parseNetwork(text);
  if (network === undefined) throw new Error(`not a network: ${text}`);
  return network;
});

/** An address that cannot be read is not public. */
export function isPublicAddress(text: string): boolean {
  // A zone such as `%eth0` exists on a link only.
  const address = parseAddress(text);
  return address !== undefined && !NOT_PUBLIC.some((network) => isInNetwork(address, network));
}

export class RefusedAddress extends Error {}

/** A name is looked up as usual, and means only its addresses that `admits` takes. */
export function lookupAmong(admits: (address: string) => boolean): LookupFunction {
  return (hostname, options: LookupOptions, callback) => {
    lookup(hostname, { ...options, all: true }, (error, found: readonly LookupAddress[] = []) => {
      if (error !== null) return callback(error, []);
      const admitted = found.filter(({ address }) => admits(address));
      const [first] = admitted;
      if (first === undefined)
        return callback(new RefusedAddress('the name means no address that may be posted to'), []);
      if (options.all === true) callback(null, admitted);
      else callback(null, first.address, first.family);
    });
  };
}
