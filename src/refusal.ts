/**
 * Reports why the records room declined a read or a write, without HTTP: the error door in http/ maps
 * each code to a problem.
 */
import type { ErrorDetail } from './problem.ts';

export type RefusalCode =
  | 'not_found'
  | 'forbidden'
  | 'validation_failed'
  | 'transition_refused'
  | 'unique_violation'
  | 'conflict'
  | 'still_referenced'
  | 'changed'
  | 'last_admin'
  | 'idempotency_mismatch'
  | 'invalid_cursor'
  | 'query_too_expensive';

export class Refusal extends Error {
  readonly code: RefusalCode;
  readonly errors: readonly ErrorDetail[];

  constructor(code: RefusalCode, detail: string, errors: readonly ErrorDetail[] = []) {
    super(detail);
    this.name = 'Refusal';
    this.code = code;
    this.errors = errors;
  }
}

/** The detail of a denial whose rule has no message. */
export const DENIED = 'the access rules do not allow this';
/** @param message of the rule that denied it, where the caller may read the record */
export const forbidden = (message = DENIED): Refusal => new Refusal('forbidden', message);
/** Hidden and missing records are indistinguishable. */
export const notFound = (): Refusal => new Refusal('not_found', 'no such record');
export const invalid = (errors: readonly ErrorDetail[]): Refusal =>
  new Refusal('validation_failed', 'the data is not valid', errors);
