/**
 * Ids of new records: UUIDs of version 7, in the order in which this process makes them. The random
 * bits are drawn for many at once: for each alone, they cost ten times what the rest of it does.
 */
import { randomFillSync } from 'node:crypto';
import { v7 } from 'uuid';

const BYTES = 16;
const pool = new Uint8Array(BYTES * 256);
let used = pool.length;

let milliseconds = 0;
let sequence = 0;

/** A new id, greater than every one before it. */
export function newRecordId(): string {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  const random = pool.subarray(used, used + BYTES);
  used += BYTES;
  const now = Date.now();
  if (now > milliseconds) {
    milliseconds = now;
    // 31 bits, so that there is room to count on.
    sequence = new DataView(random.buffer, random.byteOffset).getUint32(0) >>> 1;
  } else if (sequence === 0xffff_ffff) {
    milliseconds++;
    sequence = 0;
  } else sequence++;
  return v7({ random, msecs: milliseconds, seq: sequence });
}
