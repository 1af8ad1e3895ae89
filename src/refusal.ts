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

export const forbidden = (): Refusal => new Refusal('forbidden', 'the policies deny this');
/** Hidden and missing records are indistinguishable. */
export const notFound = (): Refusal => new Refusal('not_found', 'no such record');
export const invalid = (errors: readonly ErrorDetail[]): Refusal =>
  new Refusal('validation_failed', 'the data is not valid', errors);
