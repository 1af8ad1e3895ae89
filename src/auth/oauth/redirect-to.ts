/** Checks the address after a sign-in: a path of this service, or an address in a configured origin. */
import { problemOfError } from '../../problem.ts';

const VISIBLE_PATH = /^\/(?![/\\])[\x21-\x5b\x5d-\x7e]*$/;
/** Printable ASCII but the backslash, which browsers take for a slash. */
export const VISIBLE = /^[\x21-\x5b\x5d-\x7e]+$/;

/** Throws `invalid_parameter`. */
export function checkRedirectTo(target: string, origins: readonly string[]): string {
  if (target.length <= 2_048 && (VISIBLE_PATH.test(target) || isConfigured(target, origins))) return target;
  const detail = 'expected a path that begins with one `/`, or an address in a configured origin';
  throw problemOfError('invalid_parameter', { parameter: 'redirect_to', code: 'invalid_parameter', detail });
}

function isConfigured(target: string, origins: readonly string[]): boolean {
  if (!VISIBLE.test(target) || !URL.canParse(target)) return false;
  const { origin, username, password } = new URL(target);
  return origins.includes(origin) && username === '' && password === '' && target.startsWith(origin);
}

/** A fragment is sent to no server: the challenge is for the page alone. */
export function withChallenge(target: string, outcome: object): string {
  if (!('challenge' in outcome)) return target;
  const [before] = target.split('#');
  return `${before}#challenge=${outcome.challenge}`;
}

export function withError(target: string, code: string): string {
  const hash = target.indexOf('#');
  const [before, after] = hash === -1 ? [target, ''] : [target.slice(0, hash), target.slice(hash)];
  return `${before}${before.includes('?') ? '&' : '?'}error=${encodeURIComponent(code)}${after}`;
}
