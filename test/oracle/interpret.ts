/**
 * The reference: the meaning of a checked policy, by the definition of the language. It shares no code with the compiler, reads request values
 * by itself, and knows no cleverness, so that a difference between the two is an error of one of them. Tests use it; the service does not.
 */
import { BlockList, isIP } from 'node:net';
import type { CompareOp } from '../../grammar/syntax.ts';
import type {
  AncestorRelation,
  Checked,
  CheckedCompare,
  CheckedOperand,
  CheckedQuantified,
  ColumnOperand,
  CountOperand,
  LiteralOperand,
  Member,
  PolicyRequest,
  Related,
  RequestOperand,
  Row,
  RowScope,
  ToManyPath,
  ToOneStep,
  ValueType,
} from '../../src/policy/types.ts';

/** `undefined` is "unknown". */
export type Truth = true | false | undefined;

export interface World {
  readonly record: Row;
  /** `record` is the one that the write makes: on create, and in the "after" half of an update. It then names its partners and members itself. */
  readonly isWritten?: boolean;
  /** The record that the write makes, for a rule that sees both. On create it is `record`. */
  readonly next?: Row;
  /** The database before the write. */
  readonly related: Related;
  readonly request: PolicyRequest;
}

/** A number that was written and that no double holds keeps its decimal digits. */
type Written = { readonly decimal: string };
type Value = string | number | boolean | Written;
/** `undefined` is "absent". */
type Maybe = Value | undefined;
interface Place {
  readonly row: Row;
  /** Only what is reached directly from the written record is new; a step further on, all is as stored. */
  readonly isWritten: boolean;
}
interface Bound extends World {
  readonly variables: ReadonlyMap<string, Place>;
}

export function interpret(policy: Checked, world: World): Truth {
  return truthOf(policy, { ...world, variables: new Map() });
}

function truthOf(policy: Checked, world: Bound): Truth {
  switch (policy.kind) {
    case 'const':
      return policy.value;
    case 'not':
      return not(truthOf(policy.item, world));
    case 'and':
      return all(policy.items, (item) => truthOf(item, world));
    case 'or':
      return any(policy.items, (item) => truthOf(item, world));
    case 'is null':
      return isAbsent(policy.operand, world) !== policy.negated;
    case 'compare':
      return compare(policy, world);
    case 'quantified':
      return quantified(policy, world);
    case 'changed':
      return policy.members.some((member) => differs(member, policy.collection, world)) !== policy.unchanged;
  }
}

/** A list of nothing but absent elements says nothing. */
function isAbsent(operand: CheckedOperand, world: Bound): boolean {
  if (!isList(operand)) return scalar(operand, world) === undefined;
  const elements = list(operand, world);
  return elements === undefined || (elements.length > 0 && elements.every((element) => element === undefined));
}

/** Null to null is not a change; partners and members are sets of ids. */
function differs(member: Member, collection: string, { record, next = record, related }: World): boolean {
  const { name, kind } = member.kind === 'field' ? { name: member.field.name, kind: 'field' } : member.relation;
  const after = own(next, name);
  if (kind === 'field' || kind === 'belongs_to') return own(record, name) !== after;
  const stored = new Set(related.many(collection, name, String(record.id)).map(({ id }) => id));
  const written = new Set(after === undefined ? [] : Array.isArray(after) ? after : [after]);
  return stored.symmetricDifference(written).size > 0;
}

// ---------------------------------------------------------------- Kleene's logic

const not = (truth: Truth): Truth => (truth === undefined ? undefined : !truth);

function any<T>(items: readonly T[], test: (item: T) => Truth): Truth {
  let result: Truth = false;
  for (const item of items) {
    const truth = test(item);
    if (truth === true) return true;
    if (truth === undefined) result = undefined;
  }
  return result;
}

const all = <T>(items: readonly T[], test: (item: T) => Truth): Truth => not(any(items, (item) => not(test(item))));

