/** Compares the cookie of the schema with the base URL: a browser would drop a cookie that does not match it. */
import type { Config } from '../../config.ts';
import type { CookieOptions } from '../../schema/model/model.ts';

type Site = Pick<Config, 'baseUrl' | 'isDevelopment'>;

/** Throws an error for the operator. `bylaw dev` serves a page of this machine with every schema. */
export function checkCookieSite({ sameSite, domain }: CookieOptions, { baseUrl, isDevelopment }: Site): void {
  if (isDevelopment) return;
  if (sameSite === 'none' && !baseUrl.startsWith('https://'))
    throw new Error(
      `cookie: \`same_site: none\` needs https; expected a base URL with https, found ${baseUrl}; set BASE_URL`,
    );
  if (domain !== undefined && !containsHost(domain, baseUrl))
    throw new Error(`cookie: expected \`domain\` to hold the host of the base URL ${baseUrl}, found \`${domain}\``);
}

/** Undefined: the cookie belongs to the host alone. */
export const cookieDomain = ({ domain }: CookieOptions, { baseUrl }: Site): string | undefined =>
  domain !== undefined && containsHost(domain, baseUrl) ? domain : undefined;

function containsHost(domain: string, baseUrl: string): boolean {
  const { hostname } = new URL(baseUrl);
  return hostname === domain || hostname.endsWith(`.${domain}`);
}
