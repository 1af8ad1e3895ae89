/**
 * The result of a write by the definition of the language: whether it is allowed, and the database after it. It shares no code with the store. A write is
 * judged against the database before it; a has_one that it moves is one more write for each partner, in turn.
 */
import type {
  Catalog,
  CatalogManyToMany,
  Checked,
  HasOne,
  PolicyRequest,
  Related,
  Row,
} from '../../src/policy/types.ts';
import { type Data, type Id, relatedOf, touchedAt } from './database.ts';
import { goingWith, isHeldBack, without } from './deletion.ts';
import { interpret } from './interpret.ts';
import { holdsKeys } from './keys.ts';
import { compared, placeOf } from './order.ts';

interface Rule {
  /** Judges by the definition. */
  readonly meant: Checked;
  readonly namesNext: boolean;
}
interface Rules {
  of(collection: string, action: 'list' | 'read' | 'create' | 'update' | 'delete'): readonly Rule[];
  /** The rules of a field or belongs_to; undefined: it has none. */
  ofMember(collection: string, member: string, action: 'read' | 'create' | 'update'): readonly Rule[] | undefined;
  /** Each is true of the records that fail a check. */
  violated(collection: string, action: 'create' | 'update'): readonly Rule[];
  /** False if the transitions of a field do not lead from the one value to the other. */
  follows(member: string, before: unknown, after: unknown): boolean;
}
export interface MemberOperation {
  readonly relation: CatalogManyToMany;
  readonly set?: readonly Id[];
  readonly add?: readonly Id[];
  readonly remove?: readonly Id[];
}
export interface Write {
  readonly action: 'create' | 'update' | 'delete';
  readonly collection: string;
  readonly id: Id;
  /** True if the caller names the version of the record; undefined: it names none. */
  readonly isCurrent?: boolean | undefined;
  /** Fields and belongs_to. A create names them all. */
  readonly values: Row;
  readonly partners: readonly { readonly relation: HasOne; readonly id: Id | null }[];
  readonly members: readonly MemberOperation[];
}
export interface Standing {
  readonly catalog: Catalog;
  readonly data: Data;
  readonly request: PolicyRequest;
  readonly rules: Rules;
}

/** The database after the write; undefined where it is refused. */
export function judge(write: Write, standing: Standing): Data | undefined {
  if (write.isCurrent === false) return undefined;
  if (write.action === 'delete') return deleted(write, standing);
  if (!isReferable(write, standing)) return undefined;
  const written = resultOf(write, standing);
  if (!isAllowed(write, written, standing)) return undefined;
  let after: Data | undefined = stored(write, written, standing);
  for (const partner of write.partners) {
    // A place that is held twice is refused before the next operation is judged.
    if (after === undefined || !isUnique({ ...standing, data: after })) return undefined;
    const isKept = partner.id === null && hiddenPartner(write, partner.relation, standing) !== undefined;
    if (isKept) continue;
    after = movePartner({ ...partner, of: write.id, from: write.collection }, { ...standing, data: after });
  }
  return after !== undefined && isUnique({ ...standing, data: after }) ? after : undefined;
}

function deleted(write: Write, standing: Standing): Data | undefined {
  const { catalog, data, request } = standing;
  if (!isPermitted(write, standing)) return undefined;
  const going = goingWith({ catalog, data }, write);
  return isHeldBack({ catalog, data }, going) ? undefined : without({ catalog, data }, going, request.now);
}

/** True if the rules allow the write; other conditions may still prevent it. */
export function isPermitted(write: Write, standing: Standing): boolean {
  const { action, collection, id } = write;
  if (action !== 'delete') return isAllowed(write, resultOf(write, standing), standing);
  return isMet(standing.rules.of(collection, 'delete'), rowOf(standing.data, collection, id)!, standing);
}

// ---------------------------------------------------------------- the record

/** Records that a body names must exist and be readable. */
export function isReferable({ collection, values, partners, members }: Write, standing: Standing): boolean {
  const { relations } = standing.catalog.collections.get(collection)!;
  const named: (readonly [string, Id])[] = [];
  for (const relation of relations.values()) {
    const id = relation.kind === 'belongs_to' ? values[relation.name] : undefined;
    if (id != null) named.push([relation.collection, id as Id]);
  }
  for (const { relation, id } of partners) if (id !== null) named.push([relation.collection, id]);
  for (const { relation, set = [], add = [] } of members)
    for (const id of [...set, ...add]) named.push([relation.collection, id]);
  return named.every(([target, id]) => isReadable(target, id, standing));
}

export function isReadable(collection: string, id: Id, standing: Standing): boolean {
  const record = rowOf(standing.data, collection, id);
  return record !== undefined && isReadableAs(collection, record, standing);
}

/** The same for a state of a record that is not stored, or no longer. */
export const isReadableAs = (collection: string, record: Row, standing: Standing): boolean =>
  isMet(standing.rules.of(collection, 'read'), record, standing);

