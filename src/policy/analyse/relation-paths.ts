/** Paths to relations of a kind, within the names that a path may have. */
import { LIMITS } from '../../../grammar/limits.ts';
import { type Catalog, type CatalogCollection, isToMany } from '../types.ts';

export const toManyOf = ({ relations }: CatalogCollection): string | undefined =>
  [...relations.values()].find(isToMany)?.name;

/** The relations that lead back to their own collection. */
export function parentsIn(collections: Iterable<CatalogCollection>): ReadonlySet<string> {
  const names = [...collections].flatMap(({ name, relations }) =>
    [...relations.values()].filter((each) => each.kind === 'belongs_to' && each.collection === name),
  );
  return new Set(names.map(({ name }) => name));
}

/** The relation by which the ancestors of one of these can be asked for, as `ancestors` names it. */
export function chainOf(catalog: Catalog) {
  return ({ relations }: CatalogCollection): string | undefined => {
    for (const { kind, name, collection } of relations.values()) {
      const [parent] = parentsIn([catalog.collections.get(collection)!]);
      if ((kind === 'belongs_to' || kind === 'has_one') && parent !== undefined) return `${name} by ${parent}`;
    }
    return undefined;
  };
}

export type Start = readonly [path: string, collection: string];

export function shortestPath(
  starts: readonly Start[],
  found: (collection: CatalogCollection) => string | undefined,
  { collections }: Catalog,
): string | undefined {
  const seen = new Set<string>();
  let paths = starts;
  for (let names = 1; names <= LIMITS.names && paths.length > 0; names++) {
    const next: Start[] = [];
    for (const [path, at] of paths) {
      const reached = collections.get(at);
      const name = reached && found(reached);
      if (name !== undefined) return path + name;
      if (reached === undefined || seen.has(at)) continue;
      seen.add(at);
      for (const relation of reached.relations.values())
        if (!isToMany(relation)) next.push([`${path}${relation.name}.`, relation.collection]);
    }
    paths = next;
  }
  return undefined;
}
