/** Checks the address of a native app after a sign-in (RFC 8252): a private scheme, or the loopback interface. */
import { VISIBLE } from './redirect-to.ts';

const MAX_ADDRESS_LENGTH = 2_048;
/** The answer adds these. */
const ANSWERED: readonly string[] = ['code', 'error'];

/** `redirects`: those of the schema. */
export const isAppRedirect = (target: string, redirects: readonly string[]): boolean =>
  target.length <= MAX_ADDRESS_LENGTH &&
  VISIBLE.test(target) &&
  !target.includes('#') &&
  !namesAnswer(target) &&
  redirects.some((allowed) =>
    allowed.startsWith('http:') ? isLoopbackRedirect(target, allowed) : isUnder(target, allowed),
  );

/** An app reads the decoded names, and perhaps the first of two. */
function namesAnswer(target: string): boolean {
  const query = target.slice(target.indexOf('?') + 1);
  return target.includes('?') && [...new URLSearchParams(query).keys()].some((name) => ANSWERED.includes(name));
}

function isUnder(target: string, allowed: string): boolean {
  if (!target.startsWith(allowed)) return false;
  const next = target.charAt(allowed.length);
  return allowed.endsWith('/') || next === '' || next === '/' || next === '?';
}

/** An app listens at the port that the system gave it, so an address without a port admits every port. */
function isLoopbackRedirect(target: string, allowed: string): boolean {
  if (!URL.canParse(target)) return false;
  const [given, known] = [new URL(target), new URL(allowed)];
  const isPlain = given.username === '' && given.password === '' && target.startsWith(given.origin);
  const isHere = given.protocol === known.protocol && given.hostname === known.hostname;
  const isPort = known.port === '' || known.port === given.port;
  return isPlain && isHere && isPort && (known.pathname === '/' || known.pathname === given.pathname);
}

export const withCode = (target: string, code: string): string =>
  `${target}${target.includes('?') ? '&' : '?'}code=${encodeURIComponent(code)}`;
