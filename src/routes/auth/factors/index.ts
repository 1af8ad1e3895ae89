/** The routes of second factors, in the order of the manual. */
import type { DescribedRoute } from '../../define-route.ts';
import { answerChallenge } from './answer-challenge.ts';
import { confirmSignIn } from './confirm-sign-in.ts';
import { confirmTotp } from './confirm-totp.ts';
import { enrolTotp } from './enrol-totp.ts';
import { removeTotp } from './remove-totp.ts';
import { renewRecoveryCodes } from './renew-recovery-codes.ts';

export const factorRoutes: readonly DescribedRoute[] = [
  answerChallenge,
  confirmSignIn,
  enrolTotp,
  confirmTotp,
  renewRecoveryCodes,
  removeTotp,
];
