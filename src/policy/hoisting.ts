/**
 * Decides which subqueries may become a list of keys that an index serves, which rows a condition reads, and how many keys
 * a list has, in terms of values of columns, which statistics turn into a number.
 */
import type { KeyCount, LookUp, RelatedKeys, RowShare } from './branch.ts';
import { columnTested, isOfOneValue, isValueTest, type ValueTest, valuesOfTest } from './column-facts.ts';
import {
  type ColumnRef,
  type Condition,
  type ConditionOperand,
  type Exists,
  RECORD,
  type Source,
} from './condition.ts';
import type { Values } from './emit/value-places.ts';
import { isSameColumn } from './lower/simplify.ts';
import { isMember, OPERATORS } from './operators.ts';
import { areOfOneForm } from './scalar-types.ts';
import { type CatalogCollection, keyOf } from './types.ts';
import { columnsOf, conjunctsOf, innerOf, nodesOf, sourcesIn } from './visit.ts';

export function readsMoreThanId(condition: Condition, source: Source): boolean {
  return columnsOf(condition).some((ref) => ref.source.id === source.id && ref.name !== 'id');
}

/**
 * The keys can be found without the row outside, and an index finds them: an array of every key of
 * a table would be worse than the semi-join. A written record is one row, for which a semi-join is
 * one look-up.
 */
export const isHoistable = (exists: Exists): boolean => isSeparable(exists) && isSelective(exists.condition);

/** No test of a column finds the rows that give the keys: a look-up for each row would read the table as a whole. */
export const isFoundByJoin = ({ condition }: Exists): boolean =>
  conjunctsOf(condition).every((item) => item.kind === 'exists' || !isSelective(item));

/** The keys can be found without the row outside. */
function isSeparable(exists: Exists): boolean {
  const { key, negated, condition, relation } = exists;
  if (relation.kind === 'elements' || key.kind === 'slot' || key.source.state === 'written' || negated) return false;
  return isSelfContained(exists, condition);
}

/** The part reads no other rows than those that the test binds. */
function isSelfContained(exists: Exists, part: Condition): boolean {
  const bound = sourcesIn(exists);
  return columnsOf(part).every(({ source }) => bound.has(source.id));
}

/** The keys can be found first, in one list that depends on nothing of the row outside. */
export const isOneList = (exists: Exists): boolean =>
  exists.relation.kind !== 'ancestors' && exists.colocated === undefined && isSeparable(exists);

/** The test that names the element of a to-many by its id, and the other conditions on this element. */
export interface NamedElement {
  readonly name: ValueTest;
  readonly rest: readonly Condition[];
}

/** An element of linked rows that counts for every row outside or for none: nothing but its link depends on the row. */
export function namedElementOf(exists: Exists): NamedElement | undefined {
  const { relation, by, source, guard, condition, key } = exists;
  if (relation.kind !== 'many_to_many' || by !== 'owner' || key.kind === 'slot') return undefined;
  const isRead = guard !== undefined || readsMoreThanId(condition, source);
  if (!isRead || !isSeparable({ ...exists, negated: false })) return undefined;
  const items = conjunctsOf(condition);
  const isName = (item: Condition): item is ValueTest =>
    isValueTest(item, source.id) && isOfOneValue(item) && item.left.name === 'id';
  const name = items.find(isName);
  return name && { name, rest: items.filter((item) => item !== name) };
}

export interface KeyList {
  /** The conjunct that compares the two. */
  readonly item: Condition;
  /** The column of the rows that refer to the record of the request. */
  readonly own: ColumnRef;
  /** The column outside that it equals. */
  readonly outer: ColumnRef;
  readonly rest: readonly Condition[];
}

export const keyListOf = (exists: Exists): KeyList | undefined =>
  exists.negated ? undefined : keysOfRequest(exists, comparedColumns);

/** The same of rows of the request, none of which has the key of the row outside. */
export const excludedKeysOf = (exists: Exists): KeyList | undefined =>
  exists.negated ? keysOfRequest(exists, columnsOfAny) : undefined;

export const alternativesOf = (item: Condition): readonly Condition[] => (item.kind === 'or' ? item.items : [item]);

/** The columns are equal, or one of both may be absent. */
function columnsOfAny(item: Condition): readonly [ColumnRef, ColumnRef] | undefined {
  const parts = alternativesOf(item);
  const [pair, ...others] = parts.map(comparedColumns).filter((each) => each !== undefined);
  const isAbsence = (part: Condition): boolean =>
    part.kind === 'null' && !part.negated && pair!.some((column) => isSameColumn(column, part.column));
  const isPair = pair !== undefined && others.length === 0 && parts.filter(isAbsence).length === parts.length - 1;
  return isPair ? pair : undefined;
}

