/** Under `bylaw dev`: notices a browser that does not keep the session cookie, and says so in the log. */
import type { Context } from 'koa';
import type { Logger } from '../observe/log.ts';
import { SESSION_COOKIE } from '../request.ts';

export class LostCookies {
  /** Origins of pages that were sent a cookie for another site, and have not returned it yet. */
  readonly #sent = new Set<string>();

  /** Looks at a request that is answered. Warns once for each such sign-in. */
  see(ctx: Context, log: Logger): void {
    const origin = ctx.get('Origin');
    if (origin === '') return;
    if (isGivenElsewhere(ctx)) this.#sent.add(origin);
    else if (ctx.get('Cookie').includes(`${SESSION_COOKIE}=`)) this.#sent.delete(origin);
    else if (ctx.status === 401 && ctx.get('Authorization') === '' && this.#sent.delete(origin))
      log.warn({ origin, service: ctx.get('Host') }, ADVICE);
  }
}

const ADVICE =
  'the browser did not keep the session cookie, because the page and the service are two sites to it: call the service by the host name of ' +
  'the page, or let the development server of the page forward /api (docs/development.md has the lines)';

/** A session cookie that begins, in a response to a page of another site. */
function isGivenElsewhere(ctx: Context): boolean {
  const given = [ctx.res.getHeader('Set-Cookie') ?? []].flat().map(String);
  return given.some(
    (line) => line.startsWith(`${SESSION_COOKIE}=`) && /SameSite=None/.test(line) && !/Max-Age=0/.test(line),
  );
}
