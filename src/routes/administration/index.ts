/** The routes of administrators, in the order of the manual. */
import type { DescribedRoute } from '../define-route.ts';
import { addUser } from './add-user.ts';
import { confirmInvite } from './confirm-invite.ts';
import { disableUser } from './disable-user.ts';
import { enableUser } from './enable-user.ts';
import { endUserSessions } from './end-user-sessions.ts';
import { inviteUser } from './invite-user.ts';
import { listAccounts } from './list-accounts.ts';
import { listInvites } from './list-invites.ts';
import { listUserSessions } from './list-user-sessions.ts';
import { readAuditTrail } from './read-audit.ts';
import { removeInvite } from './remove-invite.ts';
import { resetSecondFactor } from './reset-second-factor.ts';
import { resetUserPassword } from './reset-user-password.ts';
import { setUp } from './set-up.ts';

export const administrationRoutes: readonly DescribedRoute[] = [
  setUp,
  addUser,
  listAccounts,
  inviteUser,
  listInvites,
  removeInvite,
  confirmInvite,
  disableUser,
  enableUser,
  listUserSessions,
  endUserSessions,
  resetUserPassword,
  resetSecondFactor,
  readAuditTrail,
];
