/** The routes of providers, in the order of the manual. */
import type { DescribedRoute } from '../../define-route.ts';
import { exchangeCode } from './exchange-code.ts';
import { finishOAuth } from './finish-oauth.ts';
import { finishPostedOAuth } from './finish-posted-oauth.ts';
import { linkIdentity } from './link-identity.ts';
import { listProviders } from './list-providers.ts';
import { startOAuth } from './start-oauth.ts';
import { unlinkIdentity } from './unlink-identity.ts';

export const oauthRoutes: readonly DescribedRoute[] = [
  listProviders,
  startOAuth,
  finishOAuth,
  finishPostedOAuth,
  exchangeCode,
  linkIdentity,
  unlinkIdentity,
];