function isMet(rules: readonly Rule[], record: Row, { catalog, data, request }: Standing): boolean {
  const related = relatedOf(catalog, data);
  return rules.some(({ meant }) => interpret(meant, { record, related, request }) === true);
}

/** True if the caller may read a member of a readable record. */
export function isMemberReadable(collection: string, member: string, record: Row, standing: Standing): boolean {
  const rules = standing.rules.ofMember(collection, member, 'read');
  return rules === undefined || isMet(rules, record, standing);
}

/** True if the caller may see the partner: the partner is readable, and so is its reference. */
function isPartnerReadable({ collection, via }: HasOne, partner: Row, standing: Standing): boolean {
  return isReadable(collection, partner.id as Id, standing) && isMemberReadable(collection, via, partner, standing);
}

/** The record that the write makes. */
function resultOf(write: Write, standing: Standing): Row {
  const { action, collection, id, values } = write;
  const { now } = standing.request;
  const before = rowOf(standing.data, collection, id);
  const own = standing.catalog.collections.get(collection)!;
  const created = action === 'create' && own.fields.has('created_at') ? { created_at: now } : {};
  const held = { ...(before && heldOf(collection, before, standing)) };
  for (const relation of own.relations.values()) {
    if (relation.kind === 'many_to_many') held[relation.name] ??= [];
    if (relation.kind === 'has_one') held[relation.name] ??= null;
  }
  for (const { relation, id: partner } of write.partners)
    held[relation.name] = partner ?? hiddenPartner(write, relation, standing) ?? null;
  for (const operation of write.members)
    held[operation.relation.name] = membersAfter(held[operation.relation.name] as readonly Id[], operation, standing);
  return touchedAt(own, { ...before, id, ...values, ...created, ...held }, now);
}

/** Members that the caller may not read stay. */
function membersAfter(before: readonly Id[], operation: MemberOperation, standing: Standing): readonly Id[] {
  const { relation, set, add = [], remove = [] } = operation;
  const isLeaving = (id: Id): boolean => (set === undefined ? false : !set.includes(id)) || remove.includes(id);
  const kept = before.filter((id) => !isLeaving(id) || !isReadable(relation.collection, id, standing));
  const more = [...(set ?? []), ...add].filter((id) => !remove.includes(id));
  return [...new Set([...kept, ...more])];
}

/** The partner that the record has and that the caller may not read: it cannot be let go. */
function hiddenPartner({ action, collection, id }: Write, relation: HasOne, standing: Standing): Id | undefined {
  if (action === 'create') return undefined;
  const [holder] = relatedOf(standing.catalog, standing.data).many(collection, relation.name, id);
  if (holder === undefined || isPartnerReadable(relation, holder, standing)) return undefined;
  return holder.id as Id;
}

/** Judges by the rules of the record, by those of every member that the write names, and by the checks. */
function isAllowed(write: Write, written: Row, standing: Standing): boolean {
  const { action, collection, values } = write;
  const own = Object.keys(values).flatMap((member) => {
    const rules = standing.rules.ofMember(collection, member, action === 'create' ? 'create' : 'update');
    return rules === undefined ? [] : [rules];
  });
  const judged = { write, written, standing };
  if (action === 'delete') return false;
  const before = action === 'create' ? undefined : rowOf(standing.data, collection, write.id);
  if (before && !Object.keys(values).every((name) => standing.rules.follows(name, before[name], values[name])))
    return false;
  const fails = isWriteMet(standing.rules.violated(collection, action), judged);
  return !fails && [standing.rules.of(collection, action), ...own].every((rules) => isWriteMet(rules, judged));
}

interface Judged {
  readonly write: Write;
  readonly written: Row;
  readonly standing: Standing;
}

function isWriteMet(rules: readonly Rule[], { write, written, standing }: Judged): boolean {
  const { action, collection, id } = write;
  if (action === 'update') return isUpdateMet(rules, rowOf(standing.data, collection, id)!, written, standing);
  const related = relatedOf(standing.catalog, standing.data);
  const world = { record: written, isWritten: true, related, request: standing.request };
  return rules.some(({ meant }) => interpret(meant, world) === true);
}

/** The same rule holds before and after, or a rule sees both records. */
function isUpdateMet(rules: readonly Rule[], record: Row, written: Row, standing: Standing): boolean {
  const { catalog, data, request } = standing;
  const related: Related = relatedOf(catalog, data);
  return rules.some(({ meant, namesNext }) => {
    if (namesNext) return interpret(meant, { record, next: written, related, request }) === true;
    const [before, after] = [
      interpret(meant, { record, related, request }),
      interpret(meant, { record: written, isWritten: true, related, request }),
    ];
    return before === true && after === true;
  });
}

/**
 * The list of a collection: the records that the caller may list, each without members that the caller may
 * not read.
 */
