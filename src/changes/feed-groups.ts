/** The subscribers of a process by what they see, so that each decision is made once for all who share it. */
import type { Store } from '../records/access-context.ts';
import { Audience, namesNow } from './audience.ts';
import type { FeedGroup, Subscriber } from './subscriber.ts';

export class FeedGroups {
  readonly #store: Store;
  /** The groups by collection, then by the key of their audience. */
  readonly #groups = new Map<string, Map<string, FeedGroup>>();
  #timed = 0;

  constructor(store: Store) {
    this.#store = store;
  }

  add(subscriber: Subscriber): void {
    this.remove(subscriber);
    const audience = this.audienceOf(subscriber);
    const { collection, filter } = subscriber.request;
    const isTimed = namesNow(collection, filter);
    const key = isTimed ? `at its time ${++this.#timed}` : audience.key;
    const groups = this.#groups.get(collection.name) ?? new Map<string, FeedGroup>();
    this.#groups.set(collection.name, groups);
    const group = groups.get(key) ?? { key, members: new Set(), isTimed, audience };
    groups.set(key, group);
    group.members.add(subscriber);
    subscriber.group = group;
  }

  remove(subscriber: Subscriber): void {
    const { group, request } = subscriber;
    if (group === undefined) return;
    group.members.delete(subscriber);
    if (group.members.size === 0) this.#groups.get(request.collection.name)?.delete(group.key);
    subscriber.group = undefined;
  }

  /** With an audience of this instant. */
  *of(collection: string): Iterable<FeedGroup> {
    for (const group of this.#groups.get(collection)?.values() ?? []) {
      const [first] = group.members;
      if (group.isTimed && first !== undefined) {
        first.renew();
        group.audience = this.audienceOf(first);
      }
      yield group;
    }
  }

  get collections(): readonly string[] {
    return [...this.#groups.keys()];
  }

  audienceOf({ access, request }: Subscriber): Audience {
    return new Audience(this.#store, access, request);
  }
}