function quantified({ quantifier, path, variable, condition }: CheckedQuantified, world: Bound): Truth {
  const start = walk(placeOf(path.scope, world), path.steps, world);
  if (start === undefined) return undefined;
  const elements = elementsOf(start, path, world);
  if (elements === undefined) return undefined;
  const holds = (row: Element): Truth => {
    if (row === UNKNOWN) return undefined;
    const variables = new Map(world.variables).set(variable, { row, isWritten: false });
    return truthOf(condition, { ...world, variables });
  };
  switch (quantifier) {
    case 'any':
      return any(elements, holds);
    case 'all':
      return all(elements, holds);
    case 'none':
      return not(any(elements, holds));
  }
}

function elementsOf({ row, isWritten }: Place, path: ToManyOf, { related }: World): readonly Element[] | undefined {
  if (path.relation.kind === 'ancestors') return chainOf(row, path.relation, related);
  if (path.relation.kind === 'elements') {
    const values = valuesIn(own(row, path.relation.field.name), path.relation.field.type);
    return values?.map((value) => ({ value }));
  }
  if (!isWritten || path.relation.kind === 'has_many')
    return related.many(path.from, path.relation.name, String(row.id));
  const members = (own(row, path.relation.name) ?? []) as readonly string[];
  return members.map((id) => related.one(path.relation.collection, id)).filter((member) => member !== undefined);
}

/** An element of which nothing is known but that it is there. */
const UNKNOWN = Symbol('unknown');
type Element = Row | typeof UNKNOWN;

interface ToManyOf {
  readonly from: string;
  readonly relation: ToManyPath['relation'];
}

/** The elements of a list, which a record has as the text of an array: strings in quotation marks, after a backslash any character. */
function valuesIn(array: unknown, type: ValueType): readonly Value[] | undefined {
  if (typeof array !== 'string') return undefined;
  const texts: string[] = [];
  let text: string | undefined;
  let isQuoted = false;
  const characters = array.slice(1, -1)[Symbol.iterator]();
  for (const character of characters) {
    if (character === '"') {
      isQuoted = !isQuoted;
      text ??= '';
    } else if (character === '\\') text = `${text}${characters.next().value}`;
    else if (character === ',' && !isQuoted) {
      texts.push(text!);
      text = undefined;
    } else text = `${text ?? ''}${character}`;
  }
  if (text !== undefined) texts.push(text);
  if (type === 'bool[]') return texts.map((each) => each === 't');
  return type === 'int[]' || type === 'float[]' ? texts.map(Number) : texts;
}

/** The record and those above it, 32 of them at most. */
function chainOf(first: Row, { collection, via }: AncestorRelation, related: Related): readonly Element[] | undefined {
  const chain: Row[] = [];
  let next = related.one(collection, String(own(first, 'id')));
  while (next !== undefined && !chain.some(({ id }) => id === next!.id)) {
    if (chain.length === 32) return [...chain, UNKNOWN];
    chain.push(next);
    const above = own(next, via.name);
    next = above === undefined ? undefined : related.one(collection, String(above));
  }
  // An id that the request holds may belong to no record.
  return chain.length === 0 ? undefined : chain;
}

/** Unknown records do not count. */
function counted({ path, variable, condition }: CountOperand, world: Bound): number | undefined {
  const start = walk(placeOf(path.scope, world), path.steps, world);
  if (start === undefined) return undefined;
  const elements = elementsOf(start, path, world);
  if (elements === undefined) return undefined;
  let count = 0;
  for (const row of elements) {
    if (row === UNKNOWN) return undefined;
    const variables = new Map(world.variables).set(variable, { row, isWritten: false });
    if (truthOf(condition, { ...world, variables }) === true) count++;
  }
  return count;
}

// ---------------------------------------------------------------- comparisons

