/** SHA-256 (FIPS 180-4) of short texts, as hexadecimal digits: schemas are read in browsers too, where digests are asynchronous. */
const INITIAL = primes(8).map((prime) => fraction(prime ** (1 / 2)));
const ROUNDS = primes(64).map((prime) => fraction(prime ** (1 / 3)));

function primes(count: number): readonly number[] {
  const found: number[] = [];
  for (let n = 2; found.length < count; n++) if (found.every((prime) => n % prime !== 0)) found.push(n);
  return found;
}

/** The first 32 bits behind the point. */
function fraction(root: number): number {
  return Math.floor((root - Math.floor(root)) * 2 ** 32) | 0;
}

const rotated = (word: number, by: number): number => (word >>> by) | (word << (32 - by));

/** The message, a bit, zeros, and the length in bits: a multiple of 64 bytes. */
function padded(message: Uint8Array): DataView {
  const view = new DataView(new ArrayBuffer(Math.ceil((message.length + 9) / 64) * 64));
  new Uint8Array(view.buffer).set(message);
  view.setUint8(message.length, 0x80);
  view.setUint32(view.byteLength - 8, Math.floor(message.length / 2 ** 29));
  view.setUint32(view.byteLength - 4, message.length * 8);
  return view;
}

function scheduleOf(view: DataView, from: number): Int32Array {
  const words = new Int32Array(64);
  for (let i = 0; i < 16; i++) words[i] = view.getInt32(from + i * 4);
  for (let i = 16; i < 64; i++) {
    const [a, b] = [words[i - 15]!, words[i - 2]!];
    const small = rotated(a, 7) ^ rotated(a, 18) ^ (a >>> 3);
    const large = rotated(b, 17) ^ rotated(b, 19) ^ (b >>> 10);
    words[i] = words[i - 16]! + small + words[i - 7]! + large;
  }
  return words;
}

type State = readonly [number, number, number, number, number, number, number, number];

function round([a, b, c, d, e, f, g, h]: State, word: number): State {
  const choice = (e & f) ^ (~e & g);
  const majority = (a & b) ^ (a & c) ^ (b & c);
  const first = (h + (rotated(e, 6) ^ rotated(e, 11) ^ rotated(e, 25)) + choice + word) | 0;
  const second = ((rotated(a, 2) ^ rotated(a, 13) ^ rotated(a, 22)) + majority) | 0;
  return [(first + second) | 0, a, b, c, (d + first) | 0, e, f, g];
}

export function sha256(text: string): string {
  const view = padded(new TextEncoder().encode(text));
  let hash = INITIAL as unknown as State;
  for (let from = 0; from < view.byteLength; from += 64) {
    let state = hash;
    for (const [i, word] of scheduleOf(view, from).entries()) state = round(state, (ROUNDS[i]! + word) | 0);
    hash = hash.map((word, i) => (word + state[i]!) | 0) as unknown as State;
  }
  return hash.map((word) => (word >>> 0).toString(16).padStart(8, '0')).join('');
}
