/** A branch of the search → a world of rows. */

import { GUEST, GUEST_ROW } from '../../check/guests.ts';
import { elementOf, isTo, scalarOf } from '../../scalar-types.ts';
import { listElements, listText } from '../../scalars/list-values.ts';
import {
  belongsTosOf,
  type CatalogCollection,
  type CatalogField,
  ELEMENT_VALUE,
  type Row,
  STAMPS,
} from '../../types.ts';
import { base64OfBytes, own, type Scalar } from '../../values.ts';
import type { Asked, ListVariable, QueryView } from './asked-request.ts';
import { type Assigned, giveIds, termsOfRow, valuesOf } from './build.ts';
import { idNumber, idValue, valuesWithin } from './domains.ts';
import { Filler, type MutableRow } from './filler.ts';
import type { Rows } from './rows.ts';
import { type RowVariable, rootOf, rowRoot, type StoredRow, type Term, WrittenVariables } from './variables.ts';
import { type Link, relatedIn, type World } from './world.ts';

type TriedQuery = Record<string, string | readonly string[]>;

/** Undefined: no values, or no texts of a query, could be found. */
export function worldOf(rows: Rows, asked: Asked): World | undefined {
  const { written } = asked.subject;
  if (!rows.separateUnique()) return undefined;
  rows.separateKeyed();
  const searched = new Set(rows.all);
  const terms = allTerms(rows, asked);
  for (const term of terms) if (term.collection !== undefined && rootOf(term).isPresent === true) rows.rowOf(term);
  keepReferences(rows, written);
  if (!giveIds(rows, written, terms)) return undefined;
  const values = valuesOf(terms, rows.terms);
  if (values === undefined) return undefined;
  return new WorldBuilder(rows, asked, { values, searched }).world();
}

/** A record that nothing requires to be gone exists. */
function keepReferences(rows: Rows, written: WrittenVariables | undefined): void {
  for (const row of [...rows.all, ...(written === undefined ? [] : [written])]) {
    // The elements of lists are of no collection.
    const collection = rows.catalog.collections.get(row.collection);
    for (const { name, mayBeLost } of collection === undefined ? [] : belongsTosOf(collection)) {
      const term = rowRoot(row).columns.get(name);
      if (mayBeLost !== true || term === undefined || rootOf(term).isPresent !== true) continue;
      const referred = rows.rowOf(term);
      if (referred.isStored === undefined) rows.mustBeStored(referred);
    }
  }
}

function allTerms(rows: Rows, asked: Asked): readonly Term[] {
  const { written } = asked.subject;
  return [
    ...rows.all.flatMap(termsOfRow),
    ...(written === undefined ? [] : termsOfRow(written)),
    ...[...asked.queries.values()].map(({ term }) => term),
    ...asked.body.values(),
    ...asked.extras.values(),
    ...asked.facts.all,
    ...[...asked.lists.values()].flatMap(({ members, others }) => [...members, ...others]),
  ];
}

interface SearchBranch {
  readonly values: Assigned;
  /** The rows that the search has looked at. */
  readonly searched: ReadonlySet<StoredRow>;
}

class WorldBuilder {
  readonly #rows: Rows;
  readonly #asked: Asked;
  readonly #values: Assigned;
  readonly #searched: ReadonlySet<StoredRow>;
  #now = '';

  constructor(rows: Rows, asked: Asked, { values, searched }: SearchBranch) {
    this.#rows = rows;
    this.#asked = asked;
    this.#values = values;
    this.#searched = searched;
  }