function compare({ op, left, right }: CheckedCompare, world: Bound): Truth {
  switch (op) {
    case 'in':
      return isElement(scalar(left, world), list(right, world));
    case 'not in':
      return not(isElement(scalar(left, world), list(right, world)));
    case 'contains':
      if (isList(left)) return isElement(scalar(right, world), list(left, world));
      if (isListField(left)) return isElement(scalar(right, world), valuesIn(scalar(left, world), left.type));
      return bothPresent(op, scalar(left, world), scalar(right, world));
    default:
      return bothPresent(op, scalar(left, world), scalar(right, world));
  }
}

const isList = (operand: CheckedOperand): boolean =>
  (operand.kind === 'literal' || operand.kind === 'request') && operand.list;

const isListField = ({ kind, type }: CheckedOperand): boolean =>
  kind === 'column' && typeof type === 'string' && type.endsWith('[]');

/** Kleene *or* over the elements: nothing is in an empty list, not even what is absent. */
function isElement(value: Maybe, elements: readonly Maybe[] | undefined): Truth {
  if (elements === undefined) return undefined;
  return any(elements, (element) => bothPresent('=', value, element));
}

function bothPresent(op: CompareOp, left: Maybe, right: Maybe): Truth {
  if (left === undefined || right === undefined) return undefined;
  switch (op) {
    case '=':
      return order(left, right) === 0;
    case '!=':
      return order(left, right) !== 0;
    case '<':
      return order(left, right) < 0;
    case '<=':
      return order(left, right) <= 0;
    case '>':
      return order(left, right) > 0;
    case '>=':
      return order(left, right) >= 0;
    case 'contains':
      return textOf(left).includes(textOf(right));
    case 'starts with':
      return textOf(left).startsWith(textOf(right));
    case 'ends with':
      return textOf(left).endsWith(textOf(right));
    case 'matches':
      // Folding leaves nothing of accents alone.
      if (right !== '' && folded(textOf(right)) === '') return undefined;
      return folded(textOf(left)).includes(folded(textOf(right)));
    case 'within':
      return isNear(textOf(left), textOf(right));
    case 'in':
    case 'not in':
      throw new TypeError(`${op} is about a list`);
  }
}

/** The angle between two vectors from the centre of the Earth. */
function isNear(point: string, circle: string): boolean {
  const [lng, lat] = point.slice(1, -1).split(',').map(Number) as [number, number];
  const [circleLat = '', circleLng = '', distance = ''] = circle.split(', ');
  const [a, b] = [vectorOf(lat, lng), vectorOf(Number(circleLat), Number(circleLng))];
  const cross = Math.hypot(a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]);
  const angle = Math.atan2(cross, a[0] * b[0] + a[1] * b[1] + a[2] * b[2]);
  return angle * 6371.0088 <= (distance.endsWith('km') ? 1 : 0.001) * Number.parseInt(distance, 10);
}

function vectorOf(lat: number, lng: number): readonly [number, number, number] {
  const [phi, lambda] = [lat, lng].map((degrees) => (degrees * Math.PI) / 180) as [number, number];
  return [Math.cos(phi) * Math.cos(lambda), Math.cos(phi) * Math.sin(lambda), Math.sin(phi)];
}

function textOf(value: Value): string {
  if (typeof value !== 'string') throw new TypeError(`${JSON.stringify(value)} is not a string`);
  return value;
}

/** Character by character: decomposed, without marks, in lower case; both small sigmas are one. */
export function folded(text: string): string {
  let result = '';
  for (const character of text.normalize('NFKD')) {
    if (/\p{M}/u.test(character)) continue;
    const lower = character.toLowerCase();
    result += lower === '\u03c2' ? '\u03c3' : lower;
  }
  return result;
}

/** Below, at or above zero. Texts by code point (datetimes and identifiers are texts of one form), numbers by value, false before true. */
function order(left: Value, right: Value): number {
  if (typeof left === 'string' && typeof right === 'string') return orderOfTexts(left, right);
  if (typeof left === 'boolean' && typeof right === 'boolean') return Number(left) - Number(right);
  if (isNumber(left) && isNumber(right)) return orderOfNumbers(left, right);
  throw new TypeError(`${JSON.stringify(left)} and ${JSON.stringify(right)} are of different types`);
}

