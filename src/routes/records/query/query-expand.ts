/**
 * `expand` of a query: relations within relations, each to-many with a filter, an order and a limit
 * of its own. Not a route.
 */
import { isToMany } from '../../../policy/types.ts';
import type { Expand } from '../../../records/expand.ts';
import { isObject } from '../../../records/write/input.ts';
import { countName, EXPAND_LIMIT } from '../../../schema/model/list-parameters.ts';
import { QueryBody, type QueryPlace } from './query-body.ts';
import { noRelation, type Pointer } from './query-errors.ts';

const MOST_LEVELS = 3;
const MOST_RELATIONS = 10;
const OF_ANY = ['fields', 'expand'];
const OF_MANY = ['filter', 'params', 'sort', 'limit', 'count', ...OF_ANY];

export class ExpandReader {
  #relations = 0;

  /** `given`: the value of `expand`, at `path`. */
  read(given: unknown, path: Pointer, place: QueryPlace, level = 1): readonly Expand[] {
    const { errors } = place;
    if (given === undefined) return [];
    if (!isObject(given)) {
      errors.add(path, 'wrong_type', 'expected an object of relations');
      return [];
    }
    const names = Object.keys(given);
    if (names.length > 0 && level > MOST_LEVELS) {
      errors.add(path, 'too_deep', `expected at most ${MOST_LEVELS} levels`);
      return [];
    }
    this.#relations += names.length;
    if (this.#relations > MOST_RELATIONS) {
      errors.add(path, 'too_many', `expected at most ${MOST_RELATIONS} relations in all`);
      return [];
    }
    for (const name of names.filter((each) => names.includes(countName(each)) && isCounting(given[each])))
      errors.add([...path, name, 'count'], 'name_taken', `\`${countName(name)}\` is a relation of this query already`);
    return names.flatMap((name) => this.#one({ name, value: given[name], path: [...path, name], level }, place) ?? []);
  }

  #one({ name, value, path, level }: NamedExpand, place: QueryPlace): Expand | undefined {
    const { collection, errors, schema } = place;
    const relation = collection.relations.get(name);
    if (relation === undefined) {
      const near = errors.nearest(name, collection.relations.keys());
      return errors.add(path, 'unknown_relation', noRelation(collection, name, near));
    }
    if (value === true) return { relation, expands: [] };
    if (!isObject(value)) return errors.add(path, 'wrong_type', 'expected `true` or an object');
    const inner = { ...place, collection: schema.collections.get(relation.collection)! };
    const body = new QueryBody({ body: value, path }, inner);
    body.allow(isToMany(relation) ? OF_MANY : OF_ANY);
    const members = body.members();
    const expands = this.read(body.value('expand'), [...path, 'expand'], inner, level + 1);
    if (!isToMany(relation)) return { relation, members, expands };
    const isCounted = body.flag('count');
    const limit = body.integer('limit', isCounted ? COUNTED_LIMIT : EXPAND_LIMIT);
    return { relation, members, expands, limit, isCounted, filter: body.filter(), sort: body.sort() };
  }
}

/** The records themselves may be left out. */
const COUNTED_LIMIT = { ...EXPAND_LIMIT, min: 0 };
const isCounting = (given: unknown): boolean => isObject(given) && given.count === true;

interface NamedExpand {
  readonly name: string;
  readonly value: unknown;
  readonly path: Pointer;
  readonly level: number;
}
