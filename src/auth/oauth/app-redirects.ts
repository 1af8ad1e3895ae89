/** Checks the address of a native app after a sign-in (RFC 8252): a private scheme, or the loopback interface. */
const MAX_LENGTH = 2_048;
const VISIBLE = /^[\x21-\x5b\x5d-\x7e]+$/;
/** The answer adds these. */
const ANSWERED = /[?&](?:code|error)=/;

/** `redirects`: those of the schema. */
export const isAppRedirect = (target: string, redirects: readonly string[]): boolean =>
  target.length <= MAX_LENGTH &&
  VISIBLE.test(target) &&
  !target.includes('#') &&
  !ANSWERED.test(target) &&
  redirects.some((allowed) => (allowed.startsWith('http:') ? isLoopback(target, allowed) : isUnder(target, allowed)));

function isUnder(target: string, allowed: string): boolean {
  if (!target.startsWith(allowed)) return false;
  const next = target.charAt(allowed.length);
  return allowed.endsWith('/') || next === '' || next === '/' || next === '?';
}

/** An app listens at the port that the system gave it, so an address without a port admits every port. */
function isLoopback(target: string, allowed: string): boolean {
  if (!URL.canParse(target)) return false;
  const [given, known] = [new URL(target), new URL(allowed)];
  const isPlain = given.username === '' && given.password === '' && target.startsWith(given.origin);
  const isHere = given.protocol === known.protocol && given.hostname === known.hostname;
  const isPort = known.port === '' || known.port === given.port;
  return isPlain && isHere && isPort && (known.pathname === '/' || known.pathname === given.pathname);
}

export const withCode = (target: string, code: string): string =>
  `${target}${target.includes('?') ? '&' : '?'}code=${encodeURIComponent(code)}`;
