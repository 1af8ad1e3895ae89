/**
 * The hash of a uuid by which PostgreSQL divides, and Citus spreads: `hash_bytes` (lookup3 by Bob Jenkins) of its 16
 * bytes, on a machine whose integers begin with the lowest byte.
 */

const UUID_TEXT = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const UUID_BYTES = 16;
/** The start of `hash_bytes`. */
const HASH_START = (0x9e3779b9 + UUID_BYTES + 3_923_095) | 0;
/** Bits by which the two halves of its `mix` rotate. */
const MIXING = [
  [4, 6, 8],
  [16, 19, 4],
] as const;

const rotated = (x: number, by: number): number => (x << by) | (x >>> (32 - by));

/** Returns an int of 32 bits with its sign; undefined for another text. */
export function hashOfUuid(uuid: string): number | undefined {
  if (!UUID_TEXT.test(uuid)) return undefined;
  const bytes = Buffer.from(uuid.replaceAll('-', ''), 'hex');
  let a = (HASH_START + bytes.readInt32LE(0)) | 0;
  let b = (HASH_START + bytes.readInt32LE(4)) | 0;
  let c = (HASH_START + bytes.readInt32LE(8)) | 0;
  for (const [first, second, third] of MIXING) {
    a = (a - c) ^ rotated(c, first);
    c = (c + b) | 0;
    b = (b - a) ^ rotated(a, second);
    a = (a + c) | 0;
    c = (c - b) ^ rotated(b, third);
    b = (b + a) | 0;
  }
  a = (a + bytes.readInt32LE(12)) | 0;
  c = ((c ^ b) - rotated(b, 14)) | 0;
  a = ((a ^ c) - rotated(c, 11)) | 0;
  b = ((b ^ a) - rotated(a, 25)) | 0;
  c = ((c ^ b) - rotated(b, 16)) | 0;
  a = ((a ^ c) - rotated(c, 4)) | 0;
  b = ((b ^ a) - rotated(a, 14)) | 0;
  return ((c ^ b) - rotated(b, 24)) | 0;
}
