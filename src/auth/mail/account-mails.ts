/** Writes the mail of each request, from what the accounts are when it is sent. */
import type { Database } from '../../database/contract.ts';
import type { EmailChange } from '../accounts/email-change.ts';
import type { Invitations } from '../accounts/invitations.ts';
import type { LoginCodes } from '../accounts/login-codes.ts';
import type { Users } from '../accounts/users.ts';
import { recordAudit } from '../audit-trail.ts';
import type { Limiter } from '../limits/limiter.ts';
import { issueProof } from './email-tokens.ts';
import { NO_EVENT } from './mail-data.ts';
import type { Composer } from './mail-sender.ts';
import type { SecretKind } from './mail-words.ts';
import type { MailSecrets, MailWriter } from './mail-writer.ts';
import type { Mail } from './mailer.ts';
import type { ClaimedMail, MailKind } from './outbox.ts';

export interface AccountMailParts {
  readonly db: Database;
  readonly users: Users;
  readonly limiter: Limiter;
  readonly invitations: Invitations;
  readonly loginCodes: LoginCodes;
  readonly emailChange: EmailChange;
  readonly writer: MailWriter;
}

/** Makes the secrets of a mail; undefined: the address gets none. */
type SecretMaker = (request: ClaimedMail) => Promise<MailSecrets | undefined>;
type TokenMaker = (request: ClaimedMail) => Promise<string | undefined>;

export function accountMails(parts: AccountMailParts): Readonly<Record<MailKind, Composer>> {
  const { users, db, limiter, invitations, loginCodes, emailChange, writer } = parts;
  const recipientOf = async ({ address, language }: ClaimedMail) => ({
    address,
    user: await users.byEmail(db, address),
    language,
  });
  const withSecrets =
    (kind: SecretKind, make: SecretMaker): Composer =>
    async (request) => {
      const recipient = await recipientOf(request);
      const secrets = await make(request);
      return secrets && writer.secret(kind, recipient, secrets);
    };
  const withToken = (kind: SecretKind, make: TokenMaker): Composer =>
    withSecrets(kind, async (request) => {
      const token = await make(request);
      return token === undefined ? undefined : { token };
    });
  const notice =
    (kind: Exclude<MailKind, SecretKind>): Composer =>
    async (request): Promise<Mail> => {
      const { newEmail = null, isDone = false, change = null, client } = request.detail;
      const { ip = null, userAgent: device = null } = client ?? {};
      const event = { ...NO_EVENT, new_email: newEmail, is_done: isDone, change, ip, device, at: request.createdAt };
      return writer.notice(kind, await recipientOf(request), event);
    };
  /** Leaves out a mail that is one too many for its address: an answer to its request would reveal who came from where. */
  const limited =
    (compose: Composer): Composer =>
    async (request) => {
      const { client = {}, actorId } = request.detail;
      const isCounted = request.attempt === 1 && actorId === undefined;
      if (isCounted && !(await limiter.mailTo(request.address, client))) return undefined;
      return compose(request);
    };
  return {
    verify: withToken('verify', (request) => proofToken(parts, request, 'verify_email')),
    reset: limited(withToken('reset', (request) => proofToken(parts, request, 'reset_password'))),
    invite: withToken('invite', (request) => invitations.issueToken(request)),
    email_change: limited(withToken('email_change', (request) => emailChange.issueToken(request))),
    login: limited(withSecrets('login', (request) => loginCodes.issue(request))),
    email_changed: notice('email_changed'),
    new_sign_in: notice('new_sign_in'),
    second_factor_changed: notice('second_factor_changed'),
  };
}

const EVENTS = {
  verify_email: 'email_verification_requested',
  reset_password: 'password_reset_requested',
} as const;

async function proofToken(
  { db, users }: AccountMailParts,
  { address, attempt, detail }: ClaimedMail,
  purpose: keyof typeof EVENTS,
): Promise<string | undefined> {
  const account = await users.accountOf(db, address);
  if (account === undefined || account.isDisabled) return undefined;
  if (purpose === 'verify_email' && account.isVerified) return undefined;
  const { id: userId } = account;
  return db.transaction(async (tx) => {
    if (attempt === 1) await recordAudit(tx, { event: EVENTS[purpose], userId, ...detail });
    return issueProof(tx, purpose, { userId, email: address });
  });
}
