/**
 * Lowering to T/F form. `T(e)` is "e is definitely true", `F(e)` "e is definitely false"; what the
 * request left unknown is neither. `not` swaps them, operators have complements, and a quantifier's
 * `F` uses `N(c)`, "c is not definitely true", which is two-valued: the third value ends there.
 */
import { invariant } from '../../invariant.ts';
import {
  type ColumnRef,
  type Condition,
  type CountRef,
  type Exists,
  FALSE,
  type SlotValue,
  type Source,
  TRUE,
} from '../condition.ts';
import { OPERATORS } from '../operators.ts';
import { elementOf } from '../scalar-types.ts';
import type {
  CatalogCollection,
  CatalogManyToMany,
  ColumnOperand,
  ElementsPath,
  HasOne,
  Member,
  RowScope,
  ToManyPath,
  ToOneStep,
} from '../types.ts';
import { elementsPath, isOfList } from '../visit.ts';
import {
  belongsToColumn,
  colocation,
  elementColumn,
  elementsBy,
  equalColumns,
  fieldColumn,
  heldKey,
  idColumn,
  lookup,
  sameValue,
} from './columns.ts';
import { complementOf, constant, settledByRequest, stateOf, valueFor, valueTest } from './leaves.ts';
import {
  itself,
  type LoweredElements,
  type LoweringContext,
  type LoweringPlace,
  type Owner,
  type Reached,
  type RequestScope,
  type Walked,
  type Wrap,
} from './lowering-context.ts';
import { Masking } from './masking.ts';
import { and, existsOf, isPresent, or } from './simplify.ts';
import { ABSENT, PARTIAL, type Planned, type PlannedCompare, type PlannedCount } from './specialise.ts';

const NO_COLLECTION: CatalogCollection = { name: '', table: '', fields: new Map(), relations: new Map() };
const FOUND_ROW = { kind: 'exists', negated: false } as const;

type PlannedQuantifier = Extract<Planned, { kind: 'quantified' }>;
type ListCompare = Omit<PlannedCompare, 'kind' | 'left'> & { readonly left: ColumnOperand };
type PlannedTest = Omit<PlannedCompare, 'kind'> & { readonly negated: boolean };

/** `T` of a planned tree, for all requests of one signature. */
export function lower(tree: Planned, context: LoweringContext): Condition {
  return new Lowering(context).lower(tree, { polarity: true, variables: new Map() });
}

class Lowering {
  readonly #context: LoweringContext;
  readonly #masking: Masking;
  #sources = 2;

  constructor(context: LoweringContext) {
    this.#context = context;
    this.#masking = new Masking(context.visibility);
  }

