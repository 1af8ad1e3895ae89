/** A world as rows: what a comparison of policies shows as its example, and how a policy decides it. */
import { elementOf } from '../../scalar-types.ts';
import { listElements } from '../../scalars/list-values.ts';
import {
  type Action,
  belongsTosOf,
  type Catalog,
  type CatalogBelongsTo,
  type CatalogCollection,
  type CatalogField,
  type Policy,
  type PolicyRequest,
  type Related,
  type Row,
} from '../../types.ts';
import { own, type Scalar } from '../../values.ts';

export interface Link {
  readonly collection: string;
  readonly relation: string;
  readonly owner: Scalar;
  readonly element: Scalar;
}
/** A caller, a request and a record, with the rows that they refer to. */
export interface World {
  readonly action: Action;
  readonly collection: string;
  readonly isGuest: boolean;
  readonly request: PolicyRequest;
  /** The stored record; undefined for a create. */
  readonly record?: Row;
  /** The record that a create or an update makes. It names its partners and members itself. */
  readonly written?: Row;
  /** Every stored row by collection, the record and the caller included. */
  readonly rows: ReadonlyMap<string, readonly Row[]>;
  readonly links: readonly Link[];
}

export function relatedIn({ collections }: Catalog, { rows, links }: Pick<World, 'rows' | 'links'>): Related {
  const is = (value: unknown, id: unknown): boolean => value != null && String(value) === String(id);
  const one = (collection: string, id: unknown): Row | undefined => rows.get(collection)?.find((row) => is(row.id, id));
  const many = (collection: string, name: string, id: string): readonly Row[] => {
    const relation = collections.get(collection)?.relations.get(name);
    if (relation === undefined) return [];
    if (relation.kind === 'many_to_many') {
      const isOf = (link: Link): boolean =>
        link.collection === collection && link.relation === name && is(link.owner, id);
      return links
        .filter(isOf)
        .map(({ element }) => one(relation.collection, element))
        .filter((row) => row !== undefined);
    }
    if (relation.kind === 'belongs_to') return [];
    const holders: readonly Row[] = rows.get(relation.collection) ?? [];
    return holders.filter((row) => is(own(row, relation.via), id));
  };
  return { one, many };
}

/** The decision of a union of rules, by their predicates. */
export function decides(rules: readonly Policy[], world: World, catalog: Catalog): boolean {
  const related = relatedIn(catalog, world);
  return rules.some((rule) => decidesAlone(rule, world, related));
}

/** A condition on the record before the write (of a create: the new one), and on `@next`. */
export const meets = (condition: Policy, world: World, catalog: Catalog): boolean =>
  decidesAlone(condition, beforeWrite(condition, world), relatedIn(catalog, world));

/** The world in which only the stored record counts for a condition that does not name `@next`. */
export const beforeWrite = ({ namesNext }: Policy, world: World): World =>
  world.action === 'update' && !namesNext ? { ...world, action: 'read' } : world;

function decidesAlone({ specialise, namesNext }: Policy, world: World, related: Related): boolean {
  const { action, record, written, request } = world;
  const residual = specialise(request);
  if (action === 'create') return residual.test(written!, related, written);
  if (action !== 'update') return residual.test(record!, related);
  if (namesNext) return residual.test(record!, related, written);
  return residual.test(record!, related) && residual.written.test(written!, related);
}

// ---------------------------------------------------------------- the limits of tables

/** Keys of a schema say more than those of another catalog. */
interface KeyWithin {
  readonly within: readonly string[];
  readonly where?: Policy;
  readonly ignoresCase?: boolean;
}

/** Tables can hold the rows: the limits that the search does not look at are kept. */
export function isStorable(world: World, catalog: Catalog): boolean {
  const related = relatedIn(catalog, world);
  return [...world.rows].every(([name, stored]) => {
    const collection = catalog.collections.get(name)!;
    const isOther = (row: Row): boolean => row !== world.record;
    const rows =
      name === world.collection && world.written !== undefined ? [...stored.filter(isOther), world.written] : stored;
    const members = [...collection.fields.values(), ...belongsTosOf(collection)];
    return (
      [...stored, ...rows].every((row) => hasShortLists(row, collection)) &&
      members.every((member) => {
        const key = keyWithin(member);
        if (key === undefined) return true;
        const keyed = rows.filter((row) => key.where?.specialise(world.request).test(row, related) !== false);
        return areDistinct(keyed, member.name, key);
      })
    );
  });
}

function keyWithin({ uniqueWithin, uniqueKey }: CatalogField | CatalogBelongsTo): KeyWithin | undefined {
  return uniqueWithin === undefined ? uniqueKey : { within: [uniqueWithin] };
}

function areDistinct(rows: readonly Row[], name: string, { within, ignoresCase = false }: KeyWithin): boolean {
  const keys = rows.flatMap((row) => {
    const value = own(row, name) ?? null;
    const folded = ignoresCase ? String(value).toLowerCase() : value;
    return value === null ? [] : [JSON.stringify([folded, ...within.map((each) => own(row, each) ?? null)])];
  });
  return new Set(keys).size === keys.length;
}

const hasShortLists = (row: Row, { fields }: CatalogCollection): boolean =>
  [...fields.values()].every(({ name, type, max }) => {
    const list = own(row, name);
    if (max === undefined || typeof list !== 'string' || elementOf(type) === undefined) return true;
    return listElements(list).length <= Number(max);
  });
