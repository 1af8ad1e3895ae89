/** The formula of `isWithin` in SQL, in its order of steps. */
import { empty, join, raw, type Sql, sql, typedLiteral } from '../../sql.ts';
import { HALF, RADIANS, SINE, STEADY } from '../scalars/places.ts';

/** The centre of a circle as values of SQL; the cosine is that of the latitude. */
export interface Centre {
  readonly lat: Sql;
  readonly lng: Sql;
  readonly cosine: Sql;
}

/** The steps of the formula have names. */
const named = (name: string): Sql => raw(`"${name}"`);
const [A, B, C, LNG, LAT] = ['a', 'b', 'c', 'lng', 'lat'].map(named) as [Sql, Sql, Sql, Sql, Sql];

/** Each step is made once: a planner that merged the steps would write their text out, a hundred times over. */
const step = (values: readonly Sql[], from: Sql = empty): Sql => sql`(SELECT ${join(values, ', ')}${from} OFFSET 0)`;
const constant = (value: number): Sql => typedLiteral('float8', value);

/**
 * The haversine of the distance from the centre, which grows with the distance, as `of` makes a value of it.
 * @param beyond the value of coordinates that are not on the Earth; that of NULL is its own
 */
export function ofHaversine(
  point: Sql,
  { lat, lng, cosine }: Centre,
  { of = (haversine: Sql): Sql => haversine, beyond }: { of?: (haversine: Sql) => Sql; beyond: Sql },
): Sql {
  const apart = sql`abs(${LNG} - ${lng})`;
  const steady = (value: Sql): Sql => sql`(${value} + ${constant(STEADY)} - ${constant(STEADY)})`;
  const angles = [
    sql`${steady(sql`${LAT} - ${lat}`)} * ${constant(HALF)}`,
    sql`(${constant(90)} - abs(${LAT})) * ${constant(RADIANS)}`,
    sql`${steady(sql`least(${apart}, ${constant(360)} - ${apart})`)} * ${constant(HALF)}`,
  ];
  const sine = (x: string): Sql => {
    const [last, ...others] = SINE.toReversed().map(constant);
    const sum = others.reduce((made, each) => sql`(${made} * (${named(x)} * ${named(x)}) + ${each})`, last!);
    return sql`${named(x)} * ${sum}`;
  };
  const sines = step(['x', 'y', 'z'].map(sine), sql` FROM ${step(angles)} AS angles (x, y, z)`);
  const found = sql`(SELECT ${of(sql`${A} * ${A} + ${cosine} * ${B} * ${C} * ${C}`)} FROM ${sines} AS sines (a, b, c))`;
  const place = step([sql`p[0]`, sql`p[1]`], sql` FROM ${step([point])} AS point (p)`);
  const isOnEarth = sql`abs(${LNG}) <= ${constant(180)} AND abs(${LAT}) <= ${constant(90)}`;
  return sql`(SELECT CASE WHEN NOT (${isOnEarth}) THEN ${beyond} ELSE ${found} END FROM ${place} AS place (lng, lat))`;
}
