/**
 * The body of a query, read key by key: every error is found, and what is read is checked against
 * the schema. Not a route.
 */
import { hintOf } from '../../../../grammar/suggest.ts';
import { type CompiledFilter, compileFilter, type Filter, MAX_PARAMS } from '../../../policy/filters/filter.ts';
import { NO_NAME, sortPathOf } from '../../../policy/filters/sort-path.ts';
import type { Catalog, Params } from '../../../policy/types.ts';
import { InexactNumeral } from '../../../policy/values.ts';
import { echo } from '../../../problem.ts';
import type { Sorting } from '../../../records/page/keyset.ts';
import type { Members } from '../../../records/record-shape.ts';
import { type Data, isObject } from '../../../records/write/input.ts';
import { neededTenant } from '../../../schema/model/filter-keys.ts';
import { type IntRange, MOST_SORTS } from '../../../schema/model/list-parameters.ts';
import type { Collection, Schema } from '../../../schema/model/model.ts';
import type { Pointer, QueryErrors } from './query-errors.ts';

export interface KeyedBody {
  readonly body: Data;
  readonly path: Pointer;
}
interface ConditionOptions {
  /** The collection that it is a condition of; default: that of the body. */
  readonly over?: { readonly catalog: Catalog; readonly collection: string };
  /** Gives the params of the filter their types. */
  readonly typed?: (filter: Filter) => Filter;
  readonly misplaced?: MisplacedNames;
}

/** Names that belong to another key of the body. */
interface MisplacedNames {
  readonly names: readonly string[];
  /** The end of the sentence about a name: its kind, and the key that takes it. */
  readonly reason: string;
}

/** Reads the keys of one object of the body, about the records of one collection. */
export class QueryBody {
  readonly #body: Data;
  readonly #path: Pointer;
  readonly #schema: Schema;
  readonly #collection: Collection;
  readonly #errors: QueryErrors;
  #readParams: { readonly params: Params | undefined } | undefined;

  constructor({ body, path }: KeyedBody, { schema, collection, errors }: QueryPlace) {
    this.#body = body;
    this.#path = path;
    this.#schema = schema;
    this.#collection = collection;
    this.#errors = errors;
  }

