/** A question: a caller, an action, and optionally a record, a write or a filter. */
import type { Queryable } from '../database/contract.ts';
import { compileFilter, type Filter } from '../policy/filters/filter.ts';
import type { Action, PolicyRequest, RequestFacts, Row } from '../policy/types.ts';
import { datetimeOf } from '../policy/values.ts';
import { type ErrorDetail, echo, Problem } from '../problem.ts';
import { Store } from '../records/access-context.ts';
import { readWithinBudget } from '../records/read-budget.ts';
import { recordKeyOf } from '../records/record-key.ts';
import { findSystem } from '../records/system.ts';
import type { Data } from '../records/write/input.ts';
import { keyKindOf } from '../schema/fields/index.ts';
import type { Collection } from '../schema/model/model.ts';
import type { AskedQuestion } from './asked.ts';
import { type FindKey, principalOf } from './principal.ts';

export interface Question {
  readonly store: Store;
  /** Runs the statements of the answer. */
  readonly q: Queryable;
  readonly collection: Collection;
  readonly action: Action;
  readonly request: PolicyRequest;
  /** The limit of the key that the question is about. */
  readonly allows?: ((collection: string, action: Action) => boolean) | undefined;
  readonly record: Row | undefined;
  /** The data of a create or an update. */
  readonly data: Data | undefined;
  /** The data are those of a request; else a create is asked about without them. */
  readonly isComplete: boolean;
  /** The filter of a list. */
  readonly filter: AskedFilterText | undefined;
  /** The asker lacks the role `admin`, and learns no more than by requests of its own. */
  readonly isLimited?: boolean;
}
export interface AskedFilterText {
  readonly text: string;
  readonly filter: Filter;
}

/** Runs the work with statements that together have the time of a read. Throws `query_too_expensive`. */
export const inTimeOf = <T>({ schema, db }: Store, work: (q: Queryable) => Promise<T>): Promise<T> =>
  readWithinBudget({ schema, reader: db }, (budget) =>
    work({ rows: (statement) => budget.rows(statement), run: (statement) => db.run(statement) }),
  );

interface QuestionPlace {
  readonly store: Store;
  readonly q: Queryable;
  /** Asks about itself where the question names no caller; null: no caller is signed in. */
  readonly asker: Row | null;
  /** The facts of the asker's own request. */
  readonly facts?: RequestFacts;
  readonly findKey?: FindKey;
  readonly isLimited?: boolean;
}

/** Throws `not_found` and `validation_failed`. */
export async function questionOf(asked: AskedQuestion, place: QuestionPlace): Promise<Question> {
  const { q, asker, facts, findKey, isLimited = false } = place;
  const { collection, action, id, query } = asked;
  const store = asked.isDrafted ? storeWith(place.store, collection) : place.store;
  const isNew = id === null;
  const data = asked.data ?? (isNew ? {} : undefined);
  const { allows, ...caller } =
    asked.as === undefined ? { auth: asker, facts } : await principalOf(store, asked.as, { findKey });
  const request: PolicyRequest = {
    ...caller,
    query,
    ...(data && { data }),
    now: datetimeOf(new Date()),
  };
  const filter = filterOf(asked, store);
  const record = typeof id === 'string' ? await askedRecord({ store, q }, collection, id) : undefined;
  const isComplete = asked.data !== undefined;
  return { store, q, collection, action, request, allows, record, data, isComplete, filter, isLimited };
}

/** The store of the schema with this collection, which has rules that the served one of its name does not have. */
export const storeWith = ({ db, schema }: Store, collection: Collection): Store =>
  new Store(db, { ...schema, collections: new Map(schema.collections).set(collection.name, collection) });

/** Throws `validation_failed`. */
function filterOf({ filter: text, params, collection }: AskedQuestion, { schema }: Store): AskedFilterText | undefined {
  if (text === undefined) return undefined;
  const { filter, issues } = compileFilter(text, { catalog: schema, collection: collection.name, params });
  const errors: readonly ErrorDetail[] = [
    ...issues.map(({ code, message }) => ({ pointer: '/filter', code, detail: message })),
    ...(filter?.issues ?? []).map(({ name, message }) => ({
      pointer: `/params/${name}`,
      code: 'invalid_param',
      detail: message,
    })),
  ];
  if (filter !== undefined && errors.length === 0) return { text, filter };
  throw new Problem('validation_failed', 'the filter is not valid', { errors });
}

/** Throws `not_found`. */
async function askedRecord(
  { store, q }: Pick<Question, 'store' | 'q'>,
  collection: Collection,
  given: string,
): Promise<Row> {
  const { name } = collection;
  const id = keyKindOf(collection).fromQuery(given);
  const where = recordKeyOf(collection).is('t', id);
  const [found] = id === undefined ? [] : await findSystem(store, q, { collection: name, where });
  if (found !== undefined) return found;
  const detail = `\`${name}\` has no record \`${echo(given)}\``;
  throw new Problem('not_found', detail, { errors: [{ pointer: '/id', code: 'not_found', detail }] });
}
