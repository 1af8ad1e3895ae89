/** `15m`, `30d` and `100MiB`: the spellings of durations and sizes in a schema file. */
import { present } from '../../invariant.ts';

type Units = Readonly<Record<string, number>>;
const SECONDS_OF_UNIT: Units = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800 };
const BYTES_OF_UNIT: Units = {
  B: 1,
  KiB: 2 ** 10,
  MiB: 2 ** 20,
  GiB: 2 ** 30,
  TiB: 2 ** 40,
  KB: 1e3,
  MB: 1e6,
  GB: 1e9,
  TB: 1e12,
};

export const DURATION = /^([1-9][0-9]{0,8})(s|m|h|d|w)$/;
export const SIZE = /^([1-9][0-9]{0,11})(B|KiB|MiB|GiB|TiB|KB|MB|GB|TB)$/;
/** `10 in 15m` */
export const RATE = /^([1-9][0-9]{0,8}) in ([1-9][0-9]{0,8}(?:s|m|h|d|w))$/;

/** Seconds. INVARIANT: the text was matched by the shape. */
export function secondsOf(text: string): number {
  const [, amount, unit = ''] = present(DURATION.exec(text), 'a duration');
  return Number(amount) * present(SECONDS_OF_UNIT[unit], 'the unit');
}

/** Bytes. INVARIANT: the text was matched by the shape. */
export function sizeInBytes(size: string | number): number {
  if (typeof size === 'number') return size;
  const [, amount, unit = ''] = present(SIZE.exec(size), 'a size');
  return Number(amount) * present(BYTES_OF_UNIT[unit], 'the unit');
}

export function rateOf(text: string): { readonly points: number; readonly window: number } {
  const [, points, window = ''] = present(RATE.exec(text), 'a rate');
  return { points: Number(points), window: secondsOf(window) };
}
