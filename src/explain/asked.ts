/** Reads a question key by key: the body of `POST /api/_explain`, and the arguments of `bylaw explain`. */
import { hintOf, nearest } from '../../grammar/suggest.ts';
import { ACTIONS, type Action, type Params } from '../policy/types.ts';
import { addError, type ErrorDetail, echo, Problem, pointerPart } from '../problem.ts';
import { type Data, isObject } from '../records/write/input.ts';
import type { Collection, Schema } from '../schema/model/model.ts';
import { withRules } from '../schema/rules/draft-rules.ts';
import { readDraftedRules, readRuleSetName } from './drafted-rules.ts';
import { type AskedCaller, type ReportAsked, readPrincipal } from './principal.ts';

export interface AskedQuestion {
  /** With the rules of the question, if it has some. */
  readonly collection: Collection;
  readonly action: Action;
  /** Undefined: the asker. */
  readonly as: AskedCaller | undefined;
  /** The id of the record; null: the record that a create makes. */
  readonly id: string | null | undefined;
  readonly data: Data | undefined;
  readonly query: PolicyQuery;
  readonly filter: string | undefined;
  readonly params: Params;
  /** The question has rules that the schema does not have. */
  readonly isDrafted: boolean;
}

type PolicyQuery = Readonly<Record<string, string | readonly string[]>>;

const ASKED_KEYS: readonly string[] = [
  'collection',
  'action',
  'as',
  'id',
  'data',
  'query',
  'filter',
  'params',
  'rules',
  'member',
];

/** Throws `validation_failed` with every error. */
export function readAsked(body: unknown, schema: Schema): AskedQuestion {
  const errors: ErrorDetail[] = [];
  const asked = askedOf(withTextId(body), schema, (pointer, code, detail, place) => {
    addError(errors, { pointer, code, detail, ...place });
    return undefined;
  });
  if (asked !== undefined && errors.length === 0) return asked;
  throw new Problem('validation_failed', 'the body is not a question about an action', { errors });
}

/** An int id is a number in JSON, and text in an address. */
const withTextId = (body: unknown): unknown =>
  isObject(body) && typeof body.id === 'number' ? { ...body, id: String(body.id) } : body;

function askedOf(body: unknown, schema: Schema, report: ReportAsked): AskedQuestion | undefined {
  if (!isObject(body)) return report('', 'not_an_object', 'expected an object with the keys `collection` and `action`');
  for (const key of Object.keys(body)) {
    if (!ASKED_KEYS.includes(key))
      report(`/${pointerPart(key)}`, 'unknown_key', `unknown key${hintOf(nearest(key, ASKED_KEYS))}`);
  }
  const { id } = body;
  if (id !== undefined && id !== null && typeof id !== 'string')
    report('/id', 'wrong_type', 'expected the id of a record');
  const collection = nameIn('collection', body, { known: [...schema.collections.keys()], report });
  const action = nameIn('action', body, { known: ACTIONS, report }) as Action | undefined;
  const as = body.as === undefined ? undefined : readPrincipal(body.as, schema, report);
  const query = queryIn(body.query, report);
  const data = dataIn(body, report);
  const { filter, params } = filterIn(body, report);
  if (collection === undefined || action === undefined) return undefined;
  const served = schema.collections.get(collection)!;
  const place = { schema, collection: served, action };
  const rules = readDraftedRules(body, place, report);
  const set = readRuleSetName(body, place, report);
  if (body.member !== undefined && body.rules === undefined)
    report('/member', 'unexpected_key', 'only `rules` are of a member');
  return {
    collection: rules === undefined ? served : withRules(served, set, rules),
    isDrafted: rules !== undefined,
    action,
    as,
    id: id as string | null | undefined,
    data,
    query,
    filter,
    params,
  };
}

interface KnownWords {
  readonly known: readonly string[];
  readonly report: ReportAsked;
}

function nameIn(key: 'collection' | 'action', body: Data, { known, report }: KnownWords): string | undefined {
  const given = body[key];
  if (typeof given === 'string' && known.includes(given)) return given;
  if (given === undefined) return report(`/${key}`, 'required', `expected one of ${known.join(', ')}`);
  if (typeof given !== 'string') return report(`/${key}`, 'wrong_type', `expected one of ${known.join(', ')}`);
  const near = nearest(given, known);
  const hint = near === undefined ? `; expected one of ${known.join(', ')}` : hintOf(near);
  return report(`/${key}`, `unknown_${key}`, `unknown ${key} \`${echo(given)}\`${hint}`);
}

function dataIn({ data, id, action, collection }: Data, report: ReportAsked): Data | undefined {
  if (id === null && action !== 'create')
    report('/id', 'wrong_type', 'expected the id of a record; only a create has none');
  if (data === undefined) return undefined;
  if (!isObject(data)) return report('/data', 'not_an_object', 'expected a JSON object such as {"status": "draft"}');
  if (action !== 'create' && action !== 'update')
    return report('/data', 'unexpected_key', `only a create and an update have data, not a ${String(action)}`);
  if (action === 'create' && typeof id === 'string')
    return report('/id', 'unexpected_key', 'a create with data has no stored record; leave out the id');
  if (action === 'update' && id === undefined)
    return report('/id', 'required', 'an update with data needs the id of the record that it changes');
  if (collection === 'users' && Object.hasOwn(data, 'roles'))
    return report('/data/roles', 'unexpected_key', '`roles` does not follow the rules of an action; leave it out');
  return data;
}

function queryIn(given: unknown, report: ReportAsked): PolicyQuery {
  const query: Record<string, string | readonly string[]> = Object.create(null);
  if (given === undefined) return query;
  if (!isObject(given)) {
    report('/query', 'not_an_object', 'expected an object of the parameters of the query string');
    return query;
  }
  for (const [key, value] of Object.entries(given)) {
    const all = Array.isArray(value) ? value : [value];
    if (all.length === 0 || !all.every((each) => typeof each === 'string'))
      report(`/query/${pointerPart(key)}`, 'wrong_type', 'expected a string, or a list of strings');
    else query[key] = all.length === 1 ? all[0]! : all;
  }
  return query;
}

function filterIn({ filter, params, action, id }: Data, report: ReportAsked): Pick<AskedQuestion, 'filter' | 'params'> {
  if (filter !== undefined && typeof filter !== 'string') report('/filter', 'wrong_type', 'expected a string');
  if (params !== undefined && !isObject(params)) report('/params', 'not_an_object', 'expected an object');
  if (filter !== undefined && (action !== 'list' || typeof id !== 'string'))
    report('/filter', 'unexpected_key', 'a filter is judged for a list and the `id` of a record');
  if (params !== undefined && filter === undefined) report('/params', 'unexpected_key', 'a filter has to name them');
  return { filter: typeof filter === 'string' ? filter : undefined, params: isObject(params) ? params : {} };
}
