/** The changes of records that a decision reads besides the record itself. */
import type { Row } from '../policy/types.ts';
import type { Store } from '../records/access-context.ts';
import type { Audience } from './audience.ts';
import type { ChangeBatch, RecordChange } from './commits.ts';

export class RelatedChanges {
  readonly #store: Store;
  readonly #batch: ChangeBatch;
  readonly #rows = new Map<string, readonly Row[]>();

  constructor(store: Store, batch: ChangeBatch) {
    this.#store = store;
    this.#batch = batch;
  }

  /** A row that the audience's rules may read has changed. */
  concern(audience: Audience): boolean {
    return audience.related.values().some((source) => this.#mayDecide(source, audience));
  }

  #mayDecide(source: string, audience: Audience): boolean {
    const { bulk, foreign, changes } = this.#batch;
    if (bulk.has(source) || foreign.has(source)) return true;
    const own = changes.get(source);
    if (own === undefined) return false;
    // A link has no values of its own that a rule could name.
    if (!this.#store.schema.collections.has(source)) return true;
    return audience.dependsOn(source, this.#rowsOf(source, own));
  }

  /** Read once for all audiences. */
  #rowsOf(source: string, changes: readonly RecordChange[]): readonly Row[] {
    const known = this.#rows.get(source);
    if (known !== undefined) return known;
    const shape = this.#store.shape(source);
    const cells = changes.flatMap(({ before, after }) => [before, after]).filter((each) => each !== null);
    const rows = cells.map((each) => shape.row(each));
    this.#rows.set(source, rows);
    return rows;
  }
}
