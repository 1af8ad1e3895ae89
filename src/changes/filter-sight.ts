/** The related records that filters see: those that their author may read, each without the members that are hidden. */
import type { Permit } from '../policy/access.ts';
import type { AskedFilter } from '../policy/filters/filter.ts';
import type { Need, Related, Row } from '../policy/types.ts';
import type { AccessContext, Store } from '../records/access-context.ts';
import { type MemberMask, maskedRow, memberMasksOf, recordNeeds, requestedNeeds } from '../records/member-masks.ts';
import type { RequestedRecords } from '../records/relations/related.ts';
import { RememberedRelated } from '../records/relations/remembered-related.ts';

interface ReadableRecords {
  readonly permit: Permit;
  readonly masks: readonly MemberMask[];
}

/** A permit about the records of `owner`. */
interface OwnedPermit {
  readonly permit: Permit;
  readonly owner: string;
}

const NOTHING_RELATED: Related = { one: () => undefined, many: () => [] };

export class FilterSight {
  /** The rows that filters and the rules about them read, from the record and from records of the request. */
  readonly needs: readonly Need[];
  readonly requested: readonly RequestedRecords[];
  readonly #store: Store;
  readonly #access: AccessContext;
  readonly #walked = new Map<string, ReadableRecords>();

  constructor(store: Store, access: AccessContext, filters: readonly AskedFilter[]) {
    this.#store = store;
    this.#access = access;
    const all = filters.map(({ needs }) => needs);
    this.needs = all.flatMap(({ record }) => this.#withRules(record, access.collection.name));
    const requested = all.flatMap((needs) =>
      needs.requested.map(({ collection, id, needs: own }) => ({
        collection,
        ids: [id],
        needs: [...this.#withRules(own, collection), ...this.#needsOfRules(collection)],
      })),
    );
    this.requested = [...requested, ...this.permits.flatMap(({ permit }) => requestedNeeds(permit))];
  }

  /** The rules that decide what filters see of related records. */
  get permits(): readonly OwnedPermit[] {
    return [...this.#walked].flatMap(([owner, { permit, masks }]) =>
      [permit, ...masks.map((mask) => mask.permit)].map((each) => ({ permit: each, owner })),
    );
  }

  /** The rows as filters see them, without those that are hidden. Undefined: other rows decide what is hidden. */
  rowsOf(collection: string, rows: readonly Row[]): readonly Row[] | undefined {
    const { permit, masks } = this.#readable(collection);
    const all = [permit, ...masks.map((mask) => mask.permit)];
    if (all.some((each) => recordNeeds(each).length > 0 || requestedNeeds(each).length > 0)) return undefined;
    return rows.map((row) => this.#seen(collection, row, NOTHING_RELATED)).filter((row) => row !== undefined);
  }

  over(related: Related): Related {
    if (this.#walked.size === 0) return related;
    return new RememberedRelated({
      one: (collection, id) => {
        const row = related.one(collection, id);
        return row && this.#seen(collection, row, related);
      },
      many: (collection, name, id) => {
        const relation = this.#store.shape(collection).collection.relations.get(name)!;
        const via = 'via' in relation ? this.#access.member(relation.collection, relation.via, 'read') : undefined;
        const found = related.many(collection, name, id).filter((row) => via?.test(row, related) !== false);
        const seen = found.map((row) => this.#seen(relation.collection, row, related));
        return seen.filter((row) => row !== undefined);
      },
    });
  }

  #seen(collection: string, row: Row, related: Related): Row | undefined {
    const { permit, masks } = this.#readable(collection);
    return permit.test(row, related) ? maskedRow(row, masks, related) : undefined;
  }

  #readable(name: string): ReadableRecords {
    let known = this.#walked.get(name);
    if (known === undefined) {
      const { collection } = this.#store.shape(name);
      known = { permit: this.#access.permit(name, 'read'), masks: memberMasksOf(this.#access, collection) };
      this.#walked.set(name, known);
    }
    return known;
  }

  #withRules(needs: readonly Need[], owner: string): readonly Need[] {
    return needs.map(({ needs: inner, ...need }) => {
      const { collection } = this.#store.shape(owner).collection.relations.get(need.relation)!;
      return { ...need, needs: [...this.#withRules(inner, collection), ...this.#needsOfRules(collection)] };
    });
  }

  #needsOfRules(collection: string): readonly Need[] {
    const { permit, masks } = this.#readable(collection);
    return [permit, ...masks.map((mask) => mask.permit)].flatMap(recordNeeds);
  }
}
