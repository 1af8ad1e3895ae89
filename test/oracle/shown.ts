/** Records as a query answers them, by definition: what the caller may read of them, the chosen members, and related records within each other. */
import type { Catalog, Related, Row } from '../../src/policy/types.ts';
import type { Id } from './database.ts';
import type { Seen } from './hide.ts';
import { inOrder } from './order.ts';

export interface Wanted {
  /** All where it is left out. */
  readonly fields?: readonly string[] | undefined;
  readonly expands: readonly WantedRelation[];
}
export interface WantedRelation extends Wanted {
  readonly name: string;
  /** The options of a to-many. */
  readonly sort: readonly string[];
  readonly limit: number;
  readonly isCounted?: boolean | undefined;
  /** The options of a related record, as the caller sees it. */
  finds(record: Row): boolean;
}
export interface Sights {
  readonly catalog: Catalog;
  readonly seen: Seen;
  /** The stored records, and the part that the caller may see. */
  readonly everything: Related;
  readonly visible: Related;
}

export class Showing {
  readonly #sights: Sights;
  /** Related records that were looked at: an answer holds only so many. */
  related = 0;

  constructor(sights: Sights) {
    this.#sights = sights;
  }

  /** @param row as it is stored */
  record(collection: string, row: Row, { fields, expands }: Wanted): Row {
    const { catalog, seen, visible } = this.#sights;
    const { relations } = catalog.collections.get(collection)!;
    const hidden = new Set(seen.hiddenIn(collection, row));
    const partners = [...relations.values()].flatMap(({ kind, name }) =>
      kind === 'has_one' ? [[name, visible.many(collection, name, row.id as Id)[0]?.id ?? null] as const] : [],
    );
    const members = [...Object.entries(row), ...partners].filter(
      ([name]) => name === 'id' || (!hidden.has(name) && fields?.includes(name) !== false),
    );
    if (expands.length === 0) return Object.fromEntries(members);
    const found = expands.map((expand) => [expand.name, this.#expanded(collection, row, expand)] as const);
    const cut = found.filter(([, { isCut }]) => isCut).map(([name]) => name);
    return {
      ...Object.fromEntries(members),
      expand: Object.fromEntries(
        found.flatMap(([name, { shown, count }]) => [
          [name, shown],
          ...(count === undefined ? [] : [[`${name}_count`, count]]),
        ]),
      ),
      ...(cut.length > 0 && { expand_more: cut }),
    };
  }

  #expanded(
    collection: string,
    row: Row,
    expand: WantedRelation,
  ): { readonly shown: unknown; readonly isCut: boolean; readonly count?: number | undefined } {
    const { catalog, seen, visible, everything } = this.#sights;
    const relation = catalog.collections.get(collection)!.relations.get(expand.name)!;
    const show = ({ id }: Row): Row =>
      this.record(relation.collection, everything.one(relation.collection, id as Id)!, expand);
    if (relation.kind === 'belongs_to' || relation.kind === 'has_one') {
      const id = seen.masked(collection, row)[relation.name] ?? null;
      const target =
        relation.kind === 'has_one'
          ? visible.many(collection, relation.name, row.id as Id)[0]
          : id === null
            ? undefined
            : visible.one(relation.collection, id as Id);
      this.related++;
      return { shown: target === undefined ? null : show(target), isCut: false };
    }
    const all = visible.many(collection, relation.name, row.id as Id).filter((each) => expand.finds(each));
    const ordered = inOrder(all, expand.sort, { catalog, collection: relation.collection, related: visible });
    if (expand.limit === 0) return { shown: [], isCut: false, count: all.length };
    this.related += Math.min(all.length, expand.limit + 1);
    return {
      shown: ordered.slice(0, expand.limit).map(show),
      isCut: all.length > expand.limit,
      ...(expand.isCounted && { count: all.length }),
    };
  }
}
