/** Errors in the body of a query: errors of filters are of one kind, all others of another. Not a route. */
import { hintOf, nearest } from '../../../../grammar/suggest.ts';
import { type CompiledFilter, MAX_FILTER_BYTES } from '../../../policy/filters/filter.ts';
import {
  addError,
  type ErrorDetail,
  echo,
  MAX_SUGGESTIONS,
  Problem,
  pointerPart,
  textError,
} from '../../../problem.ts';
import type { Collection } from '../../../schema/model/model.ts';

type Issues = CompiledFilter['issues'];
export type Pointer = readonly (string | number)[];

const pointerOf = (path: Pointer): string => path.map((part) => `/${pointerPart(String(part))}`).join('');

/** UTF-16 units of all filters of a body: compiling takes milliseconds a kilobyte, in which no other request runs. */
const MOST_FILTER_TEXT = 2 * MAX_FILTER_BYTES;

export class QueryErrors {
  readonly filters: ErrorDetail[] = [];
  readonly others: ErrorDetail[] = [];
  readonly #pointers = new Set<string>();
  #needed: ErrorDetail | undefined;
  #filterText = 0;

  add(path: Pointer, code: string, detail: string): undefined {
    const pointer = pointerOf(path);
    this.#pointers.add(pointer);
    addError(this.others, { pointer, code, detail });
  }

  addFilter(path: Pointer, issues: Issues): undefined {
    const pointer = pointerOf(path);
    this.filters.push(...issues.map((issue) => textError(pointer, issue)));
  }

  /**
   * Counts the text of a filter. Reports one that makes the filters of the body too long together, and returns false.
   * A text that is too long by itself is not compiled.
   */
  hasRoomFor(path: Pointer, text: string): boolean {
    if (text.length > MAX_FILTER_BYTES) return true;
    this.#filterText += text.length;
    if (this.#filterText <= MOST_FILTER_TEXT) return true;
    const message = `the filters of the body are longer than ${MOST_FILTER_TEXT} characters together; expected shorter ones`;
    this.addFilter(path, [
      { code: 'policy_too_long', severity: 'error', message, span: { start: 0, end: text.length } },
    ]);
    return false;
  }

  /** Reported only without other errors: an error in the filter may be why it names no tenant. */
  needFilter(path: Pointer, detail: string): void {
    this.#needed = { pointer: pointerOf(path), code: 'filter_required', detail };
  }

  has(path: Pointer): boolean {
    return this.#pointers.has(pointerOf(path));
  }

  /** A name to suggest for one that is not known: for the first few only. */
  nearest(name: string, names: Iterable<string>): string | undefined {
    return this.others.length < MAX_SUGGESTIONS ? nearest(name, names) : undefined;
  }

  /** Throws `filter_invalid`, then `validation_failed`, then `filter_required`. */
  throwAny(): void {
    const [first] = this.filters;
    if (first !== undefined) throw new Problem('filter_invalid', first.detail, { errors: this.filters });
    if (this.others.length > 0)
      throw new Problem('validation_failed', 'the body is not a query of this collection', { errors: this.others });
    if (this.#needed !== undefined)
      throw new Problem('filter_required', this.#needed.detail, { errors: [this.#needed] });
  }
}

/** `near`: the name to suggest. */
export const noRelation = (collection: Collection, name: string, near: string | undefined): string =>
  `\`${collection.name}\` has no relation \`${echo(name)}\`${hintOf(near)}`;