  lower(node: Planned, place: LoweringPlace): Condition {
    const { polarity } = place;
    switch (node.kind) {
      case 'const':
        return constant(node.value === polarity);
      case 'decided':
        return constant(this.#context.signature.decided[node.index] === polarity);
      case 'not':
        return this.lower(node.item, { ...place, polarity: !polarity });
      case 'and':
      case 'or': {
        const items = node.items.map((item) => this.lower(item, place));
        return (node.kind === 'and') === polarity ? and(items) : or(items);
      }
      case 'compare':
        return this.#compare(node, place);
      case 'is null':
        return this.#isNull(node.operand, { ...place, polarity: node.negated === polarity });
      case 'quantified':
        return this.#quantified(node, place);
      case 'changed': {
        const same = and(node.members.map((member) => this.#unchanged(member, node.collection, place)));
        return node.unchanged === place.polarity ? same : complementOf(same);
      }
    }
  }

  // -------------------------------------------------------------- changes

  /** The same in both records. Two-valued, so that its complement is that it differs. */
  #unchanged(member: Member, from: string, place: LoweringPlace): Condition {
    const { record, next } = this.#context.roots;
    if (member.kind === 'field') return sameValue(fieldColumn(member.field, record), fieldColumn(member.field, next));
    const { relation } = member;
    switch (relation.kind) {
      case 'belongs_to':
        return sameValue(belongsToColumn(relation, this.#of(record)), belongsToColumn(relation, this.#of(next)));
      case 'has_one':
        return this.#samePartner(relation, from);
      case 'many_to_many':
        return this.#sameMembers(relation, from, place);
    }
  }

  #samePartner(relation: HasOne, from: string): Condition {
    const { record, next } = this.#context.roots;
    const stored = (): Walked => this.#walk({ wrap: itself, source: record }, [{ from, relation }]);
    const key = heldKey(relation, this.#of(next));
    const { wrap, source } = stored();
    const equal = equalColumns(idColumn(relation.collection, this.#of(source)), key);
    const absent: Condition = { kind: 'null', negated: false, column: key };
    return or([wrap(equal), and([absent, complementOf(stored().wrap(TRUE))])]);
  }

  /** No member of the one record is missing among those of the other. */
  #sameMembers(relation: CatalogManyToMany, collection: string, place: LoweringPlace): Condition {
    const span = { start: 0, end: 0 };
    const path = { collection, steps: [], from: collection, relation, span } as const;
    const scopes = [{ kind: 'record' }, { kind: 'next' }] as const;
    const missing = scopes.map((scope, i) => {
      const some = this.#elements({ ...path, scope }, place);
      const other = this.#elements({ ...path, scope: scopes[1 - i]! }, place);
      const [left, right] = [some, other].map(({ source }) => idColumn(relation.collection, this.#of(source)));
      const equal = equalColumns(left!, right!);
      return some.exists(other.exists(equal, true), true);
    });
    return and(missing);
  }

  // -------------------------------------------------------------- quantifiers

  #quantified(node: PlannedQuantifier, place: LoweringPlace): Condition {
    const { quantifier } = node;
    // none is the negation of any; all is settled by one element against it.
    const some = quantifier === 'any' ? place.polarity : !place.polarity;
    const wanted = quantifier === 'none' ? !place.polarity : place.polarity;
    return some
      ? this.#someElement(node, { ...place, polarity: wanted })
      : this.#everyElement(node, { ...place, polarity: wanted });
  }

  #someElement(node: PlannedQuantifier, place: LoweringPlace): Condition {
    const { wrap, source, exists } = this.#elements(node.path, place);
    return wrap(exists(this.#element(node, place, source), false));
  }

  /** No element for which it is not definitely true. After a null step, nothing is known of the elements. */
  #everyElement(node: PlannedQuantifier, place: LoweringPlace): Condition {
    const { wrap, source, exists, key } = this.#elements(node.path, place);
    const exception = complementOf(this.#element(node, place, source));
    return wrap(and([isPresent(key), exists(exception, true)]));
  }

  #element({ variable, condition }: PlannedQuantifier, place: LoweringPlace, source: Source): Condition {
    return this.lower(condition, { ...place, variables: new Map(place.variables).set(variable, source) });
  }

  #elements(path: ToManyPath, place: LoweringPlace): LoweredElements {
    if (isOfList(path)) return this.#values(path, place);
    const { relation, from } = path;
    const { wrap, key, walk } = this.#owner(path, place);
    const source = this.#newSource();
    const target = this.#collection(relation.collection);
    // The row that holds the key: a reference to the owner may do.
    const holder = this.#collection(walk.length === 0 ? from : path.steps.at(-1)!.from);
    const rows = (condition: Condition): Exists =>
      this.#masking.seen({
        ...FOUND_ROW,
        source,
        from,
        relation,
        target,
        ...elementsBy(path, key, this.#context.catalog),
        walk: [...walk, relation.name],
        ...colocation(holder, target, key),
        condition,
      });
    const isCut = relation.kind === 'ancestors';
    const exists = (condition: Condition, negated: boolean): Condition =>
      existsOf({ ...rows(condition), negated, ...(isCut && negated && { beyond: true }) });
    return { wrap, key, source, rows, exists };
  }

  /** The elements of a list, which the record itself holds. */
  #values(path: ElementsPath, place: LoweringPlace): LoweredElements {
    const { relation } = path;
    const root = this.#walk(this.#root(path.scope, place), path.steps);
    const { wrap, column: key } = this.#column(root.wrap, path.from, fieldColumn(relation.field, root.source));
    const source = this.#newSource();
    const rows = (condition: Condition): Exists => ({
      ...FOUND_ROW,
      source,
      from: path.from,
      relation,
      target: NO_COLLECTION,
      by: 'elements',
      key,
      walk: [],
      condition,
    });
    return { wrap, key, source, rows, exists: (condition, negated) => existsOf({ ...rows(condition), negated }) };
  }

  // -------------------------------------------------------------- paths

  #collection(name: string): CatalogCollection {
    const found = this.#context.catalog.collections.get(name);
    invariant(found !== undefined, `the catalog has a collection ${name}`);
    return found;
  }

  #of(source: Source) {
    return { catalog: this.#context.catalog, source };
  }

  #newSource(): Source {
    return { id: this.#sources++, state: 'stored' };
  }

  #root(scope: RowScope, { variables }: LoweringPlace): Walked {
    switch (scope.kind) {
      case 'record':
        return { wrap: itself, source: this.#context.roots.record };
      case 'next':
        return { wrap: itself, source: this.#context.roots.next };
      case 'variable': {
        const source = variables.get(scope.name);
        invariant(source !== undefined, `the variable ${scope.name} is bound`);
        return { wrap: itself, source };
      }
      case 'request':
        return this.#requested(scope);
    }
  }

  /** The record whose id the request holds, found by a semi-join. */
  #requested(scope: RequestScope): Walked {
    const source = this.#newSource();
    const { wrap, key } = this.#requestedId(scope);
    const { id: collection } = key.type as { readonly id: string };
    const find: Wrap = (condition) =>
      existsOf(
        this.#masking.seen({
          ...FOUND_ROW,
          source,
          from: collection,
          relation: { kind: 'belongs_to', name: '', collection, required: false, column: '' },
          target: this.#collection(collection),
          by: 'id',
          key,
          walk: [],
          condition,
        }),
      );
    return { wrap: (condition) => wrap(find(condition)), source };
  }

