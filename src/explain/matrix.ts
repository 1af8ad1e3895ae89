/** The decisions about several callers and records, each caller's by one statement. */
import type { Queryable } from '../database/contract.ts';
import { decide } from '../policy/access.ts';
import type { Action, Policy, PolicyRequest, RequestFacts } from '../policy/types.ts';
import { datetimeOf } from '../policy/values.ts';
import { addError, type ErrorDetail, Problem } from '../problem.ts';
import type { Store } from '../records/access-context.ts';
import { recordKeyOf } from '../records/record-key.ts';
import { everyTenant } from '../records/scope.ts';
import type { Data } from '../records/write/input.ts';
import { plannedCreate } from '../records/write/row-in-process.ts';
import { heldColumnsOf } from '../records/write/written-row.ts';
import { keyKindOf } from '../schema/fields/index.ts';
import type { Collection, MemberAction } from '../schema/model/model.ts';
import { withRules } from '../schema/rules/draft-rules.ts';
import { join, raw, type Sql, sql } from '../sql.ts';
import { accessOf } from './asked-access.ts';
import { type AskedCaller, principalOf } from './principal.ts';
import { storeWith } from './question.ts';
import { isCreateAllowed } from './trace.ts';

/**
 * The status of the action: of success, 403, or 404. A list that leaves out the record hides it. A field that an answer
 * leaves out, or that a caller may not set, is refused.
 */
type MatrixOutcome = 'allowed' | 'refused' | 'hidden';

export interface MatrixQuestion {
  readonly collection: Collection;
  /** An update changes nothing, and a create makes a copy of the record. */
  readonly action: Action;
  /** A field or a belongs_to with rules of its own, which is read or updated. */
  readonly member: string | undefined;
  /** Others, which are decided beside the record. */
  readonly members: readonly string[];
  readonly callers: readonly AskedCaller[];
  readonly ids: readonly string[];
  /** The data of creates; `ids` is empty then. */
  readonly data: readonly Data[];
  /** Rules that the schema does not have. */
  readonly draft: readonly Policy[] | undefined;
}
export interface MatrixRow {
  /** The id and the email, if the caller is a user. */
  readonly user: { readonly id: string; readonly email: string } | null;
  /** The outcome of each record. */
  readonly outcomes: readonly MatrixOutcome[];
  /** The outcomes by the rules of the draft. */
  readonly drafted?: readonly MatrixOutcome[];
  /** The outcomes of `members`. */
  readonly members?: Readonly<Record<string, readonly MatrixOutcome[]>>;
}
interface MatrixPlace {
  readonly store: Store;
  readonly q: Queryable;
  readonly facts: RequestFacts;
}

/** Throws `not_found` with the place of the unknown user or record, and `validation_failed`. */
export async function matrixOf(question: MatrixQuestion, place: MatrixPlace): Promise<readonly MatrixRow[]> {
  const { collection, draft, data, member, members } = question;
  const keys = question.ids.map((id) => keyKindOf(collection).fromQuery(id));
  const unreadable = keys.indexOf(undefined);
  if (unreadable >= 0) throw unknownRecord(question, unreadable);
  const saved: DecidedPart[] = [{ collection, member }];
  const drafted = draft === undefined ? [] : [{ collection: withRules(collection, question, draft), member }];
  const parts = [...saved, ...drafted, ...members.map((name) => ({ collection, member: name }))];
  const firstMember = parts.length - members.length;
  const rows: MatrixRow[] = [];
  for (const [i, caller] of question.callers.entries()) {
    const { auth, kind } = await principalOf(place.store, caller, { pointer: `/callers/${i}` });
    const request = { auth, kind, facts: place.facts, query: {}, now: datetimeOf(new Date()) };
    const asked = { ...question, parts, request, keys };
    const found = data.length > 0 ? await createdOutcomes(asked, place) : await storedOutcomes(asked, place);
    rows.push({
      user: caller.kind === 'user' ? { id: String(auth?.id), email: String(auth?.email) } : null,
      outcomes: found.map(([outcome]) => outcome!),
      ...(draft && { drafted: found.map(([, outcome]) => outcome!) }),
      ...(members.length > 0 && {
        members: Object.fromEntries(members.map((name, k) => [name, found.map((each) => each[firstMember + k]!)])),
      }),
    });
  }
  return rows;
}

/** The rules of a record, or of a member as well. */
interface DecidedPart {
  readonly collection: Collection;
  readonly member: string | undefined;
}

/** The question of one caller, by the served rules, by those of the draft, and by those of the members. */
interface CallerQuestion extends MatrixQuestion {
  readonly parts: readonly DecidedPart[];
  readonly request: PolicyRequest;
  readonly keys: readonly unknown[];
}

