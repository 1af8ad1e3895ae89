/**
 * The meaning of a tree of names, by the definition of the language: every path followed in the catalog,
 * every literal and request value read as the type of its other side. It shares no code with the parser and
 * the checker, so that a difference between the two is an error of one of them.
 */
import type {
  AncestorsCall,
  Call,
  Compare,
  CompareOp,
  CountCall,
  Expr,
  IsNullTest,
  List,
  Operand,
  Path,
  Quantified,
} from '../../grammar/syntax.ts';
import type {
  Action,
  Catalog,
  CatalogCollection,
  CatalogRelation,
  Checked,
  CheckedOperand,
  ColumnOperand,
  CountOperand,
  LiteralOperand,
  Member,
  RequestOperand,
  RowScope,
  ToManyPath,
  ToOneStep,
  ValueType,
} from '../../src/policy/types.ts';
import { EXACT_TYPES, fromText, isSameNumber, WRITTEN_AS_TEXT } from './interpret.ts';

export interface Standpoint {
  readonly catalog: Catalog;
  readonly collection: string;
  readonly action: Action;
}
/** The tree means nothing: a type does not fit its other side. */
export class Misfit extends Error {}

export function meaningOf(expr: Expr, standpoint: Standpoint): Checked {
  return new Reader(standpoint).expr(expr, new Map());
}

interface Element {
  readonly unique: string;
  readonly collection: string;
  /** Given for the elements of a list field. */
  readonly type: ValueType | undefined;
}
type Elements = ReadonlyMap<string, Element>;
/** The target of a path; a query parameter has no type of its own. */
type Named =
  | { readonly kind: 'value'; readonly operand: ColumnOperand | RequestOperand }
  | { readonly kind: 'query'; readonly name: string }
  | { readonly kind: 'to many'; readonly path: ToManyPath };

const SPAN = { start: 0, end: 0 };
/** The types of an operator's sides: one type, two strings, or an element and a list. */
const SIDES: Readonly<Record<CompareOp, 'same' | 'text' | 'list' | 'list or text' | 'point'>> = {
  '=': 'same',
  '!=': 'same',
  '<': 'same',
  '<=': 'same',
  '>': 'same',
  '>=': 'same',
  in: 'list',
  'not in': 'list',
  contains: 'list or text',
  'starts with': 'text',
  'ends with': 'text',
  matches: 'text',
  within: 'point',
};
const CALLER: Readonly<Record<string, readonly [ValueType, boolean]>> = {
  id: [{ id: 'users' }, false],
  email: ['string', false],
  email_verified: ['bool', false],
  roles: ['string', true],
  second_factor: ['bool', false],
  signed_in_at: ['datetime', false],
  guest: ['string', false],
  former_guest: ['string', false],
};
const CALLER_ID: RequestOperand = requestOf('auth', 'id', { id: 'users' });

function requestOf(source: RequestOperand['source'], name: string, type: ValueType): RequestOperand {
  return { kind: 'request', source, name, type, list: false, nullable: true, span: SPAN };
}

const isAddress = (operand: Operand): boolean =>
  operand.kind === 'path' && operand.root === 'request' && operand.steps[0]!.name === 'ip';

class Reader {
  readonly #at: Standpoint;
  readonly #taken = new Set<string>();

  constructor(at: Standpoint) {
    this.#at = at;
  }

  expr(expr: Expr, elements: Elements): Checked {
    switch (expr.kind) {
      case 'and':
      case 'or':
        return { kind: expr.kind, items: expr.items.map((item) => this.expr(item, elements)), span: SPAN };
      case 'not':
        return { kind: 'not', item: this.expr(expr.item, elements), span: SPAN };
      case 'compare':
        return this.#compare(expr, elements);
      case 'is null':
        return this.#isNull(expr, elements);
      case 'quantified':
        return this.#quantified(expr, elements);
      case 'call':
        return this.#changed(expr);
      case 'truth': {
        const { operand } = expr;
        if (operand.kind === 'bool') return { kind: 'const', value: operand.value, span: SPAN };
        const right = literalOf(true, 'bool');
        return { kind: 'compare', op: '=', left: this.#read(operand, 'bool', elements), right, span: SPAN };
      }
    }
  }

  #isNull({ operand, negated }: IsNullTest, elements: Elements): Checked {
    return { kind: 'is null', negated, operand: this.#read(operand, 'string', elements), span: SPAN };
  }

  // -------------------------------------------------------------- to-many relations

  #quantified({ quantifier, path, variable, condition }: Quantified, elements: Elements): Checked {
    const range = this.#toMany(path, elements);
    const [unique, inner] = this.#bind(variable.name, range, elements);
    return {
      kind: 'quantified',
      quantifier,
      path: range,
      variable: unique,
      condition: this.expr(condition, inner),
      span: SPAN,
    };
  }

