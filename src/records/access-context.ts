/**
 * The caller and the collection of a request: every function on records takes them, and none can reach
 * a record around the caller's permits.
 */

import { SEQUENTIAL_SHARDS } from '../database/citus.ts';
import type { Database, Queryable, Reader, ReadOptions, Transaction } from '../database/contract.ts';
import { invariant } from '../invariant.ts';
import type { Permit } from '../policy/access.ts';
import type { Action, CallerKind, IsFew, Policy, Row } from '../policy/types.ts';
import type { Visibility } from '../policy/visibility.ts';
import { currentCaller } from '../queued-caller.ts';
import { reachesHistory } from '../schema/model/kept/history.ts';
import { HISTORY_ACTOR } from '../schema/model/kept/history-names.ts';
import {
  type Check,
  type Collection,
  type HasOne,
  hasTenants,
  type MemberAction,
  type Schema,
  type WriteAction,
} from '../schema/model/model.ts';
import { storedTables } from '../schema/model/stored-names.ts';
import { type Place, type Sql, sql, type TenantValue, text } from '../sql.ts';
import { Cursors } from './page/cursor.ts';
import { PagePlanner } from './page/page-planner.ts';
import type { ChoosesWay } from './page/page-question.ts';
import { BackgroundStatistics, type StatisticsOf } from './page/table-statistics.ts';
import { RecordShape } from './record-shape.ts';
import { readVersionKey, Versions } from './versions.ts';

export interface AccessContext {
  readonly collection: Collection;
  readonly permit: (collection: string, action: Action) => Permit;
  /**
   * The same for a field or belongs_to with rules of its own; undefined: the rules of the record
   * decide.
   */
  readonly member: (collection: string, member: string, action: MemberAction) => Permit | undefined;
  /**
   * The message for a caller whom the rules of an action deny, or those of a member for a write of it. Default: none.
   * INVARIANT: reported only to callers who may read the record.
   */
  readonly denialMessage?: ((collection: string, action: Action, member?: string) => string | undefined) | undefined;
  /** The records that fail a check of the collection, by its rule. */
  readonly violation: (collection: string, check: Check, action: WriteAction) => Permit;
  /** Bounds on what these update rules can decide for a stored record, before the write is known. */
  readonly prospect: (rules: readonly Policy[]) => Prospect;
  /** The caller as policies see it. */
  readonly auth: Row;
  readonly kind: CallerKind;
  /** The limit of a key as a text. Default: unlimited. */
  readonly limit?: string | undefined;
  /** The id by which the caller's writes, cursors and audit events are known; policies see another one, or none. */
  readonly principal: string;
  /** The instant of the request, canonical. */
  readonly now: string;
  /** The sender of the request, for the hooks. */
  readonly origin?: (() => Origin) | undefined;
  /** The tenant of the records, which the conditions of the permits name as a value, or its place in a form. */
  readonly tenant?: TenantValue | undefined;
  /** The same access to the records of every tenant, of which the rules require one. */
  readonly outside?: AccessContext;
}

/** The access to records of one tenant. A cluster takes a statement only if it names the tenant of each of its tables. */
class TenantAccess implements AccessContext {
  readonly collection: Collection;
  readonly tenant: TenantValue;
  readonly outside: AccessContext;
  readonly #facts: Row | undefined;

  constructor(access: AccessContext, tenant: TenantValue, facts: Row | undefined) {
    this.collection = access.collection;
    this.tenant = tenant;
    // The facts of another tenant decide nothing here.
    this.outside = access.outside ?? access;
    this.#facts = facts;
  }

  get auth(): Row {
    return this.outside.auth;
  }

  get kind(): CallerKind {
    return this.outside.kind;
  }

  get principal(): string {
    return this.outside.principal;
  }

  get now(): string {
    return this.outside.now;
  }

  get origin(): AccessContext['origin'] {
    return this.outside.origin;
  }

  readonly permit: AccessContext['permit'] = (collection, action) => {
    const permit = this.outside.permit(collection, action).within(this.tenant);
    return this.#facts === undefined || collection !== this.collection.name ? permit : permit.given(this.#facts);
  };

  readonly member: AccessContext['member'] = (...asked) => this.outside.member(...asked)?.within(this.tenant);

  readonly denialMessage: AccessContext['denialMessage'] = (...asked) => this.outside.denialMessage?.(...asked);

  readonly violation: AccessContext['violation'] = (...asked) => this.outside.violation(...asked).within(this.tenant);

  readonly prospect: AccessContext['prospect'] = (rules) => {
    const { certain, possible } = this.outside.prospect(rules);
    return { certain: certain.within(this.tenant), possible: possible.within(this.tenant) };
  };
}

