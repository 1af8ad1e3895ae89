/** Keys of the bodies of the authentication routes. Not a route. */
import { z } from 'zod';
import { SECRET } from '../../auth/sessions/secrets.ts';

export { emailAddress as email } from '../../auth/accounts/email-address.ts';

/** The auth room decides whether a password is good enough; it rejects a long one before any work. */
export const password = z.string('expected string');

export const newPassword = password.meta({
  description: '8 to 256 characters, counted after Unicode normalization (NFKC); common passwords are rejected.',
});

/** The pattern is for clients: text of another form is an unknown token. */
export const token = z
  .string('expected string')
  .min(1, 'expected a token')
  .max(4096, 'expected a token')
  .meta({ pattern: SECRET.source });