  /** If the id is absent, nothing is definitely true. */
  #requestedId({ operand, slot }: RequestScope): { readonly wrap: Wrap; readonly key: SlotValue } {
    invariant(slot !== undefined, 'the plan numbers the ids that a request holds');
    const isAbsent = this.#context.signature.states[slot] === ABSENT;
    const key = { kind: 'slot', type: operand.type, slot, hasNoSuccessor: false } as const;
    return { wrap: isAbsent ? () => FALSE : itself, key };
  }

  #owner(path: ToManyPath, place: LoweringPlace): Owner {
    // Rows that refer to a record need only its id; a chain of ancestors begins at the record itself.
    const isById = path.scope.kind === 'request' && path.steps.length === 0 && path.relation.kind !== 'ancestors';
    if (isById) return { ...this.#requestedId(path.scope), walk: [] };
    const { wrap, column: key, walk } = this.#identifier(path, place);
    return { wrap, key, walk };
  }

  /**
   * The row after the steps, each of them a semi-join around the condition on it: a null step makes
   * it false, in `T` and in `F`.
   */
  #walk(root: Walked, steps: readonly ToOneStep[]): Walked {
    let at = root.source;
    const wraps: Wrap[] = [root.wrap];
    for (const { from, relation } of steps) {
      const found = lookup(relation, from, this.#of(at));
      const next = this.#newSource();
      const target = this.#collection(relation.collection);
      wraps.push((condition) =>
        existsOf(
          this.#masking.seen({
            ...FOUND_ROW,
            source: next,
            from,
            relation,
            target,
            ...found,
            walk: [relation.name],
            ...colocation(this.#collection(from), target, found.key),
            condition,
          }),
        ),
      );
      at = next;
    }
    return { wrap: (inner) => wraps.reduceRight((condition, wrap) => wrap(condition), inner), source: at };
  }

  /** A column of the record that `wrap` leads to. */
  #column(wrap: Wrap, from: string, column: ColumnRef): Reached {
    const seen = this.#masking.column(from, column);
    return seen === undefined ? { wrap: () => FALSE, column } : { wrap, column: seen };
  }

  /**
   * The id of the record after the steps. A belongs_to holds it in its foreign key, so its record is
   * not read, unless it may be hidden.
   */
  #identifier(
    path: Pick<ColumnOperand, 'scope' | 'collection' | 'steps'>,
    place: LoweringPlace,
  ): Reached & { readonly walk: readonly string[] } {
    const last = path.steps.at(-1);
    const root = this.#root(path.scope, place);
    if (last?.relation.kind === 'belongs_to' && !this.#masking.mayHide(last)) {
      const { wrap, source } = this.#walk(root, path.steps.slice(0, -1));
      return { wrap, column: belongsToColumn(last.relation, this.#of(source)), walk: [last.relation.name] };
    }
    const { wrap, source } = this.#walk(root, path.steps);
    return { wrap, column: idColumn(last?.relation.collection ?? path.collection, this.#of(source)), walk: [] };
  }

  #reach(operand: ColumnOperand, place: LoweringPlace): Reached {
    const { column, steps } = operand;
    if (column.kind === 'element') {
      const { wrap, source } = this.#root(operand.scope, place);
      return { wrap, column: elementColumn(operand.type, source) };
    }
    if (column.kind === 'id') return this.#identifier(operand, place);
    const { wrap, source } = this.#walk(this.#root(operand.scope, place), steps);
    const from = steps.at(-1)?.relation.collection ?? operand.collection;
    if (column.kind === 'belongs_to')
      return this.#column(wrap, from, belongsToColumn(column.relation, this.#of(source)));
    return this.#column(wrap, from, fieldColumn(column.field, source));
  }

  // -------------------------------------------------------------- leaves

  /** `polarity` true asks whether the value is present. */
  #isNull(operand: ColumnOperand, place: LoweringPlace): Condition {
    const { wrap, column } = this.#reach(operand, place);
    const present = wrap(isPresent(column));
    return place.polarity ? present : complementOf(present);
  }

  #compare({ op, left, right }: PlannedCompare, place: LoweringPlace): Condition {
    const { states } = this.#context.signature;
    if (left.kind === 'column' && elementOf(left.type) !== undefined) return this.#contains({ op, left, right }, place);
    const settled = settledByRequest(op, right, states) ?? settledByRequest(op, left, states);
    if (settled !== undefined) return constant(settled === place.polarity);
    if (stateOf(left, states) === ABSENT || stateOf(right, states) === ABSENT) return FALSE;
    const complement = OPERATORS[op].complement;
    const negation = complement ? { op: complement, negated: false } : { op, negated: true };
    const asked = place.polarity ? { op, negated: false } : negation;
    // A list with a null element can prove that a value is in it, and never that a value is not.
    const isPartial = stateOf(right, states) === PARTIAL || stateOf(left, states) === PARTIAL;
    if (isPartial && OPERATORS[asked.op].negative) return FALSE;
    return this.#test({ ...asked, left, right }, place);
  }

  /** An empty list contains nothing, not even an absent value. */
  #contains({ op, left, right }: ListCompare, place: LoweringPlace): Condition {
    const isAbsent = stateOf(right, this.#context.signature.states) === ABSENT;
    const { polarity } = place;
    const test = isAbsent ? FALSE : this.#test({ op, negated: !polarity, left, right }, place);
    const mayBeAbsent =
      isAbsent || (right.kind === 'column' && (right.nullable || this.#context.visibility !== undefined));
    if (polarity || !mayBeAbsent) return test;
    const { wrap, key, exists } = this.#values(elementsPath(left)!, place);
    return or([test, wrap(and([isPresent(key), exists(TRUE, true)]))]);
  }

  #test({ op, negated, left, right }: PlannedTest, place: LoweringPlace): Condition {
    if (left.kind === 'count') return this.#countTest({ op, right }, left, place);
    const from = left.kind === 'column' ? this.#reach(left, place) : undefined;
    const to = right.kind === 'column' ? this.#reach(right, place) : undefined;
    const column = from?.column ?? to?.column;
    invariant(column !== undefined, 'a test names a column');
    const base = { op, negated };
    const { states } = this.#context.signature;
    const inner: Condition =
      to !== undefined
        ? {
            kind: 'test',
            ...base,
            left: from?.column ?? valueFor(left, { column: to.column, states }),
            right: to.column,
          }
        : valueTest(base, { column, value: right, states });
    const wrapped = to === undefined ? inner : to.wrap(inner);
    return from === undefined ? wrapped : from.wrap(wrapped);
  }

  /** After a null step, nothing is known of the count. */
  #countTest({ op, right }: Pick<PlannedTest, 'op' | 'right'>, count: PlannedCount, place: LoweringPlace): Condition {
    const { wrap, source, rows, key } = this.#elements(count.path, place);
    const variables = new Map(place.variables).set(count.variable, source);
    const exists = rows(this.lower(count.condition, { polarity: true, variables }));
    const to = right.kind === 'column' ? this.#reach(right, place) : undefined;
    const { states } = this.#context.signature;
    const column: CountRef = { kind: 'count', type: 'int', exists };
    const test: Condition =
      to === undefined
        ? valueTest({ op, negated: false }, { column, value: right, states })
        : to.wrap({ kind: 'test', op, negated: false, left: column, right: to.column });
    return wrap(and([isPresent(key), test]));
  }
}