const isNumber = (value: Value): value is number | Written => typeof value === 'number' || typeof value === 'object';

function orderOfTexts(left: string, right: string): number {
  // Strings differ in the first units of their first different code points.
  for (let i = 0; i < left.length && i < right.length; i++) {
    const [a, b] = [left.codePointAt(i)!, right.codePointAt(i)!];
    if (a !== b) return a - b;
  }
  return left.length - right.length;
}

function orderOfNumbers(left: number | Written, right: number | Written): number {
  if (typeof left === 'number' && typeof right === 'number') return left < right ? -1 : left > right ? 1 : 0;
  if (typeof left !== 'number' && typeof right !== 'number') return orderOfWritten(left, right);
  const a = fraction(left);
  const b = fraction(right);
  const difference = a.numerator * b.denominator - b.numerator * a.denominator;
  return difference < 0n ? -1 : difference > 0n ? 1 : 0;
}

/** Numerals of any length: the digits of `0.d…`, and the power of ten before them. */
function orderOfWritten(left: Written, right: Written): number {
  const [a, b] = [partsOfNumeral(left), partsOfNumeral(right)];
  if (a.sign !== b.sign || a.sign === 0) return a.sign - b.sign;
  if (a.magnitude !== b.magnitude) return a.sign * (a.magnitude - b.magnitude);
  const length = Math.max(a.digits.length, b.digits.length);
  return a.sign * orderOfTexts(a.digits.padEnd(length, '0'), b.digits.padEnd(length, '0'));
}

function partsOfNumeral({ decimal }: Written) {
  const [mantissa = '', exponent = '0'] = decimal.toLowerCase().split('e');
  const [whole = '', decimals = ''] = mantissa.replace('-', '').split('.');
  const digits = (whole + decimals).replace(/^0+/, '');
  const sign = digits === '' ? 0 : mantissa.startsWith('-') ? -1 : 1;
  return { sign, digits, magnitude: digits.length - decimals.length + Number(exponent) };
}

/** True if a double equals the written numeral exactly. */
export const isSameNumber = (value: number, decimal: string): boolean => orderOfNumbers(value, { decimal }) === 0;

/** The exact value as a fraction. */
function fraction(value: number | Written): { readonly numerator: bigint; readonly denominator: bigint } {
  if (typeof value === 'number') {
    let denominator = 1n;
    let whole = value;
    // Doubling a double is exact until it overflows, and what has a fraction is far from that.
    for (; !Number.isInteger(whole); whole *= 2) denominator *= 2n;
    return { numerator: BigInt(whole), denominator };
  }
  const [mantissa = '', exponent = '0'] = value.decimal.toLowerCase().split('e');
  const [whole = '', decimals = ''] = mantissa.split('.');
  const digits = BigInt(whole.replace('-', '') + decimals) * (whole.startsWith('-') ? -1n : 1n);
  const power = Number(exponent) - decimals.length;
  if (digits === 0n) return { numerator: 0n, denominator: 1n };
  // All doubles lie between 10^-400 and 10^400, so no literal need be carried further out than that.
  const magnitude = digits.toString().length + power;
  const sign = digits < 0n ? -1n : 1n;
  if (magnitude > 400) return { numerator: sign * 10n ** 400n, denominator: 1n };
  if (magnitude < -400) return { numerator: sign, denominator: 10n ** 400n };
  return power < 0
    ? { numerator: digits, denominator: 10n ** BigInt(-power) }
    : { numerator: digits * 10n ** BigInt(power), denominator: 1n };
}

// ---------------------------------------------------------------- operands

function scalar(operand: CheckedOperand, world: Bound): Maybe {
  switch (operand.kind) {
    case 'column':
      return columnValue(operand, world);
    case 'request':
      return requestValue(operand, world.request);
    case 'literal':
      return literalValues(operand)[0];
    case 'now':
      return operand.zone === undefined
        ? shifted(world.request.now, operand.seconds)
        : today(world.request.now, operand.zone, operand.seconds);
    case 'count':
      return counted(operand, world);
  }
}

