/** The names that users give to their API keys and passkeys. */
import { lengthInCodePoints, parseString } from '../policy/values.ts';

/** In code points, as JSON Schema counts. */
export const CREDENTIAL_NAME_LENGTH = { minLength: 1, maxLength: 100 } as const;

/** Returns the error of a name; undefined: the name is good. */
export function credentialNameError(name: string): string | undefined {
  if (parseString(name) === undefined) return 'expected a string without NUL and lone surrogates';
  const { minLength, maxLength } = CREDENTIAL_NAME_LENGTH;
  const length = lengthInCodePoints(name);
  return length < minLength || length > maxLength ? `expected ${minLength} to ${maxLength} characters` : undefined;
}
