/** Accepts or rejects email addresses. */
import { z } from 'zod';
import { problemOfError } from '../../problem.ts';

/** RFC 5321 §4.5.3.1.3. */
const MAX_EMAIL_LENGTH = 254;

/** Parses addresses of strangers: request bodies, and the documents of OAuth providers. */
export const emailAddress = z
  .email('expected an email address')
  .max(MAX_EMAIL_LENGTH, `expected at most ${MAX_EMAIL_LENGTH} characters`);

/** Checks an operator's address, which may also be `root@localhost`. Throws `validation_failed`. */
export function checkEmail(email: string): void {
  if (email.length <= MAX_EMAIL_LENGTH && /^[\x21-\x3f\x41-\x7e]+@[\x21-\x3f\x41-\x7e]+$/.test(email)) return;
  const detail = 'expected an email address';
  throw problemOfError('validation_failed', { pointer: '/email', code: 'invalid_value', detail });
}
