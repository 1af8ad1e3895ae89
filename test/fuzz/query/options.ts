/** The options of a query: chosen members, and related records within each other. */

import type { Row } from '../../../src/policy/types.ts';
import type { StatisticsOf } from '../../../src/records/page/table-statistics.ts';
import { PERIODS } from '../../../src/schema/model/list-parameters.ts';
import type { Collection, Relation, Schema } from '../../../src/schema/model/model.ts';
import type { Aggregation } from '../../oracle/aggregate.ts';
import type { Wanted, WantedRelation } from '../../oracle/shown.ts';
import type { Random } from '../random.ts';
import type { FuzzCaller, Standing } from './caller.ts';

export interface Options {
  readonly body: Row;
  readonly wanted: Wanted;
}

const MOST_RELATIONS = 6;
const MOST_LEVELS = 3;

export class OptionMaker {
  readonly #caller: FuzzCaller;
  readonly #schema: Schema;
  readonly #standing: Standing;
  readonly #random: Random;
  #relations = 0;

  constructor(caller: FuzzCaller, standing: Standing, { schema, random }: { schema: Schema; random: Random }) {
    this.#caller = caller;
    this.#standing = standing;
    this.#schema = schema;
    this.#random = random;
  }

  make(): Options {
    this.#relations = 0;
    const random = this.#random;
    const fields = random.chance(0.4) ? this.#fields(this.#caller.collection) : undefined;
    const expands = random.chance(0.5) ? this.#expands(this.#caller.collection, 1) : [];
    const body = {
      ...(fields !== undefined && { fields }),
      ...(expands.length > 0 && { expand: Object.fromEntries(expands.map(({ name, body }) => [name, body])) }),
    };
    return { body, wanted: { fields, expands: expands.map(({ wanted }) => wanted) } };
  }

