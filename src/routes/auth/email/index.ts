/** The routes of another address, in the order of the manual. */
import type { DescribedRoute } from '../../define-route.ts';
import { confirmEmailChange } from './confirm-change.ts';
import { requestEmailChange } from './request-change.ts';

export const emailRoutes: readonly DescribedRoute[] = [requestEmailChange, confirmEmailChange];