/** `undefined`: the list itself is absent. An element that cannot be read is an absent element. */
function list(operand: CheckedOperand, world: Bound): readonly Maybe[] | undefined {
  if (operand.kind === 'literal') return literalValues(operand);
  if (operand.kind === 'request') return requestList(operand, world.request);
  throw new TypeError(`a ${operand.kind} is not a list`);
}

function literalValues({ value, exact, type }: LiteralOperand): readonly Value[] {
  const values: readonly (string | number | boolean)[] = typeof value === 'object' ? value : [value];
  const sources: readonly string[] = exact === undefined ? [] : typeof exact === 'string' ? [exact] : exact;
  return values.map((each, i) => (sources[i] ? { decimal: sources[i] } : written(each, type)!));
}

/** `undefined`: the id that the request holds is absent. */
function placeOf(scope: RowScope, world: Bound): Place | undefined {
  switch (scope.kind) {
    case 'record':
      return { row: world.record, isWritten: world.isWritten === true };
    case 'next':
      return { row: world.next ?? world.record, isWritten: true };
    case 'variable':
      return world.variables.get(scope.name)!;
    case 'request': {
      const { source, name } = scope.operand;
      const isOwn = source === 'auth' && name === 'id';
      // The id of a key is not a user's.
      if (isOwn && (world.request.kind === 'key' || world.request.kind === 'guest')) return undefined;
      const id = requestValue(scope.operand, world.request);
      if (id === undefined) return undefined;
      const { id: collection } = scope.operand.type as { readonly id: string };
      return { row: world.related.one(collection, String(id)) ?? { id }, isWritten: false };
    }
  }
}

/** The row behind the steps; undefined when a step is absent. */
function walk(start: Place | undefined, steps: readonly ToOneStep[], { related }: World): Place | undefined {
  let at = start;
  for (const { from, relation } of steps) {
    if (at === undefined) return undefined;
    let found: Row | undefined;
    if (relation.kind === 'belongs_to' || at.isWritten) {
      const id = own(at.row, relation.name);
      found = id === undefined ? undefined : related.one(relation.collection, String(id));
    } else {
      found = related.many(from, relation.name, String(at.row.id))[0];
    }
    if (found === undefined) return undefined;
    at = { row: found, isWritten: false };
  }
  return at;
}

/** The value of its type at the keys of a JSON text. */
function partOfJson(text: unknown, keys: readonly string[], type: ValueType): Maybe {
  if (typeof text !== 'string') return undefined;
  const sources = new Map<object, string>();
  let value: unknown = JSON.parse(text, (_, each: unknown, context?: { readonly source?: string }) => {
    if (typeof each !== 'number') return each;
    const number = {};
    sources.set(number, context!.source!);
    return number;
  });
  for (const key of keys) {
    const isHolder = typeof value === 'object' && value !== null && !Array.isArray(value) && !sources.has(value);
    value = isHolder ? own(value as Row, key) : undefined;
  }
  const decimal = typeof value === 'object' && value !== null ? sources.get(value) : undefined;
  if (decimal === undefined)
    return typeof value === (type === 'bool' ? 'boolean' : type) ? (value as Maybe) : undefined;
  const { numerator, denominator } = fraction({ decimal });
  const size = numerator < 0n ? -numerator : numerator;
  if (type === 'int')
    return size % denominator === 0n && size / denominator <= 2n ** 53n - 1n
      ? Number(numerator / denominator)
      : undefined;
  const isFloat = size === 0n || (size < 10n ** 300n * denominator && size * 10n ** 300n >= denominator);
  return type === 'float' && isFloat ? Number(decimal) + 0 : undefined;
}

