/** The request of an aggregate: its body, checked against the schema. Not a route. */
import { hintOf } from '../../../grammar/suggest.ts';
import { gridOf, isInstant, isNumeric, isOpaque, scalarOf } from '../../policy/scalar-types.ts';
import { echo } from '../../problem.ts';
import {
  type AggregateRequest,
  DATE_PARTS,
  type DatePart,
  type Group,
  type Measure,
} from '../../records/page/aggregate.ts';
import { isObject } from '../../records/write/input.ts';
import { AGGREGATE_LIMIT, MOST_GROUPS, MOST_MEASURES, MOST_SORTS } from '../../schema/model/list-parameters.ts';
import type { Collection, Field, Schema } from '../../schema/model/model.ts';
import { QueryBody } from './query-body.ts';
import { QueryErrors } from './query-errors.ts';

const AGGREGATE_KEYS = ['filter', 'params', 'group_by', 'measures', 'sort', 'limit'];
const DATE_PART = /^(year|month|day)\(([A-Za-z0-9_]+)\)$/;
const MEASURE = /^(sum|avg|min|max)\(([A-Za-z0-9_]+)\)$/;
const MEASURE_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,47}$/;

/** Throws `filter_invalid`, `validation_failed` and `filter_required`. */
export function aggregateRequestOf(given: unknown, schema: Schema, collection: Collection): AggregateRequest {
  const errors = new QueryErrors();
  if (!isObject(given)) errors.add([], 'not_an_object', 'expected an object');
  const body = new QueryBody({ body: isObject(given) ? given : {}, path: [] }, { schema, collection, errors });
  body.allow(AGGREGATE_KEYS);
  const filter = body.filterOfTenant();
  const reader = new AggregateReader(body, collection, errors);
  const groups = reader.groups();
  const measures = reader.measures(groups);
  const sort = reader.sort([...groups, ...measures].map(({ name }) => name));
  const limit = body.integer('limit', AGGREGATE_LIMIT);
  errors.throwAny();
  return { filter, groups, measures, sort, limit };
}

class AggregateReader {
  readonly #body: QueryBody;
  readonly #collection: Collection;
  readonly #errors: QueryErrors;

  constructor(body: QueryBody, collection: Collection, errors: QueryErrors) {
    this.#body = body;
    this.#collection = collection;
    this.#errors = errors;
  }

  groups(): readonly Group[] {
    const names = this.#body.list('group_by');
    if (names.length > MOST_GROUPS) {
      this.#errors.add(['group_by'], 'too_many', `expected at most ${MOST_GROUPS}`);
      return [];
    }
    return names.flatMap((name, i) => {
      const group = this.#group(name);
      if (typeof group === 'string') this.#errors.add(['group_by', i], 'unknown_name', group);
      else if (names.indexOf(name) < i) this.#errors.add(['group_by', i], 'repeated', `\`${name}\` is named twice`);
      else return [group];
      return [];
    });
  }

  #group(name: string): Group | string {
    const { fields, relations } = this.#collection;
    const field = fields.get(name);
    if (field !== undefined && isOpaque(field.type))
      return `expected a field whose values are compared, found ${scalarOf(field.type).label}`;
    if (field !== undefined) return { name, kind: 'field', field };
    const relation = relations.get(name);
    if (relation?.kind === 'belongs_to') return { name, kind: 'belongs_to', relation };
    const [, part, of] = DATE_PART.exec(name) ?? [];
    if (part === undefined) return this.#unknown(name, [...fields.keys(), ...this.#references()]);
    const truncated = fields.get(of!);
    if (truncated === undefined) return this.#unknown(of!, [...fields.keys()]);
    if (!isInstant(truncated.type)) return `expected a datetime, found ${scalarOf(truncated.type).label}`;
    return { name, kind: part as DatePart, field: truncated };
  }

  #references(): readonly string[] {
    return [...this.#collection.relations.values()].flatMap(({ kind, name }) => (kind === 'belongs_to' ? [name] : []));
  }

  measures(groups: readonly Group[]): readonly Measure[] {
    const given = this.#body.value('measures');
    const isGrouped = groups.length > 0 || this.#body.value('group_by') !== undefined;
    if (given === undefined && isGrouped) return [];
    if (!isObject(given) || (!isGrouped && Object.keys(given).length === 0)) {
      const detail = 'expected an object such as `{ "n": "count" }`; it may be left out where there are groups';
      this.#errors.add(['measures'], given === undefined ? 'required' : 'wrong_type', detail);
      return [];
    }
    const names = Object.keys(given);
    if (names.length > MOST_MEASURES) {
      this.#errors.add(['measures'], 'too_many', `expected at most ${MOST_MEASURES}`);
      return [];
    }
    return names.flatMap((name) => {
      const measure = this.#measure(name, given[name], groups);
      if (typeof measure !== 'string') return [measure];
      this.#errors.add(['measures', name], 'invalid_measure', measure);
      return [];
    });
  }

  #measure(name: string, text: unknown, groups: readonly Group[]): Measure | string {
    if (!MEASURE_NAME.test(name) || name === 'errors')
      return 'expected a name of letters, digits and underscores, other than `errors`';
    if (groups.some((group) => group.name === name)) return `\`${name}\` is a group already`;
    if (text === 'count') return { name, kind: 'count' };
    const [, kind, of] = (typeof text === 'string' ? MEASURE.exec(text) : null) ?? [];
    if (kind === undefined) return 'expected `count`, `sum(f)`, `avg(f)`, `min(f)` or `max(f)`';
    const field = this.#collection.fields.get(of!);
    if (field === undefined) return this.#unknown(of!, [...this.#collection.fields.keys()]);
    return this.#measured({ name, kind: kind as 'sum', field }, field);
  }

  #measured(measure: Extract<Measure, { field: Field }>, { type }: Field): Measure | string {
    const { label, ordered } = scalarOf(type);
    if (measure.kind === 'sum' || measure.kind === 'avg')
      return isNumeric(type) || gridOf(type) ? measure : `expected a number, found ${label}`;
    return ordered ? measure : `${label} has no order; expected a string, a number, a date or a time`;
  }

  sort(names: readonly string[]): AggregateRequest['sort'] {
    const given = this.#body.list('sort');
    if (given.length > MOST_SORTS) this.#errors.add(['sort'], 'too_many', `expected at most ${MOST_SORTS}`);
    const seen = new Set<string>();
    return given.map((text, i) => {
      const descending = text.startsWith('-');
      const name = descending ? text.slice(1) : text;
      if (!names.includes(name)) this.#errors.add(['sort', i], 'invalid_sort', this.#unsorted(name, names));
      else if (seen.has(name)) this.#errors.add(['sort', i], 'repeated', `\`${name}\` is sorted by already`);
      seen.add(name);
      return { name, descending };
    });
  }

  #unsorted(name: string, names: readonly string[]): string {
    return `\`${echo(name)}\` is neither a group nor a measure${hintOf(this.#errors.nearest(name, names))}`;
  }

  #unknown(name: string, names: readonly string[]): string {
    const near = this.#errors.nearest(name, names);
    const expected = `expected a field, a belongs_to, or ${Object.keys(DATE_PARTS).join(', ')} of a datetime`;
    const hint = near === undefined ? expected : `did you mean \`${near}\`?`;
    return `\`${this.#collection.name}\` has no \`${echo(name)}\` to use here; ${hint}`;
  }
}
