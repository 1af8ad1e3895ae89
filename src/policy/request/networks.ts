/**
 * Addresses and networks of the Internet Protocol as numbers, read by one parser: policies, keys and their
 * checks never disagree on what an address is.
 */

export interface IpAddress {
  readonly bits: 32 | 128;
  readonly value: bigint;
}
export interface Network extends IpAddress {
  /** The bits of `value` that every address of the network has. */
  readonly prefix: number;
}

const OCTET = /^(?:0|[1-9]\d{0,2})$/;
const GROUP = /^[0-9a-f]{1,4}$/i;
const PREFIX_LENGTH = /^(?:0|[1-9]\d{0,2})$/;
/** `::ffff:10.0.0.1` is 10.0.0.1 (RFC 4291, 2.5.5.2). */
const MAPPED = 0xffffn;

/** Undefined: not an address. An IPv4 address that IPv6 writes is that IPv4 address. */
export function parseAddress(text: string): IpAddress | undefined {
  if (!text.includes(':')) return ipv4(text);
  const value = ipv6(text);
  if (value === undefined) return undefined;
  return value >> 32n === MAPPED ? { bits: 32, value: value & 0xffff_ffffn } : { bits: 128, value };
}

/** An address, or a range such as `10.0.0.0/8`; bits behind the prefix must be zero. Undefined: neither. */
export function parseNetwork(text: string): Network | undefined {
  const [address = '', bits, ...rest] = text.split('/');
  const parsed = parseAddress(address);
  if (parsed === undefined || rest.length > 0) return undefined;
  if (bits === undefined) return { ...parsed, prefix: parsed.bits };
  // The prefix counts from the left of the address as written.
  const prefix = Number(bits) - (address.includes(':') && parsed.bits === 32 ? 96 : 0);
  if (!PREFIX_LENGTH.test(bits) || prefix < 0 || prefix > parsed.bits) return undefined;
  const host = (1n << BigInt(parsed.bits - prefix)) - 1n;
  return (parsed.value & host) === 0n ? { ...parsed, prefix } : undefined;
}

export function isInNetwork(address: IpAddress, { bits, value, prefix }: Network): boolean {
  const shift = BigInt(bits - prefix);
  return address.bits === bits && address.value >> shift === value >> shift;
}

function ipv4(text: string): IpAddress | undefined {
  const octets = text.split('.');
  if (octets.length !== 4 || !octets.every((octet) => OCTET.test(octet) && Number(octet) <= 255)) return undefined;
  return { bits: 32, value: octets.reduce((value, octet) => (value << 8n) | BigInt(octet), 0n) };
}

/** RFC 4291, 2.2, without a zone. */
function ipv6(text: string): bigint | undefined {
  const [head = '', tail, ...rest] = text.split('::');
  if (rest.length > 0) return undefined;
  const left = hextetsOf(head, tail === undefined);
  const right = tail === undefined ? [] : hextetsOf(tail, true);
  if (left === undefined || right === undefined) return undefined;
  const missing = 8 - left.length - right.length;
  if (tail === undefined ? missing !== 0 : missing < 1) return undefined;
  const groups = [...left, ...Array<bigint>(missing).fill(0n), ...right];
  return groups.reduce((value, group) => (value << 16n) | group, 0n);
}

/** @param isLast the last two groups may be written as an IPv4 address */
function hextetsOf(text: string, isLast: boolean): readonly bigint[] | undefined {
  if (text === '') return [];
  const parts = text.split(':');
  const last = parts.at(-1)!;
  const quad = isLast && last.includes('.') ? ipv4(last) : undefined;
  const plain = quad === undefined ? parts : parts.slice(0, -1);
  if (!plain.every((part) => GROUP.test(part))) return undefined;
  const groups = plain.map((part) => BigInt(`0x${part}`));
  return quad === undefined ? groups : [...groups, quad.value >> 16n, quad.value & 0xffffn];
}
