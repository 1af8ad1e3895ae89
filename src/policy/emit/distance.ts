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
const stepSelect = (values: readonly Sql[], from: Sql = empty): Sql =>
  sql`(SELECT ${join(values, ', ')}${from} OFFSET 0)`;
const constantSql = (value: number): Sql => typedLiteral('float8', value);

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
  const steady = (value: Sql): Sql => sql`(${value} + ${constantSql(STEADY)} - ${constantSql(STEADY)})`;
  const angles = [
    sql`${steady(sql`${LAT} - ${lat}`)} * ${constantSql(HALF)}`,
    sql`(${constantSql(90)} - abs(${LAT})) * ${constantSql(RADIANS)}`,
    sql`${steady(sql`least(${apart}, ${constantSql(360)} - ${apart})`)} * ${constantSql(HALF)}`,
  ];
  const sine = (x: string): Sql => {
    const [last, ...others] = SINE.toReversed().map(constantSql);
    const sum = others.reduce((made, each) => sql`(${made} * (${named(x)} * ${named(x)}) + ${each})`, last!);
    return sql`${named(x)} * ${sum}`;
  };
  const sines = stepSelect(['x', 'y', 'z'].map(sine), sql` FROM ${stepSelect(angles)} AS angles (x, y, z)`);
  const found = sql`(SELECT ${of(sql`${A} * ${A} + ${cosine} * ${B} * ${C} * ${C}`)} FROM ${sines} AS sines (a, b, c))`;
  const place = stepSelect([sql`p[0]`, sql`p[1]`], sql` FROM ${stepSelect([point])} AS point (p)`);
  const isOnEarth = sql`abs(${LNG}) <= ${constantSql(180)} AND abs(${LAT}) <= ${constantSql(90)}`;
  return sql`(SELECT CASE WHEN NOT (${isOnEarth}) THEN ${beyond} ELSE ${found} END FROM ${place} AS place (lng, lat))`;
}
