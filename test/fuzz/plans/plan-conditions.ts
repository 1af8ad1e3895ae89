/** Random rules and filters over a world: comparisons of fields, of references with the caller, and walks. */
import type { Random } from '../random.ts';
import { type FieldSpec, idOf, type ReferenceSpec, type TableSpec, tableOf, type WorldSpec } from './plan-world.ts';

/** A rule names the record and the caller as `@record` and `@request.auth.id`; a filter has bare names and `@me`. */
type Dialect = 'rule' | 'filter';
const ME = { rule: '@request.auth.id', filter: '@me' };

const pathTo = (at: string, name: string): string => (at === '' ? name : `${at}.${name}`);

export class PlanConditions {
  readonly #world: WorldSpec;
  readonly #dialect: Dialect;
  readonly #random: Random;
  #variables = 0;

  constructor(world: WorldSpec, dialect: Dialect, random: Random) {
    this.#world = world;
    this.#dialect = dialect;
    this.#random = random;
  }

  /** Makes up to three rules of a collection; none: every record is shown. */
  static rules(world: WorldSpec, table: TableSpec, random: Random): readonly string[] {
    if (random.chance(0.1)) return [];
    return Array.from({ length: random.pick([1, 1, 2, 3]) }, () =>
      new PlanConditions(world, 'rule', random).rule(table),
    );
  }

  rule(table: TableSpec): string {
    const atom = () => this.atom(table, '@record', 2);
    const roll = this.#random.next();
    if (roll < 0.55) return atom();
    if (roll < 0.7) return `${atom()} or ${atom()}`;
    if (roll < 0.85) return `${atom()} and ${atom()}`;
    return roll < 0.95 ? `${atom()} and (${atom()} or ${atom()})` : `${atom()} and not (${atom()})`;
  }

  conjunct(table: TableSpec): string {
    const atom = () => this.atom(table, '', 1);
    const roll = this.#random.next();
    if (roll < 0.75) return atom();
    return roll < 0.85 ? `not (${atom()})` : `(${atom()} or ${atom()})`;
  }

  atom(table: TableSpec, at: string, depth: number): string {
    const makers: (() => string)[] = [];
    for (const field of table.fields) {
      const make = () => this.#field(field, at);
      makers.push(make, ...(field.isIndexed ? [make] : []));
    }
    for (const reference of table.references) makers.push(...this.#held(reference, at, depth));
    if (depth > 0) {
      for (const { name, references } of this.#world.tables)
        for (const { collection, back } of references)
          if (collection === table.name && back !== undefined)
            makers.push(() => this.#some(name, pathTo(at, back), depth));
      const { links } = table;
      if (links !== undefined) {
        makers.push(() => this.#some(links.collection, pathTo(at, links.name), depth));
        makers.push(() => `${pathTo(at, links.name)} contains "${this.#idOf(links.collection)}"`);
      }
    }
    return makers.length === 0 ? `${pathTo(at, 'id')} = ${ME[this.#dialect]}` : this.#random.pick(makers)();
  }

  #field({ name, type, values }: FieldSpec, at: string): string {
    const random = this.#random;
    const path = pathTo(at, name);
    const one = () => JSON.stringify(random.pick(values));
    if (type === 'bool') return random.chance(0.5) ? path : `not ${path}`;
    if (name === 'title') return `${path} matches ${one()}`;
    if (type === 'datetime') return `${path} ${random.pick(['<', '>'])} ${random.chance(0.3) ? '@now' : one()}`;
    if (type === 'int' && random.chance(0.6)) return `${path} ${random.pick(['<', '>'])} ${one()}`;
    const roll = random.next();
    if (roll < 0.75) return `${path} = ${one()}`;
    return roll < 0.9 ? `${path} in [${one()}, ${one()}]` : `${path} != ${one()}`;
  }

  #held({ name, collection }: ReferenceSpec, at: string, depth: number): readonly (() => string)[] {
    const path = pathTo(at, name);
    const isMine = () => `${path} = ${ME[this.#dialect]}`;
    if (collection === 'users') return [isMine, isMine, isMine];
    const target = tableOf(this.#world, collection);
    const makers = [() => `${path} = "${this.#idOf(collection)}"`];
    if (depth > 0) {
      const walk = () => this.atom(target, path, depth - 1);
      makers.push(walk, walk);
      makers.push(...this.#ofCaller(collection, path));
    }
    return makers;
  }

  /** Lists of the caller's own records, of which one leads to the same record. */
  #ofCaller(collection: string, path: string): readonly (() => string)[] {
    if (this.#dialect === 'filter') return [];
    return this.#world.tables.flatMap(({ references }) => {
      const mine = references.filter((each) => each.collection === 'users' && each.back !== undefined);
      const same = references.filter((each) => each.collection === collection);
      return mine.flatMap(({ back }) =>
        same.map((each) => () => {
          const variable = this.#variable();
          return `any(@request.auth.${back} as ${variable}, ${variable}.${each.name} = ${path})`;
        }),
      );
    });
  }

  #some(collection: string, path: string, depth: number): string {
    const variable = this.#variable();
    return `any(${path} as ${variable}, ${this.atom(tableOf(this.#world, collection), variable, depth - 1)})`;
  }

  #variable(): string {
    return `v${++this.#variables}`;
  }

  #idOf(collection: string): string {
    const { rows } = tableOf(this.#world, collection);
    return idOf(collection, this.#random.pick([1, 2, rows, 1 + this.#random.below(rows), 1 + this.#random.below(20)]));
  }
}