function columnValue({ scope, steps, column }: ColumnOperand, world: Bound): Maybe {
  const end = walk(placeOf(scope, world), steps, world);
  if (end === undefined) return undefined;
  switch (column.kind) {
    case 'id':
      return own(end.row, 'id') as Maybe;
    case 'field': {
      const { name, type, part } = column.field;
      return part ? partOfJson(own(end.row, part.member), part.keys, type) : written(own(end.row, name) as Maybe, type);
    }
    case 'belongs_to':
      return own(end.row, column.relation.name) as Maybe;
    case 'element':
      return own(end.row, 'value') as Maybe;
  }
}

/** A value of these types is the number that its string writes. */
export const EXACT_TYPES: readonly ValueType[] = ['bigint', 'decimal'];
const written = (value: Maybe, type: ValueType): Maybe =>
  typeof value === 'string' && EXACT_TYPES.includes(type) ? { decimal: value } : value;

/** A missing key, null and undefined are one absence. */
function own(row: Readonly<Record<string, unknown>> | null | undefined, key: string): unknown {
  return row && Object.hasOwn(row, key) ? (row[key] ?? undefined) : undefined;
}

// ---------------------------------------------------------------- what the request says

function requestValue({ source, name, type, detail }: RequestOperand, request: PolicyRequest): Maybe {
  switch (source) {
    case 'fact':
      return fact(name, detail, request);
    case 'auth':
      return fromRecord(own(request.auth, name), type);
    case 'data':
      return fromJson(own(request.data, name), type);
    case 'param':
      return fromRecord(own(request.params, name), type);
    case 'query': {
      const given = own(request.query, name);
      return typeof given === 'string' ? fromText(given, type) : undefined;
    }
  }
}

function fact(name: string, detail: string | undefined, { facts, kind, now }: PolicyRequest): Maybe {
  if (name === 'request.kind') return kind ?? 'user';
  if (name === 'now.hour') return Number(local(now, detail!).slice(11, 13));
  if (name === 'now.weekday')
    return ((new Date(`${local(now, detail!).slice(0, 10)}T00:00:00Z`).getUTCDay() + 6) % 7) + 1;
  const value = fromJson(own(facts, name.slice('request.'.length)), 'string') as string | undefined;
  if (name !== 'request.ip' || detail === undefined || value === undefined) return value;
  return isIP(value) === 0 ? undefined : blocksOf(detail).check(value, isIP(value) === 6 ? 'ipv6' : 'ipv4');
}

/** The parser and the matching of Node, which share nothing with those of the product. */
function blocksOf(networks: string): BlockList {
  const blocks = new BlockList();
  for (const network of networks.split(' ')) {
    const [address = '', prefix] = network.split('/');
    const family = isIP(address) === 6 ? 'ipv6' : 'ipv4';
    if (prefix === undefined) blocks.addAddress(address, family);
    else blocks.addSubnet(address, Number(prefix), family);
  }
  return blocks;
}

function requestList({ source, name, type }: RequestOperand, request: PolicyRequest): readonly Maybe[] | undefined {
  if (source === 'fact') return undefined;
  const given = own(
    { auth: request.auth, query: request.query, data: request.data, param: request.params }[source],
    name,
  );
  if (given === undefined) return undefined;
  // A single value of a query parameter is a list of one.
  const whole = source === 'auth' && typeof given === 'string' ? valuesIn(given, `${type}[]` as ValueType) : given;
  const elements: unknown = source === 'query' && typeof given === 'string' ? [given] : whole;
  if (!Array.isArray(elements)) return undefined;
  return elements.map((element: unknown) =>
    source === 'query'
      ? fromText(String(element), type)
      : source === 'data'
        ? fromJson(element, type)
        : fromRecord(element, type),
  );
}

/** The caller's own record, and a filter of a URL, have bytes as PostgreSQL prints them. */
function fromRecord(value: unknown, type: ValueType): Maybe {
  if (type === 'bytes' && typeof value === 'string' && /^\\x([0-9a-f]{2})*$/.test(value)) return value;
  return fromJson(value, type);
}

const isIntKey = (type: ValueType): boolean => typeof type === 'object' && type.key === 'int';