/**
 * @param tenant undefined: unknown, or the records have none
 * @param facts that all records of the collection have in this tenant
 */
export const accessIn = (access: AccessContext, tenant: TenantValue | undefined, facts?: Row): AccessContext =>
  tenant === undefined ? access : new TenantAccess(access, tenant, facts);

export interface Prospect {
  /** The records that every write is permitted for. */
  readonly certain: Permit;
  /** The records that some write may be permitted for. */
  readonly possible: Permit;
}

interface Origin {
  readonly ip?: string;
  readonly userAgent?: string;
  readonly requestId?: string;
}

/** The principal and the client who changed a user. */
export interface Actor {
  readonly actorId: string;
  readonly client: Origin | undefined;
}

export const actorOf = ({ principal, origin }: AccessContext): Actor => ({ actorId: principal, client: origin?.() });

interface UserChange {
  readonly id: string;
  readonly rolesBefore: readonly string[];
  readonly rolesAfter: readonly string[];
  readonly by: Actor;
}

interface UserDeletion {
  readonly ids: readonly string[];
  /** The record that the request deletes: a user, or the record that users cascade from. */
  readonly cause: { readonly collection: string; readonly id: string };
  readonly by: Actor;
}

/** A page is filtered or sorted by a field that no index serves. */
export interface UnindexedUse {
  readonly collection: string;
  readonly field: string;
  readonly use: 'filter' | 'sort';
}

export interface Hooks {
  /** Chooses how lists find their pages. Default: by the statistics. */
  readonly choosesWay?: ChoosesWay;
  /** Default: the database's own statistics. */
  readonly statisticsOf?: StatisticsOf;
  /** Runs in the transaction, after a user was changed. Throwing undoes it. */
  readonly onUserChanged?: (change: UserChange, tx: Transaction) => Promise<void>;
  /**
   * Runs in the transaction, before users are deleted, directly or by a cascade. Throwing
   * prevents it.
   */
  readonly onUsersDeleted?: (deletion: UserDeletion, tx: Transaction) => Promise<void>;
  /** Runs after the commit of either. Must not throw: the write has happened. */
  readonly afterUsersChanged?: (ids: readonly string[]) => Promise<void>;
  /**
   * Runs after the commit that deleted the records of these files, directly or by a cascade. Must not
   * throw.
   */
  readonly onFilesRemoved?: (ids: readonly string[]) => Promise<void>;
  /** Runs before the statement is sent. */
  readonly onUnindexed?: (use: UnindexedUse) => void;
}

/** State that the functions on records share for the life of the program. */
export class Store {
  readonly db: Database;
  readonly schema: Schema;
  readonly hooks: Hooks;
  readonly pages: PagePlanner;
  /** Each statement is planned for one machine of a cluster. */
  readonly isCluster: boolean;
  /** The plan of a statement that needs no other one for other values: Citus finds the machine by the values. */
  readonly genericPlan: ReadOptions['plan'];
  readonly #shapes = new Map<string, RecordShape>();
  readonly #isDivided: boolean;
  readonly #hasHistory: boolean;
  readonly #reachesHistory = new Map<string, boolean>();
  #versions: Versions | undefined;
  #cursors: Cursors | undefined;

  constructor(db: Database, schema: Schema, hooks: Hooks = {}) {
    this.db = db;
    this.schema = schema;
    this.hooks = hooks;
    this.#isDivided = hasTenants(schema);
    this.#hasHistory = [...schema.collections.values()].some(({ history }) => history !== undefined);
    this.isCluster = db.isCluster === true;
    this.genericPlan = this.isCluster ? undefined : 'generic';
    const statistics = new BackgroundStatistics(db, [...storedTables(schema)]);
    this.pages = new PagePlanner(schema, hooks.statisticsOf ?? ((table) => statistics.of(table)), hooks.choosesWay);
    for (const collection of schema.collections.values())
      this.#shapes.set(collection.name, new RecordShape(collection, schema));
  }

  shape(collection: string): RecordShape {
    const shape = this.#shapes.get(collection);
    invariant(shape !== undefined, `the schema has the collection ${collection}`);
    return shape;
  }

  /** @param q reads the key, once, if it is a transaction. A node has no tables of the service. */
  versions(q: Queryable): Versions | Promise<Versions> {
    return this.#versions ?? this.#readVersions('inTransaction' in q ? q : this.db);
  }

  async cursors(): Promise<Cursors> {
    this.#cursors ??= new Cursors(await readVersionKey(this.db));
    return this.#cursors;
  }