function keysOfRequest(
  exists: Exists,
  pairOf: (item: Condition) => readonly [ColumnRef, ColumnRef] | undefined,
): KeyList | undefined {
  const { key, condition, source } = exists;
  // Its keys are asked for alone, so nothing would hide a row.
  if (key.kind !== 'slot' || exists.guard !== undefined) return undefined;
  const items = conjunctsOf(condition);
  const within = sourcesIn(exists);
  const isWithin = ({ source: { id } }: ColumnRef): boolean => within.has(id);
  for (const [i, item] of items.entries()) {
    const pair = pairOf(item);
    if (pair === undefined) continue;
    const [own, outer] = pair[0].source.id === source.id ? pair : [pair[1], pair[0]];
    const rest = items.toSpliced(i, 1);
    if (own.source.id !== source.id || isWithin(outer) || !rest.flatMap(columnsOf).every(isWithin)) continue;
    return { item, own, outer, rest };
  }
  return undefined;
}

/** The two columns of a test for equality that compares them as they are. */
function comparedColumns(cond: Condition): readonly [ColumnRef, ColumnRef] | undefined {
  if (cond.kind !== 'test' || cond.negated || cond.left.kind !== 'column' || cond.right.kind !== 'column')
    return undefined;
  const operator = OPERATORS[cond.op];
  if (operator.family !== 'equality' || !isMember(operator)) return undefined;
  return areOfOneForm(cond.left.type, cond.right.type) ? [cond.left, cond.right] : undefined;
}

function isSelective(cond: Condition): boolean {
  switch (cond.kind) {
    case 'and':
      return cond.items.some(isSelective);
    case 'or':
      return cond.items.every(isSelective);
    case 'exists':
      return !cond.negated && (keyListOf(cond)?.outer.selective ?? isSelective(cond.condition));
    case 'test':
      return (
        isMember(OPERATORS[cond.op]) &&
        cond.left.kind === 'column' &&
        cond.left.selective &&
        cond.right.kind !== 'column'
      );
    case 'const':
    case 'null':
      return false;
  }
}

// ---------------------------------------------------------------- look-ups

/**
 * The condition on a related row compares its columns with a value of the request, or with a list of the request's keys, so
 * that an index may serve it without the key by which the row is looked up; and a plan for all values misjudges how many
 * rows it has.
 */
export function isServedAlone(item: Condition, { source, relation, target }: Exists): boolean {
  const columns = columnsOfRequest(item).filter((ref) => ref.source.id === source.id && ref.name !== 'id');
  if (columns.length === 0 || !('viaColumn' in relation)) return columns.length > 0;
  return !columns.some(({ column }) => areOfOneKey(target, column, relation.viaColumn));
}

/** The columns that are compared with values of the request. */
function columnsOfRequest(item: Condition): readonly ColumnRef[] {
  if (item.kind === 'exists') return [keyListOf(item)?.outer].filter((outer) => outer !== undefined);
  const isOfRequest = nodesOf(item).some((node) => node.kind === 'test' && [node.left, node.right].some(isSlot));
  return isOfRequest ? columnsOf(item) : [];
}

const isSlot = ({ kind }: ConditionOperand): boolean => kind === 'slot';

/** The same for the rows of a record of the request, of which a row outside names one by another column. */
export function isKeyServedAlone(exists: Exists): boolean {
  const list = keysOfRequest({ ...exists, guard: undefined }, comparedColumns);
  const { relation, target } = exists;
  return list !== undefined && 'viaColumn' in relation && !areOfOneKey(target, list.own.column, relation.viaColumn);
}

function areOfOneKey({ fields, relations }: CatalogCollection, one: string, other: string): boolean {
  if (one === other) return true;
  const references = [...relations.values()].filter((relation) => relation.kind === 'belongs_to');
  return [...fields.values(), ...references].some(({ column, uniqueWithin }) => {
    const within = references.find(({ name }) => name === uniqueWithin)?.column;
    return (column === one && within === other) || (column === other && within === one);
  });
}

// ---------------------------------------------------------------- the number of keys

/** Undefined: the count is unknown. */
export function keyCountOf(exists: Exists): (values: Values) => KeyCount | undefined {
  const { target, condition, key, relation, source, by } = exists;
  const { table } = target;
  const isByLinks = by === 'owner' && relation.kind === 'many_to_many';
  const links = isByLinks ? { links: { table: relation.linkTable, column: relation.targetColumn } } : {};
  const list = keyListOf(exists);
  const named = list && { column: list.own.column };
  return (values) => {
    const share = rowShareOf(condition, source.id, values);
    const ofRequest: RowShare | undefined =
      key.kind === 'slot' && 'viaColumn' in relation
        ? { kind: 'values', column: relation.viaColumn, values: [values[key.slot]] }
        : undefined;
    const of = [share, ofRequest].filter((each) => each !== undefined);
    return of.length === 0
      ? undefined
      : { kind: 'rows', table, ...links, ...named, share: { kind: 'all', of }, areIds: by === 'id' };
  };
}

/** A relation test with an unknown number of keys, which a statement may find first. */
export interface UnknownKeys {
  readonly test: Exists;
  /** The parts of an `or` beside the one that requires it. */
  readonly others: readonly Condition[];
  readonly keys: RelatedKeys;
}