/** The rows have the text of PostgreSQL. */
function pointOf(value: unknown): Maybe {
  if (typeof value === 'string') return /^\([^,]+,[^,]+\)$/.test(value) ? value : undefined;
  if (typeof value !== 'object' || value === null) return undefined;
  const { lat, lng } = value as { lat?: unknown; lng?: unknown };
  const isIn = (degrees: unknown, most: number): boolean =>
    typeof degrees === 'number' && degrees >= -most && degrees <= most;
  const isPlace = isIn(lat, 90) && isIn(lng, 180) && Object.keys(value).sort().join() === 'lat,lng';
  return isPlace ? `(${String(lng)},${String(lat)})` : undefined;
}

/** A value of JSON already has its type: `"5"` is not a number. */
function fromJson(value: unknown, type: ValueType): Maybe {
  // Nothing but its presence is asked for.
  if (type === 'json') return value === undefined || value === null ? undefined : true;
  if (type === 'point') return pointOf(value);
  if (typeof value === 'boolean') return type === 'bool' ? value : undefined;
  if (typeof value === 'number') {
    if (type === 'decimal') return fromNumeral(String(value));
    if (type === 'bigint') return Number.isSafeInteger(value) ? { decimal: String(value) } : undefined;
    if (type === 'int' || isIntKey(type)) return Number.isSafeInteger(value) ? value : undefined;
    return type === 'float' && Number.isFinite(value) ? value : undefined;
  }
  const isWritten = typeof type === 'object' ? !isIntKey(type) : IN_JSON_STRINGS.includes(type);
  return typeof value === 'string' && isWritten ? fromText(value, type) : undefined;
}

/** The types that JSON and literals write as strings. */
export const WRITTEN_AS_TEXT: readonly ValueType[] = ['string', 'datetime', 'date', 'time', 'uuid', 'bytes'];
const IN_JSON_STRINGS: readonly ValueType[] = [...WRITTEN_AS_TEXT, 'bigint', 'decimal'];

/** The value of a text of the request, or of a literal; undefined if it is not of the type. */
export function fromText(text: string, type: ValueType): Maybe {
  if (isIntKey(type)) return fromText(text, 'int');
  if (typeof type === 'object' && type.key === 'string')
    return ['', '.', '..'].includes(text) ? undefined : fromText(text, 'string');
  if (typeof type === 'object') {
    const isUuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(text);
    return isUuid ? text.toLowerCase() : undefined;
  }
  switch (type) {
    case 'string':
      return text.includes('\0') || /\p{Surrogate}/u.test(text) ? undefined : text;
    case 'json':
    case 'point':
    case 'string[]':
    case 'int[]':
    case 'float[]':
    case 'bool[]':
    case 'date[]':
    case 'datetime[]':
      return undefined;
    case 'bool':
      return text === 'true' ? true : text === 'false' ? false : undefined;
    case 'int':
      return /^-?(0|[1-9][0-9]*)$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : undefined;
    case 'float':
      return jsonNumber(text);
    case 'datetime':
      return instant(text);
    case 'date':
      return /^\d{4}-\d\d-\d\d$/.test(text) ? instant(`${text}T00:00:00Z`)?.slice(0, 10) : undefined;
    case 'bigint':
      return /^-?(0|[1-9][0-9]*)$/.test(text) && BigInt.asIntN(64, BigInt(text)) === BigInt(text)
        ? { decimal: text }
        : undefined;
    case 'uuid':
      return fromText(text, { id: '' });
    case 'bytes': {
      const bytes = Buffer.from(text, 'base64');
      return bytes.toString('base64') === text ? `\\x${bytes.toString('hex')}` : undefined;
    }
    case 'decimal':
      return /^-?(0|[1-9][0-9]*)(\.[0-9]+)?$/.test(text) && text.length <= 78 ? fromNumeral(text) : undefined;
    case 'time':
      return timeOfDay(text);
  }
}

