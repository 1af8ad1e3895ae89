/**
 * The subscribers who see the same: one decision and one text for all of them. The list rule, the filter and the rules of
 * members decide in memory, as a list decides in the database.
 */
import type { Cells } from '../database/contract.ts';
import type { Permit } from '../policy/access.ts';
import type { ColumnValues } from '../policy/branch.ts';
import type { AskedFilter, Filter } from '../policy/filters/filter.ts';
import { gridOf } from '../policy/scalar-types.ts';
import type { Need, PolicyRequest, Related, Residual, Row } from '../policy/types.ts';
import { own } from '../policy/values.ts';
import { allOperandsOf, isOfInstant } from '../policy/visit.ts';
import { TooMuchWork, UNLIMITED_WORK, WorkBudget } from '../policy/work-budget.ts';
import { type AccessContext, type Store, visibilityOf } from '../records/access-context.ts';
import { type MemberMask, maskedRow, memberMasksOf, recordNeeds, requestedNeeds } from '../records/member-masks.ts';
import type { Members, RecordShape } from '../records/record-shape.ts';
import type { RequestedRecords } from '../records/relations/related.ts';
import { ReachedTables, rulesBehind, rulesBehindFilter } from '../schema/model/logged-tables.ts';
import type { Collection, HasOne, Schema } from '../schema/model/model.ts';
import { FilterSight } from './filter-sight.ts';

/** The records and fields that a subscriber asks for. */
export interface Watched {
  /** All of them must match. */
  readonly filters: readonly Filter[];
  /** Undefined: all. */
  readonly members?: Members | undefined;
  /** The schema states the filters, whose work then has no limit. */
  readonly isOfSchema?: boolean;
}

/** Returns true for a state of a record that the subscriber's list shows. */
export type Listing = (state: AudienceRow) => boolean;

interface ShownPartner {
  readonly relation: HasOne;
  readonly permits: readonly Permit[];
}

/** Values of a member: a record that is listed has one of them. */
export interface PinnedMember {
  readonly member: string;
  readonly values: readonly string[];
}

/** A record in one of its states. */
export interface AudienceRow {
  readonly cells: Cells;
  readonly row: Row;
}

const NO_EXCESS: ReadonlySet<unknown> = new Set();

export class Audience {
  /** Equal for subscribers who see the same. */
  readonly key: string;
  readonly collection: Collection;
  /** The related rows of a record that decisions and texts read. */
  readonly needs: readonly Need[];
  /** The related rows that only the filters of callers read. */
  readonly filterNeeds: readonly Need[];
  readonly requested: readonly RequestedRecords[];
  /** The sources of the rows that decide who sees what, besides the record itself. */
  readonly related: ReadonlySet<string>;
  /** Each record that is listed meets one of them. Undefined: any record may be listed. */
  readonly pins: readonly PinnedMember[] | undefined;
  readonly #shape: RecordShape;
  readonly #permit: Permit;
  readonly #rules: readonly DecidingRule[];
  readonly #asked: readonly DecidingRule[];
  readonly #filters: readonly AskedFilter[];
  readonly #sight: FilterSight;
  readonly #isOfSchema: boolean;
  readonly #masks: readonly MemberMask[];
  readonly #partners: readonly ShownPartner[];
  /** Undefined: all. */
  readonly #members: Members | undefined;