/** The conditions of a stored record: it is allowed, and it may be read. */
interface DecidedRules {
  readonly allows: Sql;
  readonly reads: Sql;
  /** The request alone decides against the caller. */
  readonly isDenied: boolean;
}

/** No column differs in an update that changes nothing. */
const NONE_CHANGED: ReadonlySet<string> = new Set();

function decided({ collection, member }: DecidedPart, { action, request }: CallerQuestion): DecidedRules {
  const { access, memberAccess } = collection;
  const allows = (rules: readonly Policy[]): Sql => {
    const permit = decide({ rules, request });
    return action === 'update' ? permit.update.allows('t', 't', NONE_CHANGED) : permit.where('t');
  };
  // A list shows the members that a read shows.
  const memberAction = (action === 'list' ? 'read' : action) as MemberAction;
  const own = member === undefined ? undefined : memberAccess.get(member)?.[memberAction];
  return {
    allows: own === undefined ? allows(access[action]) : sql`(${allows(access[action])}) AND (${allows(own)})`,
    reads: READS[action] ?? decide({ rules: access.read, request }).where('t'),
    // An answer without a field is a success.
    isDenied: decide({ rules: access[action], request }).verdict === 'deny' && member === undefined,
  };
}

/** A list has no record to refuse, and a create has none to hide. */
const READS: Partial<Record<Action, Sql>> = { list: raw('FALSE'), create: raw('TRUE') };

type RowOutcomes = readonly (readonly MatrixOutcome[])[];

/** The records as `t`. A create makes a copy of each, and the result of an update is the record. */
function askedRows({ collection, action, keys }: CallerQuestion, { schema }: Store): Sql {
  const scope = everyTenant(schema);
  const isAsked = recordKeyOf(collection).isAmong('t', keys);
  const rows = scope.from(collection.name, 't').where(isAsked);
  if (action !== 'create' && action !== 'update') return rows;
  const held = heldColumnsOf(scope, { schema, collection }, 't');
  return held.length === 0 ? rows : sql`(SELECT t.*, ${join(held, ', ')} FROM ${rows}) AS t`;
}

async function storedOutcomes(asked: CallerQuestion, { store, q }: MatrixPlace): Promise<RowOutcomes> {
  const { collection, keys } = asked;
  const rules = asked.parts.map((part) => decided(part, asked));
  const key = recordKeyOf(collection);
  const columns = rules.map(({ allows, reads }) => sql`, (${allows}) IS TRUE, (${reads}) IS TRUE`);
  const rows = await q.rows(sql`
    SELECT ${key.of('t')}${columns.reduce((all, each) => sql`${all}${each}`)}
      FROM ${askedRows(asked, store)}`);
  const found = new Map(rows.map(([id, ...cells]) => [String(id), cells]));
  return keys.map((id, i) => {
    const cells = found.get(String(id));
    if (cells === undefined) throw unknownRecord(asked, i);
    return rules.map(({ isDenied }, n): MatrixOutcome => {
      if (isDenied) return 'refused';
      if (cells[2 * n] === 't') return 'allowed';
      return cells[2 * n + 1] === 't' ? 'refused' : 'hidden';
    });
  });
}

/** Throws `validation_failed` for data that no create takes. Required values that they lack decide nothing. */
function requireTakenData({ collection, request, data }: CallerQuestion, store: Store): void {
  const access = accessOf({ store, collection, request, action: 'create' });
  const errors: ErrorDetail[] = [];
  for (const [i, each] of data.entries())
    for (const error of plannedCreate({ access, store }, each).errors) {
      const member = error.pointer?.slice('/data/'.length) ?? '';
      if (error.code === 'required' && !Object.hasOwn(each, member)) continue;
      addError(errors, { ...error, pointer: `/data/${i}/${member}` });
    }
  if (errors.length > 0) throw new Problem('validation_failed', 'the data is not valid', { errors });
}

/** The created record has the defaults of the schema for the caller. */
async function createdOutcomes(asked: CallerQuestion, { store, q }: MatrixPlace): Promise<RowOutcomes> {
  requireTakenData(asked, store);
  const { parts, request, data } = asked;
  return Promise.all(
    data.map((each) =>
      Promise.all(
        parts.map(async ({ collection }): Promise<MatrixOutcome> => {
          const question = {
            store: storeWith(store, collection),
            q,
            collection,
            action: 'create' as const,
            request: { ...request, data: each },
            data: each,
            record: undefined,
            isComplete: false,
            filter: undefined,
          };
          return (await isCreateAllowed(question)) ? 'allowed' : 'refused';
        }),
      ),
    ),
  );
}

function unknownRecord({ collection, ids }: MatrixQuestion, index: number): Problem {
  const detail = `\`${collection.name}\` has no record \`${ids[index]!.slice(0, 100)}\``;
  return new Problem('not_found', detail, { errors: [{ pointer: `/ids/${index}`, code: 'not_found', detail }] });
}
