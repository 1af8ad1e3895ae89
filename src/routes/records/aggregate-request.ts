/** The request of an aggregate: its body, checked against the schema. Not a route. */
import { hintOf } from '../../../grammar/suggest.ts';
import type { Filter } from '../../policy/filters/filter.ts';
import { toOnePathOf } from '../../policy/filters/sort-path.ts';
import { gridOf, isDay, isInstant, isNumeric, isOpaque, type ScalarType, scalarOf } from '../../policy/scalar-types.ts';
import type { CatalogField } from '../../policy/types.ts';
import { UTC } from '../../policy/values.ts';
import { allOperandsOf } from '../../policy/visit.ts';
import { echo } from '../../problem.ts';
import {
  type AggregateRequest,
  type Group,
  MEASURES,
  type Measure,
  type MemberPath,
  measuresAsFields,
} from '../../records/page/aggregate.ts';
import { isObject } from '../../records/write/input.ts';
import {
  AGGREGATE_LIMIT,
  MOST_GROUPS,
  MOST_MEASURES,
  MOST_SORTS,
  PERIODS,
} from '../../schema/model/list-parameters.ts';
import type { Collection, Schema } from '../../schema/model/model.ts';
import { isZone } from '../../schema/model/settings/settings.ts';
import { QueryBody } from './query/query-body.ts';
import { QueryErrors } from './query/query-errors.ts';