  #counted({ path, variable, condition }: CountCall, elements: Elements): CountOperand {
    const range = this.#toMany(path, elements);
    const [unique, inner] = this.#bind(variable?.name ?? 'element', range, elements);
    const isCut = range.relation.kind === 'ancestors';
    const isOptionalList = range.relation.kind === 'elements' && !range.relation.field.required;
    const nullable =
      isCut ||
      isOptionalList ||
      range.scope.kind === 'request' ||
      range.steps.some(({ relation }) => isOptional(relation));
    const each: Checked = condition ? this.expr(condition, inner) : { kind: 'const', value: true, span: SPAN };
    return { kind: 'count', path: range, variable: unique, condition: each, type: 'int', nullable, span: SPAN };
  }

  #contained(path: ToManyPath, right: Operand, elements: Elements): Checked {
    const { collection } = path.relation;
    const [unique] = this.#bind('element', path, elements);
    const scope: RowScope = { kind: 'variable', name: unique };
    const type = this.#idOf(collection);
    const left: ColumnOperand = {
      kind: 'column',
      scope,
      collection,
      steps: [],
      column: { kind: 'id' },
      type,
      nullable: false,
      span: SPAN,
    };
    const condition: Checked = { kind: 'compare', op: '=', left, right: this.#read(right, type, elements), span: SPAN };
    return { kind: 'quantified', quantifier: 'any', path, variable: unique, condition, span: SPAN };
  }

  /** Elements of one name beside each other are different ones. */
  #bind(name: string, { relation }: ToManyPath, elements: Elements): readonly [string, Elements] {
    const { collection } = relation;
    const type = relation.kind === 'elements' ? elementOf(relation.field.type) : undefined;
    let unique = name;
    for (let i = 0; this.#taken.has(unique); i++) unique = `${name} ${i}`;
    this.#taken.add(unique);
    return [unique, new Map(elements).set(name, { unique, collection, type })];
  }

  #toMany(path: Path | AncestorsCall, elements: Elements): ToManyPath {
    if (path.kind === 'ancestors') return this.#above(path, elements);
    const named = this.#named(path, elements);
    if (named.kind === 'to many') return named.path;
    const operand = named.kind === 'value' ? named.operand : undefined;
    if (operand?.kind !== 'column' || operand.column.kind !== 'field' || elementOf(operand.type) === undefined)
      throw new Misfit('elements of what is one');
    const { scope, collection, steps, column } = operand;
    const relation = { kind: 'elements', name: column.field.name, collection: '', field: column.field } as const;
    return { scope, collection, steps, from: endOf(operand), relation, span: SPAN };
  }

  #above({ path, by }: AncestorsCall, elements: Elements): ToManyPath {
    const named = this.#named(path, elements);
    const operand = named.kind === 'value' ? named.operand : undefined;
    if (operand === undefined || typeof operand.type !== 'object')
      throw new Misfit('ancestors of a value that is not a record');
    const { id: collection } = operand.type;
    const { relations } = this.#collection(collection);
    const via = relations.get(by.name) ?? ownerOf(relations, by.name);
    if (via?.kind !== 'belongs_to' || via.collection !== collection) throw new Misfit(`no ${by.name} of its own kind`);
    const relation = { kind: 'ancestors', name: via.name, collection, via } as const;
    const start = { steps: [], from: collection, relation, span: SPAN } as const;
    if (operand.kind === 'request') return { ...start, scope: { kind: 'request', operand }, collection };
    const { column, steps } = operand;
    // The belongs_to at the end of a path is one more step to the record itself.
    const last = column.kind === 'belongs_to' ? [{ from: endOf(operand), relation: column.relation }] : [];
    return { ...start, scope: operand.scope, collection: operand.collection, steps: [...steps, ...last] };
  }

  // -------------------------------------------------------------- comparisons

  #compare({ op, left, right }: Compare, elements: Elements): Checked {
    const held = op === 'contains' ? this.#asToMany(left, elements) : undefined;
    if (held) return this.#contained(held, right, elements);
    const between = (a: CheckedOperand, b: CheckedOperand): Checked => ({
      kind: 'compare',
      op,
      left: a,
      right: b,
      span: SPAN,
    });
    const [address, networks] = isAddress(left) ? [left, right] : [right, left];
    if (isAddress(address)) return this.#ofAddress(op, networks);
    const sides = SIDES[op];
    if (sides === 'point') {
      if (this.#declared(left, elements) !== 'point') throw new Misfit(`${op} of another type`);
      return between(this.#read(left, 'point', elements), this.#read(right, 'string', elements));
    }
    if (sides === 'list') {
      const [element, list] = this.#elementAndList(left, right, elements);
      return between(element, list);
    }
    if (sides === 'list or text' && this.#isList(left, elements)) {
      const [element, list] = this.#elementAndList(right, left, elements);
      return between(list, element);
    }
    const listed = op === 'contains' ? this.#elementType(left, elements) : undefined;
    if (listed !== undefined) {
      const element = this.#read(right, listed, elements);
      const isLiteral = listed === 'float' && element.kind === 'literal';
      return between(this.#read(left, 'string', elements), isLiteral ? nearestDouble(element) : element);
    }
    const type = sides !== 'same' ? 'string' : this.#pivot(left, right, elements);
    const meetsFloat = [left, right].some((side) => this.#declared(side, elements) === 'float');
    const read = (side: Operand): CheckedOperand => {
      const operand = this.#read(side, type, elements);
      return meetsFloat && operand.kind === 'literal' ? nearestDouble(operand) : operand;
    };
    const [a, b] = [read(left), read(right)];
    if (!isComparable(a.type, b.type) && !isNumeralBesideId(a, b) && !isNumeralBesideId(b, a))
      throw new Misfit(`${op} between different types`);
    return between(a, b);
  }

  #asToMany(operand: Operand, elements: Elements): ToManyPath | undefined {
    const named = operand.kind === 'path' ? this.#named(operand, elements) : undefined;
    return named?.kind === 'to many' ? named.path : undefined;
  }

  /** The type of the elements, if the operand is a list field. */
  #elementType(operand: Operand, elements: Elements): ValueType | undefined {
    const named = operand.kind === 'path' ? this.#named(operand, elements) : undefined;
    return named?.kind === 'value' && named.operand.kind === 'column' ? elementOf(named.operand.type) : undefined;
  }

  #isList(operand: Operand, elements: Elements): boolean {
    if (operand.kind !== 'path') return operand.kind === 'list';
    const named = this.#named(operand, elements);
    return named.kind === 'query' || (named.kind === 'value' && named.operand.kind === 'request' && named.operand.list);
  }

  /** If both sides have a type, each keeps its own. */
  #pivot(left: Operand, right: Operand, elements: Elements): ValueType {
    const declared = [left, right].map((side) => this.#declared(side, elements)).find((type) => type !== undefined);
    return declared ?? ownType(left) ?? ownType(right) ?? 'string';
  }

  /** The type of what is neither a literal nor a query parameter. */
  #declared(operand: Operand, elements: Elements): ValueType | undefined {
    if (operand.kind === 'now') return operand.isDay ? 'date' : 'datetime';
    if (operand.kind === 'count') return 'int';
    if (operand.kind !== 'path') return undefined;
    const named = this.#named(operand, elements);
    return named.kind === 'value' ? named.operand.type : undefined;
  }

  #elementAndList(one: Operand, many: Operand, elements: Elements): readonly [CheckedOperand, CheckedOperand] {
    const declared = this.#declared(one, elements);
    const type = declared ?? ownType(one);
    if (many.kind === 'list') {
      const list = listOf(many, type, declared === 'float');
      return [this.#read(one, type ?? list.type, elements), list];
    }
    if (many.kind !== 'path') throw new Misfit('in a value that is not a list');
    const named = this.#named(many, elements);
    if (named.kind === 'query') {
      const read = type ?? 'string';
      return [this.#read(one, read, elements), { ...requestOf('query', named.name, read), list: true }];
    }
    if (named.kind !== 'value') throw new Misfit('in a relation');
    return [this.#read(one, named.operand.type, elements), named.operand];
  }

  /** `type`: the type of the other side. An operand with a type keeps it. */
  #read(operand: Operand, type: ValueType, elements: Elements): CheckedOperand {
    switch (operand.kind) {
      case 'path': {
        const named = this.#named(operand, elements);
        if (named.kind === 'to many') throw new Misfit('many where one is meant');
        return named.kind === 'query' ? requestOf('query', named.name, type) : named.operand;
      }
      case 'now':
        return operand.isDay
          ? {
              kind: 'now',
              seconds: operand.seconds,
              type: 'date',
              zone: this.#at.catalog.timezone ?? 'UTC',
              span: SPAN,
            }
          : { kind: 'now', seconds: operand.seconds, type: 'datetime', span: SPAN };
      case 'count':
        return this.#counted(operand, elements);
      case 'ancestors':
        throw new Misfit('many where one is meant');
      case 'list':
        throw new Misfit('a list where a value is meant');
      case 'param':
        throw new Misfit('a parameter in a policy');
      default:
        return literal(operand, type);
    }
  }

  // -------------------------------------------------------------- paths

  #named(path: Path, elements: Elements): Named {
    const [first] = path.steps;
    switch (path.root) {
      case 'query':
        return { kind: 'query', name: first!.name };
      case 'auth':
        return this.#ofCaller(first!.name);
      case 'data':
        return { kind: 'value', operand: this.#requested('data', this.#collection(this.#at.collection), first!.name) };
      case 'request':
      case 'now':
        return { kind: 'value', operand: this.#fact(path) };
      case 'variable': {
        const element = elements.get(path.variable!.name);
        if (element === undefined) throw new Misfit('a name that nothing binds');
        if (element.type !== undefined) return valueOfElement(element.unique, element.type);
        return this.#walk(path, { kind: 'variable', name: element.unique }, element.collection);
      }
      case 'record':
      case 'next':
        // The result of a create is the record.
        return this.#walk(path, { kind: this.#at.action === 'create' ? 'record' : path.root }, this.#at.collection);
    }
  }

  #fact({ root, steps: [first] }: Path): RequestOperand {
    const name = `${root}.${first!.name}`;
    if (root === 'request') return requestOf('fact', name, 'string');
    return { ...requestOf('fact', name, 'int'), detail: this.#at.catalog.timezone ?? 'UTC' };
  }

  /** A test of the address is one truth of the request. */
  #ofAddress(op: CompareOp, networks: Operand): Checked {
    const texts = (networks.kind === 'list' ? networks.items : [networks]).map((item) => {
      if (item.kind !== 'text') throw new Misfit('an address beside what is no network');
      return item.value;
    });
    const isInside = op === '=' || op === 'in';
    if (texts.length === 0) return { kind: 'const', value: !isInside, span: SPAN };
    const left = { ...requestOf('fact', 'request.ip', 'bool'), detail: texts.join(' ') };
    const right = literal({ kind: 'bool', value: true, span: SPAN }, 'bool');
    const test: Checked = { kind: 'compare', op: '=', left, right, span: SPAN };
    return isInside ? test : { kind: 'not', item: test, span: SPAN };
  }

  #ofCaller(name: string): Named {
    const own = Object.hasOwn(CALLER, name) ? CALLER[name] : undefined;
    if (own) return { kind: 'value', operand: { ...requestOf('auth', name, own[0]), list: own[1] } };
    const users = this.#collection('users');
    const relation = users.relations.get(name);
    if (relation?.kind !== 'has_many' && relation?.kind !== 'many_to_many')
      return { kind: 'value', operand: this.#requested('auth', users, name) };
    const scope: RowScope = { kind: 'request', operand: CALLER_ID };
    return { kind: 'to many', path: { scope, collection: 'users', steps: [], from: 'users', relation, span: SPAN } };
  }

  #walk({ steps: names }: Path, scope: RowScope, collection: string): Named {
    const steps: ToOneStep[] = [];
    let at = collection;
    let isAbsent = false;
    const end = (column: ColumnOperand['column'], type: ValueType, nullable: boolean): Named => {
      const operand = {
        kind: 'column',
        scope,
        collection,
        steps,
        column,
        type,
        nullable: nullable || isAbsent,
        span: SPAN,
      } as const;
      return { kind: 'value', operand };
    };
    for (const [i, { name }] of names.entries()) {
      const { fields, relations } = this.#collection(at);
      const field = fields.get(name);
      if (name === 'id') return end({ kind: 'id' }, this.#idOf(at), false);
      const part = field?.paths?.get(
        names
          .slice(i + 1)
          .map((each) => each.name)
          .join('.'),
      );
      if (part) return end({ kind: 'field', field: part }, part.type, true);
      if (field) return end({ kind: 'field', field }, field.type, !field.required);
      const relation = relations.get(name) ?? ownerOf(relations, name);
      if (relation === undefined) throw new Misfit(`no ${name} in ${at}`);
      if (relation.kind === 'has_many' || relation.kind === 'many_to_many')
        return { kind: 'to many', path: { scope, collection, steps, from: at, relation, span: SPAN } };
      if (relation.kind === 'belongs_to' && i === names.length - 1)
        return end({ kind: 'belongs_to', relation }, this.#idOf(relation.collection), !relation.required);
      steps.push({ from: at, relation });
      isAbsent ||= isOptional(relation);
      at = relation.collection;
    }
    return end({ kind: 'id' }, this.#idOf(at), false);
  }

  #requested(source: 'auth' | 'data', { fields, relations }: CatalogCollection, name: string): RequestOperand {
    const field = fields.get(name);
    const element = field && elementOf(field.type);
    if (field && element !== undefined) return { ...requestOf(source, name, element), list: true };
    if (field) return requestOf(source, name, field.type);
    const relation = relations.get(name) ?? ownerOf(relations, name);
    if (relation === undefined) throw new Misfit(`no ${name}`);
    return requestOf(source, relation.name, this.#idOf(relation.collection));
  }

  #idOf(name: string): ValueType {
    const kind = this.#collection(name).key?.kind ?? 'uuid';
    return kind === 'uuid' ? { id: name } : { id: name, key: kind };
  }

  #collection(name: string): CatalogCollection {
    return this.#at.catalog.collections.get(name)!;
  }

  // -------------------------------------------------------------- what an update changes

  #changed({ name: { name: word }, args }: Call): Checked {
    const { name: collection, fields, relations } = this.#collection(this.#at.collection);
    const named = new Set(
      args.map((arg) => (arg as Path).steps[0]!.name).map((name) => ownerOf(relations, name)?.name ?? name),
    );
    const members: Member[] = [
      ...[...fields.values()].map((field) => ({ kind: 'field', field }) as const),
      ...[...relations.values()].flatMap((relation) =>
        relation.kind === 'has_many' ? [] : [{ kind: 'relation', relation } as const],
      ),
    ];
    const unchanged = word === 'changed_only';
    const isMeant = (member: Member): boolean => {
      const own = member.kind === 'field' ? member.field.name : member.relation.name;
      return own !== 'created_at' && own !== 'updated_at' && named.has(own) !== unchanged;
    };
    return { kind: 'changed', unchanged, collection, members: members.filter(isMeant), span: SPAN };
  }
}

