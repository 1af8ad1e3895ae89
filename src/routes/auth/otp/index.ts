/** The routes of codes by mail, in the order of the manual. */
import type { DescribedRoute } from '../../define-route.ts';
import { confirmCode } from './confirm-code.ts';
import { requestCode } from './request-code.ts';

export const codeRoutes: readonly DescribedRoute[] = [requestCode, confirmCode];
