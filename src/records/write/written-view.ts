/**
 * What the statement that writes a record returns of it: its version, its cells, and whether the
 * caller may read it.
 */

import type { Cells } from '../../database/contract.ts';
import type { Need } from '../../policy/types.ts';
import type { Relation } from '../../schema/model/model.ts';
import { join, type Sql, sql } from '../../sql.ts';
import { type Reading, readable, type Store } from '../access-context.ts';
import { answerOf, type Written } from '../read.ts';
import { type Asked, RecordView } from '../record-view.ts';
import { versionColumn } from '../select.ts';

export class WrittenView {
  readonly #reading: Reading;
  readonly #view: RecordView;
  readonly #asked: readonly Asked[];
  readonly #isNew: boolean;

  /** `isNew`: of a create without partners. */
  constructor(reading: Reading, isNew = false) {
    const { store, access, tenant } = reading;
    const { name } = access.collection;
    this.#reading = reading;
    this.#view = new RecordView(store, access, { collection: name, tenant });
    this.#isNew = isNew;
    const shown = isNew ? this.#view.masks : [...this.#view.masks, ...this.#view.partners];
    this.#asked = [{ collection: name, permit: access.permit(name, 'read') }, ...shown];
  }

  /**
   * Whether the statement sees everything as it is after the write. It sees the stored records of
   * the record's own collection as they were before it, without a new one.
   */
  get isExact(): boolean {
    const { store, access } = this.#reading;
    const { name } = access.collection;
    // Nothing refers to a new record yet, so only its own references lead to it.
    const leads = ({ kind, collection }: Relation): boolean =>
      collection === name && !(this.#isNew && (kind === 'belongs_to' || kind === 'many_to_many'));
    // It can be the partner of itself.
    if (!this.#isNew && store.shape(name).hasOnes.some(({ collection }) => collection === name)) return false;
    return !this.#asked.some((asked) => reaches(store, asked, { name, leads }));
  }

  /** Whether it reads other rows than the record's own. */
  get consultsOthers(): boolean {
    const { store, access } = this.#reading;
    const { hasOnes } = store.shape(access.collection.name);
    return hasOnes.length > 0 || this.#asked.some(({ permit }) => permit.consultsOthers);
  }

  columns(alias: string): Sql {
    const { access } = this.#reading;
    const isReadable = readable(access, access.collection.name, alias);
    return join([versionColumn(alias), this.#view.columns(alias), sql`(${isReadable})`], ', ');
  }

  /** Given what `columns` returned. */
  async answer(id: string, cells: Cells): Promise<Written> {
    return cells.at(-1) === 't' ? { id, ...(await answerOf(this.#reading, cells, [])) } : { id };
  }
}

interface Destination {
  readonly name: string;
  /** Whether a step by the relation can end at the written record. */
  readonly leads: (relation: Relation) => boolean;
}

/** Whether the permit walks to the written record, besides the one that it is asked of. */
function reaches(store: Store, { collection, permit }: Asked, { name, leads }: Destination): boolean {
  const walks = (from: string, needs: readonly Need[]): boolean =>
    needs.some(({ relation, needs: further }) => {
      const step = store.shape(from).collection.relations.get(relation)!;
      return leads(step) || walks(step.collection, further);
    });
  return permit.rules.some(
    ({ residual: { needs } }) =>
      walks(collection, needs.record) ||
      needs.requested.some((asked) => asked.collection === name || walks(asked.collection, asked.needs)),
  );
}
