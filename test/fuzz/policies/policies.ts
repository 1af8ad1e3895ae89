/** Random well-typed policies as syntax trees. */
import type {
  AncestorsCall,
  CompareOp,
  CountCall,
  Elements,
  Expr,
  List,
  NowReference,
  NumeralLiteral,
  Operand,
  Path,
  QuantifierWord,
  Span,
  TextLiteral,
} from '../../../grammar/syntax.ts';
import type { ListType } from '../../../src/policy/scalar-types.ts';
import type { Action, Catalog, CatalogCollection, KeyKind, ScalarType } from '../../../src/policy/types.ts';
import { folded } from '../../oracle/interpret.ts';
import type { Random } from '../random.ts';
import {
  BIGINT_NUMERALS,
  BYTES,
  DATES,
  DATETIME_SPELLINGS,
  DECIMAL_NUMERALS,
  FLOATS,
  INTS,
  LIST_TYPES,
  POINTS,
  TEXTS,
  TIME_SPELLINGS,
  UUID_SPELLINGS,
} from './values.ts';
import { type WantedSide, wantedLeaf } from './wanted-leaf.ts';
import { ROLES, TYPES } from './world.ts';

export const SPAN: Span = { start: 0, end: 0 };
const name = (text: string) => ({ name: text, span: SPAN });

/** Values of these are not compared. */
type WholeType = ListType | 'json' | 'point';

/** A scalar's type, `id:<collection>`, or `search`: a string that `matches` looks in. */
export type Type = ScalarType | 'search' | `id:${string}`;
interface Reach {
  readonly names: readonly string[];
  readonly nullable: boolean;
}
interface ToMany {
  readonly names: readonly string[];
  readonly collection: string;
}
interface Reaches {
  readonly values: ReadonlyMap<Type, readonly Reach[]>;
  readonly toMany: readonly ToMany[];
  readonly toOne: readonly (readonly string[])[];
}
interface Chained {
  readonly collection: string;
  readonly relation: string;
}
interface Binding {
  readonly variable: string;
  readonly collection: string;
}
interface Site {
  readonly depth: number;
  readonly bound: readonly Binding[];
  /** How many comparisons at most. */
  readonly leaves: number;
}
export interface Setting {
  readonly catalog: Catalog;
  readonly collection: string;
  readonly action: Action;
}

const DISTANCES = [
  '1m',
  '999m',
  '3km',
  '5km',
  '2224m',
  '2225m',
  '500km',
  '12000km',
  '20015km',
  '20016km',
  '99999999km',
];
const MOST_NAMES = 6;
/** So far every path is known; farther out only some, since there are very many. */
const NEAR = 3;
const NETWORKS = ['10.0.0.0/8', '192.0.2.7', '2001:db8::/32'];
export const QUERY_KEYS = [
  'k1',
  'k2',
  'k3',
  'k4',
  'k5',
  'k6',
  'k7',
  'k8',
  'k9',
  'k10',
  'k11',
  'missing',
  '__proto__',
  'constructor',
];
export const KEY_OF: Readonly<Record<Exclude<ScalarType, WholeType> | 'id', string>> = {
  string: 'k1',
  int: 'k2',
  float: 'k2',
  bool: 'k3',
  datetime: 'k4',
  date: 'k6',
  time: 'k7',
  uuid: 'k9',
  decimal: 'k11',
  bytes: 'k10',
  bigint: 'k8',
  id: 'k5',
};
const isUnordered = (type: Type): boolean => ['bool', 'uuid', 'bytes'].includes(type) || type.startsWith('id:');
const UNITS = { s: 1, m: 60, h: 3600, d: 86400, w: 604800 } as const;
/** How often a leaf is of a shape that is drawn from all of them alike. */
const WANTED_SHARE = 0.3;
const EXACT_NUMERALS = ['9007199254740993', '1e400', '-1e-400', '1.00000000000000000001'];
/** Includes the wildcards of patterns; a backslash alone is the rarest in the rows. */
const WILD_TEXTS = [...TEXTS.filter((text) => /[\\%_]/.test(text)), ...Array.from({ length: 8 }, () => '\\')];
const COUNTS = ['0', '1', '1', '2', '3', '-1', '0.5', '1.5', '1e400', '9007199254740993'];
/** Around the most ancestors that count. */
const CHAIN_COUNTS = ['0', '0', '1', '1', '2', '31', '32', '33', '31', '32', '33', '-1', '0.5', '31.5', '1e400'];
const NUMERALS = [
  '0',
  '-0',
  '1',
  '-1',
  '2',
  '1.5',
  '-1.5',
  '0.1',
  '1e0',
  '15e-1',
  '9007199254740991',
  '-9007199254740991',
];
const FAR_NUMERALS = [
  '9007199254740992',
  '9007199254740993',
  '-9007199254740993',
  '1e400',
  '-1e400',
  '1e-400',
  '-1e-400',
  '5e-324',
];
const NEAR_NUMERALS = [
  '0.30000000000000004',
  '0.3',
  '1.00000000000000000001',
  '0.99999999999999999999',
  '1.7976931348623157e308',
];

export class PolicyMaker {
  readonly #random: Random;
  readonly #setting: Setting;
  readonly #ids: ReadonlyMap<string, readonly string[]>;
  readonly #reaches = new Map<string, Reaches>();
  /** Columns that this policy named already: a simplifier acts where one is named again. */
  readonly #elementsOf = new WeakMap<Expr, string>();
  /** Random choices about lists and json are made only where there are some. */
  readonly #hasLists: boolean;
  readonly #hasPoints: boolean;
  /** The collections whose records have ancestors. */
  readonly #chained: readonly Chained[];
  readonly #literals = new Map<string, List['items'][number][]>();
  #recent: { readonly type: Type; readonly path: Path; readonly variable: Binding | undefined }[] = [];

