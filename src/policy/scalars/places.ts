/**
 * Distances on the Earth, as a sphere, by the haversine formula. Both backends make the same additions and
 * multiplications of doubles in the same order, so that they agree to the last bit: no sine of a library takes part, whose
 * last digit differs between systems.
 */
const RADIUS = 6_371_008.8;
export const RADIANS = Math.PI / 180;
/** Half a difference of degrees in radians. */
export const HALF = RADIANS / 2;
/** Adding and subtracting it leaves no difference that is smaller than those of degrees, and squares to nothing. */
export const STEADY = 512;

/** The sine up to a right angle, as x · (1 + c₁x² + c₂x⁴ + …). */
export const SINE: readonly number[] = [1];
for (let k = 1; k <= 9; k++) (SINE as number[]).push(-SINE[k - 1]! / (2 * k * (2 * k + 1)));

function sine(x: number): number {
  const square = x * x;
  return x * SINE.reduceRight((sum, coefficient) => sum * square + coefficient);
}

/** The places within a distance. */
interface Circle {
  readonly lat: number;
  readonly lng: number;
  /** The cosine of the latitude. */
  readonly cosine: number;
  /** The haversine of the distance. */
  readonly most: number;
  readonly metres: number;
}

/** `52.1, 4.3, 5km`, as a policy has it. */
export function circleOf(text: string): Circle {
  const [lat, lng, distance] = text.split(', ') as [string, string, string];
  const metres = Number.parseInt(distance, 10) * (distance.endsWith('km') ? 1_000 : 1);
  const angle = metres / RADIUS;
  return {
    lat: Number(lat),
    lng: Number(lng),
    cosine: Math.cos(Number(lat) * RADIANS),
    // Half of the way around, no place is farther.
    most: angle >= Math.PI ? 2 : Math.sin(angle / 2) ** 2,
    metres,
  };
}

/** Longitudes and latitudes that have all places of the circle, and more. */
export function boxAround({
  lat,
  lng,
  metres,
}: Circle): readonly [west: number, south: number, east: number, north: number] {
  const wider = (radians: number): number => (radians / RADIANS) * 1.001 + 1e-6;
  const angle = metres / RADIUS;
  const high = wider(angle);
  const [south, north] = [lat - high, lat + high];
  const ratio = Math.sin(angle) / Math.cos(lat * RADIANS);
  const wide = south > -89 && north < 89 && ratio < 1 ? wider(Math.asin(ratio)) : 361;
  const isWhole = lng - wide < -180 || lng + wide > 180;
  return isWhole ? [-180, south, 180, north] : [lng - wide, south, lng + wide, north];
}

let latest = '';
let circle: Circle;

/** @param point `(4.3,52.1)` */
export function isWithin(point: string, text: string): boolean {
  if (text !== latest) [circle, latest] = [circleOf(text), text];
  const [lng, lat] = point.slice(1, -1).split(',').map(Number) as [number, number];
  // Another program may store coordinates beyond the Earth's.
  if (!(Math.abs(lng) <= 180 && Math.abs(lat) <= 90)) return false;
  const apart = Math.abs(lng - circle.lng);
  const a = sine((lat - circle.lat + STEADY - STEADY) * HALF);
  const b = sine((90 - Math.abs(lat)) * RADIANS);
  const c = sine((Math.min(apart, 360 - apart) + STEADY - STEADY) * HALF);
  return a * a + circle.cosine * b * c * c <= circle.most;
}
