/**
 * `bylaw/policy`: policies without the service, in Node and in a browser. A text is compiled once;
 * the policy is then asked about records in memory (`test`) or turned into a SQL condition
 * (`where`). Both say the same, as they do in the service.
 */
import { parse } from '../../grammar/parser.ts';
import { lineAndColumn, PolicyError, type PolicyIssue } from '../../grammar/policy-error.ts';
import { print } from '../../grammar/printer.ts';
import { memoizedBy } from '../memoized.ts';
import { type Completion, completions } from '../policy/analyse/completions.ts';
import { examine } from '../policy/check/checker.ts';
import { type CatalogPlace, compileChecked, compile as compilePolicy } from '../policy/compile.ts';
import type { Action, Catalog, Policy as CompiledPolicy, PolicyRequest, Residual } from '../policy/types.ts';
import { parseDatetime } from '../policy/values.ts';
import { readSchemaCatalog, type SchemaCatalog } from '../schema/load.ts';
import { filterKeysOf } from '../schema/model/filter-keys.ts';
import { recordGraph } from './record-graph.ts';
import { SchemaError } from './schema-error.ts';

export { PolicyError, type PolicyIssue } from '../../grammar/policy-error.ts';
export type { Completion, CompletionKind } from '../policy/analyse/completions.ts';
export type { Action } from '../policy/types.ts';
export type { SchemaIssue } from '../schema/file/issue.ts';
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

/** The request that a policy sees; missing parts are absent. */
export interface Request {
  /** The caller: `id`, `roles`, and the fields that the schema gives to users. */
  readonly auth?: Readonly<Record<string, unknown>> | null;
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

/** A compiled policy. Made by `compile`; immutable, and good for any number of requests. */
export class Policy {
  /** The canonical form. */
  readonly text: string;
  readonly collection: string;
  readonly action: Action;
  readonly #catalog: Catalog;
  readonly #codegen: boolean;
  readonly #stored: CompiledPolicy;
  #inMemory: { readonly holds: CompiledPolicy; readonly fails: CompiledPolicy } | undefined;

  /** INVARIANT: `text` was checked against `catalog` without an error. */
  constructor(text: string, place: CatalogPlace, codegen: boolean) {
    this.#stored = compilePolicy(text, place, { codegen });
    this.text = format(text);
    this.collection = place.collection;
    this.action = place.action;
    this.#catalog = place.catalog;
    this.#codegen = codegen;
  }

  /** Decides stored records, which have every required value. */
  get stored(): CompiledPolicy {
    return this.#stored;
  }

  get catalog(): Catalog {
    return this.#catalog;
  }

  /**
   * Decides records that a caller gives, in which any value may be missing. `fails` is true if the policy is
   * definitely false, which distinguishes false from unknown.
   */
  get inMemory(): { readonly holds: CompiledPolicy; readonly fails: CompiledPolicy } {
    this.#inMemory ??= this.#compileInMemory();
    return this.#inMemory;
  }

  #compileInMemory() {
    const { text, collection, action } = this;
    const catalog = withoutRequired(this.#catalog);
    const options = { codegen: this.#codegen };
    const holds = compilePolicy(text, { catalog, collection, action }, options);
    const { checked } = holds;
    const negated = { kind: 'not', item: checked, span: checked.span } as const;
    return { holds, fails: compileChecked({ checked: negated, text, catalog, action }, options) };
  }
}

function withoutRequired(catalog: Catalog): Catalog {
  const collections = [...catalog.collections].map(([name, collection]) => {
    const fields = [...collection.fields].map(([key, field]) => [key, { ...field, required: false }] as const);
    const relations = [...collection.relations].map(
      ([key, relation]) => [key, relation.kind === 'belongs_to' ? { ...relation, required: false } : relation] as const,
    );
    return [name, { ...collection, fields: new Map(fields), relations: new Map(relations) }] as const;
  });
  return { ...catalog, collections: new Map(collections) };
}

/**
 * Throws PolicyError with every error of the text, SchemaError for a schema with errors, TypeError
 * for an unknown collection.
 */
export function compile(text: string, { schema, collection, action, codegen = true }: CompileOptions): Policy {
  return new Policy(text, { catalog: catalogFor(schema, collection), collection, action }, codegen);
}

export interface TestInput {
  readonly record: PolicyRecord;
  readonly request?: Request;
  /** The record after an update. Default: unchanged. */
  readonly next?: PolicyRecord;
}

/**
 * true, false, or null where the policy is unknown; only true allows. Throws TypeError for a value
 * that is not of its field's type, and for a related record that the policy reads and that `record`
 * only names by its id.
 */
export function test(policy: Policy, { record, request, next }: TestInput): boolean | null {
  const { catalog, collection } = policy;
  const asked = requestOf(request);
  const { row, next: written, related } = recordGraph(catalog, collection, { record, next: next ?? record });
  const isTrue = (residual: Residual): boolean =>
    residual.verdict === 'depends' ? residual.test(row, related, written) : residual.verdict === 'allow';
  const { holds, fails } = policy.inMemory;
  if (isTrue(holds.specialise(asked))) return true;
  return isTrue(fails.specialise(asked)) ? false : null;
}

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

/** An issue at its place: `line` and `column` count from 1, in UTF-16 units. */
export interface PlacedIssue extends PolicyIssue {
  readonly line: number;
  readonly column: number;
}

/**
 * Every error and warning about the text, in its order. Throws SchemaError and TypeError as
 * `compile` does.
 */
export function check(text: string, { schema, collection, action }: PolicyPlace): readonly PlacedIssue[] {
  const { issues } = examine(text, { catalog: catalogFor(schema, collection), collection, action });
  return issues.map((issue) => ({ ...issue, ...lineAndColumn(text, issue.span.start) }));
}

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

/** The canonical form, without comments. Throws PolicyError where the text cannot be parsed. */
export function format(text: string): string {
  const { expr, issues } = parse(text);
  if (expr === undefined) throw new PolicyError(text, issues);
  return print(expr);
}

function catalogFor(schema: SchemaSource, collection: string): SchemaCatalog {
  const catalog = typeof schema === 'string' ? readSchema(schema) : catalogOf(schema);
  if (catalog.collections.has(collection)) return catalog;
  throw new TypeError(
    `unknown collection ${JSON.stringify(collection)}; there are ${[...catalog.collections.keys()].join(', ')}`,
  );
}

const catalogOf = memoizedBy((schema: object) => readSchema(JSON.stringify(schema)));

function readSchema(text: string): SchemaCatalog {
  const { catalog, issues } = readSchemaCatalog(text);
  if (catalog === undefined) throw new SchemaError(issues.filter(({ severity }) => severity === 'error'));
  return catalog;
}

function requestOf({ auth = null, query = {}, data, now = new Date() }: Request = {}): PolicyRequest {
  const instant = parseDatetime(typeof now === 'string' ? now : now.toISOString());
  if (instant === undefined) throw new TypeError(`request.now: expected an RFC 3339 datetime, found ${String(now)}`);
  return { auth, query, data, now: instant };
}
