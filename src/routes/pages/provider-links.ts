/** The links to the providers of sign-in, and the address that they return to. Not a route. */
import type { App } from '../../http/app.ts';
import type { PageLink } from './form-page.ts';

export const SIGNED_IN = '/auth/signed-in';

/** Links, since `form-action` would bind the redirect to the provider, too. */
export const providerLinks = ({ auth }: App, target: string | undefined): readonly PageLink[] =>
  auth.oauth.providers().map(({ name, title }) => ({
    to: withTarget(`/api/auth/oauth/${name}/start`, withTarget(SIGNED_IN, target)),
    text: `Sign in with ${title}`,
  }));

export const withTarget = (path: string, target: string | undefined): string =>
  target === undefined || target === '' ? path : `${path}?redirect_to=${encodeURIComponent(target)}`;