  /** Runs in a transaction, before statements about the records of all tenants. */
  async prepareForEveryTenant(tx: Transaction): Promise<void> {
    if (this.#isDivided && this.isCluster) await tx.run(SEQUENTIAL_SHARDS);
  }

  /**
   * The reader of a caller. Rows may be as old as the replica may lag, but not older than the caller's
   * writes.
   * @param tenant of the records that are read; undefined: unknown, or they have none
   */
  readerFor(access: AccessContext, tenant?: string): Reader {
    const node = tenant === undefined ? undefined : this.db.nodeFor?.(access.collection.table, tenant);
    return node ?? this.db.replicaFor(access.principal);
  }

  /** A transaction of a request, in the time that the schema gives it. */
  transaction<T>(work: (tx: Transaction) => Promise<T>): Promise<T> {
    const { writeTime } = this.schema.limits;
    return this.db.transaction(this.#hasHistory ? actingAsCaller(work) : work, { limitMs: writeTime * 1000 });
  }

  /** The write of a record of the collection is one of a transaction that names its caller. */
  reachesHistory(collection: string): boolean {
    if (!this.#hasHistory) return false;
    const known = this.#reachesHistory.get(collection) ?? reachesHistory(this.schema, collection);
    this.#reachesHistory.set(collection, known);
    return known;
  }

  /** Call it after the commit. */
  noteWrite(access: AccessContext): Promise<void> {
    return this.db.noteWrite(access.principal);
  }

  /**
   * A condition for filters of queries that fails once the time is up. Undefined: the database ends
   * the statement itself.
   */
  get inTime(): Sql | undefined {
    return this.db.statementInTime;
  }

  async #readVersions(q: Queryable): Promise<Versions> {
    this.#versions ??= new Versions(await readVersionKey(q));
    return this.#versions;
  }
}

/** The triggers of histories read the principal whose request is at work. */
const actingAsCaller =
  <T>(work: (tx: Transaction) => Promise<T>) =>
  async (tx: Transaction): Promise<T> => {
    // The caller's name in queues has the address too where many pages share a key.
    const [principal = ''] = currentCaller().id.split(' ');
    await tx.rows(sql`SELECT set_config(${text(HISTORY_ACTOR)}, ${text(principal)}, true)`);
    return work(tx);
  };

/** A request on its records: `q` is a transaction where it has to run in one. */
export interface Reading {
  readonly store: Store;
  readonly q: Queryable;
  readonly access: AccessContext;
  /** The tenant of the records; undefined: unknown, or they have none. */
  readonly tenant?: string | undefined;
}

/** The parts of a reading that statements are made of; in a form, the tenant is a place. */
export interface Requested extends Pick<Reading, 'store' | 'access'> {
  readonly tenant?: string | Place<never> | undefined;
}

/**
 * The condition that the caller may see by the row of `collection` named `alias` which record it
 * belongs to: the row is readable, and so is its reference `via`.
 */
export function readableReference(
  access: AccessContext,
  { collection, via }: Pick<HasOne, 'collection' | 'via'>,
  alias: string,
): Sql {
  const own = access.member(collection, via, 'read');
  const row = readable(access, collection, alias);
  return own === undefined ? row : sql`${row} AND ${own.where(alias)}`;
}

/**
 * The condition that the caller may read the row of `collection` that is named `alias`, one of few rows.
 * @param isFew the rows are some hundred, for which a short list of keys is found once
 */
export const readable = (access: AccessContext, collection: string, alias: string, isFew?: IsFew): Sql =>
  access.permit(collection, 'read').lookingUp(isFew).where(alias);

/** The answers to the policy room: what the caller may read. */
export const visibilityOf = ({ permit, member, tenant }: AccessContext): Visibility => ({
  tenant,
  records: (collection) => permit(collection, 'read'),
  member: (collection, name) => member(collection, name, 'read'),
});

/**
 * The same access for statements that read few rows: its rules for reading look up related rows, or have short lists.
 * @param isHashed for statements that read all rows, which have the same lists
 */
export function lookingUpIn(access: AccessContext, isFew?: IsFew, isHashed?: IsFew): AccessContext {
  const known = new Map<Permit, Permit>();
  const decided = (permit: Permit): Permit => {
    const made = known.get(permit) ?? permit.lookingUp(isFew, isHashed);
    known.set(permit, made);
    return made;
  };
  return {
    ...access,
    permit: (of, action) => (action === 'read' ? decided(access.permit(of, action)) : access.permit(of, action)),
    member: (...of) => {
      const permit = access.member(...of);
      return permit && decided(permit);
    },
  };
}
