/** Reads a file of policy tests: every error at its place, as `bylaw check` reports those of a schema. */

import { hintOf, nearest } from '../../../grammar/suggest.ts';
import { SESSION_TYPES } from '../../explain/session-types.ts';
import { GUEST } from '../../policy/check/guests.ts';
import { type ScalarType, scalarOf } from '../../policy/scalar-types.ts';
import {
  type Action,
  FACT_NAMES,
  type PolicyRequest,
  type RequestFacts,
  RULED_ACTIONS,
  type RuledAction,
} from '../../policy/types.ts';
import { datetimeOf, parseDatetime } from '../../policy/values.ts';
import { type Data, isObject } from '../../records/write/input.ts';
import type { DocumentPath, Report, SchemaIssue } from '../../schema/file/issue.ts';
import { SourceText } from '../../schema/file/source.ts';
import type { Collection, ManyToMany, Schema } from '../../schema/model/model.ts';
import type { Expectation, Expected } from './expectation.ts';
import { isCallerName, type NamePlace, RowNames, readRows, type TestRow } from './test-rows.ts';

export interface PolicyTests {
  readonly file: string;
  readonly now: string;
  readonly rows: readonly TestRow[];
  readonly names: RowNames;
  readonly expectations: readonly Expectation[];
}
export interface ReadTests {
  /** Present without issues. */
  readonly tests?: PolicyTests;
  readonly issues: readonly SchemaIssue[];
}

export function readTests(text: string, file: string, schema: Schema): ReadTests {
  const source = new SourceText(text, file, { merge: true });
  const raw = source.value();
  if (!isObject(raw)) {
    if (raw !== undefined) source.report({ code: 'not_an_object', message: 'expected a mapping', path: [] });
    return { issues: source.issues };
  }
  const report = source.report.bind(source);
  for (const key of Object.keys(raw)) requireKey(key, FILE_KEYS, { report, path: [key] });
  const names = new RowNames();
  const now = nowOf(raw.now, report);
  const rows = readRows(raw, { schema, now, names, report });
  const reader = new TestReader({ schema, source, names, report });
  const expectations = reader.all(raw.tests);
  if (source.hasErrors) return { issues: source.issues };
  return { tests: { file, now, rows, names, expectations }, issues: source.issues };
}

const FILE_KEYS = ['now', 'as', 'rows', 'tests'];
const NAMED_TEST: readonly string[] = ['create', 'list'];

function requireKey(key: string, known: readonly string[], { report, path }: NamePlace): void {
  if (known.includes(key)) return;
  const message = `unknown key \`${key}\`${hintOf(nearest(key, known))}; expected ${known.join(', ')}`;
  report({ code: 'unknown_key', message, path, at: 'key' });
}

/** YAML gives a date where the text is one. */
function nowOf(given: unknown, report: Report): string {
  if (given === undefined) return datetimeOf(new Date());
  const now = given instanceof Date ? datetimeOf(given) : parseDatetime(String(given));
  const message = 'expected an instant such as 2026-03-01T12:00:00Z';
  return now ?? report({ code: 'datetime_malformed', message, path: ['now'] }) ?? datetimeOf(new Date());
}

interface TestPlace {
  readonly schema: Schema;
  readonly source: SourceText;
  readonly names: RowNames;
  readonly report: Report;
}
interface AskedRecord {
  readonly collection: Collection;
  readonly record: string | undefined;
  readonly path: DocumentPath;
  readonly query: PolicyRequest['query'];
  readonly facts: RequestFacts;
  readonly session: Data;
}

class TestReader {
  readonly #place: TestPlace;
  readonly #report: Report;

  constructor(place: TestPlace) {
    this.#place = place;
    this.#report = place.report;
  }

