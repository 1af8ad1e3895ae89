/** Registration, which a schema may close: then only an admin adds users. */
import { Problem } from '../../problem.ts';
import type { Schema } from '../../schema/model/model.ts';

/** The answer is the same for a known address. Throws `registration_closed`. */
export function requireOpenRegistration({ register }: Schema): void {
  if (register.open) return;
  throw new Problem('registration_closed', 'registration is closed here; ask an administrator for an account');
}
