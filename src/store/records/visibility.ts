/** What the caller of a request may read, as the policy room asks it. */
import type { Readable, Visibility } from '../../policy/visibility.ts';
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

  /** Of all that was asked up to now. */
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