function valueOfElement(unique: string, type: ValueType): Named {
  const scope = { kind: 'variable', name: unique } as const;
  const column = { kind: 'element' } as const;
  const operand = {
    kind: 'column',
    scope,
    collection: '',
    steps: [],
    column,
    type,
    nullable: false,
    span: SPAN,
  } as const;
  return { kind: 'value', operand };
}

/** `string[]` → `string` */
const elementOf = (type: ValueType): ValueType | undefined =>
  typeof type === 'string' && type.endsWith('[]') ? (type.slice(0, -2) as ValueType) : undefined;

// ---------------------------------------------------------------- the catalog

/** `owner_id` is `owner`. */
function ownerOf(relations: ReadonlyMap<string, CatalogRelation>, name: string): CatalogRelation | undefined {
  return [...relations.values()].find((relation) => relation.kind === 'belongs_to' && `${relation.name}_id` === name);
}

const endOf = ({ steps, collection }: ColumnOperand): string => steps.at(-1)?.relation.collection ?? collection;

const isOptional = (relation: CatalogRelation): boolean =>
  relation.kind === 'has_one' || (relation.kind === 'belongs_to' && !relation.required);

// ---------------------------------------------------------------- literals

const isNumber = (type: ValueType): boolean => type === 'int' || type === 'float';