/** At most 38 digits on either side of the point, as far as they count. */
function fromNumeral(decimal: string): Maybe {
  if (!/^-?[0-9.]+(e[+-]?[0-9]+)?$/i.test(decimal)) return undefined;
  const { numerator, denominator } = fraction({ decimal });
  const scaled = numerator * 10n ** 38n;
  const isHeld =
    scaled % denominator === 0n && scaled / denominator < 10n ** 76n && scaled / denominator > -(10n ** 76n);
  return isHeld ? { decimal } : undefined;
}

function jsonNumber(text: string): number | undefined {
  if (/\s/.test(text)) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'number' && Number.isFinite(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The decimals up to the last that is not zero. */
function timeOfDay(text: string): string | undefined {
  const found = instant(`2000-01-01T${text}Z`)?.slice(11, 26);
  if (found === undefined || /[Z+-]/.test(text)) return undefined;
  let end = found.length;
  while (end > 9 && found[end - 1] === '0') end--;
  return found.slice(0, end === 9 ? 8 : end);
}

/** RFC 3339 → `YYYY-MM-DDTHH:MM:SS.ffffffZ`. */
function instant(text: string): string | undefined {
  const match = /^(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?(?:Z|([+-])([01]\d|2[0-3]):([0-5]\d))$/.exec(text);
  if (!match) return undefined;
  const [, civil, fractionDigits = '', sign = '+', hours = '0', minutes = '0'] = match;
  const asIfUtc = new Date(`${civil}Z`);
  // Date carries over what does not exist (30 February, 24:00); a civil time that comes back changed is not one.
  if (Number.isNaN(asIfUtc.getTime()) || asIfUtc.toISOString() !== `${civil}.000Z`) return undefined;
  const offset = (Number(hours) * 60 + Number(minutes)) * 60_000 * (sign === '-' ? -1 : 1);
  const utc = new Date(asIfUtc.getTime() - offset).toISOString();
  if (utc.length !== 24 || utc < '0001') return undefined;
  return `${utc.slice(0, 19)}.${fractionDigits.padEnd(6, '0')}Z`;
}

/** The day there, by the offset of the zone. The first and the last day are its limits. */
function today(now: string, timeZone: string, seconds: number): string {
  return shifted(`${local(now, timeZone).slice(0, 10)}T00:00:00.000000Z`, seconds).slice(0, 10);
}

const offsetFormats = new Map<string, Intl.DateTimeFormat>();

/** A format takes longer to make than the rest of a policy to decide. */
function offsetFormat(timeZone: string): Intl.DateTimeFormat {
  const known = offsetFormats.get(timeZone);
  const format = known ?? new Intl.DateTimeFormat('en', { timeZone, timeZoneName: 'longOffset' });
  offsetFormats.set(timeZone, format);
  return format;
}

/** The time of a clock in the zone, written as if it were UTC. */
function local(now: string, timeZone: string): string {
  const at = Date.parse(now);
  const parts = offsetFormat(timeZone).formatToParts(at);
  const zone = parts.find(({ type }) => type === 'timeZoneName')!.value;
  const [, sign, hours, minutes, rest = '0'] = /^GMT(?:([+-])(\d\d):(\d\d)(?::(\d\d))?)?$/.exec(zone)!;
  const offset = sign === undefined ? 0 : Number(hours) * 3600 + Number(minutes) * 60 + Number(rest);
  return shifted(now, sign === '-' ? -offset : offset);
}

/** Instants beyond the years 0001 to 9999 stop at their ends. */
function shifted(now: string, seconds: number): string {
  const moved = new Date(Date.parse(`${now.slice(0, 19)}Z`) + seconds * 1000);
  const utc = Number.isNaN(moved.getTime()) ? (seconds < 0 ? '-' : '+') : moved.toISOString();
  if (utc.startsWith('+')) return '9999-12-31T23:59:59.999999Z';
  if (utc.startsWith('-') || utc < '0001') return '0001-01-01T00:00:00.000000Z';
  return `${utc.slice(0, 19)}${now.slice(19)}`;
}
