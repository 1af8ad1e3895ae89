/** The decisions about several callers and records, each caller's by one statement. */
import type { Queryable } from '../database/contract.ts';
import { decide, type Permit } from '../policy/access.ts';
import type { Action, Policy, PolicyRequest, RequestFacts } from '../policy/types.ts';
import { datetimeOf } from '../policy/values.ts';
import { Problem } from '../problem.ts';
import type { Store } from '../records/access-context.ts';
import { recordKeyOf } from '../records/record-key.ts';
import { everyTenant } from '../records/scope.ts';
import { keyKindOf } from '../schema/fields/index.ts';
import type { Collection } from '../schema/model/model.ts';
import { raw, type Sql, sql } from '../sql.ts';
import { type AskedCaller, principalOf } from './principal.ts';

/** The status of the action: of success, 403, or 404. A list that leaves out the record hides it. */
type Outcome = 'allowed' | 'refused' | 'hidden';

export interface MatrixQuestion {
  readonly collection: Collection;
  /** An update changes nothing. */
  readonly action: Exclude<Action, 'create'>;
  readonly callers: readonly AskedCaller[];
  readonly ids: readonly string[];
  /** Rules of the action that the schema does not have. */
  readonly draft: readonly Policy[] | undefined;
}
export interface MatrixRow {
  /** The id and the email, if the caller is a user. */
  readonly user: { readonly id: string; readonly email: string } | null;
  /** The outcome of each record. */
  readonly outcomes: readonly Outcome[];
  /** The outcomes by the rules of the draft. */
  readonly drafted?: readonly Outcome[];
}
interface MatrixPlace {
  readonly store: Store;
  readonly q: Queryable;
  readonly facts: RequestFacts;
}

/** Throws `not_found` with the place of the unknown user or record. */
export async function matrixOf(question: MatrixQuestion, place: MatrixPlace): Promise<readonly MatrixRow[]> {
  const keys = question.ids.map((id) => keyKindOf(question.collection).fromQuery(id));
  const unreadable = keys.indexOf(undefined);
  if (unreadable >= 0) throw unknownRecord(question, unreadable);
  const rows: MatrixRow[] = [];
  for (const [i, caller] of question.callers.entries()) {
    const { auth, kind } = await principalOf(place.store, caller, { pointer: `/callers/${i}` });
    const request = { auth, kind, facts: place.facts, query: {}, now: datetimeOf(new Date()) };
    const { collection, action, draft } = question;
    const { access } = collection;
    const read = decide({ rules: access.read, request });
    const served: AskedRules = { rules: access[action], read };
    const drafted: AskedRules | undefined = draft && {
      rules: draft,
      read: action === 'read' ? decide({ rules: draft, request }) : read,
    };
    const all = [served, ...(drafted === undefined ? [] : [drafted])].map((each) => decided(question, each, request));
    const found = await outcomesOf(question, all, { ...place, keys });
    rows.push({
      user: caller.kind === 'user' ? { id: String(auth?.id), email: String(auth?.email) } : null,
      outcomes: found.map(([outcome]) => outcome!),
      ...(drafted && { drafted: found.map(([, outcome]) => outcome!) }),
    });
  }
  return rows;
}

interface AskedRules {
  readonly rules: readonly Policy[];
  readonly read: Permit;
}
/** The conditions of a stored record: it is allowed, and it may be read. */
interface DecidedRules {
  readonly allows: Sql;
  readonly reads: Sql;
  /** The request alone decides against the caller. */
  readonly isDenied: boolean;
}

/** No column differs in an update that changes nothing. */
const UNCHANGED: ReadonlySet<string> = new Set();

function decided({ action }: MatrixQuestion, { rules, read }: AskedRules, request: PolicyRequest): DecidedRules {
  const permit = decide({ rules, request });
  return {
    allows: action === 'update' ? permit.update.allows('t', 't', UNCHANGED) : permit.where('t'),
    reads: action === 'list' ? raw('FALSE') : read.where('t'),
    isDenied: permit.verdict === 'deny',
  };
}

async function outcomesOf(
  question: MatrixQuestion,
  asked: readonly DecidedRules[],
  { store, q, keys }: MatrixPlace & { readonly keys: readonly unknown[] },
): Promise<readonly (readonly Outcome[])[]> {
  const { name } = question.collection;
  const key = recordKeyOf(question.collection);
  const columns = asked.map(({ allows, reads }) => sql`, (${allows}) IS TRUE, (${reads}) IS TRUE`);
  const rows = await q.rows(sql`
    SELECT ${key.of('t')}${columns.reduce((all, each) => sql`${all}${each}`)}
      FROM ${everyTenant(store.schema).from(name, 't').where(key.isAmong('t', keys))}`);
  const found = new Map(rows.map(([id, ...cells]) => [String(id), cells]));
  return keys.map((id, i) => {
    const cells = found.get(String(id));
    if (cells === undefined) throw unknownRecord(question, i);
    return asked.map(({ isDenied }, n): Outcome => {
      if (isDenied) return 'refused';
      if (cells[2 * n] === 't') return 'allowed';
      return cells[2 * n + 1] === 't' ? 'refused' : 'hidden';
    });
  });
}

function unknownRecord({ collection, ids }: MatrixQuestion, index: number): Problem {
  const detail = `\`${collection.name}\` has no record \`${ids[index]!.slice(0, 100)}\``;
  return new Problem('not_found', detail, { errors: [{ pointer: `/ids/${index}`, code: 'not_found', detail }] });
}