function isComparable(a: ValueType, b: ValueType): boolean {
  if (typeof a === 'object' && typeof b === 'object') return a.id === b.id;
  const [id, other] = typeof a === 'object' ? [a, b] : [b, a];
  if (typeof id === 'object') return other === (id.key === 'int' ? 'int' : 'string');
  return a === b || (isNumber(a) && isNumber(b));
}

/** A number of the text is compared by its value, as with an int field. */
const isNumeralBesideId = (a: CheckedOperand, b: CheckedOperand): boolean =>
  a.kind === 'literal' && isNumber(a.type) && typeof b.type === 'object' && b.type.key === 'int';

function ownType(operand: Operand): ValueType | undefined {
  switch (operand.kind) {
    case 'text':
      return 'string';
    case 'bool':
      return 'bool';
    case 'number':
      return isWhole(operand.source) ? 'int' : 'float';
    default:
      return undefined;
  }
}

/** A whole number that a double holds with its neighbours. */
const isWhole = (source: string): boolean =>
  Number.isSafeInteger(Number(source)) && isSameNumber(Number(source), source);

/** A fraction is the double that is nearest; a whole number, or one that no double comes near, keeps its digits. */
function isRounded(source: string): boolean {
  const value = Number(source);
  return !Number.isFinite(value) || (Number.isInteger(value) && !isSameNumber(value, source));
}

