/** A sort key of a query: a scalar field or the `id` of the record, or of a record that to-one relations lead to. */

import { LIMITS } from '../../../grammar/limits.ts';
import { hintOf, nearest } from '../../../grammar/suggest.ts';
import { present } from '../../invariant.ts';
import { findRelation } from '../check/unknown-names.ts';
import { scalarOf } from '../scalar-types.ts';
import type { Catalog, CatalogCollection, CatalogField, ToOneStep } from '../types.ts';

export interface SortPath {
  readonly steps: readonly ToOneStep[];
  /** The collection that the steps lead to. */
  readonly at: string;
  /** Undefined: the `id`. */
  readonly field: CatalogField | undefined;
  /** The order is that of the folded copy: `Äpfel`, `apple`, `Zoë`. */
  readonly isFolded?: true;
  /** The order is that of the distance from there, the nearest first. */
  readonly from?: Degrees;
}
interface Degrees {
  /** Degrees. */
  readonly lat: number;
  readonly lng: number;
}
/** After the path: the order of people, who tell letters from their accents and cases last. */
const FOLDED = ':text';
/** After the path to a point. */
const FROM = /:from\((-?\d{1,3}(?:\.\d{1,15})?) (-?\d{1,3}(?:\.\d{1,15})?)\)$/;
const FROM_FORM = '`:from(LAT LNG)`, in degrees, such as `:from(52.1 4.3)`';

/** The message for an empty text in a list of names. */
export const NO_NAME = 'a name is empty; expected the name of a field';

/** A message where the text is not such a path. */
export function sortPathOf(text: string, collection: string, catalog: Catalog): SortPath | string {
  if (text === '') return NO_NAME;
  const isFolded = text.endsWith(FOLDED);
  const colon = text.indexOf(':from');
  const from = colon < 0 ? undefined : pointOf(text.slice(colon));
  if (typeof from === 'string') return from;
  const end = from === undefined ? (isFolded ? -FOLDED.length : undefined) : colon;
  const path = toOnePathOf(text.slice(0, end), collection, catalog);
  if (typeof path === 'string') return path;
  const { steps, at, last, part } = path;
  const field = part ?? at.fields.get(last);
  if (field === undefined && last !== 'id') return notScalar(last, at);
  if (from !== undefined) {
    if (field?.type === 'point') return { steps, at: at.name, field, from };
    return `\`${last}\` has no distance; expected a field of the type \`point\``;
  }
  if (isFolded) {
    if (field?.search) return { steps, at: at.name, field, isFolded };
    return `\`${last}\` keeps no folded copy to sort by; expected a string field with \`search: true\``;
  }
  if (field !== undefined && scalarOf(field.type).sorts === false)
    return `\`${last}\` is ${scalarOf(field.type).label}, which have no order${field.type === 'point' ? `; expected ${FROM_FORM} after it` : ''}`;
  return { steps, at: at.name, field };
}

/** A message where the text is not a place on the Earth. */
function pointOf(text: string): Degrees | string {
  const [, lat, lng] = FROM.exec(text)?.map(Number) ?? [];
  if (lat === undefined || lng === undefined) return `\`${text.slice(0, 64)}\`: expected ${FROM_FORM}`;
  if (Math.abs(lat) <= 90 && Math.abs(lng) <= 180) return { lat, lng };
  return `${lat} ${lng} is not on the Earth; a latitude is within 90, a longitude within 180 degrees`;
}

interface ToOnePath {
  readonly steps: readonly ToOneStep[];
  /** The collection that the steps lead to. */
  readonly at: CatalogCollection;
  /** The last name, which may be of no member. */
  readonly last: string;
  /** The path leads into a json field. */
  readonly part?: CatalogField;
}

/** A message where a name before the last leads to no record, or to many. */
export function toOnePathOf(text: string, collection: string, catalog: Catalog): ToOnePath | string {
  const names = text.split('.', LIMITS.names + 1);
  if (names.length > LIMITS.names) return `more than ${LIMITS.names} names in a path`;
  const steps: ToOneStep[] = [];
  let at = sortedCollection(catalog, collection);
  for (const [i, name] of names.slice(0, -1).entries()) {
    const paths = at.fields.get(name)?.paths;
    if (paths !== undefined) {
      const rest = names.slice(i + 1).join('.');
      const part = paths.get(rest);
      if (part !== undefined) return { steps, at, last: part.name, part };
      return `\`${name}\` has no path \`${rest.slice(0, 64)}\`${hintOf(nearest(rest, paths.keys()))}`;
    }
    const step = stepOf(name, at);
    if (typeof step === 'string') return step;
    steps.push(step);
    at = sortedCollection(catalog, step.relation.collection);
  }
  return { steps, at, last: names.at(-1) ?? '' };
}

const sortedCollection = ({ collections }: Catalog, name: string): CatalogCollection =>
  present(collections.get(name), `collection ${name}`);

function stepOf(name: string, at: CatalogCollection): ToOneStep | string {
  if (name === 'id' || at.fields.has(name)) return `\`${name}\` is a value; nothing may follow it`;
  const relation = findRelation(at, name);
  if (relation === undefined) return unknownSortName(name, at);
  if (relation.kind === 'belongs_to' || relation.kind === 'has_one') return { from: at.name, relation };
  return `\`${name}\` is to-many; expected belongs_to or has_one`;
}

function notScalar(name: string, at: CatalogCollection): string {
  const relation = findRelation(at, name);
  if (relation === undefined) return unknownSortName(name, at);
  if (relation.kind === 'belongs_to' || relation.kind === 'has_one')
    return `\`${name}\` is a relation; expected a field of it, or \`${name}.id\``;
  return `\`${name}\` is to-many, so it gives no order`;
}

function unknownSortName(name: string, { name: where, fields, relations }: CatalogCollection): string {
  const near = nearest(name, ['id', ...fields.keys(), ...relations.keys()]);
  return `\`${where}\` has no \`${name.slice(0, 64)}\`${hintOf(near)}`;
}
