/** Recovery codes: each replaces one code of a lost authenticator. */
import { randomInt } from 'node:crypto';

const CODE_COUNT = 10;
const LENGTH = 10;
/** Crockford's base32: letters that are not mistaken for digits. 50 bits a code. */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const CODE = new RegExp(`^[${ALPHABET}]{${LENGTH}}$`);

export function newRecoveryCodes(): readonly string[] {
  const codes = new Set<string>();
  while (codes.size < CODE_COUNT)
    codes.add(Array.from({ length: LENGTH }, () => ALPHABET[randomInt(ALPHABET.length)]).join(''));
  return [...codes];
}

/** The code as it was given out, from what a person typed; undefined: no code has this form. */
export function readRecoveryCode(typed: string): string | undefined {
  const code = typed.toLowerCase().replaceAll(/[\s-]/g, '').replaceAll('o', '0').replaceAll(/[il]/g, '1');
  return CODE.test(code) ? code : undefined;
}
