/**
 * The shapes that pass between the stages of the policy compiler. Pure: no Node, no database.
 * text → Expr (grammar) → Checked (checker.ts) → specialised and lowered → predicate and where.
 */
import type { CompareOp, Expr, QuantifierWord, Span } from '../../grammar/syntax.ts';
import type { Sql, TenantValue } from '../sql.ts';
import type { Branch, KeyCount, LookUp, RelatedKeys } from './branch.ts';
import { livingName } from './deleted-names.ts';
import type { IdType, KeyKind, ScalarType, ValueType } from './scalar-types.ts';

export type { IdType, KeyKind, ScalarType, ValueType };

export type Action = 'list' | 'read' | 'create' | 'update' | 'delete';
export const ACTIONS: readonly Action[] = ['list', 'read', 'create', 'update', 'delete'];
/** The actions that have rules in a schema: `restore` brings a deleted record back. */
export type RuledAction = Action | 'restore';
export const RULED_ACTIONS: readonly RuledAction[] = [...ACTIONS, 'restore'];

/** The part of the schema that a policy may know. The model of schema/ satisfies it. */
export interface Catalog {
  readonly collections: ReadonlyMap<string, CatalogCollection>;
  readonly roles: ReadonlyMap<string, unknown>;
  /** The named conditions of a schema file; filters of queries have none. */
  readonly conditions?: ReadonlyMap<string, NamedCondition>;
  /** Callers who are not signed in are admitted, with the role `guest` alone. */
  readonly guests?: boolean | undefined;
  /** The time zone of `@today`; default: UTC. */
  readonly timezone?: string | undefined;
}
/** `is_member(team: teams)`: expanded by the checker wherever it is called. */
export interface NamedCondition {
  readonly name: string;
  readonly parameters: readonly Parameter[];
  /** Every span in it names its text. */
  readonly expr: Expr;
  /** Including all conditions that it calls. */
  readonly size: Size;
}
export interface Parameter {
  readonly name: string;
  /** A scalar, or a record of a collection. */
  readonly type: ValueType;
}
export interface Size {
  readonly comparisons: number;
  readonly elements: number;
  readonly levels: number;
}
export interface CatalogCollection {
  readonly name: string;
  readonly table: string;
  /** Left out: a uuid in the column `id`. */
  readonly key?: CatalogKey;
  /** Scalar fields of every record, `created_at` and `updated_at` included; `id` is not among them. */
  readonly fields: ReadonlyMap<string, CatalogField>;
  readonly relations: ReadonlyMap<string, CatalogRelation>;
  /** Left out, or null: its table is on one machine. */
  readonly tenantLayout?: CatalogTenantLayout | null;
}
/** The ids of the records of a collection. */
export interface CatalogKey {
  readonly kind: KeyKind;
  readonly column: string;
  /** The id of the stored row named `s`: no table has the `column` of a key of several, and one may have spaces. */
  readonly made?: Sql;
}
type BelongsToOf<R> = Extract<R, { readonly kind: 'belongs_to' }>;
/** The relations whose column holds the id of a record. */
export function belongsTosOf<R extends { readonly kind: string }>(collection: {
  readonly relations: ReadonlyMap<string, R>;
}): readonly BelongsToOf<R>[] {
  const isBelongsTo = (relation: R): relation is BelongsToOf<R> => relation.kind === 'belongs_to';
  return [...collection.relations.values()].filter(isBelongsTo);
}

