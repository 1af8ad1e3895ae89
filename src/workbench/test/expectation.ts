/** A file of policy tests, read: the callers, the rows, and what is expected of each request. */
import type { PolicyRequest, RequestFacts, RuledAction } from '../../policy/types.ts';
import type { Data } from '../../records/write/input.ts';
import type { Region } from '../../schema/file/issue.ts';
import type { Collection } from '../../schema/model/model.ts';

/** `no`: the rules refuse it, with 403 or 404. */
export type Expected =
  | { readonly kind: 'yes' }
  | { readonly kind: 'no' }
  | { readonly kind: 'status'; readonly status: number }
  | { readonly kind: 'names'; readonly names: readonly string[] };

export interface Expectation {
  readonly region: Region;
  readonly collection: Collection;
  /** The name of the row; undefined for a create, and for a list as a whole. */
  readonly record: string | undefined;
  /** `restore` is about the row as a deleted one. */
  readonly action: RuledAction;
  /** The time of the deletion before a restore; undefined: the time of the run. */
  readonly deletedAt?: string | undefined;
  /** A field with rules of its own, which a read shows or leaves out. */
  readonly field: string | undefined;
  /** The name of the caller. */
  readonly as: string;
  /** With ids in place of names. */
  readonly data: Data | undefined;
  readonly query: PolicyRequest['query'];
  readonly facts: RequestFacts;
  /** The facts about the session of a user. */
  readonly session: Data;
  readonly expected: Expected;
}

/** `documents draft, update as ada`: the text that `--only` looks in. */
export function titleOf({ collection, record, action, field, as }: Expectation): string {
  const of = record === undefined ? '' : ` ${record}`;
  return `${collection.name}${of}, ${action}${field === undefined ? '' : ` ${field}`} as ${as}`;
}