  constructor(setting: Setting, { random, ids }: { random: Random; ids: ReadonlyMap<string, readonly string[]> }) {
    this.#setting = setting;
    this.#random = random;
    this.#ids = ids;
    this.#chained = chainedIn(setting.catalog);
    const collections = [...setting.catalog.collections.values()];
    this.#hasLists = collections.some(({ fields }) => fields.values().some(({ type }) => type.endsWith('[]')));
    this.#hasPoints = [...setting.catalog.collections.values()].some(({ fields }) =>
      [...fields.values()].some(({ type }) => type === 'point'),
    );
  }

  make(): Expr {
    this.#recent = [];
    this.#literals.clear();
    return this.#expr({ depth: 0, bound: [], leaves: this.#random.pick([1, 1, 2, 2, 3, 4, 6]) });
  }

  #expr({ depth, bound, leaves }: Site): Expr {
    const random = this.#random;
    const roll = random.next();
    if (leaves > 1 && roll < 0.7) {
      const kind = random.chance(0.5) ? 'and' : 'or';
      const shares = leaves > 2 && random.chance(0.4) ? [1, 1, leaves - 2] : [1, leaves - 1];
      const twins = this.#related({ depth, bound, leaves });
      const others = twins.length > 0 ? shares.slice(2) : shares;
      const items = [
        ...twins,
        ...random.shuffled(others).map((share) => this.#expr({ depth: depth + 1, bound, leaves: share })),
      ];
      // Chains are flat: an item of the same kind gives its own items.
      const flat = items.flatMap((item) => (item.kind === kind ? (item as { items: readonly Expr[] }).items : [item]));
      return { kind, items: flat, span: SPAN };
    }
    if (depth < 8 && random.chance(0.2))
      return { kind: 'not', item: this.#expr({ depth: depth + 1, bound, leaves }), span: SPAN };
    if (bound.length < 3 && random.chance(bound.length === 0 ? 0.3 : 0.15)) {
      const made = this.#quantified({ depth, bound, leaves });
      if (made) return made;
    }
    if (leaves > 1) return this.#expr({ depth, bound, leaves });
    for (;;) {
      const leaf = this.#leaf(bound);
      if (leaf) return leaf;
    }
  }

  /** Parts that a simplifier might make one of: they name one column, one walk, one relation, or nearly so. */
  #related(site: Site): readonly Expr[] {
    const roll = this.#random.next();
    const canBind = site.bound.length < 3;
    if (roll < 0.16) return this.#twins(site.bound);
    if (roll < 0.28) return this.#neighbours(site.bound);
    if (roll < 0.36) return this.#twoWays(site.bound);
    if (roll < 0.44 && canBind) return this.#twoOf(site);
    if (roll < 0.52 && canBind) return this.#twoRanges(site);
    if (roll < 0.58) return this.#allOfOne(site.bound);
    if (roll < 0.63 && site.bound.length === 0) return this.#chainsOfMany(site);
    return [];
  }

  /** A test, its opposite, and whether the column is there: the first two are what the third asks. */
  #allOfOne(bound: readonly Binding[]): readonly Expr[] {
    const random = this.#random;
    const type = random.pick(this.#types());
    const left = this.#column(type, bound);
    if (!left) return [];
    const right = this.#literal(type);
    const opposite = random.pick<readonly CompareOp[]>([
      ['=', '!='],
      ['!=', '='],
    ]);
    const tests = opposite.map((op): Expr => ({ kind: 'compare', op, opSpan: SPAN, left, right, span: SPAN }));
    const isThere: Expr = { kind: 'is null', negated: random.chance(0.7), operand: left, span: SPAN };
    return random.chance(0.6) ? [...tests, isThere] : random.shuffled([...tests, isThere]);
  }

  /** The ancestors of each element of a relation, among which an index finds one, or how many they are. */
  #chainsOfMany({ bound }: Site): readonly Expr[] {
    const random = this.#random;
    const [root, collection, variable] = this.#root(bound);
    const all = this.#reachesOf(collection).toMany.filter(({ names }) => names.length <= 2);
    if (all.length === 0) return [];
    const many = random.pick(all);
    const inner = [...bound, { variable: 'm', collection: many.collection }];
    const chain = this.#ancestors(inner);
    if (chain === undefined) return [];
    const made = {
      path: chain.path,
      variable: name('x'),
      condition: this.#isRecord('x', `id:${chain.collection}`),
      span: SPAN,
    };
    const condition: Expr = random.chance(0.5)
      ? this.#counted({ kind: 'count', ...made }, inner)
      : { kind: 'quantified', quantifier: random.pick(['none', 'none', 'any']), ...made };
    const path = this.#path(root, variable, many.names);
    return random
      .shuffled<QuantifierWord>(['none', 'all', 'any'])
      .slice(1)
      .map((quantifier) => ({ kind: 'quantified', quantifier, path, variable: name('m'), condition, span: SPAN }));
  }

  /** Columns of one record, some to-one steps away. */
  #neighbours(bound: readonly Binding[]): readonly Expr[] {
    const random = this.#random;
    const [root, collection, variable] = this.#root(bound);
    const { toOne, values } = this.#reachesOf(collection);
    if (toOne.length === 0) return [];
    const walk = random.pick(toOne.filter(({ length }) => length < 3));
    const start = `${walk.join()},`;
    const isNear = ({ names }: Reach): boolean => names.length === walk.length + 1 && names.join().startsWith(start);
    const near = [...values].flatMap(([type, reaches]) =>
      type === 'search' || type === 'json' || type === 'point' || type.endsWith('[]')
        ? []
        : reaches.filter(isNear).map(({ names }) => ({ type, names })),
    );
    if (near.length === 0) return [];
    const chosen = Array.from({ length: random.pick([2, 2, 3]) }, () => random.pick(near));
    return chosen.map(({ type, names }) => this.#test(type, this.#path(root, variable, names)));
  }

  /** A column that is reached through two keys. */
  #twoWays(bound: readonly Binding[]): readonly Expr[] {
    const random = this.#random;
    const [root, collection, variable] = this.#root(bound);
    const { values } = this.#reachesOf(collection);
    const type = random.pick(this.#types());
    const far = (values.get(type) ?? []).filter(({ names }) => names.length > 1 && names.length <= NEAR + 1);
    if (far.length < 2) return [];
    const first = random.pick(far);
    const alike = far.filter((reach) => reach !== first && reach.names.at(-1) === first.names.at(-1));
    const twoOfThem = [first, alike.length > 0 ? random.pick(alike) : random.pick(far)];
    const test = this.#test(type, this.#path(root, variable, first.names));
    return twoOfThem.map(({ names }, i) =>
      i === 0 || random.chance(0.4)
        ? this.#test(type, this.#path(root, variable, names))
        : withPath(test, this.#path(root, variable, names)),
    );
  }

  /**
   * The same question to the elements of a relation of two records, or of two relations to the same
   * collection.
   */
  #twoRanges({ depth, bound }: Site): readonly Expr[] {
    const random = this.#random;
    const [root, collection, variable] = this.#root(bound);
    const all = this.#reachesOf(collection).toMany;
    if (all.length < 2 || depth > 3) return [];
    const first = random.pick(all);
    const others = all.filter((each) => each !== first && each.collection === first.collection);
    const alike = others.filter(({ names }) => names.at(-1) === first.names.at(-1));
    const second = alike.length > 0 ? random.pick(alike) : others.length > 0 ? random.pick(others) : first;
    const own = ['m', 'x', 'y'][bound.length]!;
    const inner = [...bound, { variable: own, collection: first.collection }];
    const condition = this.#expr({ depth: depth + 1, bound: inner, leaves: 1 });
    const quantifier = random.pick<QuantifierWord>(['any', 'all', 'none']);
    return [first, second].map(({ names }) => ({
      kind: 'quantified',
      quantifier: random.chance(0.7) ? quantifier : random.pick<QuantifierWord>(['any', 'all', 'none']),
      path: this.#path(root, variable, names),
      variable: name(own),
      condition,
      span: SPAN,
    }));
  }

  /**
   * A test of the given column: its presence, or a comparison with a value that is not a record's.
   */
  #test(type: Type, left: Path): Expr {
    const random = this.#random;
    if (random.chance(0.4)) return { kind: 'is null', negated: random.chance(0.5), operand: left, span: SPAN };
    const isOrdered = !isUnordered(type) && random.chance(0.5);
    const op = random.pick<CompareOp>(isOrdered ? ['<', '<=', '>', '>='] : ['=', '!=', 'in', 'not in']);
    const isList = op === 'in' || op === 'not in';
    const right = random.chance(0.7) ? (isList ? this.#listOf(type) : this.#literal(type)) : this.#query(type);
    return { kind: 'compare', op, opSpan: SPAN, left, right, span: SPAN };
  }

  /** Two questions to the elements of one relation, which one element need not answer both. */
  #twoOf({ depth, bound }: Site): Expr[] {
    const first = this.#quantified({ depth, bound, leaves: 1 });
    if (first?.kind !== 'quantified' || depth > 3) return [];
    const inner = [...bound, { variable: first.variable.name, collection: this.#elementsOf.get(first)! }];
    const quantifier = this.#random.chance(0.7)
      ? first.quantifier
      : this.#random.pick<QuantifierWord>(['any', 'all', 'none']);
    return [first, { ...first, quantifier, condition: this.#expr({ depth: depth + 1, bound: inner, leaves: 1 }) }];
  }

  #quantified({ depth, bound, leaves }: Site): Expr | undefined {
    const random = this.#random;
    const [root, collection, variable] = this.#toManyRoot(bound);
    const all = this.#reachesOf(collection).toMany;
    // Paths from the caller stop at the caller's own relations.
    const found = root === 'auth' ? all.filter(({ names }) => names.length === 1) : all;
    if (found.length === 0) return undefined;
    const toMany = random.pick(this.#ofTheWrite(root, found));
    const direct = this.#path(root, variable, toMany.names);
    // A chain for each element of many is the dearest thing that a policy can ask for.
    const chain = random.chance(bound.length === 0 ? 0.3 : 0.04) ? this.#ancestors(bound) : undefined;
    if (chain) return this.#over(chain.path, chain.collection, { depth, bound, leaves });
    if (random.chance(0.12)) {
      const right = this.#valueOf(`id:${toMany.collection}`, bound);
      if (right) return { kind: 'compare', op: 'contains', opSpan: SPAN, left: direct, right, span: SPAN };
    }
    return this.#over(direct, toMany.collection, { depth, bound, leaves });
  }

  #over(path: Elements, collection: string, { depth, bound, leaves }: Site): Expr {
    const random = this.#random;
    const quantifier = random.pick<QuantifierWord>(['any', 'all', 'none']);
    const own = ['m', 'x', 'y'][bound.length]!;
    const inner = [...bound, { variable: own, collection }];
    // An index finds one record, from which the chain can be followed downwards.
    const isOne = path.kind === 'ancestors' && random.chance(0.45);
    const isCallers = path.kind === 'path' && path.root === 'auth' && random.chance(0.4);
    const one = isOne ? this.#isRecord(own, `id:${collection}`) : isCallers ? this.#samePlace(inner, bound) : undefined;
    const condition = one ?? this.#expr({ depth: depth + 1, bound: inner, leaves });
    if (random.chance(path.kind === 'ancestors' ? 0.4 : 0.25))
      return this.#counted({ kind: 'count', path, variable: name(own), condition, span: SPAN }, bound);
    const made: Expr = { kind: 'quantified', quantifier, path, variable: name(own), condition, span: SPAN };
    this.#elementsOf.set(made, collection);
    return made;
  }

  /** An element and the record reference the same record. */
  #samePlace(inner: readonly Binding[], bound: readonly Binding[]): Expr | undefined {
    const { variable, collection } = inner.at(-1)!;
    const relations = [...this.#setting.catalog.collections.get(collection)!.relations.values()];
    const [relation] = this.#random.shuffled(relations.filter(({ kind }) => kind === 'belongs_to'));
    const right = relation && this.#column(`id:${relation.collection}`, bound);
    if (relation === undefined || right === undefined) return undefined;
    const left = this.#path('variable', variable, [relation.name]);
    return { kind: 'compare', op: '=', opSpan: SPAN, left, right, span: SPAN };
  }

  #isRecord(variable: string, type: Type): Expr {
    const left = this.#path('variable', variable, []);
    const right = this.#random.chance(0.7) ? this.#literal(type) : (this.#request(type) ?? this.#literal(type));
    return { kind: 'compare', op: '=', opSpan: SPAN, left, right, span: SPAN };
  }

  /** From a record that a path or the request names. */
  #ancestors(bound: readonly Binding[]): { readonly path: AncestorsCall; readonly collection: string } | undefined {
    const random = this.#random;
    if (this.#chained.length === 0) return undefined;
    const { collection, relation } = random.pick(this.#chained);
    const type = `id:${collection}` as const;
    const start = random.chance(0.15) ? this.#request(type) : this.#column(type, bound);
    if (start?.kind !== 'path' || isQuery(start)) return undefined;
    const isRecord = start.root === 'record' || start.root === 'next';
    if (isRecord && start.steps.length === 1 && start.steps[0]!.name === 'id') return undefined;
    const by = name(random.chance(0.2) ? `${relation}_id` : relation);
    return { path: { kind: 'ancestors', path: start, by, span: SPAN }, collection };
  }

  /**
   * For a written record, often its own members, or a path that may return to the record itself.
   */
  #ofTheWrite(root: Path['root'], found: readonly ToMany[]): readonly ToMany[] {
    const { collection } = this.#setting;
    const roll = this.#random.next();
    if (!this.#isWritten(root) || roll > 0.6) return found;
    const { relations } = this.#setting.catalog.collections.get(collection)!;
    const isOwn = ({ names: [first = '', ...more] }: ToMany): boolean =>
      more.length === 0 && relations.get(first)?.kind === 'many_to_many';
    const chosen = found.filter((toMany) => (roll < 0.2 ? isOwn(toMany) : toMany.collection === collection));
    return chosen.length > 0 ? chosen : found;
  }

  #isWritten(root: Path['root']): boolean {
    const { action } = this.#setting;
    return (root === 'record' || root === 'next') && (action === 'update' || action === 'create');
  }

  // -------------------------------------------------------------- leaves

  #leaf(bound: readonly Binding[]): Expr | undefined {
    const random = this.#random;
    if (this.#setting.action === 'update' && random.chance(0.06)) return this.#change();
    const roll = random.next();
    if (random.chance(0.07)) {
      const matches = this.#matches(bound);
      if (matches) return matches;
    }
    if (random.chance(0.03)) {
      const fraction = this.#fraction(bound);
      if (fraction) return fraction;
    }
    if (random.chance(0.03)) return this.#fact(bound);
    if (random.chance(WANTED_SHARE)) {
      const wanted = this.#wanted(bound);
      if (wanted) return wanted;
    }
    if (roll < 0.02)
      return { kind: 'truth', operand: { kind: 'bool', value: random.chance(0.5), span: SPAN }, span: SPAN };
    if (roll < 0.08) {
      const operand = random.chance(0.7) ? this.#column('bool', bound) : this.#request('bool');
      if (operand && isQuery(operand)) return undefined;
      return operand && { kind: 'truth', operand, span: SPAN };
    }
    if (this.#hasLists && random.chance(0.06)) {
      const listed = this.#ofList(bound);
      if (listed) return listed;
    }
    if (this.#hasPoints && random.chance(0.06)) {
      const within = this.#within(bound);
      if (within) return within;
    }
    if (roll < 0.2) return this.#isNull(bound);
    if (roll < 0.45) return this.#compare(random.pick(['=', '!=']), this.#equalTypes(), bound);
    if (roll < 0.65) return this.#compare(random.pick(['<', '<=', '>', '>=']), this.#orderedTypes(), bound);
    if (roll < 0.8) return this.#membership(bound);
    if (random.chance(0.3)) return this.#matches(bound);
    return this.#compare(random.pick(['contains', 'starts with', 'ends with']), ['string', 'string'], bound);
  }

  /** An element of a list field, or how many of them meet a test; now and then of a list of the request. */
  #ofList(bound: readonly Binding[]): Expr | undefined {
    const random = this.#random;
    const type = random.pick(LIST_TYPES);
    const element = type.slice(0, -2) as Type;
    const roll = random.next();
    const held = roll < 0.15 ? this.#held(random.pick(['auth', 'data']), type) : undefined;
    const path = held ?? this.#column(type, bound);
    if (path === undefined) return undefined;
    if (roll > 0.93) return { kind: 'is null', negated: random.chance(0.5), operand: path, span: SPAN };
    if (held !== undefined || roll < 0.5) {
      // A value of the record may be absent.
      const right = random.chance(0.4) ? this.#column(element, bound) : this.#elementValue(element, bound);
      return right && { kind: 'compare', op: 'contains', opSpan: SPAN, left: path, right, span: SPAN };
    }
    const variable = 'l';
    if (bound.some((each) => each.variable === variable)) return undefined;
    const condition = this.#ofElement(variable, element, bound);
    if (condition === undefined) return undefined;
    if (random.chance(0.35))
      return this.#counted({ kind: 'count', path, variable: name(variable), condition, span: SPAN }, bound);
    const quantifier = random.pick<QuantifierWord>(['any', 'all', 'none']);
    return { kind: 'quantified', quantifier, path, variable: name(variable), condition, span: SPAN };
  }

  /** No list has a number that its type has not. */
  #elementValue(element: Type, bound: readonly Binding[]): Operand | undefined {
    const value = this.#valueOf(element, bound);
    if (value?.kind !== 'number') return value;
    const number = Number(value.source);
    const isHeld =
      element === 'int' ? Number.isSafeInteger(number) && /^-?\d+$/.test(value.source) : Number.isFinite(number);
    return isHeld ? value : undefined;
  }

  #ofElement(variable: string, element: Type, bound: readonly Binding[]): Expr | undefined {
    const random = this.#random;
    const left = this.#path('variable', variable, []);
    const ops: readonly CompareOp[] = element === 'bool' ? ['=', '!='] : ['=', '!=', '<', '<=', '>', '>='];
    const texts: readonly CompareOp[] = element === 'string' ? ['starts with', 'ends with', 'contains'] : [];
    const right = this.#valueOf(element, bound);
    const op = random.pick([...ops, ...texts]);
    const test: Expr | undefined = right && { kind: 'compare', op, opSpan: SPAN, left, right, span: SPAN };
    const other = random.chance(0.3) ? this.#isNull(bound) : undefined;
    if (test === undefined || other === undefined) return test;
    return { kind: random.pick(['and', 'or']), items: [test, other], span: SPAN };
  }

  /** An int beside a float of the request, which may lie between two ints. */
  #fraction(bound: readonly Binding[]): Expr | undefined {
    const random = this.#random;
    const [column, value] = [this.#column('int', bound), this.#held(random.pick(['auth', 'data']), 'float')];
    if (!column || !value) return undefined;
    const op = random.pick<CompareOp>(['<', '<=', '>', '>=', '=', '!=']);
    const [left, right] = random.chance(0.3) ? [value, column] : [column, value];
    return { kind: 'compare', op, opSpan: SPAN, left, right, span: SPAN };
  }

  /** An id is of one collection on both sides. */
  #wanted(bound: readonly Binding[]): Expr | undefined {
    const id: Type = `id:${this.#random.pick([...this.#setting.catalog.collections.keys()])}`;
    return wantedLeaf(this.#random, {
      side: (wanted) => {
        const type = wanted.isSearched ? 'search' : wanted.type === 'id' ? id : (wanted.type as ScalarType);
        return this.#side(wanted, type, bound);
      },
    });
  }

  #side({ kind, type, nullable, isList }: WantedSide, of: Type, bound: readonly Binding[]): Operand | undefined {
    const random = this.#random;
    switch (kind) {
      case 'column':
      case 'path': {
        const [root, collection, variable] = this.#root(bound);
        const found = (this.#reachesOf(collection).values.get(of) ?? []).filter(
          (reach) => reach.names.length > 1 === (kind === 'path') && reach.nullable === nullable,
        );
        return found.length === 0 ? undefined : this.#path(root, variable, random.pick(found).names);
      }
      case 'query':
        return this.#query(of);
      case 'auth':
        return isList ? this.#path('auth', undefined, ['roles']) : this.#held('auth', of);
      case 'data':
        return this.#held('data', of);
      case 'now':
        return type === 'date' ? this.#today() : this.#now();
      default: {
        if (isList) return this.#listOf(of);
        const numerals = type === 'exact' ? EXACT_NUMERALS : type === 'float' ? ['0.5', '-1.5'] : ['0', '1', '-2'];
        const isNumber = type === 'exact' || type === 'int' || type === 'float';
        return isNumber ? { kind: 'number', source: random.pick(numerals), span: SPAN } : this.#literal(of);
      }
    }
  }

  /** A test of the address, or a comparison with another fact of the request. */
  #fact(bound: readonly Binding[]): Expr | undefined {
    const random = this.#random;
    const compare = (left: Operand, op: CompareOp, right: Operand | undefined): Expr | undefined =>
      right && { kind: 'compare', op, opSpan: SPAN, left, right, span: SPAN };
    if (random.chance(0.5)) {
      const items = random
        .shuffled(NETWORKS)
        .slice(0, random.pick([0, 1, 2]))
        .map(textOf);
      const address = this.#path('request', undefined, ['ip']);
      if (random.chance(0.3)) return compare(address, random.pick(['=', '!=']), textOf(random.pick(NETWORKS)));
      return compare(address, random.pick(['in', 'not in']), { kind: 'list', items, span: SPAN });
    }
    if (random.chance(0.4)) {
      const fact = this.#path('request', undefined, [random.pick(['method', 'kind', 'origin'])]);
      return compare(fact, random.pick(['=', '!=']), this.#column('string', bound));
    }
    const fact = this.#path('now', undefined, [random.pick(['hour', 'weekday'])]);
    return compare(fact, random.pick(['=', '!=', '<', '>=']), this.#column('int', bound));
  }

  #held(source: 'auth' | 'data', type: Type): Path | undefined {
    const { catalog, collection, action } = this.#setting;
    if (source === 'data' && action !== 'update' && action !== 'create') return undefined;
    const names = namesOf(catalog.collections.get(source === 'data' ? collection : 'users')!, type);
    if (source === 'auth' && type === 'id:users') names.push('id');
    if (source === 'auth' && type === 'bool') names.push('second_factor');
    if (source === 'auth' && type === 'datetime') names.push('signed_in_at');
    if (source === 'auth' && type === 'string') names.push('guest', 'former_guest');
    return names.length === 0 ? undefined : this.#path(source, undefined, [this.#random.pick(names)]);
  }

  #matches(bound: readonly Binding[]): Expr | undefined {
    const random = this.#random;
    const left = this.#column('search', bound);
    const roll = random.next();
    const wild = (): TextLiteral => textOf(random.pick(WILD_TEXTS));
    const right = roll < 0.4 ? wild() : roll < 0.6 ? this.#literal('string') : this.#request('string');
    // The checker rejects a literal of accents alone.
    if (right?.kind === 'text' && right.value !== '' && folded(right.value) === '') return undefined;
    return left && right && { kind: 'compare', op: 'matches', opSpan: SPAN, left, right, span: SPAN };
  }

  /** Around one of the places that rows have, at distances between them. */
  #within(bound: readonly Binding[]): Expr | undefined {
    const random = this.#random;
    const left = this.#column('point', bound);
    const { lat, lng } = random.pick(POINTS);
    const right = textOf(`${lat}, ${lng}, ${random.pick(DISTANCES)}`);
    return left && { kind: 'compare', op: 'within', opSpan: SPAN, left, right, span: SPAN };
  }

  /** Against few and many, on either side, and in a list; now and then of every element. */
  #counted(full: CountCall, bound: readonly Binding[]): Expr {
    const random = this.#random;
    const { path } = full;
    const count: Operand = random.chance(0.3) ? { kind: 'count', path, span: SPAN } : full;
    const roll = random.next();
    const number = (): NumeralLiteral => ({
      kind: 'number',
      source: random.pick(path.kind === 'ancestors' ? CHAIN_COUNTS : COUNTS),
      span: SPAN,
    });
    if (roll < 0.12) {
      const right: List = { kind: 'list', items: [number(), number()], span: SPAN };
      return {
        kind: 'compare',
        op: random.pick<CompareOp>(['in', 'not in']),
        opSpan: SPAN,
        left: count,
        right,
        span: SPAN,
      };
    }
    const other = roll < 0.65 ? number() : roll < 0.8 ? this.#request('int') : this.#column('int', bound);
    const op = random.pick<CompareOp>(['=', '!=', '<', '<=', '>', '>=']);
    const [left, right] = random.chance(0.3) ? [other ?? number(), count] : [count, other ?? number()];
    return { kind: 'compare', op, opSpan: SPAN, left, right, span: SPAN };
  }

  /** The changes of an update: fields and relations of the record, often all but few of them. */
  #change(): Expr {
    const random = this.#random;
    const { fields, relations } = this.#setting.catalog.collections.get(this.#setting.collection)!;
    const written = [...fields.keys()].filter((field) => field !== 'created_at' && field !== 'updated_at');
    const held = [...relations.values()].filter(({ kind }) => kind !== 'has_many').map((relation) => relation.name);
    const members = held.filter((each) => relations.get(each)!.kind === 'many_to_many');
    const names = random.shuffled([...written, ...held, ...held, ...members, ...members]);
    const isOnly = random.chance(0.5);
    const some = [...new Set(names.slice(0, isOnly ? 1 + random.below(names.length) : 1 + random.below(2)))];
    const args = some.map((each) => this.#path('record', undefined, [each]));
    return { kind: 'call', name: name(isOnly ? 'changed_only' : 'changed'), args, span: SPAN };
  }

  /** Tests of one column against few literals, and whether it is there at all: what a simplifier makes one of. */
  #twins(bound: readonly Binding[]): Expr[] {
    const random = this.#random;
    const type = random.pick(this.#types());
    const left = this.#column(type, bound);
    if (!left) return [];
    const equal: readonly CompareOp[] = ['=', '!=', 'in', 'not in'];
    const ordered: readonly CompareOp[] = ['<', '<=', '>', '>='];
    const ops = isUnordered(type) ? equal : random.pick([equal, ordered, [...equal, ...ordered]]);
    const literal = this.#literal(type);
    return Array.from({ length: random.pick([2, 2, 3, 4]) }, (): Expr => {
      if (left.kind === 'path' && random.chance(0.25))
        return { kind: 'is null', negated: random.chance(0.5), operand: left, span: SPAN };
      const op = random.pick(ops);
      const isList = op === 'in' || op === 'not in';
      const again: Operand = isList ? { kind: 'list', items: [literal as List['items'][number]], span: SPAN } : literal;
      const right = random.chance(0.5) ? again : isList ? this.#listOf(type) : this.#literal(type);
      return { kind: 'compare', op, opSpan: SPAN, left, right, span: SPAN };
    });
  }

  #isNull(bound: readonly Binding[]): Expr | undefined {
    const random = this.#random;
    const operand = random.chance(0.25) ? this.#request(random.pick(this.#types())) : this.#nullTested(bound);
    return operand?.kind === 'path' ? { kind: 'is null', negated: random.chance(0.5), operand, span: SPAN } : undefined;
  }

  #nullTested(bound: readonly Binding[]): Operand | undefined {
    const [root, collection, variable] = this.#root(bound);
    const { toOne } = this.#reachesOf(collection);
    if (toOne.length > 0 && this.#random.chance(0.4)) return this.#path(root, variable, this.#random.pick(toOne));
    return this.#column(this.#random.pick(this.#hasLists ? [...this.#types(), 'json'] : this.#types()), bound);
  }

  #types(): readonly Type[] {
    const random = this.#random;
    const ids = [...this.#setting.catalog.collections.keys()].map((collection) => `id:${collection}` as const);
    return [...TYPES, random.pick(ids), random.pick(ids)];
  }

  #equalTypes(): readonly [Type, Type] {
    const random = this.#random;
    const type = random.pick(this.#types());
    if (type.startsWith('id:') && random.chance(0.2)) {
      const other = this.#isNumber(type) ? 'int' : 'string';
      return random.chance(0.5) ? [type, other] : [other, type];
    }
    if ((type === 'int' || type === 'float') && random.chance(0.5)) return [type, type === 'int' ? 'float' : 'int'];
    return [type, type];
  }

  #orderedTypes(): readonly [Type, Type] {
    const random = this.#random;
    const type = random.pick<Type>([
      'string',
      'string',
      'int',
      'int',
      'float',
      'float',
      'datetime',
      'date',
      'time',
      'bigint',
      'bigint',
      'decimal',
      'decimal',
    ]);
    if ((type === 'int' || type === 'float') && random.chance(0.5)) return [type, type === 'int' ? 'float' : 'int'];
    return [type, type];
  }

  #compare(op: CompareOp, [leftType, rightType]: readonly [Type, Type], bound: readonly Binding[]): Expr | undefined {
    const random = this.#random;
    const column = this.#column(leftType, bound);
    const left = random.chance(0.75) ? column : this.#request(leftType);
    const right = this.#valueOf(rightType, bound);
    if (!left || !right) return undefined;
    // Text is found in text; a query parameter before `contains` would be a list.
    if (op === 'contains' && isQuery(left)) return undefined;
    const swapped = random.chance(0.3) && !(op === 'contains' && isQuery(right));
    return {
      kind: 'compare',
      op,
      opSpan: SPAN,
      left: swapped ? right : left,
      right: swapped ? left : right,
      span: SPAN,
    };
  }

  #membership(bound: readonly Binding[]): Expr | undefined {
    const random = this.#random;
    const type = random.pick(this.#types());
    const isRoles = type === 'string' && random.chance(0.3);
    const roles = this.#path('auth', undefined, ['roles']);
    const held =
      this.#hasLists && random.chance(0.15)
        ? this.#held(random.pick(['auth', 'data']), `${type}[]` as Type)
        : undefined;
    const list = isRoles
      ? roles
      : held !== undefined
        ? held
        : random.chance(0.5)
          ? this.#listOf(type)
          : this.#query(type);
    const value = random.chance(0.75)
      ? this.#column(type, bound)
      : random.chance(0.4)
        ? this.#literal(type)
        : this.#request(type);
    if (!value) return undefined;
    const role = isRoles && (value.kind === 'text' || random.chance(0.4)) ? textOf(random.pick(ROLES)) : value;
    if (list.kind === 'path' && random.chance(0.4))
      return { kind: 'compare', op: 'contains', opSpan: SPAN, left: list, right: role, span: SPAN };
    return { kind: 'compare', op: random.pick(['in', 'not in']), opSpan: SPAN, left: role, right: list, span: SPAN };
  }

  // -------------------------------------------------------------- operands

  #valueOf(type: Type, bound: readonly Binding[]): Operand | undefined {
    const roll = this.#random.next();
    if (roll < 0.35) return this.#literal(type);
    if (roll < 0.7) return this.#request(type);
    return this.#column(type, bound);
  }

  #root(bound: readonly Binding[]): readonly ['record' | 'next' | 'variable', string, string | undefined] {
    const random = this.#random;
    const { collection, action } = this.#setting;
    if (bound.length > 0 && random.chance(0.75)) {
      const { variable, collection: of } = random.chance(0.7) ? bound.at(-1)! : random.pick(bound);
      return ['variable', of, variable];
    }
    const hasNext = action === 'update' || action === 'create';
    return [hasNext && random.chance(0.4) ? 'next' : 'record', collection, undefined];
  }

  #toManyRoot(
    bound: readonly Binding[],
  ): readonly ['record' | 'next' | 'variable' | 'auth', string, string | undefined] {
    return this.#random.chance(0.2) ? ['auth', 'users', undefined] : this.#root(bound);
  }

  #path(root: Path['root'], variable: string | undefined, names: readonly string[]): Path {
    return {
      kind: 'path',
      root,
      ...(variable !== undefined && { variable: name(variable) }),
      steps: names.map(name),
      span: SPAN,
    };
  }

  #column(type: Type, bound: readonly Binding[]): Path | undefined {
    const known = this.#recent.filter(
      (each) => each.type === type && (each.variable === undefined || bound.includes(each.variable)),
    );
    if (known.length > 0 && this.#random.chance(0.35)) return this.#random.pick(known).path;
    const path = this.#newColumn(type, bound);
    const variable = path?.variable && bound.find((each) => each.variable === path.variable!.name);
    if (path) this.#recent.push({ type: type === 'search' ? 'string' : type, path, variable });
    return path;
  }

  #newColumn(type: Type, bound: readonly Binding[]): Path | undefined {
    const random = this.#random;
    const [root, collection, variable] = this.#root(bound);
    const found = this.#reachesOf(collection).values.get(type) ?? [];
    // Near or far, nullable or not: the kinds of paths are rarer in a schema than in the shapes that must be met.
    const [isFar, nullable] = [random.chance(0.5), random.chance(0.5)];
    const alike = found.filter((reach) => reach.names.length > 1 === isFar && reach.nullable === nullable);
    const wanted = this.#isWritten(root) && random.chance(0.15) ? this.#behindPartners(found) : alike;
    const from = wanted.length > 0 ? wanted : found;
    if (from.length === 0) return undefined;
    const { names } = random.pick(from);
    // A bound variable alone is its record's identifier.
    if (root === 'variable' && names.length === 1 && names[0] === 'id' && random.chance(0.7))
      return this.#path(root, variable, []);
    return this.#path(root, variable, names);
  }

  /** Reaches that begin with a has_one of the record. */
  #behindPartners(found: readonly Reach[]): readonly Reach[] {
    const { relations } = this.#setting.catalog.collections.get(this.#setting.collection)!;
    return found.filter(({ names }) => relations.get(names[0] ?? '')?.kind === 'has_one');
  }

  /** Often the key that mostly holds a value of the type. */
  #query(type: Type): Path {
    const own = KEY_OF[type.startsWith('id:') ? 'id' : (type as keyof typeof KEY_OF)];
    return this.#path('query', undefined, [this.#random.chance(0.5) ? own : this.#random.pick(QUERY_KEYS)]);
  }

  #request(type: Type): Operand | undefined {
    const random = this.#random;
    const { catalog, collection, action } = this.#setting;
    if (type === 'datetime' && random.chance(0.5)) return this.#now();
    if (type === 'date' && random.chance(0.5)) return this.#today();
    const roll = random.next();
    if (roll < 0.45) return this.#query(type);
    const isData = roll > 0.75 && (action === 'update' || action === 'create');
    const own = catalog.collections.get(isData ? collection : 'users')!;
    const names = namesOf(own, type);
    if (!isData && type === 'id:users') names.push('id', 'id');
    if (names.length === 0) return roll < 0.6 ? this.#query(type) : undefined;
    return this.#path(isData ? 'data' : 'auth', undefined, [random.pick(names)]);
  }

  #now(): NowReference {
    const random = this.#random;
    if (random.chance(0.25)) return { kind: 'now', seconds: 0, span: SPAN };
    const sign = random.chance(0.5) ? '+' : '-';
    const unit = random.pick(Object.keys(UNITS) as (keyof typeof UNITS)[]);
    const amount = random.pick([1, 24, 3600, unit === 'w' ? 50000 : 300000]);
    return {
      kind: 'now',
      seconds: (sign === '-' ? -1 : 1) * amount * UNITS[unit],
      offset: { sign, amount, unit },
      span: SPAN,
    };
  }

  #today(): NowReference {
    const random = this.#random;
    if (random.chance(0.3)) return { kind: 'now', isDay: true, seconds: 0, span: SPAN };
    const sign = random.chance(0.5) ? '+' : '-';
    const unit = random.pick(['d', 'd', 'w'] as const);
    const amount = random.pick([1, 1, 2, 7, 50000]);
    const seconds = (sign === '-' ? -1 : 1) * amount * UNITS[unit];
    return { kind: 'now', isDay: true, seconds, offset: { sign, amount, unit }, span: SPAN };
  }

  /** Now and then one that the policy has already: two bounds meet where their values are one. */
  #literal(type: Type): List['items'][number] {
    const kind = type === 'int' || type === 'float' ? 'number' : type;
    const known = this.#literals.get(kind);
    if (known && this.#random.chance(0.3)) return this.#random.pick(known);
    const made = this.#newLiteral(type);
    this.#literals.set(kind, [...(known ?? []), made]);
    return made;
  }

  #keyOf(type: Type): KeyKind {
    return this.#setting.catalog.collections.get(type.slice(3))!.key?.kind ?? 'uuid';
  }

  #isNumber(type: Type): boolean {
    return type.startsWith('id:') && this.#keyOf(type) === 'int';
  }

  #newLiteral(type: Type): List['items'][number] {
    const random = this.#random;
    if (type.startsWith('id:')) {
      const id = random.pick(this.#ids.get(type.slice(3))!);
      if (this.#isNumber(type))
        return { kind: 'number', source: random.chance(0.3) ? this.#numeral() : `${id}`, span: SPAN };
      return textOf(random.chance(0.3) && this.#keyOf(type) === 'uuid' ? id.toUpperCase() : id);
    }
    switch (type as Exclude<ScalarType, WholeType>) {
      case 'string':
        return textOf(random.pick(TEXTS));
      case 'bool':
        return { kind: 'bool', value: random.chance(0.5), span: SPAN };
      case 'datetime':
        return textOf(random.pick(DATETIME_SPELLINGS));
      case 'date':
        return textOf(random.pick(DATES));
      case 'time':
        return textOf(random.pick(TIME_SPELLINGS));
      case 'uuid':
        return textOf(random.pick(UUID_SPELLINGS));
      case 'bytes':
        return textOf(random.pick(BYTES));
      case 'decimal':
        return { kind: 'number', source: random.pick(DECIMAL_NUMERALS), span: SPAN };
      case 'bigint':
        return { kind: 'number', source: random.pick(BIGINT_NUMERALS), span: SPAN };
      case 'int':
      case 'float':
        return { kind: 'number', source: this.#numeral(), span: SPAN };
    }
  }

  #numeral(): string {
    const random = this.#random;
    const roll = random.next();
    if (roll < 0.4) return random.pick(NUMERALS);
    if (roll < 0.6) return String(random.pick(INTS));
    if (roll < 0.8) return String(random.pick(FLOATS)).replace('e+', 'e');
    return random.pick(roll < 0.9 ? FAR_NUMERALS : NEAR_NUMERALS);
  }

  #listOf(type: Type): List {
    const length = this.#random.pick([0, 1, 2, 3, 4]);
    return { kind: 'list', items: Array.from({ length }, () => this.#literal(type)), span: SPAN };
  }

  // -------------------------------------------------------------- what a collection's paths reach

  #reachesOf(collection: string): Reaches {
    const known = this.#reaches.get(collection);
    if (known) return known;
    const values = new Map<Type, Reach[]>();
    const toMany: ToMany[] = [];
    const toOne: (readonly string[])[] = [];
    const add = (type: Type, reach: Reach) => values.set(type, [...(values.get(type) ?? []), reach]);
    const visit = (at: string, names: readonly string[], absent: boolean) => {
      const { fields, relations } = this.#setting.catalog.collections.get(at)!;
      add(`id:${at}`, { names: [...names, 'id'], nullable: absent });
      for (const { name, type, required, search, paths = new Map() } of fields.values()) {
        for (const [path, part] of paths) {
          const reach = { names: [...names, name, ...path.split('.')], nullable: true };
          if (reach.names.length <= MOST_NAMES) add(part.type, reach);
        }
        const reach = { names: [...names, name], nullable: absent || !required };
        add(type, reach);
        if (search) add('search', reach);
      }
      for (const relation of relations.values()) {
        const step = [...names, relation.name];
        if (relation.kind === 'has_many' || relation.kind === 'many_to_many')
          toMany.push({ names: step, collection: relation.collection });
        else {
          const nullable = absent || relation.kind === 'has_one' || !relation.required;
          const type = `id:${relation.collection}` as const;
          toOne.push(step);
          add(type, { names: step, nullable });
          if (relation.kind === 'belongs_to') add(type, { names: [...names, `${relation.name}_id`], nullable });
          const goesOn = step.length < NEAR || (step.length < MOST_NAMES && this.#random.chance(0.2));
          if (goesOn) visit(relation.collection, step, nullable);
        }
      }
    };
    visit(collection, [], false);
    const made = { values, toMany, toOne };
    this.#reaches.set(collection, made);
    return made;
  }
}

/** The same test of another column. */
function withPath(test: Expr, path: Path): Expr {
  if (test.kind === 'is null') return { ...test, operand: path };
  return test.kind === 'compare' ? { ...test, left: path } : test;
}

const chainedIn = ({ collections }: Catalog): readonly Chained[] =>
  [...collections].flatMap(([collection, { relations }]) =>
    [...relations.values()]
      .filter((relation) => relation.kind === 'belongs_to' && relation.collection === collection)
      .map((relation) => ({ collection, relation: relation.name })),
  );

const isQuery = (operand: Operand): boolean => operand.kind === 'path' && operand.root === 'query';
const textOf = (value: string): TextLiteral => ({ kind: 'text', value, span: SPAN });

function namesOf({ fields, relations }: CatalogCollection, type: Type): string[] {
  if (!type.startsWith('id:'))
    return [
      ...fields
        .values()
        .filter((field) => field.type === type)
        .map((field) => field.name),
    ];
  const found = relations
    .values()
    .filter((relation) => relation.kind === 'belongs_to' && `id:${relation.collection}` === type);
  return [...found.map((relation) => relation.name)];
}
