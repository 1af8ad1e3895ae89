/** List rules whose parts are mostly those that an index serves, so that pages are found by them. */
import type { Catalog, CatalogCollection, CatalogRelation, Row } from '../../../src/policy/types.ts';
import type { Data } from '../../oracle/database.ts';
import type { Random } from '../random.ts';

type Maker = () => string;

export class BranchyRules {
  readonly #catalog: Catalog;
  readonly #data: Data;
  readonly #random: Random;

  constructor(catalog: Catalog, data: Data, random: Random) {
    this.#catalog = catalog;
    this.#data = data;
    this.#random = random;
  }

  /** The text of a policy over `collection`. */
  make(collection: string): string {
    const random = this.#random;
    const own = this.#collection(collection);
    const atom = (): string => (random.chance(0.06) ? this.#pair(own) : this.#atom(own, '@record', 2));
    const parts = Array.from({ length: 1 + random.below(4) }, () => {
      const roll = random.next();
      if (roll < 0.6) return atom();
      if (roll < 0.8) return `(${atom()} and ${this.#other(atom)})`;
      return `(${this.#other(atom)} and (${atom()} or ${atom()}))`;
    });
    return parts.join(' or ');
  }

  /** Two members of the record itself. */
  #pair({ fields, relations }: CatalogCollection): string {
    const random = this.#random;
    const ids = [...relations.values()].filter(({ kind }) => kind === 'belongs_to').map(({ name }) => name);
    const one = random.pick([...fields.values()]);
    const same = [...fields.values()]
      .filter(({ type }) => type === one.type && type !== 'bool')
      .map(({ name }) => name);
    const [left, right] =
      ids.length > 1 && random.chance(0.3) ? random.shuffled(ids) : [one.name, random.pick([one.name, ...same])];
    return `@record.${left} ${random.pick(['=', '!='])} @record.${right}`;
  }

  /** A condition that no index serves. */
  #other(atom: Maker): string {
    const roll = this.#random.next();
    if (roll < 0.3) return `not (${atom()})`;
    return roll < 0.6 ? `(${atom()} or not (${atom()}))` : atom();
  }

  #collection(name: string): CatalogCollection {
    return this.#catalog.collections.get(name)!;
  }

  /** A value, an element, or a walk to records that have one. */
  #atom(collection: CatalogCollection, at: string, depth: number): string {
    const random = this.#random;
    const relations = [...collection.relations.values()];
    const walks = depth === 0 ? [] : relations.flatMap((relation) => this.#walks(relation, at, depth));
    const owned = relations
      .filter(({ kind }) => kind === 'belongs_to')
      .map((relation) => () => this.#held(relation, at));
    const makers: Maker[] = [() => this.#field(collection, at), ...owned, ...owned, ...walks];
    return random.pick(makers)();
  }

  #walks(relation: CatalogRelation, at: string, depth: number): readonly Maker[] {
    const target = this.#collection(relation.collection);
    const variable = `v${depth}_${this.#random.below(1_000_000)}`;
    const path = `${at}.${relation.name}`;
    if (relation.kind === 'belongs_to' || relation.kind === 'has_one') {
      const chain = `any(ancestors(${path} by ${relation.name}) as ${variable}, `;
      const isSelf = target.relations.get(relation.name)?.collection === target.name && relation.kind === 'belongs_to';
      return [
        () => this.#atom(target, path, depth - 1),
        ...[...target.relations.values()]
          .filter(({ kind }) => kind === 'has_many' || kind === 'many_to_many')
          .map((many) => () => this.#some(many, `${path}.${many.name}`, depth - 1)),
        ...(isSelf ? [() => `${chain}${this.#atom(target, variable, 0)})`] : []),
      ];
    }
    const id = () => this.#idOf(relation.collection);
    return [() => this.#some(relation, path, depth), () => `${path} contains ${id()}`];
  }

  #some({ collection }: CatalogRelation, path: string, depth: number): string {
    const random = this.#random;
    const target = this.#collection(collection);
    const variable = `w${depth}_${random.below(1_000_000)}`;
    const atom = this.#atom(target, variable, Math.max(0, depth - 1));
    const references = [...target.relations.values()].filter(({ kind }) => kind === 'belongs_to');
    if (references.length === 0 || random.chance(0.8)) return `any(${path} as ${variable}, ${atom})`;
    const { name } = random.pick(references);
    const other = `${variable}o`;
    return `any(${path} as ${variable}, ${atom} and any(${path} as ${other}, ${other}.${name} = ${variable}.${name}))`;
  }

  /** Requires the caller, or a record by its id; sometimes by a list that the caller's own record leads to. */
  #held({ name, collection }: CatalogRelation, at: string): string {
    const random = this.#random;
    const path = `${at}.${name}`;
    if (collection === 'users' && random.chance(0.6)) return `${path} = @request.auth.id`;
    const own = [...this.#collection('users').relations.values()].filter(({ kind }) => kind === 'has_many');
    const lists = own.flatMap((many) =>
      [...this.#collection(many.collection).relations.values()]
        .filter((back) => back.kind === 'belongs_to' && back.collection === collection)
        .map((back) => `any(@request.auth.${many.name} as o${random.below(1_000_000)}, #.${back.name} = ${path})`),
    );
    if (lists.length === 0 || random.chance(0.4)) return `${path} = ${this.#idOf(collection)}`;
    const list = random.pick(lists);
    return list.replace('#', /as (o\d+)/.exec(list)![1]!);
  }

  #field({ name, fields }: CatalogCollection, at: string): string {
    const random = this.#random;
    const all = [...fields.values()];
    const served = all.filter(({ index, unique }) => index || unique);
    const field = random.pick(served.length > 0 && random.chance(0.85) ? served : all);
    const path = `${at}.${field.name}`;
    const values = this.#data.rows
      .get(name)!
      .map((row) => row[field.name])
      .filter((value) => value != null);
    if (values.length === 0 || random.chance(0.04)) return `${path} is null`;
    const one = (): string => JSON.stringify(random.pick(values));
    if (field.type === 'bool') return random.chance(0.5) ? path : `not ${path}`;
    const isOrdered = ['string', 'int', 'float', 'datetime'].includes(field.type);
    if (isOrdered && random.chance(0.15)) return `${path} ${random.pick(['<', '<=', '>', '>='])} ${one()}`;
    return random.chance(0.3) ? `${path} in [${one()}, ${one()}, ${one()}]` : `${path} = ${one()}`;
  }

  #idOf(collection: string): string {
    const rows: readonly Row[] = this.#data.rows.get(collection)!;
    return JSON.stringify(this.#random.pick(rows).id);
  }
}