  world(): World | undefined {
    const { subject, standing } = this.#asked;
    const now = this.#asked.facts.now((term) => this.#valueOf(term));
    if (now === undefined) return undefined;
    this.#now = now;
    const rows = new Map<string, MutableRow[]>();
    for (const name of this.#rows.catalog.collections.keys()) rows.set(name, []);
    const stored = this.#rows.all.filter(({ isStored }) => isStored);
    for (const row of stored) rows.get(row.collection)!.push(this.#row(row, {}));
    const filler = this.#filler(rows);
    for (const row of stored) {
      const made = this.#find(rows, row);
      if (!this.#searched.has(row)) filler.adopt(made);
      filler.complete(made, this.#collection(row));
    }
    const links = this.#links();
    const record: Row | undefined = subject.stored && this.#find(rows, subject.stored);
    const written = subject.written && this.#written(subject.written, { rows, links, record });
    if (written !== undefined) filler.complete(written, this.#collection(subject.written!));
    const query = this.#query();
    if (query === undefined || filler.isExhausted) return undefined;
    const data = written && this.#data(written, record);
    const { kind } = standing.caller;
    const facts = this.#asked.facts.facts((term) => this.#valueOf(term));
    return {
      action: standing.action,
      collection: (subject.stored ?? subject.written)!.collection,
      isGuest: kind === 'guest',
      request: { auth: this.#auth(rows), kind, facts, query, now, ...(data && { data }) },
      ...(record && { record }),
      ...(written && { written }),
      rows,
      links,
    };
  }

  /** Knows the unique values and references of the rows so far. */
  #filler(rows: ReadonlyMap<string, MutableRow[]>): Filler {
    const { catalog } = this.#rows;
    const filler = new Filler(catalog, rows);
    for (const [name, all] of rows) {
      const { fields, relations } = catalog.collections.get(name)!;
      for (const row of all)
        for (const member of [...fields.keys(), ...relations.keys()])
          if (own(row, member) != null) filler.take(name, member, row[member]);
    }
    return filler;
  }

  #find<T extends Row>(rows: ReadonlyMap<string, readonly T[]>, row: StoredRow): T {
    const own = this.#idOf(row);
    return rows.get(row.collection)!.find(({ id }) => id === own)!;
  }

  #collection(row: RowVariable): CatalogCollection {
    return this.#rows.catalog.collections.get(row.collection)!;
  }

  /** `undefined`: no test has fixed it. */
  #valueOf(term: Term | undefined): Scalar | null | undefined {
    if (term === undefined) return undefined;
    const root = rootOf(term);
    if (root.isPresent !== true) return root.isPresent === false ? null : undefined;
    if (root.domain.kind === 'list') return this.#listOf(root);
    if (root.collection === undefined) return this.#values.get(root) ?? root.value ?? null;
    return this.#idOf(root.row!);
  }

  #idOf(row: StoredRow): Scalar {
    const { uuid, collection } = rowRoot(row);
    return idValue(this.#rows.idType(collection), uuid!);
  }

  #listOf(list: Term): string {
    const elements = this.#rows.elementsOf(list).map((row) => this.#valueOf(row.columns.get(ELEMENT_VALUE))!);
    return listText(elements);
  }

  /** The text of a json value that has the parts, and a member that differs where two values must. */
  #jsonOf(columns: ReadonlyMap<string, Term>, name: string, paths: NonNullable<CatalogField['paths']>): string | null {
    const whole = this.#valueOf(columns.get(name));
    if (whole === undefined || whole === null) return null;
    const value: Record<string, unknown> = whole === '{}' ? {} : { [UNREAD_MEMBER]: Number(whole) };
    for (const part of paths.values()) {
      const read = this.#valueOf(columns.get(part.name));
      if (read === undefined || read === null) continue;
      const [last, ...above] = part.part!.keys.toReversed();
      let at = value;
      for (const key of above.toReversed()) {
        if (!isObjectValue(at[key])) at[key] = {};
        at = at[key] as Record<string, unknown>;
      }
      at[last!] = read;
    }
    return JSON.stringify(value);
  }

  #row(row: RowVariable, before: Row): MutableRow {
    const { fields, relations } = this.#collection(row);
    const columns = rowRoot(row).columns;
    const names = [
      ...fields.keys(),
      ...[...relations.values()].filter(({ kind }) => kind === 'belongs_to').map(({ name }) => name),
    ];
    const id = this.#idOf(this.#rows.rowOf(row.id));
    const entries = names.map((name): [string, unknown] => {
      const paths = fields.get(name)?.paths;
      if (paths !== undefined && [...paths.values()].some((part) => columns.has(part.name)))
        return [name, this.#jsonOf(columns, name, paths)];
      const value = this.#valueOf(columns.get(name));
      return [name, value === undefined ? (own(before, name) ?? null) : value];
    });
    return { id, ...Object.fromEntries(entries) };
  }

