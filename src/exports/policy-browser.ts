/**
 * `bylaw/policy/browser`: the part of `bylaw/policy` that pages need, without SQL, generated code and the reader of
 * schemas. It takes the document that `policyCatalog` of `bylaw/policy` makes of a schema that was checked elsewhere.
 */
import { PolicyError } from '../../grammar/policy-error.ts';
import { type Completion, completions } from '../policy/analyse/completions.ts';
import { examineErrors } from '../policy/check/checker.ts';
import type { CatalogPlace } from '../policy/compile.ts';
import { closures } from '../policy/emit/closures.ts';
import { catalogFromDocument, type PolicyCatalog } from '../policy/request/catalog-document.ts';
import type { Action } from '../policy/types.ts';
import { InMemoryPolicy, type TestInput } from './in-memory-policy.ts';
import { format, issuesAt, type PlacedIssue, requireKnownCollection } from './policy-text.ts';

export { PolicyError, type PolicyIssue } from '../../grammar/policy-error.ts';
export type { Completion, CompletionKind } from '../policy/analyse/completions.ts';
export type { PolicyCatalog } from '../policy/request/catalog-document.ts';
export type { Action } from '../policy/types.ts';
export type { PolicyRecord, Request, TestInput } from './in-memory-policy.ts';
export { format, type PlacedIssue } from './policy-text.ts';

export interface PagePlace {
  readonly catalog: PolicyCatalog;
  readonly collection: string;
  readonly action: Action;
}

/** A compiled policy. Made by `compile`; immutable, and good for any number of requests. */
class PagePolicy {
  /** The canonical form. */
  readonly text: string;
  readonly collection: string;
  readonly action: Action;
  readonly #inMemory: InMemoryPolicy;

  /** INVARIANT: `text` was checked at `place` without an error. */
  constructor(text: string, place: CatalogPlace) {
    this.text = format(text);
    this.collection = place.collection;
    this.action = place.action;
    this.#inMemory = new InMemoryPolicy(text, place, closures);
  }

  decide(input: TestInput): boolean | null {
    return this.#inMemory.test(input);
  }
}

export type { PagePolicy as Policy };

/** Throws PolicyError with every error of the text, TypeError for an unknown collection or another document. */
function compileInPage(text: string, place: PagePlace): PagePolicy {
  const read = catalogPlaceOf(place);
  const { issues } = examineErrors(text, read);
  if (issues.length > 0) throw new PolicyError(text, issues);
  return new PagePolicy(text, read);
}

/**
 * true, false, or null where the policy is unknown; only true allows. Throws TypeError for a value
 * that is not of its field's type, and for a related record that the policy reads and that `record`
 * only names by its id.
 */
const testInPage = (policy: PagePolicy, input: TestInput): boolean | null => policy.decide(input);

/** Every error and warning about the text, in its order. Throws TypeError as `compile` does. */
const checkInPage = (text: string, place: PagePlace): readonly PlacedIssue[] => issuesAt(text, catalogPlaceOf(place));

/** Completions at `offset` (in UTF-16 units) of an unfinished text. Throws TypeError as `compile` does. */
function completeInPage(text: string, offset: number, place: PagePlace): readonly Completion[] {
  const read = catalogPlaceOf(place);
  const queryKeys = place.action === 'list' ? place.catalog.collections[place.collection]!.filters : [];
  return completions(text, offset, { ...read, queryKeys });
}

export { checkInPage as check, compileInPage as compile, completeInPage as complete, testInPage as test };

function catalogPlaceOf({ catalog: document, collection, action }: PagePlace): CatalogPlace {
  const place = { catalog: catalogFromDocument(document), collection, action };
  requireKnownCollection(place);
  return place;
}