const UUID_KEY: CatalogKey = { kind: 'uuid', column: 'id' };
/** INVARIANT: all that depends on the key of a collection asks this function, or `idOf`. */
export const keyOf = ({ key = UUID_KEY }: Pick<CatalogCollection, 'key'>): CatalogKey => key;
interface KeyedCollections {
  readonly collections: ReadonlyMap<string, Pick<CatalogCollection, 'key'>>;
}
/** The type of the ids of a collection. Deleted records have the ids that they had before. */
export function idOf({ collections }: KeyedCollections, name: string): IdType {
  const key = collections.get(name)?.key;
  const id = livingName(name);
  return key === undefined || key.kind === 'uuid' ? { id } : { id, key: key.kind };
}
/** `reference`: every machine has all rows. `by`: each has those of some tenants; `column` holds the tenant's id. */
type CatalogTenantLayout = { readonly kind: 'reference' } | { readonly kind: 'by'; readonly column: string };
/** The fields of every record that the service sets to the time of a write. */
export const STAMPS: readonly string[] = ['created_at', 'updated_at'];
export interface CatalogField {
  readonly name: string;
  readonly type: ScalarType;
  /** Not null in every stored row. */
  readonly required: boolean;
  readonly column: string;
  readonly unique: boolean;
  /**
   * A required belongs_to of the collection: records with the same one differ in this value.
   * INVARIANT: not beside `unique`, which is of the whole collection.
   */
  readonly uniqueWithin?: string;
  /** Only some records differ in the value: a list of them by it can still find several. */
  readonly uniqueKey?: { readonly within: readonly string[] };
  readonly index: boolean;
  /** A string that `matches` looks in: a folded copy is stored beside it. */
  readonly search?: boolean;
  readonly enum?: readonly (string | number)[];
  /** The bound of a string's length in code points; else of the value, a datetime in canonical text. */
  readonly min?: number | string;
  readonly max?: number | string;
  /** The suffix of a column whose own type is not that of the field: an enum type compares with no string. */
  readonly readAs?: string;
  /** The typed parts of a json field by their paths. */
  readonly paths?: ReadonlyMap<string, CatalogField>;
  /** Given for such a part. */
  readonly part?: JsonPart;
  /** A decimal: its digits, and those after the point. */
  readonly precision?: number;
  readonly scale?: number;
  /** Stored rows can have values that no request can write, before and after all others: the table is another owner's. */
  readonly mayExceedType?: true;
}
/** A part of the values of a json field. */
export interface JsonPart {
  /** The name of the field. */
  readonly member: string;
  readonly column: string;
  readonly keys: readonly string[];
}
/** The types that a part may have. */
export const PART_TYPES = ['string', 'int', 'float', 'bool'] as const;
export type PartType = (typeof PART_TYPES)[number];
export type CatalogRelation = CatalogBelongsTo | HasOne | HasMany | CatalogManyToMany;
export const isToMany = (relation: CatalogRelation): relation is HasMany | CatalogManyToMany =>
  relation.kind === 'has_many' || relation.kind === 'many_to_many';
export interface CatalogBelongsTo {
  readonly kind: 'belongs_to';
  readonly name: string;
  readonly collection: string;
  readonly required: boolean;
  readonly column: string;
  /** The same as of a field. */
  readonly uniqueWithin?: string;
  readonly uniqueKey?: { readonly within: readonly string[] };
  /** Given if the column has a value of another unique column of the related record than its key. */
  readonly references?: ReferencedColumn;
  /** No foreign key ensures that the record of a stored reference exists. */
  readonly mayBeLost?: true;
  /** The id that the row with the name refers to: no table has the column of a reference of several, and one may have spaces. */
  made?(row: string): Sql;
}
/** A unique column of a collection, and the key of its rows. */
export interface ReferencedColumn {
  /** The name of the field. */
  readonly field: string;
  readonly table: string;
  readonly column: string;
  readonly key: string;
  /** The suffix of the key where it is read. */
  readonly keyAs?: string | undefined;
}
/** The unique belongs_to `via` of the other collection references this one. */
export interface HasOne {
  readonly kind: 'has_one';
  readonly name: string;
  readonly collection: string;
  readonly via: string;
  readonly viaColumn: string;
  /** No request sets the reference of the other collection: its key has several columns, or the database takes no update of it. */
  readonly readOnly?: true;
}
export interface HasMany extends Omit<HasOne, 'kind'> {
  readonly kind: 'has_many';
}
export interface CatalogManyToMany {
  readonly kind: 'many_to_many';
  readonly name: string;
  readonly collection: string;
  readonly linkTable: string;
  /** The column of the link table that holds this side's id, and the other side's. */
  readonly sourceColumn: string;
  readonly targetColumn: string;
  /** No foreign key ensures that the record of a link exists. */
  readonly mayBeLost?: true;
}

