/** `ancestors(<path> by <belongs_to>)`: the record at the path, and those above it. */
import { inDialect } from '../../../grammar/filter-roots.ts';
import { replacing } from '../../../grammar/policy-error.ts';
import { ancestorsOfRecord } from '../../../grammar/read-tokens.ts';
import type { AncestorsCall, Dialect } from '../../../grammar/syntax.ts';
import type { CatalogBelongsTo, CatalogCollection, CatalogRelation } from '../types.ts';
import { type CheckerPlace, type Named, type RecordStart, recordStart, type ToMany } from './place.ts';
import { resolve } from './resolve.ts';
import { findRelation, relationNames, reportUnknownName } from './unknown-names.ts';

export function resolveAncestors(ancestors: AncestorsCall, place: CheckerPlace): ToMany | undefined {
  const { path, span } = ancestors;
  const named = resolve(path, place);
  const start = named && startOf(named, ancestors, place);
  const relation = start && followed(ancestors, start, place);
  if (start === undefined || relation === undefined) return undefined;
  const { scope, collection, steps, at } = start;
  const above = { kind: 'ancestors', name: relation.name, collection: at, via: relation } as const;
  return { kind: 'to many', path: { scope, collection, steps, from: at, relation: above, span }, used: 0 };
}

function startOf(named: Named, { path, by }: AncestorsCall, place: CheckerPlace): RecordStart | undefined {
  const isSingle = named.kind !== 'to many' && named.kind !== 'query';
  const start = isSingle ? recordStart(named) : undefined;
  if (start === undefined) {
    const found = named.kind === 'to many' ? 'many records' : 'a value';
    const example = inDialect(`@record.${by.name}`, dialectOf(place));
    const message = `\`ancestors\` begins at one record, found ${found}; expected a path such as \`${example}\``;
    return place.report({ code: 'ancestors_start', message, span: path.span });
  }
  const right = inDialect(`@${start.scope.kind}.${by.name}`, dialectOf(place));
  const isRoot = start.scope.kind === 'record' || start.scope.kind === 'next';
  return isRoot && start.steps.length === 0 ? place.report(ancestorsOfRecord(right, path.span)) : start;
}

const dialectOf = ({ params }: CheckerPlace): Dialect => (params === undefined ? 'policy' : 'filter');

const leadsBack =
  ({ name }: CatalogCollection) =>
  (relation: CatalogRelation): relation is CatalogBelongsTo =>
    relation.kind === 'belongs_to' && relation.collection === name;

function followed({ by }: AncestorsCall, { at }: RecordStart, place: CheckerPlace): CatalogBelongsTo | undefined {
  const collection = place.catalog.collections.get(at)!;
  const found = findRelation(collection, by.name);
  const isRight = leadsBack(collection);
  if (found !== undefined && isRight(found)) return found;
  const relations = [...collection.relations.values()].filter(isRight);
  const names = relations.map(({ name }) => name);
  if (names.length === 0) {
    const message = `\`${at}\` has no belongs_to of \`${at}\`, so its records have no ancestors`;
    return place.report({ code: 'ancestors_relation', message, span: by.span });
  }
  if (found === undefined)
    return reportUnknownName(
      { name: by, where: `\`${at}\` as its own parent`, names: relationNames(relations), of: collection },
      place,
    );
  const message = `\`${by.name}\` does not lead from \`${at}\` to \`${at}\`; expected \`${names.join('`, `')}\``;
  const [only, ...others] = names as [string, ...string[]];
  const replacement = others.length > 0 ? undefined : only;
  return place.report({ code: 'ancestors_relation', message, span: by.span, ...replacing(by.span, replacement) });
}
