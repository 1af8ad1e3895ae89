/** The authentication routes, in the order of the manual. */
import type { DescribedRoute } from '../define-route.ts';
import { changePassword } from './change-password.ts';
import { confirmReset } from './confirm-reset.ts';
import { confirmVerification } from './confirm-verification.ts';
import { emailRoutes } from './email/index.ts';
import { endSession } from './end-session.ts';
import { factorRoutes } from './factors/index.ts';
import { beGuest } from './guest.ts';
import { jwks } from './jwks.ts';
import { keyRoutes } from './keys/index.ts';
import { listSessions } from './list-sessions.ts';
import { login } from './login.ts';
import { logout } from './logout.ts';
import { me } from './me.ts';
import { oauthRoutes } from './oauth/index.ts';
import { codeRoutes } from './otp/index.ts';
import { passkeyRoutes } from './passkeys/index.ts';
import { refresh } from './refresh.ts';
import { register } from './register.ts';
import { requestReset } from './request-reset.ts';
import { requestVerification } from './request-verification.ts';

export const authRoutes: readonly DescribedRoute[] = [
  register,
  login,
  beGuest,
  refresh,
  logout,
  me,
  ...oauthRoutes,
  listSessions,
  endSession,
  ...factorRoutes,
  ...passkeyRoutes,
  changePassword,
  requestReset,
  confirmReset,
  requestVerification,
  confirmVerification,
  ...emailRoutes,
  ...codeRoutes,
  ...keyRoutes,
  jwks,
];
