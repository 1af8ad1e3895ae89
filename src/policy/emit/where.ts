/**
 * Prints the SQL of a lowered condition: once per residual shape, with holes that each request
 * fills with its values. Every column is qualified, relations are semi-joins, and a NULL leaf
 * counts as false wherever one is printed.
 */
import { invariant } from '../../invariant.ts';
import { empty, ident, join, raw, type Sql, sql, tableIdent, tested } from '../../sql.ts';
import {
  type ColumnRef,
  type Condition,
  type ConditionOperand,
  type CountRef,
  type Exists,
  type Guard,
  isRoot,
  LINK_TENANT_COLUMN,
  NEXT,
  type NullTest,
  RECORD,
  type Source,
  type Test,
} from '../condition.ts';
import {
  alternativesOf,
  excludedKeysOf,
  isFoundByJoin,
  isHoistable,
  isKeyServedAlone,
  isServedAlone,
  type KeyList,
  keyListOf,
  type NamedElement,
  namedElementOf,
  readsMoreThanId,
} from '../hoisting.ts';
import { and, isSameColumn } from '../lower/simplify.ts';
import { OPERATORS } from '../operators.ts';
import { areOfOneForm, elementOf, isTo } from '../scalar-types.ts';
import { partOfColumn, rowsOf } from '../stored-rows.ts';
import { type AncestorRelation, type CatalogBelongsTo, ELEMENT_VALUE, keyOf, MOST_ANCESTORS } from '../types.ts';
import { maskedBy, type Visibility } from '../visibility.ts';
import { columnsOf, conjunctsOf, nodesOf, sourcesIn } from '../visit.ts';
import { OPERATOR_SQL } from './operator-sql.ts';
import type { FoundRows, Keys, Naming, Printing } from './printing.ts';
import { Tenants } from './tenants.ts';
import { FILTER_PLACES, POLICY_PLACES, PrintedWhere, TENANT_PLACE } from './value-places.ts';

export function whereOf(cond: Condition, printing: Printing): PrintedWhere {
  if (printing.keyed?.part === 'list') return new PrintedWhere(new Printer(printing).listOf(printing.keyed.test));
  const printed = new Printer(printing).printBeside(cond, printing.beside ?? cond, printing.inUnion);
  return new PrintedWhere(cond.kind === 'and' || cond.kind === 'or' ? sql`(${printed})` : printed);
}

/** The condition without a column of the record that such a relation test requires; undefined: it has none. */
export function requiredElement(cond: Condition, printing: Printing): PrintedWhere | undefined {
  const named = cond.kind === 'exists' && !cond.negated ? namedElementOf(cond) : undefined;
  const first = named && new Printer(printing).element(cond as Exists, named);
  return first && new PrintedWhere(first);
}

/** PostgreSQL evaluates a subquery with an OFFSET for each row: it is never hashed, and never joined. */
const FENCE = raw(' OFFSET 0');

interface ConditionsOf {
  readonly underOr?: boolean;
  /** All rows of the table are read, for none outside. */
  readonly isWhole?: boolean;
  /** The index of the key finds the rows, and no other one. */
  readonly isByKey?: boolean;
}

/** It finds any number of rows. */
const isLoop = ({ by }: Exists): boolean => by === 'owner' || by === 'elements';

const hasLoop = (cond: Condition): boolean => nodesOf(cond).some((inner) => inner.kind === 'exists' && isLoop(inner));

/** The place of the last ancestor that counts. */
const LAST = raw(String(MOST_ANCESTORS));

export class Printer {
  readonly #alias: string;
  readonly #naming = new Map<number, Naming>();
  readonly #visibility: Visibility | undefined;
  readonly #inTime: Sql | undefined;
  readonly #range: Test | undefined;
  readonly #listed: ReadonlySet<Exists> | undefined;
  readonly #hashed: ReadonlySet<Exists> | undefined;
  /** It has one of the keys that the statement has found. */
  readonly #keyed: Exists | undefined;
  readonly #isOfFound: boolean;
  readonly #hasTenant: boolean;
  readonly #places: typeof POLICY_PLACES;
  /** The rows' names in the statement. */
  readonly #aliases = new Map<number, string>();
  #rows = 0;
  /** Records whose ids the request holds. */
  readonly #requested = new Set<number>();
  /** The row of the query that is being printed. */
  #nearest = RECORD.id;
  /** The condition is that of a list of keys, which a join finds. */
  #isOfJoin = false;
  readonly #tenants = new Tenants();

