/** Ints from 0 on as bytes, seven bits in each. */

/** Bytes of the largest int. */
const INT_BYTES = 8;

export function varintBytes(numbers: readonly number[]): Buffer {
  const bytes = Buffer.allocUnsafe(numbers.length * INT_BYTES);
  let at = 0;
  for (const number of numbers) {
    let rest = number;
    for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes[at++] = (rest % 0x80) + 0x80;
    bytes[at++] = rest;
  }
  return bytes.subarray(0, at);
}

export class ByteReader {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  next(): number {
    let number = 0;
    for (let unit = 1; ; unit *= 0x80) {
      const byte = this.#bytes[this.#at++]!;
      number += (byte % 0x80) * unit;
      if (byte < 0x80) return number;
    }
  }

  text(): string {
    const length = this.next();
    this.#at += length;
    return this.#bytes.toString('utf8', this.#at - length, this.#at);
  }
}
