/** Records of a service as `bylaw/policy/browser` takes them: with the related records that a policy reaches in the place of their ids. */
import type { Expr, Operand, Path } from '../../grammar/syntax.ts';
import type { Catalog, CatalogRelation } from '../../src/policy/types.ts';

type Json = Readonly<Record<string, unknown>>;
/** Collection → its records as answers have them, with the members of each many_to_many in `expand`. */
export type AnsweredRecords = ReadonlyMap<string, readonly Json[]>;

/** The names that paths go on with. */
class Steps {
  readonly next = new Map<string, Steps>();
  /** The names by which `ancestors` goes on from here to here. */
  readonly followed = new Set<string>();

  at(name: string): Steps {
    const known = this.next.get(name) ?? new Steps();
    this.next.set(name, known);
    return known;
  }
}
type Bindings = ReadonlyMap<string, Steps>;

/** The names by which a tree goes on from its record. */
class ReachedSteps {
  readonly record = new Steps();
  /** Members of the caller. */
  readonly caller = new Set<string>();

  expr(expr: Expr, bound: Bindings): void {
    switch (expr.kind) {
      case 'and':
      case 'or':
        for (const item of expr.items) this.expr(item, bound);
        return;
      case 'not':
        this.expr(expr.item, bound);
        return;
      case 'compare':
        this.#operand(expr.left, bound);
        this.#operand(expr.right, bound);
        return;
      case 'is null':
      case 'truth':
        this.#operand(expr.operand, bound);
        return;
      case 'quantified':
        this.expr(expr.condition, this.#bind(expr.variable.name, expr.path, bound));
        return;
      case 'call':
        for (const arg of expr.args) this.#operand(arg, bound);
    }
  }

  #operand(operand: Operand, bound: Bindings): Steps | undefined {
    if (operand.kind === 'path') return this.#path(operand, bound);
    if (operand.kind === 'ancestors') {
      const chain = this.#path(operand.path, bound);
      chain?.followed.add(operand.by.name.replace(/_id$/, ''));
      return chain;
    }
    if (operand.kind !== 'count') return undefined;
    const elements = this.#operand(operand.path, bound);
    const { variable, condition } = operand;
    if (variable !== undefined && condition !== undefined)
      this.expr(condition, this.#bind(variable.name, operand.path, bound));
    return elements;
  }

  #bind(name: string, path: Operand, bound: Bindings): Bindings {
    return new Map(bound).set(name, this.#operand(path, bound) ?? new Steps());
  }

  #path({ root, variable, steps }: Path, bound: Bindings): Steps | undefined {
    if (root === 'auth') for (const { name } of steps) this.caller.add(name);
    const isOfRecord = root === 'record' || root === 'next';
    const start = isOfRecord ? this.record : root === 'variable' ? bound.get(variable!.name) : undefined;
    // `owner_id` and `owner.id` are the record of `owner`.
    const names = steps.map(({ name }) => name.replace(/_id$/, '')).filter((name) => name !== 'id');
    return names.reduce((at, name) => at?.at(name), start);
  }
}

/** The ids of the records that were given, by the names that go on from them. */
type Given = Map<Steps, Set<unknown>>;
interface Nesting {
  readonly collection: string;
  readonly places: readonly Steps[];
  readonly given: Given;
}

export class NestedRecords {
  readonly #catalog: Catalog;
  readonly #records: AnsweredRecords;

  constructor(catalog: Catalog, records: AnsweredRecords) {
    this.#catalog = catalog;
    this.#records = records;
  }

  /** Undefined: the policy reads records that the caller refers to, which have no place in the record. */
  of(collection: string, policy: Expr): readonly Json[] | undefined {
    const reached = new ReachedSteps();
    reached.expr(policy, new Map());
    const { relations } = this.#catalog.collections.get('users')!;
    if (reached.caller.values().some((name) => (relations.get(name)?.kind ?? 'belongs_to') !== 'belongs_to')) return;
    return this.#records.get(collection)!.map((record) => {
      const given: Given = new Map();
      return this.#nested(record, { collection, places: [reached.record], given });
    });
  }

  /** A record by itself, as a caller is. */
  alone(collection: string): readonly Json[] {
    return this.#records.get(collection)!.map((record) => this.#ownMembers(record, collection));
  }

  #nested(record: Json, { collection, places, given }: Nesting): Json {
    const own = this.#ownMembers(record, collection);
    const ids = places.map((place) => given.get(place) ?? new Set());
    // A record that is given once needs no second place.
    if (ids.every((known) => known.has(record.id))) return own;
    for (const [i, place] of places.entries()) given.set(place, ids[i]!.add(record.id));
    const { relations } = this.#catalog.collections.get(collection)!;
    const related = [...relations.values()].flatMap((relation) => {
      const { name } = relation;
      const next = places.flatMap((each) => [each.next.get(name) ?? [], each.followed.has(name) ? each : []].flat());
      if (next.length === 0) return [];
      const nesting = { collection: relation.collection, places: next, given };
      const found = this.#relatedTo(record, relation).map((each) => this.#nested(each, nesting));
      const isOne = relation.kind === 'belongs_to' || relation.kind === 'has_one';
      return [[name, isOne ? found[0] : found] as const];
    });
    return { ...own, ...Object.fromEntries(related) };
  }

  /** Neither partners nor members: a partner that is given by its id alone has no fields. */
  #ownMembers(record: Json, collection: string): Json {
    const { relations } = this.#catalog.collections.get(collection)!;
    const isOwn = (name: string): boolean =>
      name !== 'expand' && (relations.get(name)?.kind ?? 'belongs_to') === 'belongs_to';
    return Object.fromEntries(Object.entries(record).filter(([name]) => isOwn(name)));
  }

  #relatedTo(record: Json, relation: CatalogRelation): readonly Json[] {
    const others = this.#records.get(relation.collection)!;
    switch (relation.kind) {
      case 'belongs_to':
        return others.filter(({ id }) => id === record[relation.name]);
      case 'many_to_many': {
        const members = (record.expand as Readonly<Record<string, readonly Json[]>>)[relation.name]!;
        return members.map((member) => others.find(({ id }) => id === member.id)!);
      }
      default:
        return others.filter((other) => other[relation.via] === record.id);
    }
  }
}
