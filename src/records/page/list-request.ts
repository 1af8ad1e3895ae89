/** The request for a page, of a GET list as of a POST query. */
import type { Filter } from '../../policy/filter.ts';
import type { Expand } from '../expand.ts';
import type { Members } from '../record-shape.ts';
import type { CountKind } from './count.ts';
import type { ExactFilter } from './exact-filters.ts';
import type { Sorting } from './keyset.ts';

/** All filters must match. */
export interface ListRequest {
  readonly exact?: readonly ExactFilter[];
  readonly filter?: Filter | undefined;
  /** Ties are in the order of the ids. */
  readonly sort?: readonly Sorting[];
  readonly limit: number;
  readonly offset: number;
  /** With it, the page names the cursor of the next one. */
  readonly cursors?: CursorRequest;
  readonly members?: Members | undefined;
  readonly expands?: readonly Expand[];
  readonly count?: CountKind;
  /** Each record carries `can`: its capabilities. */
  readonly capabilities?: boolean;
  /**
   * The statements share the time that the schema gives a query, in the slow lane, and the related
   * records are bounded.
   */
  readonly isBudgeted?: boolean;
}

export interface CursorRequest {
  /** Filter, params and sort in one spelling: equal for the queries that may share a cursor. */
  readonly query: string;
  /** The page begins after this cursor. */
  readonly after?: string | undefined;
}