/** The count includes the record itself; policies do not see records farther up. */
export const MOST_ANCESTORS = 32;

/** A record and those above it: what a belongs_to that leads back to its own collection reaches, step by step. */
export interface AncestorRelation {
  readonly kind: 'ancestors';
  /** The name of the belongs_to. */
  readonly name: string;
  readonly collection: string;
  readonly via: CatalogBelongsTo;
}

/** The elements of a list field, which are values of the record itself. */
export interface ElementsRelation {
  readonly kind: 'elements';
  /** The name of the field. */
  readonly name: string;
  /** Not a collection: elements are not records. */
  readonly collection: '';
  readonly field: CatalogField;
}
export interface ElementsPath extends ToManyPath {
  readonly relation: ElementsRelation;
}
/** The name of the value in the row of an element. */
export const ELEMENT_VALUE = 'value';

// ---------------------------------------------------------------- checked tree

/**
 * The origin of a record: the stored one, the resulting one, a quantifier's element, or an id that the
 * request holds.
 */
export type RowScope =
  | { readonly kind: 'record' }
  | { readonly kind: 'next' }
  | { readonly kind: 'variable'; readonly name: string }
  /** `slot`: where the plan keeps the id. */
  | { readonly kind: 'request'; readonly operand: RequestOperand; readonly slot?: number };

/** A belongs_to or has_one that is walked. `from` is the collection walked from. */
export interface ToOneStep {
  readonly from: string;
  readonly relation: CatalogBelongsTo | HasOne;
}

/** A value. `nullable`: may be absent for some record or request. */
export type CheckedOperand = ColumnOperand | RequestOperand | LiteralOperand | NowOperand | CountOperand;

/** A scalar field, an `id`, or a to-one relation's id, after zero or more to-one steps. */
export interface ColumnOperand {
  readonly kind: 'column';
  readonly scope: RowScope;
  /** The collection of the scope's record. */
  readonly collection: string;
  readonly steps: readonly ToOneStep[];
  /** The column of the collection after the steps. A has_one's id is always a separate step followed by `id`. */
  readonly column:
    | { readonly kind: 'id' }
    | { readonly kind: 'field'; readonly field: CatalogField }
    | { readonly kind: 'belongs_to'; readonly relation: CatalogBelongsTo }
    /** The value of a variable that ranges over a list. */
    | { readonly kind: 'element' };
  readonly type: ValueType;
  readonly nullable: boolean;
  readonly span: Span;
}
/**
 * A value that the request decides. `type` is the type it is read as, by the strict parsers of
 * `values.ts`; what cannot be read is absent. `list: true` for `@request.auth.roles`, and for a
 * query parameter on the list side of `in` / `contains`. An unknown field of `@request.auth` is an
 * error of the checker; `@request.data.<name>` is a field or belongs_to of the collection.
 * `param`: a `$name` of a filter, read as `@request.data` is. `fact`: `request.ip`, `now.hour`.
 */
export interface RequestOperand {
  readonly kind: 'request';
  readonly source: 'auth' | 'query' | 'data' | 'param' | 'fact';
  readonly name: string;
  /** A fact has the networks of its test, apart by spaces, or the zone of its hour. */
  readonly detail?: string;
  readonly type: ValueType;
  /** A float of a filter that is compared with an int, so that rounding must not make it one. */
  readonly meetsInt?: true;
  readonly list: boolean;
  readonly nullable: boolean;
  readonly span: Span;
}
/**
 * A literal already of its final type. int: number; float: number; datetime: canonical
 * `YYYY-MM-DDTHH:MM:SS.ffffffZ`; date: `YYYY-MM-DD`; a uuid in lower case. A number literal that is not an integer and
 * meets an int keeps type 'float': comparison is by value, never rounded. A numeral that doubles
 * cannot hold exactly has `exact` (its decimal source), and comparison is against that exact
 * decimal value.
 */
export interface LiteralOperand {
  readonly kind: 'literal';
  readonly value: string | number | boolean | readonly (string | number | boolean)[];
  readonly exact?: string | readonly string[];
  readonly type: ValueType;
  readonly list: boolean;
  readonly span: Span;
}
export interface NowOperand {
  readonly kind: 'now';
  readonly seconds: number;
  readonly type: 'datetime' | 'date';
  /** Given for `@today`. */
  readonly zone?: string;
  readonly span: Span;
}

