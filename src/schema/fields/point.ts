import { SCALARS } from '../../policy/scalar-types.ts';
import { InexactNumeral, readPoint } from '../../policy/values.ts';
import { quotedText, raw, type Sql, sql } from '../../sql.ts';
import { asInPolicies, type FieldKind, reject } from './kind.ts';

const EXPECTED = 'an object of `lat` (-90 to 90) and `lng` (-180 to 180), such as {"lat": 52.1, "lng": 4.3}';

/** A numeral with more digits than a double is the nearest one, as for a float. */
const nearestNumber = (value: unknown): unknown => (value instanceof InexactNumeral ? Number(value.text) : value);

function coordinates(cell: string): readonly [lng: number, lat: number] {
  const [lng = '', lat = ''] = cell.slice(1, -1).split(',');
  return [Number(lng), Number(lat)];
}

/** JSON has no other numbers, which only another program writes. */
const inJson = (value: number): string => JSON.stringify(Number.isFinite(value) ? value : String(value));

/** The JSON object as text. */
const textOfPlace = (place: Sql): Sql =>
  sql`'{"lat":' || (${place})[1]::text || ',"lng":' || (${place})[0]::text || '}'`;
const COORDINATE = String.raw`(-?[0-9]{1,3}(\.[0-9]{1,17})?(e-[0-9]{2})?)`;
const PRINTED = String.raw`^\{"lat":${COORDINATE},"lng":${COORDINATE}\}$`;
function placeOfText(text: Sql): Sql {
  const coordinate = (name: string): Sql =>
    sql`substring(${text} FROM ${raw(quotedText(`"${name}":([^,}]*)`))})::float8`;
  return sql`point(${coordinate('lng')}, ${coordinate('lat')})`;
}

export const point: FieldKind = {
  name: 'point',
  doc: 'a place on the Earth, `{"lat": 52.1, "lng": 4.3}` in degrees; `within` measures on a sphere of 6,371 km; `index: true` makes a GiST index',
  ...asInPolicies(SCALARS.point),
  column: 'point',
  hasColumnDefault: false,
  expected: EXPECTED,
  bounds: 'none',
  hasEnum: false,
  fromJson(value) {
    const read =
      typeof value === 'object' && value !== null && !Array.isArray(value) ? readPoint(plain(value)) : undefined;
    return read === undefined ? reject('wrong_type', `expected ${EXPECTED}`) : { value: read };
  },
  fromText(text) {
    try {
      return JSON.parse(text);
    } catch {
      return text;
    }
  },
  toJson(cell) {
    const [lng, lat] = coordinates(cell);
    return `{"lat":${inJson(lat)},"lng":${inJson(lng)}}`;
  },
  fromCell: (cell) => `(${coordinates(cell).join()})`,
  jsonSchema: () => ({
    type: 'object',
    properties: {
      lat: { type: 'number', minimum: -90, maximum: 90 },
      lng: { type: 'number', minimum: -180, maximum: 180 },
    },
    required: ['lat', 'lng'],
    additionalProperties: false,
  }),
  typescript: () => '{ lat: number; lng: number }',
  text: {
    print: textOfPlace,
    parse: placeOfText,
    isPrinted: (text) => sql`CASE
      WHEN ${text} ~ ${raw(quotedText(PRINTED))}
      THEN ${textOfPlace(placeOfText(text))} = ${text}
       AND abs((${placeOfText(text)})[0]) <= 180
       AND abs((${placeOfText(text)})[1]) <= 90
      ELSE false
    END`,
  },
  adoption: {
    narrower: [],
    note: 'the first coordinate must be the longitude, and the second the latitude',
    defaultOf: () => undefined,
  },
};

function plain(value: object): object {
  return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, nearestNumber(each)]));
}
