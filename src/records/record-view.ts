/**
 * The view of a caller on the records of a collection: the cells to select, and the text that they
 * become. A member whose rules hide it is left out, and its value does not leave the database.
 */
import type { Cells } from '../database/contract.ts';
import type { Permit } from '../policy/access.ts';
import type { Collection, HasOne } from '../schema/model/model.ts';
import { join, type Place, raw, type Sql, sql } from '../sql.ts';
import { type AccessContext, readableReference, type Store } from './access-context.ts';
import { allEqual } from './record-key.ts';
import type { Members, RecordShape } from './record-shape.ts';
import { type Scope, scopeOf } from './scope.ts';

export interface Viewed {
  readonly collection: string;
  /** The members that are wanted; undefined: all. */
  readonly members?: Members | undefined;
  /** The tenant of the records, where it is known, or a place for it in a form. */
  readonly tenant?: string | Place<never> | undefined;
}

/** A permit, asked of records of a collection. */
export interface PermitOfCollection {
  readonly collection: string;
  readonly permit: Permit;
}

/** A member that the caller may read in some records. */
interface Mask {
  readonly name: string;
  readonly permit: Permit;
}

/**
 * The cells of a record: the stored columns, the id of each readable has_one, and for each mask
 * whether the caller may read the member (a NULL may be the value, or in its place).
 */
export class RecordView {
  readonly #scope: Scope;
  readonly #access: AccessContext;
  readonly #shape: RecordShape;
  /** The members that some record shows; undefined: all. */
  readonly #members: Members | undefined;
  readonly #masks: readonly Mask[];

  constructor(store: Store, access: AccessContext, { collection, members, tenant }: Viewed) {
    this.#scope = scopeOf({ store, tenant });
    this.#access = access;
    this.#shape = store.shape(collection);
    const rules = readRulesOf(access, this.#shape.collection);
    const denied = rules.filter(({ permit }) => permit.verdict === 'deny').map(({ name }) => name);
    this.#members = denied.length === 0 ? members : new Set(members ?? this.#shape.names).difference(new Set(denied));
    this.#masks = rules.filter(
      ({ name, permit }) => permit.verdict === 'depends' && this.#members?.has(name) !== false,
    );
  }

  columns(alias: string): Sql {
    const members = this.#members;
    const masks = new Map(this.#masks.map(({ name, permit }) => [name, permit.where(alias)]));
    const stored =
      members === undefined && masks.size === 0
        ? this.#shape.columns(alias)
        : this.#shape.columnsOf(alias, (name, column) => {
            if (members?.has(name) === false) return raw('NULL');
            const condition = masks.get(name);
            return condition === undefined ? column : sql`CASE WHEN ${condition} THEN ${column} END`;
          });
    const held = this.partners(alias);
    const flags = [...masks.values()].map((condition) => sql`(${condition})`);
    return held.length + flags.length === 0 ? stored : join([stored, ...held, ...flags], ', ');
  }

  /** The cells that ask no rule: those that the record itself stores. */
  storedColumns(alias: string): Sql {
    const isShown = (name: string): boolean => this.#members?.has(name) !== false;
    return this.#shape.columnsOf(alias, (name, column) => (isShown(name) ? column : raw('NULL')));
  }

  /** The cells that follow: the ids of the has_ones. */
  partners(alias: string): readonly Sql[] {
    return this.#shape.hasOnes.map((relation) =>
      this.#members?.has(relation.name) === false ? raw('NULL') : this.#hasOneId(relation, alias),
    );
  }

  /** The cells that follow: whether the caller may read each masked member. */
  masks(alias: string): readonly Sql[] {
    return this.#masks.map(({ permit }) => permit.where(alias));
  }

  /** The permits that decide which members are shown, of the has_ones too. */
  permits(hasOnes: readonly HasOne[]): readonly PermitOfCollection[] {
    const { name } = this.#shape.collection;
    const partners = hasOnes.flatMap(({ collection, via }) => {
      const reference = this.#access.member(collection, via, 'read');
      const permits = [this.#access.permit(collection, 'read'), ...(reference === undefined ? [] : [reference])];
      return permits.map((permit) => ({ collection, permit }));
    });
    return [...this.#masks.map(({ permit }) => ({ collection: name, permit })), ...partners];
  }

  json(cells: Cells, from = 0): string {
    return `${this.open(cells, from)}}`;
  }

  /** Returns JSON without the closing brace. `wanted`: fewer members than were selected. */
  open(cells: Cells, from = 0, wanted?: Members): string {
    const members = wanted === undefined ? this.#members : this.#restricted(wanted);
    return this.#shape.open(cells, from, this.#masks.length === 0 ? members : this.#shownIn(cells, from, members));
  }

  #restricted(wanted: Members): Members {
    return this.#members === undefined ? wanted : this.#members.intersection(wanted);
  }

  #shownIn(cells: Cells, from: number, members: Members | undefined): Members {
    const shown = new Set(members ?? this.#shape.names);
    const flags = from + this.#shape.names.length;
    this.#masks.forEach(({ name }, i) => {
      if (cells[flags + i] !== 't') shown.delete(name);
    });
    return shown;
  }

  /** INVARIANT: the reference is unique, so there is at most one row. */
  #hasOneId(relation: HasOne, owner: string): Sql {
    const access = this.#access;
    if (access.permit(relation.collection, 'read').verdict === 'deny') return raw('NULL');
    const row = `${owner}_${relation.name}`;
    const { related } = this.#scope.from(this.#shape.collection.name, owner);
    const key = this.#scope.key(this.#shape.collection.name).columns(owner);
    const refersToOwner = allEqual(this.#scope.referring(relation, row), key);
    return sql`(
      SELECT ${this.#scope.key(relation.collection).of(row)}
        FROM ${related.from(relation.collection, row).where(refersToOwner, readableReference(access, relation, row))})`;
  }
}

/** The relations that are expanded need the ids that the record holds, shown or not. */
export function withExpanded(
  members: Members | undefined,
  expands: readonly { readonly relation: { readonly name: string } }[],
): Members | undefined {
  return members && new Set([...members, ...expands.map(({ relation }) => relation.name)]);
}

/** The members that have rules for reading. */
function readRulesOf(access: AccessContext, { name: collection, memberAccess }: Collection): readonly Mask[] {
  if (memberAccess.size === 0) return [];
  return [...memberAccess.keys()].flatMap((name) => {
    const permit = access.member(collection, name, 'read')?.lookingUp();
    return permit === undefined ? [] : [{ name, permit }];
  });
}