  all(given: unknown): readonly Expectation[] {
    if (!Array.isArray(given)) {
      this.#report({ code: 'required', message: 'expected `tests`, a list', path: ['tests'] });
      return [];
    }
    return given.flatMap((test, i) => (isObject(test) ? this.#test(test, ['tests', i]) : this.#notATest(i)));
  }

  #notATest(i: number): readonly Expectation[] {
    const message = 'expected a test, such as { documents: draft, ada: { read: yes } }';
    this.#report({ code: 'not_an_object', message, path: ['tests', i] });
    return [];
  }

  #test(test: Data, path: DocumentPath): readonly Expectation[] {
    const first = Object.keys(test).find((key) => NAMED_TEST.includes(key) && typeof test[key] === 'string');
    const query = this.#query(test.query, [...path, 'query']);
    const { facts, session } = this.#facts(test.request, [...path, 'request']);
    if (first !== undefined) {
      const collection = this.#collection(test[first], [...path, first]);
      const asked = collection && { collection, record: undefined, path, query, facts, session };
      return asked === undefined ? [] : this.#single(test, first as Action, asked);
    }
    const named = Object.keys(test).find((key) => this.#place.schema.collections.has(key));
    if (named === undefined) return this.#unnamed(test, path);
    const collection = this.#place.schema.collections.get(named)!;
    const at = { report: this.#report, path: [...path, named] };
    if (this.#place.names.referenced({ collection: named }, test[named], at) === undefined) return [];
    const asked = { collection, record: String(test[named]), path, query, facts, session };
    const action = RULED_ACTIONS.find((each) => Object.hasOwn(test, each));
    return action === undefined ? this.#matrix(test, named, asked) : this.#single(test, action, asked);
  }

  #unnamed(test: Data, path: DocumentPath): readonly Expectation[] {
    const key = Object.keys(test)[0] ?? '';
    const hint = hintOf(nearest(key, this.#place.schema.collections.keys()));
    const message = `a test names a collection with a row, \`create\` or \`list\`; found \`${key}\`${hint}`;
    this.#report({ code: 'unknown_collection', message, path, at: 'key' });
    return [];
  }

  // -------------------------------------------------------------- a test of one request

  #single(test: Data, action: RuledAction, asked: AskedRecord): readonly Expectation[] {
    const { collection, path } = asked;
    const isOfRow = asked.record !== undefined;
    const named = isOfRow ? collection.name : action;
    const known = [named, action, 'as', 'query', 'request', 'expect', ...(action === 'create' ? ['data'] : [])];
    for (const key of Object.keys(test)) requireKey(key, known, { report: this.#report, path: [...path, key] });
    const as = this.#caller(test.as, [...path, 'as']);
    const key = action === 'create' ? 'data' : action;
    const hasData = action === 'create' || (action === 'update' && isObject(test.update));
    const data = hasData ? this.#data(collection, test[key] ?? {}, [...path, key]) : undefined;
    const expected = this.#expected(test.expect, [...path, 'expect'], isOfRow ? undefined : collection);
    if (as === undefined || expected === undefined) return [];
    const region = this.#place.source.placeOf([...path, 'expect'], 'key');
    const deletedAt = action === 'restore' ? this.#deletedAt(collection, test.restore, [...path, action]) : undefined;
    return [{ ...asked, action, deletedAt, as, data, expected, field: undefined, region }];
  }

  /** The time of the deletion; undefined: the time of the run. */
  #deletedAt({ name, softDelete }: Collection, given: unknown, path: DocumentPath): string | undefined {
    if (softDelete === undefined) {
      const message = `\`${name}\` keeps no deleted records; add \`soft_delete: true\` to the schema`;
      return this.#report({ code: 'no_such_action', message, path, at: 'key' });
    }
    if (given === true || given === 'yes') return undefined;
    const at = given instanceof Date ? datetimeOf(given) : parseDatetime(String(given));
    const message = 'expected `yes`, or the time of the deletion, such as 2026-03-01T12:00:00Z';
    return at ?? this.#report({ code: 'datetime_malformed', message, path });
  }

  // -------------------------------------------------------------- a table of callers

  #matrix(test: Data, named: string, asked: AskedRecord): readonly Expectation[] {
    return Object.keys(test).flatMap((key) => {
      if (key === named || key === 'query' || key === 'request') return [];
      const path = [...asked.path, key];
      if (key !== GUEST && !isCallerName(key)) {
        const message = `\`${key}\` needs an action with data, such as \`update\`; or name a caller`;
        this.#report({ code: 'unexpected_key', message, path, at: 'key' });
        return [];
      }
      const as = this.#caller(key, path);
      return as === undefined ? [] : this.#row(test[key], as, { ...asked, path });
    });
  }

  #row(given: unknown, as: string, asked: AskedRecord): readonly Expectation[] {
    const { path } = asked;
    if (given === 'none') {
      const no = { kind: 'no' } as const;
      return OF_RECORD.map((action) => this.#cell(asked, { action, as, expected: no, path }));
    }
    if (!isObject(given)) {
      this.#report({ code: 'wrong_type', message: 'expected `none`, or actions such as { read: yes }', path });
      return [];
    }
    return Object.entries(given).flatMap(([key, value]) => {
      const at = [...path, key];
      const known = asked.collection.softDelete === undefined ? OF_RECORD : OF_DELETED;
      requireKey(key, known, { report: this.#report, path: at });
      const action = known.find((each) => each === key);
      if (action === undefined) return [];
      if (action === 'read' && isObject(value)) return this.#fields(value, as, { ...asked, path: at });
      const expected = this.#expected(value, at);
      return expected === undefined ? [] : [this.#cell(asked, { action, as, expected, path: at })];
    });
  }

  #fields(given: Data, as: string, asked: AskedRecord): readonly Expectation[] {
    return Object.entries(given).flatMap(([field, value]) => {
      const path = [...asked.path, field];
      const { collection } = asked;
      if (!collection.fields.has(field) && collection.relations.get(field)?.kind !== 'belongs_to') {
        const hint = hintOf(nearest(field, collection.fields.keys()));
        const message = `\`${collection.name}\` has no field \`${field}\`${hint}`;
        this.#report({ code: 'unknown_field', message, path, at: 'key' });
        return [];
      }
      const expected = this.#expected(value, path);
      return expected === undefined ? [] : [this.#cell(asked, { action: 'read', as, expected, path, field })];
    });
  }

  #cell(asked: AskedRecord, cell: TableCell): Expectation {
    const { path, field, ...more } = cell;
    const region = this.#place.source.placeOf(path, 'key');
    return { ...asked, ...more, field, data: undefined, region };
  }

  // -------------------------------------------------------------- the parts

  #collection(given: unknown, path: DocumentPath): Collection | undefined {
    const { collections } = this.#place.schema;
    const found = collections.get(String(given));
    if (found !== undefined) return found;
    const message = `unknown collection \`${String(given)}\`${hintOf(nearest(String(given), collections.keys()))}`;
    return this.#report({ code: 'unknown_collection', message, path });
  }

  #caller(given: unknown, path: DocumentPath): string | undefined {
    if (given === 'guest') return given;
    if (given === undefined)
      return this.#report({ code: 'required', message: 'expected `as`, the name of a caller', path });
    const { names } = this.#place;
    if (names.idOf('users', String(given)) !== undefined) return String(given);
    const message = `\`as\` has no caller \`${String(given)}\`${hintOf(nearest(String(given), names.of('users')))}`;
    return this.#report({ code: 'unknown_caller', message, path, at: 'key' });
  }

  #query(given: unknown, path: DocumentPath): PolicyRequest['query'] {
    const query: Record<string, string | readonly string[]> = Object.create(null);
    if (given === undefined) return query;
    if (!isObject(given)) {
      this.#report({ code: 'not_an_object', message: 'expected the parameters of the query string', path });
      return query;
    }
    for (const [key, value] of Object.entries(given))
      query[key] = Array.isArray(value) ? value.map(String) : String(value);
    return query;
  }

  /** The facts of the request and its session: `{ ip: 10.0.0.1, method: GET, second_factor: true }`. */
  #facts(given: unknown, path: DocumentPath): Pick<AskedRecord, 'facts' | 'session'> {
    const known = [...FACT_NAMES, ...SESSION_TYPES.keys()];
    if (given !== undefined && !isObject(given))
      this.#report({ code: 'not_an_object', message: `expected ${known.join(', ')} of the request`, path });
    const entries = isObject(given) ? Object.entries(given) : [];
    for (const [key] of entries) requireKey(key, known, { report: this.#report, path: [...path, key] });
    const session = entries.flatMap(([key, value]) => {
      const type = SESSION_TYPES.get(key);
      return type === undefined ? [] : [[key, this.#sessionFact(type, value, [...path, key])]];
    });
    const facts = entries.filter(([key]) => !SESSION_TYPES.has(key)).map(([key, value]) => [key, String(value)]);
    return { facts: Object.fromEntries(facts), session: Object.fromEntries(session) };
  }

  #sessionFact(type: ScalarType, given: unknown, path: DocumentPath): unknown {
    const { readJson, label } = scalarOf(type);
    const read = readJson(given instanceof Date ? given.toISOString() : given);
    return read ?? this.#report({ code: 'wrong_type', message: `expected ${label}`, path });
  }

  /** @param listed the collection of a list, whose names are expected */
  #expected(given: unknown, path: DocumentPath, listed?: Collection): Expected | undefined {
    const { names } = this.#place;
    if (given === true || given === 'yes') return { kind: 'yes' };
    if (given === false || given === 'no') return { kind: 'no' };
    if (typeof given === 'number' && STATUSES.has(given)) return { kind: 'status', status: given };
    if (listed !== undefined && Array.isArray(given)) {
      for (const [i, name] of given.entries())
        names.referenced({ collection: listed.name }, name, { report: this.#report, path: [...path, i] });
      return { kind: 'names', names: given.map(String) };
    }
    const more = listed === undefined ? '' : ', or the names of the rows';
    const message = `expected yes, no, or a status: ${[...STATUSES].join(', ')}${more}`;
    return this.#report({ code: 'wrong_type', message, path });
  }

  /** The body, with ids in place of names. */
  #data(collection: Collection, given: unknown, path: DocumentPath): Data {
    if (!isObject(given)) {
      this.#report({ code: 'not_an_object', message: 'expected the fields of the record', path });
      return {};
    }
    return Object.fromEntries(
      Object.entries(given).map(([key, value]) => [
        key,
        this.#member(collection, key, { value, path: [...path, key] }),
      ]),
    );
  }

  #member({ relations }: Collection, key: string, { value, path }: PlacedMember): unknown {
    const relation = relations.get(key);
    if (value instanceof Date) return datetimeOf(value);
    if (relation === undefined || relation.kind === 'has_many' || value === null) return value;
    const report = this.#report;
    if (relation.kind !== 'many_to_many') return this.#place.names.referenced(relation, value, { report, path });
    if (Array.isArray(value)) return { set: this.#ids(relation, value, path) };
    if (!isObject(value)) return value;
    return Object.fromEntries(
      Object.entries(value).map(([operation, ids]) => [operation, this.#ids(relation, ids, [...path, operation])]),
    );
  }

  #ids(relation: ManyToMany, given: unknown, path: DocumentPath): unknown {
    if (!Array.isArray(given)) return given;
    const report = this.#report;
    return given.map((name, i) => this.#place.names.referenced(relation, name, { report, path: [...path, i] }));
  }
}

interface TableCell {
  readonly action: RuledAction;
  readonly as: string;
  readonly expected: Expected;
  readonly path: DocumentPath;
  readonly field?: string;
}
interface PlacedMember {
  readonly value: unknown;
  readonly path: DocumentPath;
}

/** The actions on a record. */
const OF_RECORD: readonly RuledAction[] = ['list', 'read', 'update', 'delete'];
const OF_DELETED: readonly RuledAction[] = [...OF_RECORD, 'restore'];
const STATUSES: ReadonlySet<number> = new Set([200, 201, 204, 403, 404, 409, 422]);
