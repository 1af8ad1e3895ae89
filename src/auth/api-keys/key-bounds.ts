/** Bounds of an API key: the actions, addresses and pages that it may be used for, beyond the limits of its roles. */

import { livingName } from '../../policy/deleted-names.ts';
import { isInNetwork, type Network, parseAddress, parseNetwork } from '../../policy/request/networks.ts';
import type { Action } from '../../policy/types.ts';

/** Every collection. */
export const EVERY = '*';
const USERS = 'users';
/** The actions on `users` by which accounts are read and changed. */
const ADMINISTRATION: readonly Action[] = ['read', 'update'];

/** The actions of a collection, or of `*`, which is every collection. */
export type KeyLimit = Readonly<Record<string, readonly Action[]>>;

export interface BoundsInput {
  readonly limit: KeyLimit | null;
  readonly addresses: readonly string[] | null;
  /** The pages whose browsers may send a publishable key. */
  readonly origins: readonly string[] | null;
}

export class KeyBounds {
  /** Keys of the same roles with one text have the same access. Undefined: unlimited. */
  readonly limitText: string | undefined;
  readonly #limit: KeyLimit | undefined;
  readonly #networks: readonly Network[] | undefined;
  readonly #origins: ReadonlySet<string> | undefined;

  constructor({ limit, addresses, origins }: BoundsInput) {
    this.#limit = limit ?? undefined;
    this.limitText = limit === null ? undefined : JSON.stringify(limit);
    // A stored text that cannot be read admits no address.
    this.#networks = addresses?.flatMap((text) => parseNetwork(text) ?? []);
    this.#origins = origins === null ? undefined : new Set(origins);
  }

  allows(collection: string, action: Action): boolean {
    return this.#limit === undefined || allows(this.#limit, livingName(collection), action);
  }

  /** The limit names `users` itself: what `*` allows is records, not the administration of accounts. */
  administers(action: Action): boolean {
    return this.#limit !== undefined && allowedActions(this.#limit, USERS).includes(action);
  }

  admitsAddress(text: string): boolean {
    if (this.#networks === undefined) return true;
    const address = parseAddress(text);
    return address !== undefined && this.#networks.some((network) => isInNetwork(address, network));
  }

  /** @param origin empty: the request is not a browser's, or its page is the service's own */
  admitsOrigin(origin: string): boolean {
    return this.#origins === undefined || origin === '' || this.#origins.has(origin);
  }
}

/** The limit lets a key with the right roles administer accounts, which the one before does not. */
export const addsAdministration = (limit: KeyLimit | null, before: KeyLimit | null): boolean =>
  ADMINISTRATION.some(
    (action) =>
      allowedActions(limit ?? {}, USERS).includes(action) && !allowedActions(before ?? {}, USERS).includes(action),
  );

/** The first collection for which the limit allows an action that the one before does not. */
export function firstBeyond(limit: KeyLimit, before: KeyLimit): string | undefined {
  const found = Object.entries(limit).find(
    ([name, actions]) => !actions.every((action) => allows(before, name, action)),
  );
  return found?.[0];
}

const allows = (limit: KeyLimit, collection: string, action: Action): boolean =>
  allowedActions(limit, collection).includes(action) || allowedActions(limit, EVERY).includes(action);

const allowedActions = (limit: KeyLimit, name: string): readonly Action[] =>
  Object.hasOwn(limit, name) ? (limit[name] ?? []) : [];
