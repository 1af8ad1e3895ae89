/** The explanation of a write, which must be what the store does. */
import type { Action, Policy, PolicyRequest, Row } from '../../../src/policy/types.ts';
import { ACTIONS } from '../../../src/policy/types.ts';
import type { Collection, MemberAccess, MemberAction, WriteAction } from '../../../src/schema/model/model.ts';
import type { Write } from '../../oracle/judge.ts';
import type { Stocked } from './doors-world.ts';
import { idColumn, idParam } from './keyed-schema.ts';

/** The rules of one write, which are not those of the schema. */
export interface RulesOfStore {
  policies(collection: string, action: Action): readonly Policy[];
  ofMember(
    collection: string,
    member: string,
    action: MemberAction,
  ): readonly { readonly policy: Policy }[] | undefined;
  violated(collection: string, action: WriteAction): readonly { readonly policy: Policy }[];
}
interface AskedWrite {
  readonly write: Write;
  readonly request: PolicyRequest;
  readonly rules: RulesOfStore;
}

/** `allowed`, or `refused` with the status; `invalid`: the data are not valid. */
export async function explainedStatus(stocked: Stocked, { write, request, rules }: AskedWrite): Promise<string> {
  const { doors, db } = stocked;
  const collections = new Map(
    [...stocked.schema.collections].map(([name, collection]) => [name, ruledBy(rules, collection)]),
  );
  const schema = { ...stocked.schema, collections };
  const store = new doors.Store(db, schema);
  const { action, collection: name, id } = write;
  const { sql } = doors.compiler.sql;
  const keyed = { doors, collection: stocked.schema.collections.get(name)! };
  const where = sql`${idColumn(keyed, 't')} = ${idParam(keyed, id)}`;
  const [record] = action === 'create' ? [] : await doors.system.findSystem(store, db, { collection: name, where });
  const collection = collections.get(name)!;
  const data = action === 'delete' ? undefined : (request.data as Row);
  const shared = { store, q: db, collection, action, request, record, data, isComplete: true, filter: undefined };
  try {
    const { verdict, status } = await doors.traceOf(shared);
    return verdict === 'allow' ? 'allowed' : `refused ${status}`;
  } catch (error) {
    if ((error as { readonly code?: string }).code === 'validation_failed') return 'invalid';
    throw error;
  }
}

function ruledBy(rules: RulesOfStore, collection: Collection): Collection {
  const { name } = collection;
  const ruleOf = (action: WriteAction) => rules.violated(name, action).map(({ policy }) => policy);
  const access = Object.fromEntries(ACTIONS.map((action) => [action, rules.policies(name, action)]));
  const memberAccess = new Map(
    [...collection.memberAccess.keys()].map((member): readonly [string, MemberAccess] => {
      const own = (['read', 'create', 'update'] as const).flatMap((action) => {
        const found = rules.ofMember(name, member, action);
        return found === undefined ? [] : [[action, found.map(({ policy }) => policy)] as const];
      });
      return [member, Object.fromEntries(own)];
    }),
  );
  const violated = { create: ruleOf('create'), update: ruleOf('update') };
  const checks = collection.checks.map((check) => (check.transitions === undefined ? { ...check, violated } : check));
  return { ...collection, access: access as Collection['access'], memberAccess, checks };
}

interface Outcome {
  /** The write is allowed by the judge. */
  readonly isAllowed: boolean;
  /** The caller may read all records that the write refers to. */
  readonly isReferable: boolean;
  readonly error: string | undefined;
}

/** A write that the rules allow can still fail by its references, versions and constraints. */
export function isExplained(
  explained: string,
  { partners }: Write,
  { isAllowed, isReferable, error }: Outcome,
): boolean {
  const hasPartners = partners.length > 0;
  if (isAllowed) return explained === 'allowed';
  // The explanation does not hold partners to their checks.
  if (/check_failed|transition_refused/.test(error ?? ''))
    return explained === 'refused 422' || (hasPartners && explained === 'allowed');
  if (error === 'forbidden') return explained === 'refused 403';
  // A reference that the caller may not read is an error, which is hidden with its record; the explanation reads none.
  if (error === 'not_found' && !isReferable) return true;
  if (error === 'not_found') return explained === 'refused 404' || explained === 'refused 403';
  return true;
}
