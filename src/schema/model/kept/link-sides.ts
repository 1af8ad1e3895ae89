/** The tables of links that hold the ids of a collection's records, on either side of a many_to_many. */
import type { Collection, ManyToMany, Schema } from '../model.ts';

export interface LinkSide {
  /** Different for each side of each table. */
  readonly name: string;
  readonly relation: ManyToMany;
  /** The collection that has the relation. */
  readonly holder: string;
  /** The records of the collection are its sources, or its targets. */
  readonly isSource: boolean;
  readonly ownColumn: string;
  readonly otherColumn: string;
  /** The collection on the other side. */
  readonly other: string;
}

/** Deleted records keep their links by this name. */
export const linkSideName = (linkTable: string, ownColumn: string): string => `${linkTable}.${ownColumn}`;

export function linksOf(
  { name }: Pick<Collection, 'name'>,
  { collections }: Pick<Schema, 'collections'>,
): readonly LinkSide[] {
  return [...collections.values()].flatMap((holder) =>
    [...holder.relations.values()].flatMap((relation): readonly LinkSide[] => {
      if (relation.kind !== 'many_to_many') return [];
      const { linkTable, sourceColumn: source, targetColumn: target } = relation;
      const side = (isSource: boolean): LinkSide => ({
        name: linkSideName(linkTable, isSource ? source : target),
        relation,
        holder: holder.name,
        isSource,
        ownColumn: isSource ? source : target,
        otherColumn: isSource ? target : source,
        other: isSource ? relation.collection : holder.name,
      });
      return [...(holder.name === name ? [side(true)] : []), ...(relation.collection === name ? [side(false)] : [])];
    }),
  );
}
