/**
 * The subscribers of a process by what they see, so that each decision is made once for all who share it. A change visits
 * the groups whose pins meet it, and those without.
 */
import type { Row } from '../policy/types.ts';
import type { Store } from '../records/access-context.ts';
import type { Collection } from '../schema/model/model.ts';
import { Audience, namesNow } from './audience.ts';
import type { ChangeBatch } from './commits.ts';
import { shownSources } from './events.ts';
import type { FeedGroup, Subscriber } from './subscriber.ts';

export class FeedGroups {
  readonly #store: Store;
  readonly #collections = new Map<string, CollectionGroups>();
  #timed = 0;

  constructor(store: Store) {
    this.#store = store;
  }

  add(subscriber: Subscriber): void {
    this.remove(subscriber);
    const audience = this.#audienceOf(subscriber);
    const { collection, filters } = subscriber.request;
    const isTimed = namesNow(collection, filters, this.#store.schema);
    const key = isTimed ? `at its time ${++this.#timed}` : audience.key;
    const groups = this.#collections.get(collection.name) ?? new CollectionGroups();
    this.#collections.set(collection.name, groups);
    const group = groups.at(key) ?? groups.add({ key, members: new Set(), isTimed, audience });
    group.members.add(subscriber);
    subscriber.group = group;
  }

  remove(subscriber: Subscriber): void {
    const { group, request } = subscriber;
    if (group === undefined) return;
    group.members.delete(subscriber);
    if (group.members.size === 0) this.#collections.get(request.collection.name)?.remove(group);
    subscriber.group = undefined;
  }

  /** The groups that a batch may concern, with an audience of this instant. @param rows the states of its records */
  of(collection: string, batch: ChangeBatch, rows: readonly Row[]): readonly FeedGroup[] {
    const groups = [
      ...(this.#collections.get(collection)?.concernedBy(this.#store.shape(collection).collection, batch, rows) ?? []),
    ];
    for (const group of groups) {
      const [first] = group.members;
      if (group.isTimed && first !== undefined) group.audience = this.audienceNow(first);
    }
    return groups;
  }

  get collections(): readonly string[] {
    return [...this.#collections.keys()];
  }

  allOf(collection: string): readonly FeedGroup[] {
    return [...(this.#collections.get(collection)?.all() ?? [])];
  }

  /** The audience at this instant. */
  audienceNow(subscriber: Subscriber): Audience {
    subscriber.renew();
    return this.#audienceOf(subscriber);
  }

  #audienceOf({ access, request }: Subscriber): Audience {
    return new Audience(this.#store, access, request);
  }
}

class CollectionGroups {
  readonly #all = new Map<string, FeedGroup>();
  /** Groups that any record may concern. */
  readonly #open = new Set<FeedGroup>();
  /** Groups whose decisions depend on other records. */
  readonly #related = new Set<FeedGroup>();
  /** The others by member, then by value. */
  readonly #pinned = new Map<string, Map<string, Set<FeedGroup>>>();

  at(key: string): FeedGroup | undefined {
    return this.#all.get(key);
  }

  all(): Iterable<FeedGroup> {
    return this.#all.values();
  }

  add(group: FeedGroup): FeedGroup {
    this.#all.set(group.key, group);
    if (group.audience.related.size > 0) this.#related.add(group);
    const places = this.#placesOf(group);
    if (places === undefined) this.#open.add(group);
    else for (const place of places) place.add(group);
    return group;
  }

  remove(group: FeedGroup): void {
    this.#all.delete(group.key);
    this.#related.delete(group);
    this.#open.delete(group);
    for (const { member, values } of group.audience.pins ?? []) {
      const byValue = this.#pinned.get(member);
      for (const value of values) {
        const place = byValue?.get(value);
        place?.delete(group);
        if (place?.size === 0) byValue?.delete(value);
      }
    }
  }

  #placesOf({ isTimed, audience }: FeedGroup): readonly Set<FeedGroup>[] | undefined {
    if (isTimed || audience.pins === undefined) return undefined;
    return audience.pins.flatMap(({ member, values }) => {
      const byValue = this.#pinned.get(member) ?? new Map<string, Set<FeedGroup>>();
      this.#pinned.set(member, byValue);
      return values.map((value) => {
        const place = byValue.get(value) ?? new Set();
        byValue.set(value, place);
        return place;
      });
    });
  }

  concernedBy(
    collection: Collection,
    { bulk, foreign, changes }: ChangeBatch,
    rows: readonly Row[],
  ): Iterable<FeedGroup> {
    if (shownSources(collection).some((source) => bulk.has(source) || foreign.has(source))) return this.#all.values();
    const found = rows.length === 0 ? new Set<FeedGroup>() : new Set(this.#open);
    for (const [member, byValue] of this.#pinned)
      for (const row of rows) for (const group of byValue.get(row[member] as string) ?? []) found.add(group);
    const isTouched = (source: string): boolean => bulk.has(source) || foreign.has(source) || changes.has(source);
    for (const group of this.#related)
      if (!found.has(group) && [...group.audience.related].some(isTouched)) found.add(group);
    return found;
  }
}