function literalOf(value: LiteralOperand['value'], type: ValueType): LiteralOperand {
  return { kind: 'literal', value, type, list: false, span: SPAN };
}

type Item = List['items'][number];

function literal(item: Item, type: ValueType): LiteralOperand {
  switch (item.kind) {
    case 'number': {
      if (EXACT_TYPES.includes(type)) return { ...literalOf(0, type), exact: item.source };
      const isOfKey = typeof type === 'object' && type.key === 'int';
      if (!isNumber(type) && !isOfKey) throw new Misfit('a number against another type');
      const made = literalOf(Number(item.source) + 0, type === 'float' ? 'float' : ownType(item)!);
      return isRounded(item.source) ? { ...made, exact: item.source } : made;
    }
    case 'bool':
      if (type !== 'bool') throw new Misfit('a bool against another type');
      return literalOf(item.value, 'bool');
    case 'text': {
      if (typeof type === 'object' ? type.key === 'int' : !WRITTEN_AS_TEXT.includes(type))
        throw new Misfit('a text against another type');
      const value = fromText(item.value, type);
      if (value === undefined) throw new Misfit(`${JSON.stringify(item.value)} is not of its type`);
      return literalOf(value as string, type);
    }
    case 'null':
      throw new Misfit('null is compared with');
  }
}

/** Against a stored or given float, a number is the nearest double, unless it is beyond all of them. */
function nearestDouble(operand: LiteralOperand): LiteralOperand {
  const { exact, ...nearest } = operand;
  return exact !== undefined && Number.isFinite(operand.value) ? nearest : operand;
}

/** Without a type on the other side, the first element says what the list is of; ints beside fractions are floats. */
function listOf({ items }: List, against: ValueType | undefined, meetsFloat: boolean): LiteralOperand {
  const [first] = items;
  const type = against ?? (first && ownType(first)) ?? 'string';
  const read = items.map((item) => {
    const element = literal(item, isNumber(type) ? 'float' : type);
    return meetsFloat ? nearestDouble(element) : element;
  });
  const isExact = read.map(({ exact }) => exact !== undefined);
  const held = items.filter((_, i) => !isExact[i]);
  const isInts = (held.length > 0 ? held : items).every((item) => item.kind === 'number' && isWhole(item.source));
  return {
    ...literalOf(
      read.map(({ value }) => value as string | number | boolean),
      type === 'int' && !isInts ? 'float' : type,
    ),
    ...(isExact.includes(true) && { exact: read.map(({ exact }) => (exact as string | undefined) ?? '') }),
    list: true,
  };
}
