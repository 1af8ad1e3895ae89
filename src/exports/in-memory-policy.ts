/** Policies about records that a caller gives, in which any value may be missing. Shared by both policy exports. */
import { present } from '../invariant.ts';
import { memoizedBy } from '../memoized.ts';
import { examineErrors } from '../policy/check/checker.ts';
import type { CatalogPlace } from '../policy/compile.ts';
import { decisionsOf, type Emit } from '../policy/in-memory.ts';
import type { CallerKind, Catalog, PolicyRequest, RequestFacts } from '../policy/types.ts';
import { parseDatetime } from '../policy/values.ts';
import { recordGraph } from './record-graph.ts';

/** The request that a policy sees; missing parts are absent. */
export interface Request {
  /** The caller: `id`, `roles`, and the fields that the schema gives to users; related records as in a record. */
  readonly auth?: Readonly<Record<string, unknown>> | null;
  /** Default: `user`. */
  readonly kind?: CallerKind;
  /** `@request.ip`, `@request.method` and `@request.origin`. */
  readonly facts?: RequestFacts;
  readonly query?: Readonly<Record<string, string | readonly string[]>>;
  /** The `data` of a body, for create and update. */
  readonly data?: Readonly<Record<string, unknown>>;
  /** RFC 3339, or a Date. Default: now. */
  readonly now?: string | Date;
}

/**
 * A record as the API prints it, with related records in the place of their ids where a policy
 * walks to them.
 */
export type PolicyRecord = Readonly<Record<string, unknown>>;

export interface TestInput {
  readonly record: PolicyRecord;
  readonly request?: Request;
  /** The record after an update. Default: unchanged. */
  readonly next?: PolicyRecord;
}

export class InMemoryPolicy {
  readonly #place: CatalogPlace;
  readonly #holds: ReturnType<typeof decisionsOf>;
  /** True where the policy is definitely false, which distinguishes false from unknown. */
  readonly #fails: ReturnType<typeof decisionsOf>;

  /** INVARIANT: `text` was checked at `place` without an error. */
  constructor(text: string, place: CatalogPlace, emit: Emit) {
    const given = { ...place, catalog: withoutRequired(place.catalog) };
    const checked = present(examineErrors(text, given).checked, 'the checked policy');
    this.#place = place;
    this.#holds = decisionsOf(checked, given, emit);
    this.#fails = decisionsOf({ kind: 'not', item: checked, span: checked.span }, given, emit);
  }

  /**
   * true, false, or null where the policy is unknown. Throws TypeError for a value that is not of its field's type,
   * for a related record that the policy reads and that is only named by its id, and for records of the caller that the
   * policy reads and `auth` does not have.
   */
  test({ record, request: given, next }: TestInput): boolean | null {
    const { catalog, collection } = this.#place;
    const asked = requestOf(given);
    const graph = { record, next: next ?? record, auth: asked.auth };
    const { row, next: written, auth, related } = recordGraph(catalog, collection, graph);
    const request = { ...asked, auth };
    if (this.#holds(request)(row, related, written)) return true;
    return this.#fails(request)(row, related, written) ? false : null;
  }
}

const withoutRequired = memoizedBy((catalog: Catalog): Catalog => {
  const collections = [...catalog.collections].map(([name, collection]) => {
    const fields = [...collection.fields].map(([key, field]) => [key, { ...field, required: false }] as const);
    const relations = [...collection.relations].map(
      ([key, relation]) => [key, relation.kind === 'belongs_to' ? { ...relation, required: false } : relation] as const,
    );
    return [name, { ...collection, fields: new Map(fields), relations: new Map(relations) }] as const;
  });
  return { ...catalog, collections: new Map(collections) };
});

/** Throws TypeError. */
export function requestOf({
  auth = null,
  kind,
  facts,
  query = {},
  data,
  now = new Date(),
}: Request = {}): PolicyRequest {
  const instant = parseDatetime(typeof now === 'string' ? now : now.toISOString());
  if (instant === undefined) throw new TypeError(`request.now: expected an RFC 3339 datetime, found ${String(now)}`);
  return { auth, kind, facts, query, data, now: instant };
}
