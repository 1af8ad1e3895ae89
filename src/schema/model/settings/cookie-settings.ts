/** The session cookie, as browsers keep it. */
import type { SchemaFile } from '../../file/shape.ts';
import type { CookieOptions } from '../model.ts';
import type { Settings } from './settings.ts';

/** Two labels at least: browsers reject the cookie of a whole top-level domain. The last label is not a number, as in addresses. */
const DOMAIN = /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

export function readCookie({ cookie = {}, origins = [] }: SchemaFile, { report }: Settings): CookieOptions {
  const { same_site: sameSite = 'lax', domain } = cookie;
  if (domain !== undefined && domain !== '' && !DOMAIN.test(domain)) {
    const message = `\`${domain}\` is not a domain; expected one such as \`example.com\`, in lower case, without a leading dot`;
    report({ code: 'invalid_cookie', message, path: ['cookie', 'domain'] });
  }
  if (sameSite === 'none' && origins.length === 0) {
    const message =
      '`same_site: none` sends the session cookie from pages of every site; list the pages that may write with it under `origins`';
    report({ code: 'invalid_cookie', message, path: ['cookie', 'same_site'] });
  }
  return { sameSite, domain };
}