  #links(): readonly Link[] {
    return this.#rows.links.flatMap(({ relation, owner, element, isLinked }) => {
      if (!isLinked || owner instanceof WrittenVariables) return [];
      const { name } = [...this.#collection(owner).relations.values()].find(
        (each) => each.kind === 'many_to_many' && each.linkTable === relation,
      )!;
      return [{ collection: owner.collection, relation: name, owner: this.#idOf(owner), element: this.#idOf(element) }];
    });
  }

  #written(row: WrittenVariables, { rows, links, record }: Pick<World, 'rows' | 'links' | 'record'>): MutableRow {
    const related = relatedIn(this.#rows.catalog, { rows, links });
    const held: Record<string, unknown> = {};
    for (const relation of this.#collection(row).relations.values()) {
      const { name, kind } = relation;
      if (kind !== 'has_one' && kind !== 'many_to_many') continue;
      const before = record ? related.many(row.collection, name, String(record.id)).map(({ id }) => id as Scalar) : [];
      if (kind === 'has_one') {
        const own = this.#valueOf(row.columns.get(name));
        held[name] = own === undefined ? (before[0] ?? null) : own;
      } else {
        const links = this.#rows.links.filter((link) => link.owner === row && link.relation === relation.linkTable);
        const ids = (isLinked: boolean) =>
          links.filter((link) => link.isLinked === isLinked).map(({ element }) => this.#idOf(element));
        const without = ids(false);
        held[name] = [...new Set([...before.filter((id) => !without.includes(id)), ...ids(true)])];
      }
    }
    return { ...this.#row(row, { ...record, ...this.#stamps(record) }), ...held };
  }

  #stamps(record: Row | undefined): Row {
    const now = this.#now;
    if (record === undefined) return Object.fromEntries(STAMPS.map((name) => [name, now]));
    const stored = String(record.updated_at);
    return { updated_at: stored > now ? stored : now };
  }

  // -------------------------------------------------------------- the request

  #auth(rows: ReadonlyMap<string, readonly Row[]>): Row {
    const { user, extras, standing } = this.#asked;
    if (standing.caller.kind === 'guest') {
      const guest = this.#valueOf(extras.get(GUEST)) ?? undefined;
      return guest === undefined ? GUEST_ROW : { ...GUEST_ROW, guest };
    }
    const roles = this.#asked.roleNames.filter((name) => this.#asked.isHeld(name));
    const more = [...extras].map(([name, term]): [string, unknown] => [name, this.#valueOf(term) ?? null]);
    const own = user === undefined ? { id: KEY_ID, second_factor: false } : this.#find(rows, user);
    return { ...own, ...Object.fromEntries(more), roles };
  }

  /** The body names what the write changes, and what the rules ask of it. */
  #data(written: Row, record: Row | undefined): Row {
    const { body, subject } = this.#asked;
    const { fields } = this.#collection(subject.written!);
    const given = Object.entries(written).filter(([name, value]) => {
      const term = body.get(name);
      const isSet = term && rootOf(term).isPresent;
      if (isSet !== undefined) return isSet;
      if (name === 'id' || STAMPS.includes(name) || Array.isArray(value)) return false;
      return record === undefined ? value !== null : value !== record[name];
    });
    const inJson = (name: string, value: unknown): unknown => {
      const type = fields.get(name)?.type ?? { id: '' };
      if (typeof value === 'string' && elementOf(type) !== undefined) return listElements(value);
      return jsonForType(value, scalarOf(type).sqlType);
    };
    // The service takes no times of a body.
    const ignored = [...body].filter(([name, term]) => STAMPS.includes(name) && rootOf(term).isPresent === true);
    return Object.fromEntries([
      ...given.filter(([name]) => !STAMPS.includes(name)).map(([name, value]) => [name, inJson(name, value)] as const),
      ...ignored.map(([name, term]) => [name, this.#valueOf(term)] as const),
    ]);
  }

  #query(): TriedQuery | undefined {
    const byName = Map.groupBy(this.#asked.queries.values(), ({ operand }) => operand.name);
    const lists = Map.groupBy(this.#asked.lists.values(), ({ operand }) => operand.name);
    const query: TriedQuery = {};
    for (const name of new Set([...byName.keys(), ...lists.keys()])) {
      const text = this.#queryOf(byName.get(name) ?? [], lists.get(name) ?? []);
      if (text === null) return undefined;
      if (text !== undefined) Object.defineProperty(query, name, { value: text, enumerable: true });
    }
    return query;
  }

  /** The text of a key, or its texts. Null: none is read as it should be; undefined: the key is left out. */
  #queryOf(views: readonly QueryView[], lists: readonly ListVariable[]): TriedQuery[string] | null | undefined {
    const isPresent = ({ term }: QueryView): boolean => rootOf(term).isPresent === true;
    const present = views.filter(isPresent);
    const texts = lists.map((list) => this.#elementsOf(list));
    if (texts.includes(null)) return null;
    const [elements] = texts.filter((each) => each !== undefined) as (readonly string[])[];
    const candidates: readonly (TriedQuery[string] | undefined)[] =
      elements !== undefined
        ? [elements, ...(elements.length === 1 ? elements : [])]
        : present.length === 0
          ? [undefined]
          : present.map((view) => textOfScalar(this.#valueOf(view.term)!, view.operand.type));
    const reads = (text: TriedQuery[string] | undefined): boolean =>
      views.every(({ operand, term }) => {
        const wanted = rootOf(term).isPresent === undefined ? null : this.#valueOf(term);
        const read = typeof text === 'string' ? scalarOf(operand.type).readText(text) : undefined;
        return rootOf(term).isPresent === undefined || (read ?? null) === wanted;
      }) && texts.every((each) => each === undefined || JSON.stringify(each) === JSON.stringify([text].flat()));
    const found = candidates.find(reads);
    return found === undefined && candidates[0] !== undefined ? null : found;
  }

  #elementsOf({ key, members, others, operand }: ListVariable): readonly string[] | null | undefined {
    const isPresent = this.#rows.facts.get(`list present ${key}`);
    if (isPresent !== true) return undefined;
    const isWhole = this.#rows.facts.get(`list whole ${key}`) !== false;
    const texts = [...new Set(members.map((term) => textOfScalar(this.#valueOf(term)!, operand.type)))];
    if (texts.length === 0) {
      const taken = new Set(others.map((term) => this.#valueOf(term)));
      const free = this.#freshValues(operand, others).find((value) => !taken.has(value));
      if (free === undefined) return null;
      texts.push(textOfScalar(free, operand.type));
    }
    return isWhole ? texts : [...texts, UNREADABLE_TEXT];
  }

  #freshValues({ type }: ListVariable['operand'], others: readonly Term[]): readonly Scalar[] {
    const { domain } = this.#rows.value(type, true)!;
    const count = others.length + 1;
    if (domain.kind === 'text') return Array.from({ length: count }, (_, i) => `other${i}`);
    if (isTo(type)) return Array.from({ length: count }, (_, i) => idValue(type, idNumber(type, FIRST_FRESH + i)));
    return valuesWithin(domain, { isWhole: true, step: 1n }, count);
  }
}

const isObjectValue = (value: unknown): boolean => typeof value === 'object' && value !== null;
/** The number of an id that no row of a world has. */
const FIRST_FRESH = 5000;
/** No schema is likely to name it. */
const UNREAD_MEMBER = '_';
/** The id of a key that no rule asks about. */
const KEY_ID = '019b7000-0000-7000-8000-fffffffffffe';

/** No type reads it. */
const UNREADABLE_TEXT = '\0';

/** Bytes are in base64 outside of a record. */
const jsonForType = (value: unknown, sqlType: string): unknown =>
  sqlType === 'bytea' && typeof value === 'string' ? base64OfBytes(value) : value;

const textOfScalar = (value: Scalar, type: QueryView['operand']['type']): string =>
  String(jsonForType(value, scalarOf(type).sqlType));