  constructor({
    alias,
    next,
    visibility,
    inTime,
    range,
    listed,
    hashed,
    keyed,
    isOfFound,
    hasTenant = false,
  }: Omit<Printing, 'inUnion'>) {
    this.#alias = alias;
    this.#hasTenant = hasTenant;
    this.#visibility = visibility;
    this.#inTime = inTime;
    this.#range = range;
    this.#listed = listed;
    this.#hashed = hashed;
    this.#keyed = keyed?.test;
    this.#isOfFound = isOfFound === true;
    this.#places = visibility === undefined ? POLICY_PLACES : FILTER_PLACES;
    this.#aliases.set(RECORD.id, alias);
    this.#naming.set(RECORD.id, (column) => ident(alias, column));
    if (next !== undefined) this.#naming.set(NEXT.id, (column) => ident(next, column));
  }

  printBeside(cond: Condition, beside: Condition, underOr: boolean): Sql {
    return this.#tenants.given(beside, () => this.print(cond, underOr));
  }

  print(cond: Condition, underOr: boolean): Sql {
    switch (cond.kind) {
      case 'const':
        return raw(cond.value ? 'TRUE' : 'FALSE');
      case 'and':
      case 'or': {
        const isOr = cond.kind === 'or';
        // PostgreSQL would find the rows of a remembered statement by an index of another test.
        const isRange = this.#range !== undefined && cond.items.includes(this.#range);
        const isBeside = (item: Condition): boolean => isRange && item.kind === 'test' && item !== this.#range;
        const printed = (item: Condition): Sql => this.#part(item, underOr || isOr);
        const parts = this.#tenants.given(cond, () =>
          cond.items.map((item) => (isBeside(item) ? tested(printed(item)) : printed(item))),
        );
        return join(parts, isOr ? ' OR ' : ' AND ');
      }
      case 'null':
        return sql`${this.#column(cond.column)} IS ${raw(cond.negated ? 'NOT NULL' : 'NULL')}`;
      case 'test':
        return this.#test(cond);
      case 'exists':
        return this.#exists(cond, underOr);
    }
  }

  /** The keys of the related rows, which are found first. */
  listOf(exists: Exists): Sql {
    return this.#hoisted(exists).keys;
  }

  #exists(cond: Exists, underOr: boolean): Sql {
    const { relation } = cond;
    if (cond === this.#keyed) return this.#anyOf({ ...this.#outer(cond), keys: raw('SELECT key FROM "keys"') }, cond);
    if (relation.kind === 'ancestors') {
      // From below, no record is found by a chain that goes on beyond the last that counts.
      const isBelow = this.#isHoisted(cond) && !cond.beyond && !this.#isOfRequest(cond);
      return isBelow ? this.#anyOf(this.#below(cond, relation), cond, underOr) : this.#above(cond, relation);
    }
    if (relation.kind === 'elements') return this.#someValue(cond, underOr);
    const keyList = this.#listed?.has(cond) === false ? undefined : keyListOf(cond);
    if (keyList !== undefined) return this.#anyOf(this.#keyList(cond, keyList), cond, underOr);
    const excluded = excludedKeysOf(cond);
    if (excluded !== undefined)
      return this.#listed?.has(cond) === false ? this.#each(cond, excluded) : this.#none(cond, excluded);
    if (this.#isLookedUp(cond) && !this.#isOfJoin) return this.#lookUp(cond);
    // A list of few keys is found once, and leaves PostgreSQL no way to read it again for each row.
    if (!underOr && this.#listed?.has(cond) !== true) return this.#semiJoin(cond);
    return this.#isHoisted(cond)
      ? this.#anyOf(this.#hoisted(cond), cond, underOr)
      : this.#semiJoin(cond, this.#fence(cond));
  }

  /** The related row of each row is looked up: PostgreSQL reads the related table neither as a whole nor first. */
  #isLookedUp(exists: Exists): boolean {
    return this.#hashed === undefined && this.#listed?.has(exists) === false;
  }

  /** PostgreSQL plans no join with the elements of the row outside, and hashes none of them. */
  #someValue(exists: Exists, underOr: boolean): Sql {
    const { from, where } = this.#values(exists, underOr);
    return sql`${raw(exists.negated ? 'NOT EXISTS' : 'EXISTS')} (SELECT 1 FROM ${from}${where})`;
  }

  #values(exists: Exists, underOr: boolean): { readonly from: Sql; readonly where: Sql } {
    const row = `${this.#alias}_${++this.#rows}`;
    const value = ident(row, ELEMENT_VALUE);
    const list = this.#key(exists);
    this.#naming.set(exists.source.id, () => value);
    this.#aliases.set(exists.source.id, row);
    const conditions = this.#conditions(exists, { underOr });
    // The arrays of other programs may have NULLs, which do not count as elements.
    const where = sql` WHERE ${join([sql`${value} IS NOT NULL`, ...conditions], ' AND ')}`;
    const from = sql`unnest(${list}) AS ${ident(row)} (${ident(ELEMENT_VALUE)})`;
    return { from, where };
  }

  /** The same rows as a list of keys, where all of `beside` holds; undefined where it is not printed so. */
  keysOf(cond: Exists, beside: Condition): Keys | undefined {
    return this.#tenants.given(beside, () => this.#keysOf(cond));
  }

  #keysOf(cond: Exists): Keys | undefined {
    const { relation } = cond;
    if (relation.kind === 'ancestors') {
      return this.#isHoisted(cond) && !cond.beyond ? this.#below(cond, relation) : undefined;
    }
    const keyList = keyListOf(cond);
    if (keyList !== undefined) return this.#keyList(cond, keyList);
    return this.#isHoisted(cond) ? this.#hoisted(cond) : undefined;
  }

  /** Keys of rows with a tenant are found within one tenant. */
  #isHoisted(exists: Exists): boolean {
    const isListed = this.#listed === undefined || this.#listed.has(exists);
    return isListed && isHoistable(exists) && this.#tenants.areKnown(exists);
  }

  /** The value that the statement names goes before another one of the condition: with both, it would name two tenants. */
  #tenantOf(exists: Exists): Sql | undefined {
    if (this.#hasTenant && this.#tenants.ofRecord(exists) !== undefined) return TENANT_PLACE;
    const value = this.#tenants.of(exists);
    return value && this.#places.of(value, false);
  }

  #anyOf({ column, keys }: Keys, exists: Exists, underOr = true): Sql {
    // An index may serve the array, which PostgreSQL compares key by key where none does, and expects to have ten elements.
    const isJoined = this.#hashed !== undefined && (!underOr || this.#hashed.has(exists));
    return isJoined || (this.#isOfFound && isRoot(this.#nearest))
      ? sql`${column} IN (${keys})`
      : sql`${column} = ANY(ARRAY(${keys}))`;
  }

  #part(item: Condition, underOr: boolean): Sql {
    const printed = this.print(item, underOr);
    return item.kind === 'and' || item.kind === 'or' ? sql`(${printed})` : printed;
  }

  // -------------------------------------------------------------- relations

  /** No index but that of the key takes part: another one would read the rows of its value for each row outside. */
  #lookUp(exists: Exists): Sql {
    return this.#semiJoin(exists, FENCE, { isByKey: exists.by === 'owner' });
  }

  #semiJoin(exists: Exists, fence = empty, how: ConditionsOf = {}): Sql {
    const named = this.#named(exists);
    if (named !== undefined) {
      const both = sql`(${named.element} AND ${this.#semiJoin(named.linked, fence, how)})`;
      return exists.negated ? sql`NOT ${both}` : both;
    }
    const { from, link, tenant } = this.#rowsOf(exists);
    const key = this.#key(exists);
    const isOfKey = exists.by === 'members' ? sql`${link} = ANY(${key})` : sql`${link} = ${key}`;
    const match = how.isByKey === true && isKeyServedAlone(exists) ? tested(isOfKey) : isOfKey;
    const parts = [match, ...this.#isOfTenant(exists, tenant), ...this.#conditions(exists, how)];
    const word = raw(exists.negated ? 'NOT EXISTS' : 'EXISTS');
    return sql`${word} (SELECT 1 FROM ${from} WHERE ${join(parts, ' AND ')}${fence})`;
  }

  /** PostgreSQL asks once for the element that a condition names, and for its link to each row. */
  #named(exists: Exists) {
    const named = namedElementOf(exists);
    if (named === undefined) return undefined;
    const element = this.element(exists, named);
    const { guard: _, ...linked } = exists;
    return element && { element, linked: { ...linked, negated: false, condition: named.name } };
  }

  /** The named element counts. Undefined: its tenant is that of the row outside. */
  element(exists: Exists, { name, rest }: NamedElement): Sql | undefined {
    const { colocated, source, target } = exists;
    const within = this.#tenantOf(exists);
    if (colocated !== undefined && within === undefined) return undefined;
    const row = `${this.#alias}_${++this.#rows}`;
    this.#naming.set(source.id, (column) => ident(row, column));
    this.#aliases.set(source.id, row);
    this.#tenants.bind(exists);
    const conditions = this.#conditions({ ...exists, condition: and([name, ...rest]) });
    const where = join([...this.#ofTenant(exists, row, within), ...conditions], ' AND ');
    return sql`EXISTS (SELECT 1 FROM ${rowsOf(target)} AS ${ident(row)} WHERE ${where})`;
  }

  /**
   * PostgreSQL may evaluate a subquery under an `or` with a hash table. If it references a row
   * outside the enclosing query, the table is valid for one such row only; and if the planner has
   * copied the `or`, the copies share the flag that it is stale: the first one rebuilds its own
   * table, the others use the old one (seen in 15.18 and 18.6). A subquery with an OFFSET is never
   * hashed.
   */
  #fence(exists: Exists): Sql {
    const within = sourcesIn(exists);
    const isNear = ({ id }: Source): boolean => id === this.#nearest || (isRoot(id) && isRoot(this.#nearest));
    const isFar = ({ source }: ColumnRef): boolean => !isNear(source) && !within.has(source.id);
    return columnsOf(exists).some(isFar) ? FENCE : empty;
  }

  /**
   * Under an `or` no semi-join can be planned; the keys, found once, let an index serve this branch
   * as the others.
   */
  #hoisted(exists: Exists): Keys {
    const named = this.#named(exists);
    if (named !== undefined) {
      const { keys, ...of } = this.#hoisted(named.linked);
      return { ...of, keys: sql`${keys} AND ${named.element}` };
    }
    const { from, link, tenant } = this.#rowsOf(exists);
    const within = this.#tenantOf(exists);
    const isWithin = tenant === undefined || within === undefined ? [] : [sql`${tenant} = ${within}`];
    const around = this.#isOfJoin;
    this.#isOfJoin = around || isFoundByJoin(exists);
    const where = join([...isWithin, ...this.#conditions(exists, { isWhole: true })], ' AND ');
    this.#isOfJoin = around;
    return { ...this.#outer(exists), keys: sql`SELECT ${link} FROM ${from} WHERE ${where}` };
  }

  /** The rows have the tenant that the statement names or the condition requires, or else that of the outer row. */
  #isOfTenant(exists: Exists, tenant: Sql | undefined): readonly Sql[] {
    const { colocated } = exists;
    if (tenant === undefined || colocated === undefined) return [];
    return [sql`${tenant} = ${this.#tenantOf(exists) ?? this.#column(colocated.outer)}`];
  }

  // -------------------------------------------------------------- ancestors

  /** The outer query has one row, so its chain is the shorter way. */
  #isOfRequest({ key }: Exists): boolean {
    return key.kind === 'column' && this.#requested.has(key.source.id);
  }

  /** Some ancestor meets the condition: the chain of the row outside, a look-up a step. */
  #above(exists: Exists, relation: AncestorRelation): Sql {
    const { chain, from, conditions, goesOn } = this.#chainOf(exists, relation, true);
    const met = join(conditions, ' AND ');
    const isMet = exists.condition.kind === 'const' && exists.condition.value;
    const where = exists.beyond ? (exists.condition.kind === 'const' ? goesOn : sql`(${goesOn} OR ${met})`) : met;
    const word = raw(exists.negated ? 'NOT EXISTS' : 'EXISTS');
    return sql`${word} (${chain} SELECT 1 FROM ${from}${isMet ? empty : sql` WHERE ${where}`} OFFSET 0)`;
  }

  /** Finds once the ids of all records below a match of the condition: then an index serves the outer row. */
  #below(exists: Exists, { via }: AncestorRelation): Keys {
    const outer = this.#outer(exists);
    const row = `${this.#alias}_${++this.#rows}`;
    const [below, under] = [ident(`${row}.below`), ident(`${row}.under`)];
    const table = rowsOf(exists.target);
    this.#naming.set(exists.source.id, (column) => ident(row, column));
    this.#aliases.set(exists.source.id, row);
    this.#tenants.bind(exists);
    // A record whose own next step is hidden ends the chain, but is visible itself.
    const { guard: _, ...seen } = exists;
    const own = (alias: string): readonly Sql[] => this.#ofTenant(exists, alias, this.#tenantOf(exists));
    const where = join([...own(row), ...this.#step(exists, via, row).isSeen, ...this.#conditions(seen)], ' AND ');
    const key = keyOf(exists.target).column;
    const first = sql`SELECT ${ident(row, key)}, 1 FROM ${table} AS ${ident(row)} WHERE ${where}`;
    const { isSeen, rule } = this.#step(exists, via, `${row}.under`);
    // The bare column, so that its index finds the records below.
    const isUnder = sql`${ident(`${row}.under`, via.column)} = ${below}."id"`;
    const met = join([isUnder, ...own(`${row}.under`), ...isSeen, ...(rule === undefined ? [] : [rule])], ' AND ');
    const next = sql`SELECT ${ident(`${row}.under`, key)}, ${below}."place" + 1 FROM ${below} JOIN ${table} AS ${under} ON ${met}`;
    const all = sql`WITH RECURSIVE ${below} ("id", "place") AS (${first} UNION ${next} WHERE ${below}."place" < ${LAST})`;
    return { ...outer, keys: sql`${all} SELECT "id" FROM ${below}` };
  }

  /** The row named `alias` is of the tenant. */
  #ofTenant({ colocated }: Exists, alias: string, tenant: Sql | undefined): readonly Sql[] {
    return colocated?.own === undefined || tenant === undefined
      ? []
      : [sql`${ident(alias, colocated.own)} = ${tenant}`];
  }

  /** The conditions under which the caller may see a row of a chain, and the record above it. */
  #step(
    { guard }: Exists,
    via: CatalogBelongsTo,
    alias: string,
  ): { readonly isSeen: readonly Sql[]; readonly rule?: Sql } {
    if (guard === undefined) return { isSeen: [] };
    const visibility = this.#requiredVisibility();
    const records = visibility.records(guard.collection);
    const isSeen =
      records.verdict === 'allow' ? [] : [records.verdict === 'deny' ? raw('FALSE') : records.where(alias)];
    const member = visibility.member(guard.collection, via.name);
    if (member === undefined || member.verdict === 'allow') return { isSeen };
    return { isSeen, rule: member.verdict === 'deny' ? raw('FALSE') : member.where(alias) };
  }

  /** Its columns are qualified, because the collection may have fields of their names. */
  #chainOf(exists: Exists, { via }: AncestorRelation, underOr: boolean) {
    const key = this.#key(exists);
    const idColumn = keyOf(exists.target).column;
    const row = `${this.#alias}_${++this.#rows}`;
    const [name, step] = [ident(`${row}.chain`), ident(`${row}.step`)];
    const table = rowsOf(exists.target);
    const { isSeen, rule } = this.#step(exists, via, `${row}.step`);
    const parent = ident(`${row}.step`, via.column);
    const up = rule === undefined ? parent : sql`CASE WHEN ${rule} THEN ${parent} END`;
    this.#naming.set(exists.source.id, (column) => (column === idColumn ? sql`${name}."id"` : ident(row, column)));
    this.#aliases.set(exists.source.id, row);
    this.#tenants.bind(exists);
    const tenant = this.#tenantOf(exists) ?? (exists.colocated && this.#column(exists.colocated.outer));
    const own = (alias: string): readonly Sql[] => this.#ofTenant(exists, alias, tenant);
    const ownId = ident(`${row}.step`, idColumn);
    const found = (id: Sql): Sql => join([sql`${ownId} = ${id}`, ...own(`${row}.step`), ...isSeen], ' AND ');
    const first = sql`SELECT ${ownId}, ${up}, ARRAY[${ownId}] FROM ${table} AS ${step} WHERE ${found(key)}`;
    const [above, path] = [sql`${name}."next"`, sql`${name}."path"`];
    const next = sql`SELECT ${ownId}, ${up}, ${path} || ${ownId} FROM ${name} JOIN ${table} AS ${step} ON ${found(above)}`;
    const isNew = sql`${above} <> ALL(${path})`;
    const all = sql`${first} UNION ALL ${next} WHERE cardinality(${path}) < ${LAST} AND ${isNew}`;
    const chain = sql`WITH RECURSIVE ${name} ("id", "next", "path") AS (${all})`;
    const isJoined = join([sql`${ident(row, idColumn)} = ${name}."id"`, ...own(row)], ' AND ');
    const joined = sql`${name} JOIN ${table} AS ${ident(row)} ON ${isJoined}`;
    const from = readsMoreThanId(exists.condition, exists.source) ? joined : name;
    // Records that the caller may not read are not in the chain.
    const { guard: _, ...seen } = exists;
    // The record after the last that counts may be hidden, or gone; where neither can be, a reference leads to a record.
    const beyond = sql`EXISTS (SELECT 1 FROM ${table} AS ${step} WHERE ${found(above)})`;
    const isNextSeen = isSeen.length === 0 && via.mayBeLost !== true ? [] : [beyond];
    const goesOn = join([sql`cardinality(${path}) = ${LAST} AND ${isNew}`, ...isNextSeen], ' AND ');
    return { chain, name, from, conditions: this.#conditions(seen, { underOr }), goesOn };
  }

  /** Stops where further counting cannot change the result. NULL where a chain of ancestors goes on. */
  #count({ exists, limit }: CountRef): Sql {
    if (exists.relation.kind === 'ancestors') {
      const { chain, name, from, conditions, goesOn } = this.#chainOf(exists, exists.relation, false);
      const where = conditions.length > 0 ? sql` WHERE ${join(conditions, ' AND ')}` : empty;
      const isWhole = sql`NOT EXISTS (SELECT 1 FROM ${name} WHERE ${goesOn})`;
      return sql`(${chain} SELECT count(*) FROM ${from}${where} HAVING ${isWhole})`;
    }
    if (exists.relation.kind === 'elements') {
      const { from: values, where: met } = this.#values(exists, false);
      return sql`(SELECT count(*) FROM ${values}${met})`;
    }
    const { from, link, tenant } = this.#rowsOf(exists);
    const key = this.#key(exists);
    const match = exists.by === 'members' ? sql`${link} = ANY(${key})` : sql`${link} = ${key}`;
    const where = join([match, ...this.#isOfTenant(exists, tenant), ...this.#conditions(exists)], ' AND ');
    if (limit === undefined) return sql`(SELECT count(*) FROM ${from} WHERE ${where})`;
    const most = this.#places.of({ kind: 'literal', type: 'int', value: limit }, false);
    return sql`(SELECT count(*) FROM (SELECT 1 FROM ${from} WHERE ${where} LIMIT ${most}) AS "counted")`;
  }

  /** INVARIANT: hoisted subqueries are keyed by a column. */
  #outer({ key }: Exists): Omit<Keys, 'keys'> {
    invariant(key.kind === 'column', 'a list of keys is compared with a column');
    return { of: key, column: this.#column(key) };
  }

  #key({ key }: Exists): Sql {
    return key.kind === 'column' ? this.#column(key) : this.#places.of(key, false);
  }

  /**
   * The rows that reference a record of the request, matched with an outer column: one list of keys,
   * which an index on that column serves.
   */
  #keyList(exists: Exists, { own, outer, rest }: KeyList): Keys {
    const { from, link } = this.#rowsOf(exists);
    const around = this.#nearest;
    this.#nearest = exists.source.id;
    const conditions = [sql`${link} = ${this.#key(exists)}`, ...rest.map((item) => this.#part(item, false))];
    this.#nearest = around;
    const keys = sql`SELECT ${this.#column(own)} FROM ${from} WHERE ${join(conditions, ' AND ')}`;
    return { of: outer, column: this.#column(outer), keys };
  }

  /**
   * The keys are found once, and are so few that memory holds them. NOT IN is not true either where a key, or the column
   * outside beside some key, is absent.
   */
  #none(exists: Exists, list: KeyList): Sql {
    const { item, own, outer, rest } = list;
    const isTested = (column: ColumnRef): boolean =>
      !column.nullable ||
      alternativesOf(item).some((part) => part.kind === 'null' && isSameColumn(part.column, column));
    const present: NullTest = { kind: 'null', negated: true, column: own };
    const { column, keys } = this.#keyList(exists, isTested(own) ? list : { ...list, rest: [...rest, present] });
    const isNone = sql`${column} NOT IN (${keys})`;
    return isTested(outer) ? isNone : sql`(${column} IS NULL OR ${isNone})`;
  }

  /** Each alternative has an index of its own, or is a test of the row outside, by which no join finds rows. */
  #each(exists: Exists, { item, rest }: KeyList): Sql {
    const parts = alternativesOf(item).map((part) => {
      const each = { ...exists, condition: and([part, ...rest]) };
      const isJoined = this.#hashed !== undefined && part.kind !== 'null';
      return isJoined ? this.#semiJoin(each, this.#fence(each)) : this.#lookUp(each);
    });
    return parts.length === 1 ? parts[0]! : sql`(${join(parts, ' AND ')})`;
  }

  #conditions(
    exists: Exists,
    { underOr = false, isWhole = false, isByKey = false }: ConditionsOf = {},
  ): readonly Sql[] {
    const { condition, source, guard } = exists;
    // PostgreSQL tests cheaper conditions before the time, so the loop around times one whose rows fail these.
    const isTimed = (): boolean => isWhole || (isLoop(exists) && !isRoot(this.#nearest)) || hasLoop(condition);
    const inTime = this.#inTime !== undefined && isTimed() ? [this.#inTime] : [];
    const seen = guard === undefined ? [] : this.#guards(guard, source);
    const guards = [...inTime, ...(isByKey ? seen.map(tested) : seen)];
    if (condition.kind === 'const' && condition.value) return guards;
    const around = this.#nearest;
    this.#nearest = source.id;
    // The index of a list would be searched for every key of it.
    const isOfList = (item: Condition): boolean =>
      nodesOf(item).some((node) => node.kind === 'exists' && this.#isHoisted(node));
    const printed = conjunctsOf(condition).map((item) => {
      const part = this.#part(item, underOr);
      return isByKey && (isServedAlone(item, exists) || isOfList(item)) ? tested(part) : part;
    });
    this.#nearest = around;
    return [...guards, ...printed];
  }

  /** The caller's read rule, tested on the row itself. */
  #guards({ collection, via }: Guard, { id }: Source): readonly Sql[] {
    const visibility = this.#requiredVisibility();
    const alias = this.#aliases.get(id)!;
    const rules = [visibility.records(collection), via === undefined ? undefined : visibility.member(collection, via)];
    return rules.flatMap((rule) => (rule?.verdict === 'depends' ? [rule.where(alias)] : []));
  }

  #requiredVisibility(): Visibility {
    invariant(this.#visibility !== undefined, 'what may be hidden is printed for a caller');
    return this.#visibility;
  }

  /** The rows that `exists` ranges over. */
  #rowsOf(exists: Exists): FoundRows {
    const { source, relation, target, condition, by, guard, colocated } = exists;
    const { column: key } = keyOf(target);
    if (by === 'id' && exists.key.kind === 'slot') this.#requested.add(source.id);
    const row = `${this.#alias}_${++this.#rows}`;
    const columns: Naming = (column) => ident(row, column);
    const from = sql`${rowsOf(target)} AS ${ident(row)}`;
    this.#naming.set(source.id, columns);
    this.#aliases.set(source.id, row);
    this.#tenants.bind(exists);
    const tenant = colocated?.own === undefined ? undefined : columns(colocated.own);
    if (by !== 'owner') return { from, link: columns(key), tenant };
    switch (relation.kind) {
      case 'belongs_to':
      case 'ancestors':
        invariant(false, 'a belongs_to, and a chain of them, is found by the id that it holds');
        break;
      case 'elements':
        invariant(false, 'the elements of a list are in the row itself');
        break;
      case 'has_one':
      case 'has_many':
        return { from, link: columns(relation.viaColumn), tenant };
      case 'many_to_many': {
        const pair = `${row}_link`;
        const targetId = ident(pair, relation.targetColumn);
        const link = ident(pair, relation.sourceColumn);
        const pairs = sql`${tableIdent(relation.linkTable)} AS ${ident(pair)}`;
        this.#naming.set(source.id, (column) => (column === key ? targetId : columns(column)));
        // A row of the link table holds the element's id, so the element is read for its other columns, or if it may be gone.
        const linked = colocated && ident(pair, LINK_TENANT_COLUMN);
        const isRead = guard ?? relation.mayBeLost ?? readsMoreThanId(condition, source);
        if (!isRead) return { from: pairs, link, tenant: linked };
        const isOfPair = tenant === undefined || linked === undefined ? empty : sql` AND ${tenant} = ${linked}`;
        const joined = sql`${pairs} JOIN ${from} ON ${columns(key)} = ${targetId}${isOfPair}`;
        return { from: joined, link, tenant: linked };
      }
    }
  }

  // -------------------------------------------------------------- tests

  /**
   * A mask stays around its column: as a condition of its own, it would let an index find rows by a value
   * that the caller may not read, and the time of the answer would show how many there are.
   */
  #test(test: Test): Sql {
    if (test === this.#range) return this.#oneValueRange(test);
    const operator = OPERATORS[test.op];
    const asText = !areOfOneForm(elementOf(test.left.type) ?? test.left.type, test.right.type);
    const isList = (operand: ConditionOperand): boolean => operator.sides === 'element' && operand === test.right;
    const printed = OPERATOR_SQL[test.op]({
      left: test.left,
      right: test.right,
      negated: test.negated,
      render: (operand) => {
        if (operand.kind === 'count') return this.#count(operand);
        if (operand.kind !== 'column') return this.#places.of(operand, isList(operand));
        const masked = this.#column(operand);
        return asText && isTo(operand.type) ? sql`${masked}::text` : masked;
      },
      successor: (operand) => this.#places.successor(operand),
      pattern: (operand) => this.#places.pattern(operand),
      literal: (type, value) => this.#places.literal(type, value),
    });
    if (test.left.kind !== 'count' || !test.left.beyond) return printed;
    const { right } = test;
    const otherwise = right.kind === 'column' ? sql`${this.#column(right)} IS NOT NULL` : raw('TRUE');
    return sql`COALESCE(${printed}, ${otherwise})`;
  }

  /** Every type that an index may have orders equal values, and no others, as equal. */
  #oneValueRange({ left, right }: Test): Sql {
    invariant(left.kind === 'column' && (right.kind === 'literal' || right.kind === 'slot'), 'a range has one value');
    const value = this.#places.of(right, false);
    return sql`${this.#column(left)} BETWEEN ${value} AND ${value}`;
  }

  /** Masked where the caller may read the column in some rows only. */
  #column({ source, column, mask, part, type }: ColumnRef): Sql {
    const naming = this.#naming.get(source.id);
    invariant(naming !== undefined, 'a row is named before its columns');
    const rule = mask && this.#requiredVisibility().member(mask.collection, mask.member);
    const read = part === undefined ? naming(column) : partOfColumn(naming(part.column), part, type);
    return maskedBy(rule, this.#aliases.get(source.id)!, read);
  }
}
