/** Answers to the policy room what the caller of a request may read. */
import type { Readable, Visibility } from '../policy/visibility.ts';
import { raw, type Sql, sql } from '../sql.ts';
import type { AccessContext } from './access-context.ts';

export const visibilityOf = ({ permit, member }: AccessContext): Visibility => ({
  records: (collection) => permit(collection, 'read'),
  member: (collection, name) => member(collection, name, 'read'),
});

/** Notes whether something was asked for that the caller may not read everywhere. */
export class ObservedVisibility implements Visibility {
  readonly #visibility: Visibility;
  #isOpen = true;

  constructor(visibility: Visibility) {
    this.#visibility = visibility;
  }

  /** Covers all questions up to now. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  records(collection: string): Readable {
    const rule = this.#visibility.records(collection);
    this.#isOpen &&= rule.verdict === 'allow';
    return rule;
  }

  member(collection: string, member: string): Readable | undefined {
    const rule = this.#visibility.member(collection, member);
    this.#isOpen &&= rule === undefined || rule.verdict === 'allow';
    return rule;
  }
}

/** A column of the row that is named `alias`, NULL where the caller may not read it. Undefined: as readable as the record. */
export function maskedBy(rule: Readable | undefined, alias: string, column: Sql): Sql {
  if (rule === undefined || rule.verdict === 'allow') return column;
  // The CASE has the column's type; a bare NULL has none.
  return sql`CASE WHEN ${rule.verdict === 'deny' ? raw('FALSE') : rule.where(alias)} THEN ${column} END`;
}