  constructor(store: Store, access: AccessContext, { filters, members, isOfSchema = false }: Watched) {
    const { collection } = access;
    this.collection = collection;
    this.#shape = store.shape(collection.name);
    this.#permit = access.permit(collection.name, 'list');
    this.#filters = filters.map((filter) => filter.asked(access, visibilityOf(access)));
    this.#sight = new FilterSight(store, access, this.#filters);
    this.#isOfSchema = isOfSchema;
    this.#masks = memberMasksOf(access);
    this.#partners = this.#shape.hasOnes.map((relation) => ({ relation, permits: partnerPermits(access, relation) }));
    this.#members = members;
    const deciding = [this.#permit, ...this.#masks.map(({ permit }) => permit)];
    this.needs = [
      ...deciding.flatMap(recordNeeds),
      ...(isOfSchema ? this.#sight.needs : []),
      ...this.#partners.map(({ relation, permits }) => ({
        relation: relation.name,
        needs: permits.flatMap(recordNeeds),
      })),
    ];
    this.filterNeeds = isOfSchema ? [] : this.#sight.needs;
    const all = [...deciding, ...this.#partners.flatMap(({ permits }) => permits)];
    this.requested = [...all.flatMap(requestedNeeds), ...this.#sight.requested];
    const { name } = collection;
    const owned = [...deciding.map((permit) => ({ permit, owner: name })), ...this.#sight.permits];
    const rules = owned.flatMap(({ permit, owner }) => permit.rules.map(({ residual }) => ({ rule: residual, owner })));
    this.#rules = rules.map(({ rule, owner }) => ({ rule, sources: sourcesOf(rule, owner, store) }));
    this.#asked = this.#filters.map((rule) => ({ rule, sources: sourcesOf(rule, name, store) }));
    this.related = new Set([...this.#rules, ...this.#asked].flatMap(({ sources }) => [...sources]));
    this.pins = pinsOf(this.#permit, this.#filters, this.#shape);
    this.key = JSON.stringify([
      [...all, ...this.#sight.permits.map(({ permit }) => permit)].map(permitSpelling),
      this.#masks.map((mask) => mask.name),
      this.#filters.map(({ shape, values }) => [shape, values]),
      members === undefined ? null : [...members].toSorted(),
    ]);
  }

  /** A decision may depend on one of these rows of the collection. */
  dependsOn(collection: string, rows: readonly Row[]): boolean {
    const mayDecide = ({ rule, sources }: DecidingRule, of: readonly Row[]): boolean =>
      sources.has(collection) && rule.dependsOn(collection, of);
    if (this.#rules.some((rule) => mayDecide(rule, rows))) return true;
    if (!this.#asked.some(({ sources }) => sources.has(collection))) return false;
    // The author of a filter learns nothing of rows, or of values, that a list would not show.
    const seen = this.#sight.rowsOf(collection, rows);
    return seen === undefined || (seen.length > 0 && this.#asked.some((rule) => mayDecide(rule, seen)));
  }

  get verdict(): Permit['verdict'] {
    return this.#permit.verdict;
  }

  /**
   * Lists states of records as long as the filters have work left. Beyond that, it throws `TooMuchWork`.
   *
   * @param excess the records with too many related rows for a filter
   */
  listing(related: Related, excess: ReadonlySet<unknown> = NO_EXCESS): Listing {
    if (this.#filters.length === 0) return ({ row }) => this.#permit.test(row, related);
    const seen = this.#sight.over(related);
    const work = this.#isOfSchema ? UNLIMITED_WORK : new WorkBudget();
    return ({ row }) => {
      if (!this.#permit.test(row, related)) return false;
      if (excess.has(row.id)) throw new TooMuchWork();
      const visible = maskedRow(row, this.#masks, related);
      return this.#filters.every((filter) => filter.matches(visible, seen, work));
    };
  }

  /** The text of the record. `newest`: the record as it is now, which hides what it hides from older states too. */
  text({ cells, row }: AudienceRow, newest: AudienceRow, related: Related): string {
    const partners = this.#partners.map((partner) => this.#partnerId(partner, row, related));
    const hidden = this.#masks.flatMap(({ name, permit }) =>
      permit.test(row, related) && permit.test(newest.row, related) ? [] : [name],
    );
    const shown =
      hidden.length === 0 ? this.#members : new Set(this.#members ?? this.#shape.names).difference(new Set(hidden));
    return `${this.#shape.open([...cells, ...partners], 0, shown)}}`;
  }

  #partnerId({ relation, permits }: ShownPartner, { id }: Row, related: Related): string | null {
    const [partner] = related.many(this.collection.name, relation.name, String(id));
    if (partner === undefined || !permits.every((permit) => permit.test(partner, related))) return null;
    return String(partner.id);
  }
}

/** A conjunct of the filter, or else one of each branch of the rules. */
function pinsOf(
  permit: Permit,
  filters: readonly AskedFilter[],
  shape: RecordShape,
): readonly PinnedMember[] | undefined {
  const asked = pinAmong(
    filters.flatMap(({ tests }) => tests),
    shape,
  );
  if (asked !== undefined) return [asked];
  const pins = permit.branches('t', shape.storedColumns)?.map((branch) => pinAmong(branch.tests, shape));
  return pins?.every((pin) => pin !== undefined) ? pins : undefined;
}

/** Numbers have several spellings, and equal each other across types. */
function pinAmong(tests: readonly ColumnValues[], shape: RecordShape): PinnedMember | undefined {
  for (const { column, values } of tests) {
    const member = shape.nameOf(column);
    const texts = values.filter((value) => typeof value === 'string');
    const type = shape.collection.fields.get(member ?? '')?.type;
    const isNumeral = type !== undefined && gridOf(type) !== undefined;
    if (member !== undefined && texts.length === values.length && !isNumeral) return { member, values: texts };
  }
  return undefined;
}

/** The same as `readableReference`, for rows in memory. */
function partnerPermits(access: AccessContext, { collection, via }: HasOne): readonly Permit[] {
  const reference = access.member(collection, via, 'read');
  return [access.permit(collection, 'read'), ...(reference === undefined ? [] : [reference])];
}

type Deciding = Pick<Residual, 'needs' | 'dependsOn'>;

/** A rule or filter that decides who sees what. */
interface DecidingRule {
  readonly rule: Deciding;
  /** The sources of the other rows that it reads. */
  readonly sources: ReadonlySet<string>;
}

function sourcesOf({ needs }: Deciding, owner: string, { schema }: Store): ReadonlySet<string> {
  const reached = new ReachedTables(schema);
  reached.addNeeds(needs.record, owner);
  for (const { collection, needs: own } of needs.requested) {
    reached.addRecords(collection);
    reached.addNeeds(own, collection);
  }
  return new Set(reached.tables.map(({ source }) => source));
}

const permitSpelling = ({ verdict, rules }: Permit): unknown =>
  verdict === 'depends' ? rules.map(({ residual: { shape, values } }) => [shape, values]) : verdict;

type AskedSchema = Pick<Schema, 'collections'>;

/** A decision depends on the time if a rule or a filter names it. */
export const namesNow = (collection: Collection, filters: readonly Filter[], schema: AskedSchema): boolean =>
  operandsBehind(collection, filters, schema).some(isOfInstant);

/** The values that rules or filters read of a request besides its caller, in one spelling: other values decide otherwise. */
export function requestReadBy(
  { query, facts = {} }: Pick<PolicyRequest, 'query' | 'facts'>,
  { collection, filters, schema }: { collection: Collection; filters: readonly Filter[]; schema: AskedSchema },
): string {
  const values = new Map<string, unknown>();
  for (const operand of operandsBehind(collection, filters, schema)) {
    if (operand.kind !== 'request') continue;
    const { source, name } = operand;
    if (source === 'query') values.set(`query.${name}`, own(query, name));
    if (source === 'fact' && !isOfInstant(operand)) values.set(name, own(facts, name.slice(REQUEST_FACT.length)));
  }
  return JSON.stringify([...values].toSorted(([a], [b]) => (a < b ? -1 : 1)));
}

const REQUEST_FACT = 'request.';

function operandsBehind(collection: Collection, filters: readonly Filter[], schema: AskedSchema) {
  const ofFilters = filters.flatMap((filter) => rulesBehindFilter(filter, collection.name, schema));
  return [...rulesBehind(collection, schema), ...ofFilters].flatMap(({ rule }) => allOperandsOf(rule.checked));
}