/** The first such conjunct of the condition, or of a part of it. */
export function unknownKeysOf(cond: Condition): UnknownKeys | undefined {
  const parts = alternativesOf(cond);
  for (const part of parts)
    for (const test of conjunctsOf(part)) {
      if (test.kind !== 'exists' || !isOneList(test) || isHoistable(test)) continue;
      const keys = relatedKeysOf(test);
      if (keys !== undefined) return { test, others: parts.filter((each) => each !== part), keys };
    }
  return undefined;
}

function relatedKeysOf(test: Exists): RelatedKeys | undefined {
  const { key, target, condition, source } = test;
  // All rows of the table are known, and many.
  if (key.kind !== 'column' || key.source.id !== RECORD.id || condition.kind === 'const') return undefined;
  const within = nodesOf(condition).flatMap((node) => (node.kind === 'exists' ? [node.target.table] : []));
  const tested = conjunctsOf(condition).flatMap((item) => (item.kind === 'test' ? columnsOf(item) : []));
  const own = tested.filter((column) => column.source.id === source.id).map(({ column }) => column);
  return { column: key.column, isId: key.name === 'id', tables: [target.table, ...within], tested: own };
}

type LookUpsOf = (collection: string) => readonly LookUp[];
const NO_GUARDS: LookUpsOf = () => [];

/**
 * The related rows that the condition looks up for each record.
 * @param ofGuards the look-ups of the rule that decides which records of a collection count
 */
export function lookUpsIn(
  cond: Condition,
  listed: ReadonlySet<Exists>,
  ofGuards = NO_GUARDS,
  row = RECORD.id,
): readonly LookUp[] {
  // Rows that are the same for every row outside are looked up once.
  if (cond.kind === 'exists' && (listed.has(cond) || isSelfContained(cond, cond))) return [];
  const isOfRows = cond.kind === 'exists' && cond.relation.kind !== 'elements';
  const inner = isOfRows ? cond.source.id : row;
  const within = innerOf(cond).flatMap((part) => lookUpsIn(part, listed, ofGuards, inner));
  if (!isOfRows) return within;
  const key = keyOfLookUp(cond, row);
  if (namedElementOf(cond) !== undefined) return [{ ...key, within: [] }];
  const guarding = cond.guard === undefined ? [] : ofGuards(cond.guard.collection);
  return [{ ...key, within: [...guarding, ...within], ...(isOfEach(cond) && { isOfEach: true }) }];
}

/** The condition reads other columns outside than those by which the rows are found. */
function isOfEach(cond: Exists): boolean {
  return !isSelfContained(cond, cond.condition) && keysComparedIn(cond) === undefined;
}

const keysComparedIn = (exists: Exists): KeyList | undefined =>
  keysOfRequest(exists, exists.negated ? columnsOfAny : comparedColumns);

function keyOfLookUp(exists: Exists, row: number): Omit<LookUp, 'within'> {
  const { relation, target, by, key } = exists;
  const byOf = (column: ColumnRef): Pick<LookUp, 'by'> => (column.source.id === row ? { by: column.column } : {});
  // The rows of a record of the request are found by the column that is compared with one outside.
  const compared = keysComparedIn({ ...exists, guard: undefined });
  if (compared !== undefined && 'viaColumn' in relation) {
    const { own, outer } = compared;
    const of = relation.viaColumn;
    return { table: target.table, column: own.column, ...(own.name === 'id' && { isId: true }), ...byOf(outer), of };
  }
  const of = key.kind === 'column' ? byOf(key) : {};
  if (by !== 'owner' || relation.kind === 'belongs_to' || relation.kind === 'ancestors' || relation.kind === 'elements')
    return { table: target.table, column: keyOf(target).column, isId: true, ...of };
  if (relation.kind === 'many_to_many') return { table: relation.linkTable, column: relation.sourceColumn, ...of };
  return { table: target.table, column: relation.viaColumn, ...of };
}

/** @param row the source of the rows that the condition is about */
function rowShareOf(cond: Condition, row: number, values: Values): RowShare | undefined {
  switch (cond.kind) {
    case 'test':
      return isValueTest(cond, row)
        ? { kind: 'values', ...columnTested(cond), values: valuesOfTest(cond, values) }
        : undefined;
    case 'exists': {
      const key = keyListOf(cond)?.outer ?? cond.key;
      const isInRow = cond.relation.kind === 'elements';
      if (isInRow || cond.negated || key.kind !== 'column' || key.source.id !== row) return undefined;
      const keys = keyCountOf(cond)(values);
      return keys && { kind: 'keys', column: key.column, keys };
    }
    case 'and':
    case 'or': {
      const of = cond.items.map((item) => rowShareOf(item, row, values));
      const known = of.filter((each) => each !== undefined);
      const isKnown = cond.kind === 'and' ? known.length > 0 : known.length === of.length;
      return isKnown ? { kind: cond.kind === 'and' ? 'all' : 'any', of: known } : undefined;
    }
    case 'const':
    case 'null':
      return undefined;
  }
}
