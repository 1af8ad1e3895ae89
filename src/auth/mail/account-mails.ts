/** Writes the mail of each request, from what the accounts are when it is sent. */
import type { Database } from '../../database/contract.ts';
import type { Schema } from '../../schema/model/model.ts';
import type { EmailChange } from '../accounts/email-change.ts';
import type { Invitations } from '../accounts/invitations.ts';
import type { LoginCodes } from '../accounts/login-codes.ts';
import type { Users } from '../accounts/users.ts';
import { recordAudit } from '../audit-trail.ts';
import { issueProof } from './email-tokens.ts';
import type { Composer } from './mail-sender.ts';
import { factorNotice, type MailSecrets, noticeMail, type SecretKind, secretMail } from './mail-text.ts';
import type { ClaimedMail, MailKind } from './outbox.ts';

export interface AccountMailParts {
  readonly db: Database;
  readonly schema: Schema;
  readonly users: Users;
  readonly invitations: Invitations;
  readonly loginCodes: LoginCodes;
  readonly emailChange: EmailChange;
  readonly baseUrl: () => string;
}

/** Makes the secrets of a mail; undefined: the address gets none. */
type SecretMaker = (request: ClaimedMail) => Promise<MailSecrets | undefined>;
type TokenMaker = (request: ClaimedMail) => Promise<string | undefined>;

export function accountMails(parts: AccountMailParts): Readonly<Record<MailKind, Composer>> {
  const { schema, invitations, loginCodes, emailChange, baseUrl } = parts;
  const withSecrets =
    (kind: SecretKind, make: SecretMaker): Composer =>
    async (request) => {
      const secrets = await make(request);
      return secrets && secretMail({ kind, to: request.address, ...secrets }, schema.mail, baseUrl());
    };
  const withToken = (kind: SecretKind, make: TokenMaker): Composer =>
    withSecrets(kind, async (request) => {
      const token = await make(request);
      return token === undefined ? undefined : { token };
    });
  return {
    verify: withToken('verify', (request) => proofToken(parts, request, 'verify_email')),
    reset: withToken('reset', (request) => proofToken(parts, request, 'reset_password')),
    invite: withToken('invite', (request) => invitations.issueToken(request)),
    email_change: withToken('email_change', (request) => emailChange.issueToken(request)),
    email_changed: async (request) => noticeMail(request, schema.mail, baseUrl()),
    second_factor_changed: async ({ address }) => factorNotice(address, schema.mail, baseUrl()),
    login: withSecrets('login', (request) => loginCodes.issue(request)),
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