  allow(keys: readonly string[]): void {
    for (const key of Object.keys(this.#body)) {
      if (keys.includes(key)) continue;
      const near = this.#errors.nearest(key, keys);
      const hint =
        near === undefined ? `expected ${keys.map((each) => `\`${each}\``).join(', ')}` : `did you mean \`${near}\`?`;
      this.#report([key], 'unknown_key', `unknown key; ${hint}`);
    }
  }

  /** Undefined where the key is not given. */
  value(key: string): unknown {
    return Object.hasOwn(this.#body, key) ? this.#body[key] : undefined;
  }

  integer(key: string, { min, max, default: otherwise }: IntRange): number {
    const value = this.value(key);
    if (value === undefined) return otherwise;
    if (typeof value !== 'number') this.#report([key], 'wrong_type', `expected an int from ${min} to ${max}`);
    else if (!Number.isInteger(value) || value < min || value > max)
      this.#report([key], 'invalid_value', `expected an int from ${min} to ${max}`);
    else return value;
    return otherwise;
  }

  /** False where the key is not given. */
  flag(key: string): boolean {
    const value = this.value(key);
    if (value !== undefined && typeof value !== 'boolean') this.#report([key], 'wrong_type', 'expected a bool');
    return value === true;
  }

  oneOf<const T extends string>(key: string, allowed: readonly [T, ...T[]]): T {
    const value = this.value(key);
    if (value === undefined) return allowed[0];
    const found = allowed.find((each) => each === value);
    if (found !== undefined) return found;
    const code = typeof value === 'string' ? 'invalid_value' : 'wrong_type';
    this.#report([key], code, `expected ${allowed.map((each) => `\`${each}\``).join(', ')}`);
    return allowed[0];
  }

  // -------------------------------------------------------------- filter and params

  /** @param typed gives the params of the filter their types */
  filter(typed: (filter: Filter) => Filter = (filter) => filter): Filter | undefined {
    const filter = this.condition(['filter'], this.value('filter'), { typed });
    if (filter !== undefined || this.value('filter') === undefined) this.requireNamed([filter]);
    return filter;
  }

  /** A filter at a place of the body; several of them share the params. */
  condition(path: Pointer, text: unknown, { over, typed, misplaced }: ConditionOptions = {}): Filter | undefined {
    const params = this.#params();
    if (text === undefined) return undefined;
    if (typeof text !== 'string') return this.#report(path, 'wrong_type', 'expected a string');
    // Errors about the use of wrong params in the filter would mislead.
    if (params === undefined || !this.#errors.hasRoomFor([...this.#path, ...path], text)) return undefined;
    const { catalog, collection } = over ?? { catalog: this.#schema, collection: this.#collection.name };
    const { filter: compiled, issues } = compileFilter(text, { catalog, collection, params });
    if (issues.length > 0) {
      const placed = issues.map((issue) => toldPlace(issue, text, misplaced));
      return this.#errors.addFilter([...this.#path, ...path], placed);
    }
    const filter = compiled && (typed?.(compiled) ?? compiled);
    for (const { name, message } of filter?.misfits ?? []) this.#param(name, message);
    return filter;
  }

  /** Reports the params that none of the filters names. */
  requireNamed(filters: readonly (Filter | undefined)[]): void {
    const named = new Set(filters.flatMap((filter) => (filter === undefined ? [] : [...filter.named])));
    for (const name of Object.keys(this.#params() ?? {}))
      if (!named.has(name)) this.#param(name, `there is no filter that names \`$${name}\``);
  }

  /** The filter of the query's own records: it names the tenant where the rules do not. */
  filterOfTenant(): Filter | undefined {
    return this.withTenant(this.filter());
  }

  withTenant(filter: Filter | undefined): Filter | undefined {
    const tenant = neededTenant(this.#collection);
    if (tenant !== undefined && filter?.requires(tenant) !== true)
      this.#errors.needFilter(
        [...this.#path, 'filter'],
        `a list of \`${this.#collection.name}\` is of one \`${tenant}\`; let the filter require it, such as \`${tenant} = $${tenant}\``,
      );
    return filter;
  }

  #params(): Params | undefined {
    this.#readParams ??= { params: this.#checkedParams() };
    return this.#readParams.params;
  }

  #checkedParams(): Params | undefined {
    const params = this.value('params');
    if (params === undefined) return {};
    if (!isObject(params)) {
      return this.#report(['params'], 'wrong_type', 'expected an object');
    }
    if (Object.keys(params).length > MAX_PARAMS) {
      return this.#report(['params'], 'too_many', `expected at most ${MAX_PARAMS}`);
    }
    for (const [name, value] of Object.entries(params)) {
      const elements = Array.isArray(value) ? value : [value];
      if (!elements.every(isJsonScalar))
        this.#param(name, 'expected a string, a number, a bool, null, or a list of them');
    }
    return params;
  }

  #param(name: string, message: string): void {
    const path = [...this.#path, 'params', name];
    if (!this.#errors.has(path)) this.#errors.add(path, 'invalid_param', message);
  }

  // -------------------------------------------------------------- sort and fields

  sort(): readonly Sorting[] {
    const given = this.list('sort');
    if (given.length > MOST_SORTS) {
      this.#report(['sort'], 'too_many', `expected at most ${MOST_SORTS}`);
      return [];
    }
    const sorts: Sorting[] = [];
    const seen = new Set<string>();
    for (const [i, text] of given.entries()) {
      const sorting = this.#sorting(text, i);
      if (sorting === undefined) continue;
      const key = pathKey(sorting);
      if (seen.has(key)) this.#report(['sort', i], 'repeated', `\`${text}\` is sorted by already`);
      seen.add(key);
      if (sorting.path.isFolded) seen.add(pathKey(asGiven(sorting)));
      sorts.push(sorting);
      // Equal but for accents and cases: by code point.
      if (sorting.path.isFolded) sorts.push(asGiven(sorting));
    }
    return sorts;
  }

  #sorting(text: string, i: number): Sorting | undefined {
    const descending = text.startsWith('-');
    const path = sortPathOf(descending ? text.slice(1) : text, this.#collection.name, this.#schema);
    return typeof path === 'string' ? this.#report(['sort', i], 'invalid_sort', path) : { path, descending };
  }

  members(): Members | undefined {
    if (this.value('fields') === undefined) return undefined;
    const names = selectableMembers(this.#collection);
    const members = new Set<string>();
    for (const [i, name] of this.list('fields').entries()) {
      if (members.has(name)) this.#report(['fields', i], 'repeated', `\`${echo(name)}\` is named twice`);
      else if (names.includes(name)) members.add(name);
      else this.#report(['fields', i], 'unknown_name', this.#unknownMember(name, names));
    }
    return members;
  }

  #unknownMember(name: string, names: readonly string[]): string {
    if (name === '') return NO_NAME;
    if (this.#collection.relations.has(name)) return `\`${name}\` is many records, which \`expand\` shows`;
    const near = this.#errors.nearest(name, names);
    return `\`${this.#collection.name}\` has no \`${echo(name)}\`${hintOf(near)}`;
  }

  /** A list of strings. Other elements are reported and left out. */
  list(key: string): readonly string[] {
    const value = this.value(key);
    if (value === undefined) return [];
    if (!Array.isArray(value)) {
      this.#report([key], 'wrong_type', 'expected a list of strings');
      return [];
    }
    const wrong = value.findIndex((element) => typeof element !== 'string');
    if (wrong < 0) return value as string[];
    this.#report([key, wrong], 'wrong_type', 'expected a string');
    return [];
  }

  #report(path: Pointer, code: string, detail: string): undefined {
    return this.#errors.add([...this.#path, ...path], code, detail);
  }
}

export interface QueryPlace {
  readonly schema: Schema;
  readonly collection: Collection;
  readonly errors: QueryErrors;
}

const isJsonScalar = (value: unknown): boolean =>
  value === null || ['string', 'number', 'boolean'].includes(typeof value) || value instanceof InexactNumeral;

/** Equal for the paths that lead to one column. */
export function pathKey({ path: { steps, field, isFolded, from } }: Sorting): string {
  const path = [...steps.map(({ relation }) => relation.name), field?.name ?? 'id'].join('.');
  return `${path}${isFolded ? ':text' : ''}${from ? `:from(${from.lat} ${from.lng})` : ''}`;
}

function asGiven({ path: { isFolded: _, ...path }, descending }: Sorting): Sorting {
  return { path, descending };
}

/** The members that a record shows. */
function selectableMembers({ kind, fields, relations }: Collection): readonly string[] {
  const toOne = [...relations.values()].filter(
    (relation) => relation.kind === 'belongs_to' || relation.kind === 'has_one',
  );
  return ['id', ...fields.keys(), ...(kind === 'users' ? ['roles'] : []), ...toOne.map(({ name }) => name)];
}

type Issue = CompiledFilter['issues'][number];

/** A name that is unknown here and known under another key: the error says where it belongs. */
function toldPlace(issue: Issue, text: string, misplaced: ConditionOptions['misplaced']): Issue {
  const name = text.slice(issue.span.start, issue.span.end);
  const isUnknown = issue.code === 'text_unquoted' || issue.code === 'name_unknown';
  if (!isUnknown || misplaced?.names.includes(name) !== true) return issue;
  const { fix: _, ...others } = issue;
  return { ...others, message: `\`${name}\` is ${misplaced.reason}` };
}
