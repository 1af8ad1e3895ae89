/** The problem that reports a refusal of the store. */
import { Problem } from '../../problem.ts';
import type { Refusal } from '../../refusal.ts';
import { forbidden, notFound } from '../gate.ts';

export function problemOf({ code, message, errors }: Refusal): Problem {
  switch (code) {
    case 'not_found':
      return notFound();
    case 'forbidden':
      return forbidden(errors);
    case 'validation_failed':
    case 'unique_violation':
    case 'still_referenced':
    case 'changed':
    case 'last_admin':
    case 'idempotency_mismatch':
    case 'invalid_cursor':
    case 'query_too_expensive':
      return new Problem(code, message, { errors });
  }
}
