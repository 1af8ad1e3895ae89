/**
 * Checks of a collection: conditions on the record that a write makes. The statement that writes judges them
 * beside the access rules; where it wrote nothing, the rules are asked first, so that a failure is reported
 * only to a caller whom they allow the write.
 */
import { decide, type Permit } from '../../policy/access.ts';
import type { PolicyRequest } from '../../policy/types.ts';
import type { ErrorDetail } from '../../problem.ts';
import { invalid, Refusal } from '../../refusal.ts';
import type { Check, Collection, Schema, WriteAction } from '../../schema/model/model.ts';
import { ident, join, type Sql, sql } from '../../sql.ts';
import type { AccessContext, Reading } from '../access-context.ts';
import { recordKeyIn } from '../record-key.ts';
import { type ScopedRows, scopeOf } from '../scope.ts';
import type { ColumnValue } from './input.ts';
import type { Following, PossibleValues } from './possible-values.ts';
import { STORED, storedAs, WRITTEN, type Writing } from './written-row.ts';

export interface AskedCheck {
  readonly check: Check;
  /** The records that fail it. */
  readonly violation: Permit;
}

/**
 * The checks that the request leaves open.
 * @param values of an update that is known: transitions of other fields hold
 */
export const checksOn = (
  access: AccessContext,
  collection: Pick<Collection, 'name' | 'checks' | 'fields'>,
  action: WriteAction,
  values?: readonly ColumnValue[],
): readonly AskedCheck[] =>
  collection.checks.flatMap((check) => {
    const column = check.transitions && collection.fields.get(check.transitions.field)?.column;
    if (column !== undefined && values?.some((value) => value.column === column) === false) return [];
    const violation = access.violation(collection.name, check, action);
    return violation.verdict === 'deny' ? [] : [{ check, violation }];
  });

/** The condition that a new record passes. INVARIANT: never null, because what is unknown passes. */
export const passesCreate = (violation: Permit): Sql => isNotTrue(violation.where(WRITTEN));

/** The same for a changed record. */
export const passesUpdate = (violation: Permit, changed: ReadonlySet<string>): Sql =>
  isNotTrue(violation.update.allows(STORED, WRITTEN, changed));

const isNotTrue = (condition: Sql): Sql => sql`(${condition}) IS NOT TRUE`;

interface FailurePlace {
  /** The place of the relation that moves the record; undefined: each field of a check has its own. */
  readonly pointer?: string | undefined;
  /** The values that can follow the stored one, of the transitions whose field the caller may read. */
  readonly possible?: PossibleValues | undefined;
}

/** Undefined: no check failed. */
export function failureOf(failed: readonly AskedCheck[], place: FailurePlace = {}): Refusal | undefined {
  if (failed.length === 0) return undefined;
  const errors = failed.flatMap(({ check }) => checkErrors(check, place));
  const refused = errors.find(({ code }) => code === 'transition_refused');
  return refused === undefined ? invalid(errors) : new Refusal('transition_refused', refused.detail, errors);
}

function checkErrors(check: Check, { pointer, possible }: FailurePlace): readonly ErrorDetail[] {
  const { name, message, fields, transitions } = check;
  if (transitions !== undefined) return [transitionError(check, possible?.get(check))];
  return pointersOf(fields, pointer).map((each) => ({
    pointer: each,
    code: 'check_failed',
    check: name,
    detail: message,
  }));
}

function transitionError({ message, fields: [field] }: Check, possible: Following | undefined): ErrorDetail {
  const error = { pointer: `/data/${field}`, code: 'transition_refused' };
  if (possible === undefined) return { ...error, detail: message };
  const { from, to } = possible;
  const changes = `which changes to ${to.map((value) => JSON.stringify(value)).join(', ')} only`;
  const detail = `\`${field}\` is ${JSON.stringify(from)}, ${to.length === 0 ? 'which does not change' : changes}`;
  return { ...error, detail, possible: to };
}

function pointersOf(fields: readonly string[], pointer: string | undefined): readonly string[] {
  if (pointer !== undefined) return [pointer];
  return fields.length === 0 ? ['/data'] : fields.map((name) => `/data/${name}`);
}

// ---------------------------------------------------------------- doors without a statement of their own

/** The checks of records that a door of the service writes, such as a registration. */
export const checksFor = (
  { checks }: Pick<Collection, 'checks'>,
  request: Omit<PolicyRequest, 'query'>,
): readonly AskedCheck[] =>
  checks.flatMap((check) => {
    const violation = decide({ rules: check.violated.create, request: { ...request, query: {} } });
    return violation.verdict === 'deny' ? [] : [{ check, violation }];
  });

interface CheckedRow {
  readonly schema: Pick<Schema, 'collections'>;
  readonly collection: Collection;
  /** The rows named `t`. */
  readonly rows: ScopedRows;
}

/**
 * The stored row `t` fails the check: it is the record before the write and after it, as in a create.
 * @param violation by creates
 */
export function failsStored({ schema, collection, rows }: CheckedRow, violation: Permit): Sql {
  const condition = violation.where(WRITTEN);
  const row = { made: STORED, isNew: false, writing: NO_WRITING, conditions: [condition] };
  return sql`EXISTS (
    SELECT 1
      FROM (${storedAs(rows.related, { schema, collection }, row)}) AS ${ident(WRITTEN)}
     WHERE ${condition})`;
}
const NO_WRITING: Writing = { values: [], members: [], partners: [] };

interface WrittenRecord {
  readonly collection: string;
  readonly id: string;
}

/** The failure of a record that the transaction has written, which the caller then rolls back. */
export async function failureOfStored(
  reading: Pick<Reading, 'store' | 'q' | 'tenant'>,
  { collection: name, id }: WrittenRecord,
  asked: readonly AskedCheck[],
): Promise<Refusal | undefined> {
  if (asked.length === 0) return undefined;
  const { schema } = reading.store;
  const rows = scopeOf(reading).from(name, STORED);
  const stored = { schema, collection: schema.collections.get(name)!, rows };
  const fails = asked.map(({ violation }) => failsStored(stored, violation.within(reading.tenant)));
  const [row] = await reading.q.rows(sql`
    SELECT ${join(fails, ', ')}
      FROM ${rows.where(recordKeyIn(schema, name).is(STORED, id))}`);
  return failureOf(asked.filter((_, i) => row?.[i] === 't'));
}