const AGGREGATE_KEYS = ['filter', 'params', 'group_by', 'zone', 'measures', 'having', 'sort', 'limit'];
const PERIOD = /^([a-z]+)\(([A-Za-z0-9_.]+)\)$/;
const MEASURE = /^(count\(distinct |(?:sum|avg|min|max)\()([A-Za-z0-9_.]+)\)$/;
const MEASURE_NAME = /^[A-Za-z_][A-Za-z0-9_]{0,47}$/;

/** Throws `filter_invalid`, `validation_failed` and `filter_required`. */
export function aggregateRequestOf(given: unknown, schema: Schema, collection: Collection): AggregateRequest {
  const errors = new QueryErrors();
  if (!isObject(given)) errors.add([], 'not_an_object', 'expected an object');
  const body = new QueryBody({ body: isObject(given) ? given : {}, path: [] }, { schema, collection, errors });
  body.allow(AGGREGATE_KEYS);
  const asked = body.value('measures');
  const names = isObject(asked) ? Object.keys(asked) : [];
  const misplaced = { names, reason: 'a measure, and a filter is over records; expected it in `having`' };
  const filter = body.withTenant(body.condition(['filter'], body.value('filter'), { misplaced }));
  const reader = new AggregateReader(body, { schema, collection, errors });
  const groups = reader.groups();
  const measures = reader.measures(groups);
  // An error of a measure explains why `having` does not know it.
  const having = measures.length < names.length ? undefined : reader.having(measures);
  body.requireNamed([filter, having, ...measures.map(({ where }) => where)]);
  const sort = reader.sort([...groups, ...measures].map(({ name }) => name));
  const limit = body.integer('limit', AGGREGATE_LIMIT);
  errors.throwAny();
  return { filter, groups, measures, having, sort, limit };
}

interface AggregatePlace {
  readonly schema: Schema;
  readonly collection: Collection;
  readonly errors: QueryErrors;
}

class AggregateReader {
  readonly #body: QueryBody;
  readonly #schema: Schema;
  readonly #collection: Collection;
  readonly #errors: QueryErrors;

  constructor(body: QueryBody, { schema, collection, errors }: AggregatePlace) {
    this.#body = body;
    this.#schema = schema;
    this.#collection = collection;
    this.#errors = errors;
  }

  // -------------------------------------------------------------- groups

  groups(): readonly Group[] {
    const names = this.#body.list('group_by');
    const zone = this.#zone();
    if (names.length > MOST_GROUPS) {
      this.#errors.add(['group_by'], 'too_many', `expected at most ${MOST_GROUPS}`);
      return [];
    }
    return names.flatMap((name, i) => {
      const group = this.#group(name, zone);
      if (typeof group === 'string') this.#errors.add(['group_by', i], 'unknown_name', group);
      else if (names.indexOf(name) < i) this.#errors.add(['group_by', i], 'repeated', `\`${name}\` is named twice`);
      else return [group];
      return [];
    });
  }

  #zone(): string {
    const zone = this.#body.value('zone') ?? UTC;
    if (typeof zone === 'string' && isZone(zone)) return zone;
    const near = typeof zone === 'string' ? this.#errors.nearest(zone, Intl.supportedValuesOf('timeZone')) : undefined;
    const detail = `expected a time zone of IANA such as \`Europe/Amsterdam\`${hintOf(near)}`;
    this.#errors.add(['zone'], typeof zone === 'string' ? 'invalid_value' : 'wrong_type', detail);
    return UTC;
  }

  #group(name: string, zone: string): Group | string {
    const [, of, inner] = PERIOD.exec(name) ?? [];
    if (inner === undefined) {
      const path = this.#member(name);
      return typeof path === 'string' ? path : { name, path };
    }
    const period = PERIODS.find((name) => name === of);
    if (period === undefined) return `expected a period (${PERIOD_NAMES}), found \`${of}\``;
    const path = this.#field(inner);
    if (typeof path === 'string') return path;
    const { type } = path.field;
    if (!isInstant(type) && !(isDay(type) && period !== 'hour'))
      return `expected a datetime${period === 'hour' ? '' : ' or a date'}, found ${scalarOf(type).label}`;
    return { name, path, period: { of: period, zone } };
  }

  /** A field or a belongs_to of the record, or of one that to-one relations lead to. */
  #member(text: string): MemberPath | string {
    const path = toOnePathOf(text, this.#collection.name, this.#schema);
    if (typeof path === 'string') return path;
    const { steps, at, last, part } = path;
    if (part !== undefined) return { steps, at: at.name, field: part };
    const { fields, relations } = this.#schema.collections.get(at.name)!;
    const relation = relations.get(last);
    const field = fields.get(last) ?? (relation?.kind === 'belongs_to' ? relation : undefined);
    if (field === undefined) {
      const references = [...relations.values()].filter(({ kind }) => kind === 'belongs_to');
      return this.#unknown(at.name, last, [...fields.keys(), ...references.map(({ name }) => name)]);
    }
    if ('type' in field && isOpaque(field.type))
      return `expected a field whose values are compared, found ${scalarOf(field.type).label}`;
    return { steps, at: at.name, field };
  }

  #field(text: string): MemberPath<CatalogField> | string {
    const path = this.#member(text);
    if (typeof path === 'string') return path;
    const { field } = path;
    return 'type' in field ? { ...path, field } : `\`${text}\` is a belongs_to; expected a field`;
  }

  // -------------------------------------------------------------- measures

  measures(groups: readonly Group[]): readonly Measure[] {
    const given = this.#body.value('measures');
    const named = this.#body.value('group_by');
    // Groups with errors are reported already.
    const isGrouped = named !== undefined && !(Array.isArray(named) && named.length === 0);
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

  #measure(name: string, given: unknown, groups: readonly Group[]): Measure | string {
    if (!MEASURE_NAME.test(name) || name === 'errors')
      return 'expected a name of at most 48 letters, digits and underscores, without a digit at its start, other than `errors`';
    if (groups.some((group) => group.name === name)) return `\`${name}\` is a group already`;
    if (!isObject(given)) return this.#measured(name, given);
    const unknown = Object.keys(given).find((key) => key !== 'of' && key !== 'where');
    if (unknown !== undefined || given.of === undefined)
      return 'expected an object such as `{ "of": "count", "where": "status = \\"won\\"" }`';
    const measure = this.#measured(name, given.of);
    const where = this.#body.condition(['measures', name, 'where'], given.where);
    return typeof measure === 'string' ? measure : { ...measure, where };
  }

  #measured(name: string, text: unknown): Measure | string {
    if (text === 'count') return { name, of: { kind: 'count' } };
    const [, kind, inner] = (typeof text === 'string' ? MEASURE.exec(text) : null) ?? [];
    if (kind === undefined)
      return 'expected `count`, `count(distinct f)`, `sum(f)`, `avg(f)`, `min(f)` or `max(f)`, or an object with `of` and `where`';
    if (kind === 'count(distinct ') {
      const path = this.#member(inner!);
      return typeof path === 'string' ? path : { name, of: { kind: 'distinct', path } };
    }
    const path = this.#field(inner!);
    if (typeof path === 'string') return path;
    const misfit = misfitOf(kind, path.field.type);
    return misfit ?? { name, of: { kind: kind.slice(0, -1) as 'sum', path } };
  }

  /** A filter over the measures. */
  having(measures: readonly Measure[]): Filter | undefined {
    const over = { catalog: measuresAsFields(measures), collection: MEASURES };
    const { fields, relations } = this.#collection;
    const names = [...fields.keys(), ...relations.keys()];
    const misplaced = { names, reason: 'of the records, and `having` is over measures; expected it in `filter`' };
    const filter = this.#body.condition(['having'], this.#body.value('having'), { over, misplaced });
    const columns = filter === undefined ? [] : allOperandsOf(filter.checked);
    if (columns.some((operand) => operand.kind === 'column' && operand.column.kind === 'id'))
      this.#errors.add(['having'], 'unknown_name', 'a group has no `id`; expected measures');
    return filter;
  }

  // -------------------------------------------------------------- order

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

  #unknown(collection: string, name: string, names: readonly string[]): string {
    const near = this.#errors.nearest(name, names);
    const expected = `expected a field, a belongs_to, or ${PERIOD_NAMES} of a datetime`;
    const hint = near === undefined ? expected : `did you mean \`${near}\`?`;
    return `\`${collection}\` has no \`${echo(name)}\` to use here; ${hint}`;
  }
}

const PERIOD_NAMES = PERIODS.join(', ');

/** The reason that values of the type have no such measure. */
function misfitOf(kind: string, type: ScalarType): string | undefined {
  const { label, ordered } = scalarOf(type);
  if (kind === 'sum(' || kind === 'avg(')
    return isNumeric(type) || gridOf(type) ? undefined : `expected a number, found ${label}`;
  return ordered ? undefined : `${label} has no order; expected a string, a number, a date or a time`;
}
