/**
 * `bylaw/policy`: policies without the service, in Node and in a browser. A text is compiled once;
 * the policy is then asked about records in memory (`test`) or turned into a SQL condition
 * (`where`). Both say the same, as they do in the service.
 */
import { memoized, memoizedBy } from '../memoized.ts';
import { type Completion, completions } from '../policy/analyse/completions.ts';
import { type CatalogPlace, compilePolicy } from '../policy/compile.ts';
import { closures } from '../policy/emit/closures.ts';
import { javascript } from '../policy/emit/javascript.ts';
import { type PolicyCatalog, writeCatalog } from '../policy/request/catalog-document.ts';
import type { Action, Policy as CompiledPolicy } from '../policy/types.ts';
import { readSchemaCatalog, type SchemaCatalog } from '../schema/load.ts';
import { filterKeysOf } from '../schema/model/filter-keys.ts';
import { InMemoryPolicy, type Request, requestOf, type TestInput } from './in-memory-policy.ts';
import { format, issuesAt, type PlacedIssue, requireKnownCollection } from './policy-text.ts';
import { SchemaError } from './schema-error.ts';

export { PolicyError, type PolicyIssue } from '../../grammar/policy-error.ts';
export type { Completion, CompletionKind } from '../policy/analyse/completions.ts';
export type { PolicyCatalog } from '../policy/request/catalog-document.ts';
export type { Action } from '../policy/types.ts';
export type { SchemaIssue } from '../schema/file/issue.ts';
export type { PolicyRecord, Request, TestInput } from './in-memory-policy.ts';
export { format, type PlacedIssue } from './policy-text.ts';
export { SchemaError } from './schema-error.ts';

/** bylaw.yaml as text (YAML or JSON), or what it parses to. */
export type SchemaSource = string | object;

export interface PolicyPlace {
  readonly schema: SchemaSource;
  readonly collection: string;
  readonly action: Action;
}
export interface CompileOptions extends PolicyPlace {
  /** Default true. False where `new Function` is forbidden, as under a strict Content-Security-Policy. */
  readonly codegen?: boolean;
}

/** A compiled policy. Made by `compile`; immutable, and good for any number of requests. */
export class Policy {
  /** The canonical form. */
  readonly text: string;
  readonly collection: string;
  readonly action: Action;
  readonly #stored: CompiledPolicy;
  /** Decides records that a caller gives. */
  readonly inMemory: () => InMemoryPolicy;

  /** INVARIANT: `text` was checked against `catalog` without an error. */
  constructor(text: string, place: CatalogPlace, codegen: boolean) {
    this.#stored = compilePolicy(text, place, { codegen });
    this.text = format(text);
    this.collection = place.collection;
    this.action = place.action;
    this.inMemory = memoized(() => new InMemoryPolicy(text, place, codegen ? javascript : closures));
  }

  /** Decides stored records, which have every required value. */
  get stored(): CompiledPolicy {
    return this.#stored;
  }
}

/**
 * Throws PolicyError with every error of the text, SchemaError for a schema with errors, TypeError
 * for an unknown collection.
 */
export function compile(text: string, { schema, collection, action, codegen = true }: CompileOptions): Policy {
  return new Policy(text, { catalog: catalogFor(schema, collection), collection, action }, codegen);
}

/**
 * true, false, or null where the policy is unknown; only true allows. Throws TypeError for a value
 * that is not of its field's type, and for a related record that the policy reads and that `record`
 * only names by its id.
 */
export const test = (policy: Policy, input: TestInput): boolean | null => policy.inMemory().test(input);

export interface Where {
  /** A boolean expression for PostgreSQL, with `$1::uuid`-like placeholders. */
  readonly sql: string;
  readonly params: readonly unknown[];
}
export interface WhereInput {
  readonly request?: Request;
  /** The table's alias in the statement. Default `t`. */
  readonly alias?: string;
}

/**
 * The stored records for which the policy is true. Throws TypeError for a policy that names
 * `@next`: it is not about stored records.
 */
export function where(policy: Policy, input: WhereInput = {}): Where {
  return specialise(policy, input).where(input.alias);
}

/** The residual of a policy after a request. */
export interface Specialised {
  /** `allow` and `deny` hold for every record. */
  readonly verdict: 'allow' | 'deny' | 'depends';
  where(alias?: string): Where;
}

export interface SpecialiseOptions {
  readonly request?: Request;
}

export function specialise(policy: Policy, { request }: SpecialiseOptions = {}): Specialised {
  const residual = policy.stored.specialise(requestOf(request));
  return {
    verdict: residual.verdict,
    where(alias = 't') {
      if (policy.stored.namesNext)
        throw new TypeError('a policy that names `@next` has no condition over stored records');
      const { text, values } = residual.where(alias);
      return { sql: text, params: values };
    },
  };
}

/**
 * Every error and warning about the text, in its order. Throws SchemaError and TypeError as
 * `compile` does.
 */
export const check = (text: string, { schema, collection, action }: PolicyPlace): readonly PlacedIssue[] =>
  issuesAt(text, { catalog: catalogFor(schema, collection), collection, action });

/**
 * Completions at `offset` (in UTF-16 units) of an unfinished text, regardless of the text after it: names,
 * operators that fit the types, values of enums, words. The whole word at the offset counts as not
 * written yet, so the caller filters by its beginning. Throws SchemaError and TypeError as
 * `compile` does.
 */
export function complete(
  text: string,
  offset: number,
  { schema, collection, action }: PolicyPlace,
): readonly Completion[] {
  const catalog = catalogFor(schema, collection);
  const queryKeys = action === 'list' ? filterKeysOf(catalog.collections.get(collection)!).keys() : [];
  return completions(text, offset, { catalog, collection, action, queryKeys });
}

/** The document of a schema for `bylaw/policy/browser`: what policies may name. Throws SchemaError. */
export function policyCatalog(schema: SchemaSource): PolicyCatalog {
  const catalog = catalogOf(schema);
  return writeCatalog(catalog, (name) => [...filterKeysOf(catalog.collections.get(name)!).keys()]);
}

function catalogFor(schema: SchemaSource, collection: string): SchemaCatalog {
  const catalog = catalogOf(schema);
  requireKnownCollection({ catalog, collection });
  return catalog;
}

const catalogOf = (schema: SchemaSource): SchemaCatalog =>
  typeof schema === 'string' ? readSchema(schema) : catalogOfObject(schema);

const catalogOfObject = memoizedBy((schema: object) => readSchema(JSON.stringify(schema)));

function readSchema(text: string): SchemaCatalog {
  const { catalog, issues } = readSchemaCatalog(text);
  if (catalog === undefined) throw new SchemaError(issues.filter(({ severity }) => severity === 'error'));
  return catalog;
}