  #fields({ kind, fields, relations }: Collection): readonly string[] {
    const toOne = [...relations.values()].filter((each) => each.kind === 'belongs_to' || each.kind === 'has_one');
    const names = ['id', ...fields.keys(), ...(kind === 'users' ? ['roles'] : []), ...toOne.map(({ name }) => name)];
    return this.#random.shuffled(names).slice(0, this.#random.below(names.length + 1));
  }

  #expands({ name: own, relations }: Collection, level: number): readonly Drawn[] {
    const random = this.#random;
    const left = MOST_RELATIONS - this.#relations;
    if (level > MOST_LEVELS || left <= 0) return [];
    const hidden = [...relations.values()].filter((each) => mayHide(each, own, this.#caller.rules.members));
    const first = hidden.length > 0 && random.chance(0.5) ? [random.pick(hidden).name] : [];
    const shuffled = [...new Set([...first, ...random.shuffled([...relations.keys()])])];
    const names = shuffled.slice(0, Math.min(left, random.below(3) + (level === 1 ? 1 : 0)));
    this.#relations += names.length;
    return names.map((name) => this.#expand(name, relations.get(name)!, level));
  }

  #sort(collection: Collection): readonly string[] {
    return sortOf(collection, { schema: this.#schema, random: this.#random, masked: this.#caller.rules.members });
  }

  #expand(name: string, { kind, collection: target }: { kind: string; collection: string }, level: number): Drawn {
    const random = this.#random;
    if (random.chance(0.25)) return { name, body: true, wanted: { name, expands: [], ...EVERYTHING } };
    const collection = this.#schema.collections.get(target)!;
    const fields = random.chance(0.4) ? this.#fields(collection) : undefined;
    const inner = random.chance(0.6) ? this.#expands(collection, level + 1) : [];
    const own = {
      ...(fields !== undefined && { fields }),
      ...(inner.length > 0 && { expand: Object.fromEntries(inner.map((each) => [each.name, each.body])) }),
    };
    const wanted = { name, fields, expands: inner.map((each) => each.wanted) };
    if (kind === 'belongs_to' || kind === 'has_one') return { name, body: own, wanted: { ...wanted, ...EVERYTHING } };
    const filter = random.chance(0.5) ? this.#caller.filter(target) : undefined;
    const sort = random.chance(0.6) ? this.#sort(collection) : undefined;
    const isCounted = random.chance(0.3);
    const limit = random.chance(0.6) ? (isCounted ? 0 : 1) + random.below(4) : undefined;
    const { visible } = this.#standing;
    return {
      name,
      body: {
        ...own,
        ...(filter && { filter: filter.text, params: filter.params }),
        ...(sort && { sort }),
        ...(limit !== undefined && { limit }),
        ...(isCounted && { count: true }),
      },
      wanted: {
        ...wanted,
        sort: sort ?? [],
        limit: limit ?? EVERYTHING.limit,
        isCounted,
        finds: (record) => filter === undefined || filter.finds(record, visible),
      },
    };
  }
}

/** A relation with its value in a body, and what that means. */
interface Drawn {
  readonly name: string;
  readonly body: unknown;
  readonly wanted: WantedRelation;
}

const EVERYTHING = { sort: [], limit: 100, finds: () => true };

interface Drawing {
  readonly schema: Schema;
  readonly random: Random;
  /** An order often goes through a reference that may be hidden. */
  readonly masked?: Masked;
}
/** Members with rules, by collection. */
type Masked = ReadonlyMap<string, ReadonlyMap<string, unknown>>;

/** Returns true if a relation of `own` depends on a reference with rules. */
function mayHide(relation: Relation, own: string, masked: Masked): boolean {
  const isHeld = relation.kind === 'has_one' || relation.kind === 'has_many';
  return (isHeld ? masked.get(relation.collection)?.has(relation.via) : masked.get(own)?.has(relation.name)) === true;
}

/** Up to four different paths through belongs_to and has_one. */
export function sortOf(collection: Collection, drawing: Drawing): readonly string[] {
  const { random } = drawing;
  const paths = Array.from({ length: random.below(5) }, () => pathFrom(collection, 2, drawing));
  const different = new Map(paths.map((path) => [path.replace(/:text$/, ''), path]));
  return Array.from(different.values(), (path) => (random.chance(0.5) ? `-${path}` : path));
}

function pathFrom({ name: own, fields, relations }: Collection, most: number, drawing: Drawing): string {
  const { schema, random, masked } = drawing;
  const steps = [...relations.values()].filter(({ kind }) => kind === 'belongs_to' || kind === 'has_one');
  const hidden = masked === undefined ? [] : steps.filter((step) => mayHide(step, own, masked));
  const isThrough = most > 0 && hidden.length > 0 && random.chance(0.5);
  if (most === 0 || steps.length === 0 || (!isThrough && random.chance(0.6)))
    return endOf(random.pick([...fields.keys(), 'id']), fields, random);
  const { name, collection } = random.pick(isThrough ? hidden : steps);
  return `${name}.${pathFrom(schema.collections.get(collection)!, most - 1, drawing)}`;
}

/** A field with a folded copy sorts by it, now and then. */
const endOf = (name: string, fields: Collection['fields'], random: Random): string =>
  fields.get(name)?.search && random.chance(0.5) ? `${name}:text` : name;

export function aggregationOf({ fields, relations }: Collection, random: Random): Aggregation {
  const all = [...fields.values()];
  const dates = all.filter(({ type }) => type === 'datetime' || type === 'date');
  const groups = [
    ...fields.keys(),
    ...[...relations.values()].filter(({ kind }) => kind === 'belongs_to').map(({ name }) => name),
    ...dates.flatMap(({ name, type }) =>
      PERIODS.filter((period) => type === 'datetime' || period !== 'hour').map((period) => `${period}(${name})`),
    ),
  ];
  const group_by = random.shuffled(groups).slice(0, random.pick([0, 0, 1, 2, 3]));
  const measured = all.flatMap(({ name, type }) => {
    if (type === 'bool' || type === 'uuid' || type === 'bytes') return [`count(distinct ${name})`];
    const kinds = [
      ...(type === 'int' || type === 'float' || type === 'bigint' ? ['sum', 'avg'] : []),
      'min',
      'max',
      'count(distinct ',
    ];
    return kinds.map((kind) => (kind.includes('(') ? `${kind}${name})` : `${kind}(${name})`));
  });
  // The order in which floats are added must not show, nor the records without a value.
  const numbers = all.filter(
    ({ type }) => (type === 'int' || type === 'float' || type === 'bigint') && random.chance(0.5),
  );
  const sums = numbers.map(({ name }) => `${random.pick(['sum', 'avg'])}(${name})`);
  const some = [...new Set(['count', ...sums, ...random.shuffled(measured).slice(0, random.below(5))])];
  const measures = Object.fromEntries(some.map((measure, i) => [`m${i}`, measure]));
  const names = random.shuffled([...group_by, ...Object.keys(measures)]).slice(0, random.below(4));
  const sort = names.map((name) => (random.chance(0.5) ? `-${name}` : name));
  // The first measure is the count.
  return { group_by, measures, sort, ...(random.chance(0.2) && { having: `m0 > ${random.pick([0, 0, 1])}` }) };
}

// ---------------------------------------------------------------- statistics of no world, so that each way to a page is taken

/** Nothing is known: related rows are looked up, and the branches come after a walk. */
const none: StatisticsOf = () => undefined;
/** All lists of keys are short. */
const few: StatisticsOf = () => ({ rows: 10, columns: new Map() });
/** Some lists of keys are long; filters of queries are estimated, and find few rows. */
const many: StatisticsOf = (table) => ({ rows: table.length % 2 === 0 ? 50_000 : 1_000_000, columns: new Map() });

export const STATISTICS: readonly StatisticsOf[] = [none, few, many];