export function seen(collection: string, filter: Row, standing: Standing): readonly Row[] {
  const { data, rules } = standing;
  const own = standing.catalog.collections.get(collection)!;
  const matches = (record: Row): boolean =>
    Object.entries(filter).every(
      ([name, value]) => record[name] === value && isMemberReadable(collection, name, record, standing),
    );
  return data.rows
    .get(collection)!
    .filter((record) => isMet(rules.of(collection, 'list'), record, standing) && matches(record))
    .toSorted((a, b) => compared(placeOf(a, own), placeOf(b, own)))
    .map((record) => shownTo(collection, record, standing));
}

/** The answer to a write, by the state after it: only the id if the caller may not read the result. */
export function answered({ collection, id }: Pick<Write, 'collection' | 'id'>, standing: Standing): Row {
  const record = rowOf(standing.data, collection, id)!;
  return isReadable(collection, id, standing) ? shownTo(collection, record, standing) : { id };
}

function shownTo(collection: string, record: Row, standing: Standing): Row {
  const members = Object.entries(record).filter(([name]) => isMemberReadable(collection, name, record, standing));
  const held = [...standing.catalog.collections.get(collection)!.relations.values()].flatMap((relation) => {
    if (relation.kind !== 'has_one') return [];
    const [partner] = relatedOf(standing.catalog, standing.data).many(collection, relation.name, record.id as Id);
    const isSeen = partner !== undefined && isPartnerReadable(relation, partner, standing);
    return [[relation.name, isSeen ? partner.id : null] as const];
  });
  return Object.fromEntries([...members, ...held]);
}

function stored({ action, collection, id }: Write, written: Row, { catalog, data }: Standing): Data {
  const { relations } = catalog.collections.get(collection)!;
  const isHeld = (name: string): boolean => {
    const kind = relations.get(name)?.kind;
    return kind === 'has_one' || kind === 'many_to_many';
  };
  const row = Object.fromEntries(Object.entries(written).filter(([name]) => !isHeld(name)));
  const others = data.rows.get(collection)!;
  const rows = action === 'create' ? [...others, row] : others.map((each) => (each.id === id ? row : each));
  const links = new Map(data.links);
  for (const relation of relations.values()) {
    if (relation.kind !== 'many_to_many') continue;
    const rest = links.get(relation.linkTable)!.filter(([source]) => source !== id);
    const own = (written[relation.name] as readonly Id[]).map((target) => [id, target] as const);
    links.set(relation.linkTable, [...rest, ...own]);
  }
  return { rows: new Map(data.rows).set(collection, rows), links };
}

// ---------------------------------------------------------------- its partners

interface Move {
  readonly relation: HasOne;
  /** The record that becomes the holder, or none. */
  readonly id: Id | null;
  /** Whose place it is. */
  readonly from: string;
  readonly of: Id;
}

function movePartner({ relation, id, from, of }: Move, standing: Standing): Data | undefined {
  const [holder] = relatedOf(standing.catalog, standing.data).many(from, relation.name, of);
  if ((holder?.id ?? null) === id) return standing.data;
  const freed = holder === undefined ? standing.data : point(relation, holder.id as Id, null, standing);
  if (freed === undefined || id === null) return freed;
  return point(relation, id, of, { ...standing, data: freed });
}

/** An update of the partner, as any other. */
function point({ collection, via }: HasOne, id: Id, target: Id | null, standing: Standing): Data | undefined {
  const write: Write = { action: 'update', collection, id, values: { [via]: target }, partners: [], members: [] };
  const written = resultOf(write, standing);
  return isAllowed(write, written, standing) ? stored(write, written, standing) : undefined;
}

/** True if no place of a has_one is held twice, and the keys hold. */
export function isUnique({ catalog, data, request }: Standing): boolean {
  for (const { relations } of catalog.collections.values()) {
    for (const relation of relations.values()) {
      if (relation.kind !== 'has_one') continue;
      const places = data.rows.get(relation.collection)!.flatMap((row) => row[relation.via] ?? []);
      if (new Set(places).size < places.length) return false;
    }
  }
  return holdsKeys({ catalog, data, request });
}

// ---------------------------------------------------------------- the database

export const rowOf = (data: Data, collection: string, id: Id): Row | undefined =>
  data.rows.get(collection)!.find((row) => row.id === id);

/** True if a stored record fails a check, which judges it as a create. */
export function failsCheck(collection: string, row: Row, standing: Standing): boolean {
  const { catalog, data, request, rules } = standing;
  const related = relatedOf(catalog, data);
  const record = { ...row, ...heldOf(collection, row, standing) };
  const world = { record, isWritten: true, related, request };
  return rules.violated(collection, 'create').some(({ meant }) => interpret(meant, world) === true);
}

/** The partners and members of a stored record. */
function heldOf(collection: string, row: Row, { catalog, data }: Standing): Record<string, unknown> {
  const related = relatedOf(catalog, data);
  const held: Record<string, unknown> = {};
  for (const relation of catalog.collections.get(collection)!.relations.values()) {
    const ids = (): unknown[] => related.many(collection, relation.name, row.id as Id).map(({ id }) => id);
    if (relation.kind === 'has_one') held[relation.name] = ids()[0] ?? null;
    if (relation.kind === 'many_to_many') held[relation.name] = ids();
  }
  return held;
}
