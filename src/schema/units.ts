/** `15m`, `30d` and `100MiB`: the spellings of durations and sizes in a schema file. */

const SECONDS_OF_UNIT = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 } as const;
const BYTES_OF_UNIT = {
  B: 1,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  TB: 1e12,
} as const;

export const DURATION = /^([1-9][0-9]{0,8})(s|m|h|d|w)$/;
export const SIZE = /^([1-9][0-9]{0,11})(B|KiB|MiB|GiB|TiB|KB|MB|GB|TB)$/;
/** `10 in 15m` */
export const RATE = /^([1-9][0-9]{0,8}) in ([1-9][0-9]{0,8}(?:s|m|h|d|w))$/;

/** Seconds. INVARIANT: the text was matched by the shape. */
export function secondsOf(text: string): number {
  const [, amount, unit] = DURATION.exec(text)!;
  return Number(amount) * SECONDS_OF_UNIT[unit as keyof typeof SECONDS_OF_UNIT];
}

/** Bytes. INVARIANT: the text was matched by the shape. */
export function bytesOf(size: string | number): number {
  if (typeof size === 'number') return size;
  const [, amount, unit] = SIZE.exec(size)!;
  return Number(amount) * BYTES_OF_UNIT[unit as keyof typeof BYTES_OF_UNIT];
}

export function rateOf(text: string): { readonly points: number; readonly window: number } {
  const [, points, window] = RATE.exec(text)!;
  return { points: Number(points), window: secondsOf(window!) };
}
