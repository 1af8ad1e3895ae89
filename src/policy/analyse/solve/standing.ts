/** The caller, the action and the instant of a request that is being looked for. */
import type { Action } from '../../types.ts';

export interface RoleNames {
  /** The roles that exist, each with those that it includes. */
  readonly includes: ReadonlyMap<string, readonly string[]>;
}
/** `roles`: exactly these, and what they include. Left out: any that include `held`, without `lacked`. */
export type TriedCaller =
  | { readonly kind: 'guest' }
  /** A key has roles, and nothing of a user. */
  | { readonly kind: 'key' }
  | { readonly kind: 'user'; readonly roles?: readonly string[] }
  | { readonly kind: 'user'; readonly held: string; readonly lacked: string };

export interface Standing {
  readonly action: Action;
  readonly caller: TriedCaller;
  readonly roles: RoleNames;
  /** Canonical text. */
  readonly now: string;
  /** No rule compares the instant, so that the world may have another one. */
  readonly isNowFree: boolean;
  /** Addresses that represent all others. */
  readonly addresses: readonly string[];
}
