/** `expand=a,b`: the relations whose records come along. Not a route. */
import type { Context } from 'koa';
import { nearest } from '../../../grammar/suggest.ts';
import { type QueryPair, queryOf } from '../../http/request.ts';
import { type ErrorDetail, echo, Problem, type ProblemCode } from '../../problem.ts';
import type { Collection, Relation } from '../../schema/model/model.ts';

/** Throws `invalid_parameter` and `unknown_expand`. */
export function expandOf(ctx: Context, collection: Collection): readonly Relation[] {
  const errors: ErrorDetail[] = [];
  const relations = readExpand(queryOf(ctx), collection, errors);
  throwErrors(errors);
  return relations;
}

export function readExpand(
  pairs: readonly QueryPair[],
  collection: Collection,
  errors: ErrorDetail[],
): readonly Relation[] {
  const given = pairs.filter(({ key }) => key === 'expand');
  if (given.length === 0) return [];
  if (given.length > 1) {
    const detail = '`expand` is given more than once; join the names by commas';
    errors.push({ parameter: 'expand', code: 'invalid_parameter', detail });
    return [];
  }
  return expandedRelations((given[0]!.value ?? '').split(','), collection, errors);
}

/** Stops at the first error, so it looks at one name more than the collection has relations, at most. */
function expandedRelations(
  names: readonly string[],
  collection: Collection,
  errors: ErrorDetail[],
): readonly Relation[] {
  const relations = new Set<Relation>();
  for (const name of names) {
    const relation = collection.relations.get(name);
    if (relation === undefined || relations.has(relation)) {
      const detail = relation === undefined ? unknownRelation(name, collection) : `\`expand\` names \`${name}\` twice`;
      errors.push({ parameter: 'expand', code: 'unknown_expand', detail });
      return [];
    }
    relations.add(relation);
  }
  return [...relations];
}

function unknownRelation(name: string, collection: Collection): string {
  if (name === '') return '`expand` holds an empty name';
  const near = nearest(name, collection.relations.keys());
  const hint = near === undefined ? '' : `; did you mean \`${near}\`?`;
  return `\`${collection.name}\` has no relation \`${echo(name)}\`${hint}`;
}

/** All at once, under the code of the first. */
export function throwErrors(errors: readonly ErrorDetail[]): void {
  const [first] = errors;
  if (first === undefined) return;
  throw new Problem(first.code as ProblemCode, first.detail, { errors });
}
