/**
 * Checks of a collection: conditions on the record that a write makes. The statement that writes judges them
 * beside the access rules; where it wrote nothing, the rules are asked first, so that a failure is reported
 * only to a caller whom they allow the write.
 */
import type { Permit } from '../../policy/access.ts';
import type { ErrorDetail } from '../../problem.ts';
import type { Check, Collection, WriteAction } from '../../schema/model/model.ts';
import { type Sql, sql } from '../../sql.ts';
import type { AccessContext } from '../access-context.ts';
import { STORED, WRITTEN } from './written-row.ts';

export interface AskedCheck {
  readonly check: Check;
  /** The records that fail it. */
  readonly violation: Permit;
}

/** The checks that the request leaves open. */
export const checksOn = (
  access: AccessContext,
  collection: Pick<Collection, 'name' | 'checks'>,
  action: WriteAction,
): readonly AskedCheck[] =>
  collection.checks.flatMap((check) => {
    const violation = access.violation(collection.name, check, action);
    return violation.verdict === 'deny' ? [] : [{ check, violation }];
  });

/** The condition that a new record passes. INVARIANT: never null, because what is unknown passes. */
export const passesCreate = (violation: Permit): Sql => isNotTrue(violation.where(WRITTEN));

/** The same for a changed record. */
export const passesUpdate = (violation: Permit, changed: ReadonlySet<string>): Sql =>
  isNotTrue(violation.update.allows(STORED, WRITTEN, changed));

const isNotTrue = (condition: Sql): Sql => sql`(${condition}) IS NOT TRUE`;

/** @param pointer of the relation that moves the record; default: each field of a check has its own */
export const checkErrors = (failed: readonly AskedCheck[], pointer?: string): readonly ErrorDetail[] =>
  failed.flatMap(({ check: { name, message, fields } }) =>
    pointersOf(fields, pointer).map((each) => ({ pointer: each, code: 'check_failed', check: name, detail: message })),
  );

function pointersOf(fields: readonly string[], pointer: string | undefined): readonly string[] {
  if (pointer !== undefined) return [pointer];
  return fields.length === 0 ? ['/data'] : fields.map((name) => `/data/${name}`);
}
