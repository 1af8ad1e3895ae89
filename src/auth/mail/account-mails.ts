/** Writes the mails with tokens: of an address to verify, and of a password to reset. */
import type { Database } from '../../database/contract.ts';
import type { Users } from '../accounts/users.ts';
import { recordAudit } from '../audit-trail.ts';
import { issueProof, type Purpose } from './email-tokens.ts';
import type { Mail } from './mail.ts';
import type { Composer } from './mail-sender.ts';
import type { ClaimedMail, MailKind } from './outbox.ts';

export interface AccountMailParts {
  readonly db: Database;
  readonly users: Users;
  readonly baseUrl: () => string;
}

export function accountMails(parts: AccountMailParts): Readonly<Record<MailKind, Composer>> {
  return {
    verify: (request) => tokenMail(parts, request, 'verify_email'),
    reset: (request) => tokenMail(parts, request, 'reset_password'),
  };
}

const EVENTS = {
  verify_email: 'email_verification_requested',
  reset_password: 'password_reset_requested',
} as const satisfies Record<Purpose, string>;

async function tokenMail(
  { db, users, baseUrl }: AccountMailParts,
  { address, attempt, detail }: ClaimedMail,
  purpose: Purpose,
): Promise<Mail | undefined> {
  const account = await users.accountOf(db, address);
  if (account === undefined || account.isDisabled) return undefined;
  if (purpose === 'verify_email' && account.isVerified) return undefined;
  const { id: userId } = account;
  const token = await db.transaction(async (tx) => {
    if (attempt === 1) await recordAudit(tx, { event: EVENTS[purpose], userId, ...detail });
    return issueProof(tx, purpose, { userId, email: address });
  });
  return { to: address, subject: MAILS[purpose].subject, text: mailText(purpose, baseUrl(), token) };
}

const MAILS = {
  verify_email: {
    subject: 'Confirm your email address',
    asked: 'confirm that this address belongs to an account',
    verb: 'confirm',
    ending: '',
  },
  reset_password: {
    subject: 'Set a new password',
    asked: 'set a new password for the account with this address',
    verb: 'set',
    ending: ': your password stays as it is',
  },
} as const satisfies Record<Purpose, object>;

function mailText(purpose: Purpose, site: string, token: string): string {
  const { asked, verb, ending } = MAILS[purpose];
  return `Someone, most likely you, asked to ${asked} at ${site}.

To ${verb} it, use this code within an hour:

${token}

If this was not you, ignore this mail${ending}.
`;
}
