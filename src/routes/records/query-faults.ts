/** What is wrong with the body of a query: faults of filters are of one kind, all others of another. Not a route. */
import { pointerPart } from '../../http/body.ts';
import type { CompiledFilter } from '../../policy/filter.ts';
import { type Fault, MAX_SHOWN_FAULTS, Problem, UNSHOWN_FAULT } from '../../problem.ts';

type Issues = CompiledFilter['issues'];
export type Pointer = readonly (string | number)[];

const pointerOf = (path: Pointer): string => path.map((part) => `/${pointerPart(String(part))}`).join('');

export class QueryFaults {
  readonly #filters: Fault[] = [];
  readonly #others: Fault[] = [];

  add(path: Pointer, code: string, detail: string): undefined {
    this.#others.push(
      this.#others.length < MAX_SHOWN_FAULTS ? { pointer: pointerOf(path), code, detail } : UNSHOWN_FAULT,
    );
  }

  addFilter(path: Pointer, issues: Issues): undefined {
    const pointer = pointerOf(path);
    this.#filters.push(...issues.map((issue) => filterFault(pointer, issue)));
  }

  has(path: Pointer): boolean {
    const pointer = pointerOf(path);
    return this.#others.some((fault) => fault.pointer === pointer);
  }

  /** Throws `filter_invalid`, then `validation_failed`. */
  throwAny(): void {
    const [first] = this.#filters;
    if (first !== undefined) throw new Problem('filter_invalid', first.detail, { errors: this.#filters });
    if (this.#others.length > 0)
      throw new Problem('validation_failed', 'the body is not a query of this collection', { errors: this.#others });
  }
}

function filterFault(pointer: string, { code, message, span, fix }: Issues[number]): Fault {
  const fault = { pointer, code, detail: message, offset: span.start, length: span.end - span.start };
  if (fix === undefined) return fault;
  const { start, end } = fix.span;
  return { ...fault, fix: { offset: start, length: end - start, replacement: fix.replacement } };
}