/** How many elements of a to-many relation meet the condition definitely. Null after a null step. */
export interface CountOperand {
  readonly kind: 'count';
  readonly path: ToManyPath;
  readonly variable: string;
  readonly condition: Checked;
  readonly type: 'int';
  readonly nullable: boolean;
  readonly span: Span;
}

/**
 * A to-many relation, or a list field, after zero or more to-one steps; for ancestors the steps lead to the first of
 * them.
 */
export interface ToManyPath {
  readonly scope: RowScope;
  readonly collection: string;
  readonly steps: readonly ToOneStep[];
  /** The collection after the steps. */
  readonly from: string;
  readonly relation: HasMany | CatalogManyToMany | AncestorRelation | ElementsRelation;
  readonly span: Span;
}

export type Checked =
  | { readonly kind: 'const'; readonly value: boolean; readonly span: Span }
  | { readonly kind: 'and' | 'or'; readonly items: readonly Checked[]; readonly span: Span }
  | { readonly kind: 'not'; readonly item: Checked; readonly span: Span }
  | CheckedCompare
  /** `x is null` / `is not null`; two-valued. */
  | { readonly kind: 'is null'; readonly negated: boolean; readonly operand: CheckedOperand; readonly span: Span }
  | CheckedQuantified
  | CheckedChanged;

/**
 * `=`…`>=`: both sides scalar. A bool path as a condition is `path = true`.
 * `in`/`not in`: left scalar, right a list operand. `contains`: left a list operand (element test)
 * or a scalar string (part of a text). `starts with`/`ends with`: scalar strings. `contains` over a
 * to-many relation is a `quantified` any with `element.id = right`.
 */
export interface CheckedCompare {
  readonly kind: 'compare';
  readonly op: CompareOp;
  readonly left: CheckedOperand;
  readonly right: CheckedOperand;
  /** Created by the checker: its left side is not in the text. */
  readonly synthetic?: true;
  readonly span: Span;
}
export interface CheckedQuantified {
  readonly kind: 'quantified';
  readonly quantifier: QuantifierWord;
  readonly path: ToManyPath;
  /** Unique in the whole expression (made so by the checker). */
  readonly variable: string;
  readonly condition: Checked;
  readonly span: Span;
}

/** A member of a record that a write can change. */
export type Member =
  | { readonly kind: 'field'; readonly field: CatalogField }
  | { readonly kind: 'relation'; readonly relation: CatalogBelongsTo | HasOne | CatalogManyToMany };
/**
 * Some member differs between the stored and the resulting record; `unchanged`: none does.
 * Two-valued: null to null is not a change. `changed_only(…)` means that all other members are
 * unchanged.
 */
export interface CheckedChanged {
  readonly kind: 'changed';
  readonly unchanged: boolean;
  readonly collection: string;
  readonly members: readonly Member[];
  readonly span: Span;
}

/** The place of an expression. */
export interface CheckContext {
  readonly catalog: Catalog;
  readonly collection: string;
  readonly action: Action;
  /** The text that the spans point into. */
  readonly text: string;
  /**
   * Parameters of the named condition whose body is checked: it may name these and the request, but
   * no record.
   */
  readonly parameters?: readonly Parameter[];
  /** Given for the filter of a query, in which names are members of the record: the params of the query. */
  readonly params?: Params;
  /** The roles of the rule, any of which its caller has beside the condition. */
  readonly roles?: readonly string[];
  /** The rule of a field or belongs_to, which holds beside a rule of the record. */
  readonly isOfMember?: boolean;
  /** The rule is about deleted records, and lets its callers bring them back. */
  readonly isRestore?: boolean;
  /** The roles that strangers can get by themselves: those of registration. Left out: none. */
  readonly publicRoles?: ReadonlySet<string>;
  /** Leaves out warnings. */
  readonly errorsOnly?: boolean;
  /** Receives each unknown name, with the names that exist in its place. */
  onUnknown?(name: string, known: KnownNames): void;
}
/** A name that exists at a place. */
export interface KnownName {
  /** The type in words: `string`, `one of \`teams\``. */
  readonly type: string;
  readonly kind: 'field' | 'relation' | 'variable' | 'parameter';
  /** The collection whose names may follow a dot. */
  readonly walksTo?: string;
}
export type KnownNames = ReadonlyMap<string, KnownName>;
export type Params = Readonly<Record<string, unknown>>;

