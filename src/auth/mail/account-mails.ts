/** Writes the mail of each request, from what the accounts are when it is sent. */
import type { Database } from '../../database/contract.ts';
import type { Schema } from '../../schema/model/model.ts';
import type { Invitations } from '../accounts/invitations.ts';
import type { Users } from '../accounts/users.ts';
import { recordAudit } from '../audit-trail.ts';
import { issueProof, type Purpose } from './email-tokens.ts';
import type { Composer } from './mail-sender.ts';
import { factorNotice, tokenMail } from './mail-text.ts';
import type { ClaimedMail, MailKind, TokenMailKind } from './outbox.ts';

export interface AccountMailParts {
  readonly db: Database;
  readonly schema: Schema;
  readonly users: Users;
  readonly invitations: Invitations;
  readonly baseUrl: () => string;
}

/** Makes the token of a mail; undefined: the address gets none. */
type TokenMaker = (request: ClaimedMail) => Promise<string | undefined>;

export function accountMails(parts: AccountMailParts): Readonly<Record<MailKind, Composer>> {
  const { schema, invitations, baseUrl } = parts;
  const withToken =
    (kind: TokenMailKind, makeToken: TokenMaker): Composer =>
    async (request) => {
      const token = await makeToken(request);
      const { address } = request;
      return token === undefined ? undefined : tokenMail({ kind, to: address, token }, schema.mail, baseUrl());
    };
  return {
    verify: withToken('verify', (request) => proofToken(parts, request, 'verify_email')),
    reset: withToken('reset', (request) => proofToken(parts, request, 'reset_password')),
    invite: withToken('invite', (request) => invitations.issueToken(request)),
    second_factor_changed: async ({ address }) => factorNotice(address, schema.mail, baseUrl()),
  };
}

const EVENTS = {
  verify_email: 'email_verification_requested',
  reset_password: 'password_reset_requested',
} as const satisfies Record<Purpose, string>;

async function proofToken(
  { db, users }: AccountMailParts,
  { address, attempt, detail }: ClaimedMail,
  purpose: Purpose,
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
