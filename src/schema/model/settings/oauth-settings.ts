/** The providers of sign-in. */
import type { DocumentPath } from '../../file/issue.ts';
import type { SchemaFile } from '../../file/shape.ts';
import type { OAuthProvider } from '../model.ts';
import { nameIssue } from '../names.ts';
import type { Settings } from './settings.ts';

export function readOAuth({ oauth = {} }: SchemaFile, settings: Settings): ReadonlyMap<string, OAuthProvider> {
  const providers = new Map<string, OAuthProvider>();
  for (const [name, shape] of Object.entries(oauth)) {
    const path = ['oauth', name];
    const issue = nameIssue(name);
    if (issue !== undefined) settings.report({ ...issue, path, at: 'key' });
    const clientSecret = secretOf(shape, path, settings);
    checkIssuer(shape, path, settings);
    checkAppleMembers(shape, path, settings);
    if (issue !== undefined) continue;
    providers.set(name, {
      name,
      issuer: shape.issuer,
      preset: shape.preset,
      clientId: shape.client_id,
      clientSecret,
      title: shape.title,
      scopes: shape.scopes,
      clientAuth: shape.client_auth,
      teamId: shape.team_id,
      keyId: shape.key_id,
    });
  }
  return providers;
}

type ProviderShape = NonNullable<SchemaFile['oauth']>[string];

function secretOf(
  { client_secret, client_secret_env }: ProviderShape,
  path: DocumentPath,
  { report, env }: Settings,
): string {
  if ((client_secret === undefined) === (client_secret_env === undefined)) {
    const message =
      'expected either `client_secret`, or `client_secret_env` with the name of the variable that holds it';
    report({ code: 'oauth_secret', message, path, at: 'key' });
    return client_secret ?? '';
  }
  if (client_secret !== undefined) return client_secret;
  const value = env[client_secret_env ?? ''];
  if (value !== undefined && value !== '') return value;
  report({
    code: 'missing_env',
    message: `the environment variable \`${client_secret_env}\` is not set; set it to the secret`,
    path: [...path, 'client_secret_env'],
  });
  return '';
}

const LOOPBACK_HOSTS = new Set(['localhost', '127.0.0.1', '[::1]']);

function checkIssuer({ issuer, preset }: ProviderShape, path: DocumentPath, { report }: Settings): void {
  if (issuer === undefined && preset === undefined) {
    report({ code: 'oauth_issuer', message: 'expected `issuer` or `preset`', path, at: 'key' });
  }
  if (issuer === undefined) return;
  if (URL.canParse(issuer)) {
    const { protocol, hostname, search, hash } = new URL(issuer);
    const isSecure = protocol === 'https:' || (protocol === 'http:' && LOOPBACK_HOSTS.has(hostname));
    if (isSecure && search === '' && hash === '') return;
  }
  const message = `\`${issuer}\` is not an issuer; expected an https URL without a query (http on loopback only)`;
  report({ code: 'oauth_issuer', message, path: [...path, 'issuer'] });
}

/** Apple has no secret, but a key that signs one. */
function checkAppleMembers({ preset, team_id, key_id }: ProviderShape, path: DocumentPath, { report }: Settings): void {
  const isApple = preset === 'apple';
  for (const [key, value] of [
    ['team_id', team_id],
    ['key_id', key_id],
  ] as const) {
    if (isApple === (value !== undefined)) continue;
    const message = isApple
      ? `\`preset: apple\` needs \`${key}\`, beside the private key in \`client_secret_env\``
      : `\`${key}\` is for \`preset: apple\` only`;
    report({ code: 'oauth_apple', message, path: isApple ? path : [...path, key], at: 'key' });
  }
}

/** A scheme of one's own has a dot (RFC 8252 §7.1): no page and no other service has it. */
const PRIVATE_SCHEME = /^[a-z][a-z0-9+-]*(?:\.[a-z0-9+-]+)+:\/[\x21\x24-\x3b\x3d\x40-\x5b\x5d-\x7e]*$/;
/** A name could be resolved to another machine (RFC 8252 §8.3). */
const LOOPBACK_ADDRESS =
  /^http:\/\/(?:127\.0\.0\.1|\[::1\])(?::[1-9]\d{0,4})?(?:\/[\x21\x24-\x3b\x3d\x40-\x5b\x5d-\x7e]*)?$/;

export function readRedirects({ redirects = [] }: SchemaFile, { report }: Settings): readonly string[] {
  return redirects.filter((redirect, i) => {
    if (PRIVATE_SCHEME.test(redirect) || (LOOPBACK_ADDRESS.test(redirect) && URL.canParse(redirect))) return true;
    const message =
      `\`${redirect}\` is not the address of a native app; expected a private scheme with a dot such as ` +
      '`com.example.app://`, or `http://127.0.0.1` or `http://[::1]`; web pages are under `origins`';
    report({ code: 'invalid_redirect', message, path: ['redirects', i] });
    return false;
  });
}