// ---------------------------------------------------------------- values at run time

/**
 * A record as policies see it: the flat record of the API. Keys: `id`, field names, belongs_to
 * names (id or null). string, bool, number; datetime canonical text; uuids in lower case, int ids as numbers; null
 * or undefined is absent. A written record (create, `@next`) also has its has_one (an id or null)
 * and its many_to_many (a list of ids), by the relations' names.
 */
export type Row = Readonly<Record<string, unknown>>;

/** A signed-in user, a program with an API key, or a visitor who is not signed in. */
export const CALLER_KINDS = ['user', 'key', 'guest'] as const;
export type CallerKind = (typeof CALLER_KINDS)[number];
/**
 * The facts about a caller's session, beside those about the user. Only users sign in; only guests have `guest`, the id of
 * their session, which the user that a guest became has as `former_guest`.
 */
export const SESSION_FACTS = [
  ['second_factor', 'bool'],
  ['signed_in_at', 'datetime'],
  ['guest', 'string'],
  ['former_guest', 'string'],
] as const;
/** The facts that a request brings. `origin`: of the page that sent it. */
export const FACT_NAMES = ['ip', 'method', 'origin'] as const;
export type RequestFacts = Readonly<Partial<Record<(typeof FACT_NAMES)[number], string | undefined>>>;

/**
 * The request as policies see it. `now` is canonical datetime text. `auth` is null only for callers
 * that no route lets in.
 */
export interface PolicyRequest {
  readonly auth: Row | null;
  /** Default: `user`. The id of a key is not a user's, so that a key has no relations of its own. */
  readonly kind?: CallerKind | undefined;
  readonly facts?: RequestFacts | undefined;
  readonly query: Readonly<Record<string, string | readonly string[]>>;
  readonly data?: Readonly<Record<string, unknown>>;
  /** Given for a filter. */
  readonly params?: Params;
  readonly now: string;
}

/** Rows that a predicate walks to, as they are before the write. Returns only what `needs` declared. */
export interface Related {
  one(collection: string, id: string): Row | undefined;
  /**
   * The element rows of a to-many, or the at most one row of a has_one, of the record `id` of
   * `collection`.
   */
  many(collection: string, relation: string, id: string): readonly Row[];
}
export const NO_RELATED: Related = { one: () => undefined, many: () => [] };

/** Which related rows a predicate reads: a tree of relation names from the record (or from `@next`). */
export interface Need {
  readonly relation: string;
  /**
   * The relation is followed up to the last ancestor that counts; `needs` belong to the record
   * itself and to all its ancestors.
   */
  readonly isFollowed?: true;
  readonly needs: readonly Need[];
}

/** A record whose id the request holds, such as the caller. */
interface RequestedNeed {
  readonly collection: string;
  /** True if the record itself is read, beyond references to its id. */
  readonly isRead: boolean;
  readonly needs: readonly Need[];
}
/** `By`: how the records of the request are found. */
export interface NeedsBy<By> {
  readonly record: readonly Need[];
  readonly next: readonly Need[];
  readonly requested: readonly (RequestedNeed & By)[];
}
export type Needs = NeedsBy<{ readonly id: string }>;

export type Verdict = 'allow' | 'deny' | 'depends';

/**
 * The remainder of a policy for one request. Nothing here is tri-state: `verdict` and `test` mean "definitely
 * true".
 */
export interface Residual {
  readonly verdict: Verdict;
  /** Residuals of one shape have the same SQL but for its values, in every statement. */
  readonly shape: string;
  readonly values: readonly unknown[];
  /** The same residual with places in its SQL, for a form: the request that fills it gives the values. */
  placed<Request>(valuesOf: (request: Request) => readonly unknown[]): Residual;
  /** The same residual for records of the tenant: its SQL names the tenant as a value, where it reads rows of it. */
  within(tenant: TenantValue): Residual;
  /**
   * A SQL condition over the record, whose row is `alias` in the statement: a stored row; for a
   * policy of create, the written row. `next` is the written row's name, for a policy of update
   * that names `@next`.
   */
  where(alias: string, next?: string): Sql;
  /** `where` as a branch of an `or`: relation tests are printed so that an index can serve each branch. */
  whereInUnion(alias: string, next?: string): Sql;
  /** `next` is needed where a policy of update names `@next`. */
  test(record: Row, related: Related, next?: Row): boolean;
  readonly needs: Needs;
  /** False: no decision depends on these rows of another collection, which lack a value that it requires of them. */
  dependsOn(collection: string, rows: readonly Row[]): boolean;
  /** The same rule for the record that a write produces: half of an update rule that does not name `@next`. */
  readonly written: Residual;
  /**
   * The remainder for stored records that have the facts: values of fields, belongs_tos and `id`, by name;
   * null is absent. Equal to this residual for those records, and for no others.
   */
  given(facts: Row): Residual;
  /** The values that every record has which this allows (for an update, the stored one), by the names of its members. */
  readonly facts: Row;
  /** Every record that this allows (for an update, the stored one) has each of these ids in this belongs_to column. */
  pinned(column: string): readonly string[];
  /** The conjuncts between whose values the column of a record lies. */
  bounds(column: string): readonly Residual[];
  /**
   * The same condition in parts, at least one, of which indexes find the first records by id.
   * `indexed`: the columns that an index begins with, followed by the id. Undefined where some part
   * has none.
   */
  branches(alias: string, indexed: ReadonlySet<string>): readonly Branch[] | undefined;
  /** The keys that related rows of the first such test give, in an unknown number. */
  readonly relatedKeys: RelatedKeys | undefined;
  /** The `branches` of the parts that do not require these keys; none: all records require them. */
  branchesBesideKeys(alias: string, indexed: ReadonlySet<string>): readonly Branch[] | undefined;
  /** The SELECT of these keys, or the condition for records that have one of the rows `keys`. */
  byKeys(alias: string, part: 'list' | 'test'): Sql;
  /** The condition reads one of these columns of its record, or what the resulting record holds in other rows. */
  readsAny(columns: ReadonlySet<string>): boolean;
  /** The condition reads other rows. */
  readonly walks: boolean;
  /** `where` looks up these related rows of each record. */
  readonly lookUps: readonly LookUp[];
  /**
   * The union with other residuals of the caller, for statements that read few stored records: `where` has lists of
   * keys only where there are few keys, looks up the related rows of each record elsewhere, and all share a look-up.
   *
   * @param isFew undefined: it looks up everywhere, but for lists of rows that refer to a record of the request
   * @param isHashed for statements that read all stored records: of the longer lists, these are kept in memory once; other
   * related rows are found as PostgreSQL chooses
   */
  lookingUp(others: readonly Residual[], isFew?: IsFew, isHashed?: IsFew): Residual;
}
/**
 * @param count of keys in the rows of the table; undefined if it is unknown
 * @param isOfRequest the rows refer to a record of the request
 */
export type IsFew = (table: string, count: () => KeyCount | undefined, isOfRequest: boolean) => boolean;
/** A rule as its author wrote it. Both hold: any of the roles, and the condition. */
export interface RuleParts {
  /** Empty: any caller. */
  readonly roles: readonly string[];
  readonly when?: string;
}
export interface Policy {
  /** The whole rule as one expression. */
  readonly text: string;
  readonly parts: RuleParts;
  /** The reason for a caller whom the rule denies. */
  readonly message?: string;
  /** The text that the spans of `checked` point into: it begins with the author's text. */
  readonly source: string;
  readonly checked: Checked;
  readonly namesNext: boolean;
  /**
   * The rule under the most favourable body; undefined: the rule does not read the body. INVARIANT: true
   * wherever the rule can be true, so it can only deny; otherwise the rule itself decides with the body.
   */
  readonly beforeBody: Policy | undefined;
  specialise(request: PolicyRequest): Residual;
}
