/** Changes the address of an account: the new mailbox proves itself by a token, and the old one is informed. */
import { namedCells } from '../../database/cells.ts';
import { StoreError, type Transaction } from '../../database/contract.ts';
import { Problem, problemOfError } from '../../problem.ts';
import { normalEmail } from '../../schema/model/normal-email.ts';
import { sql, text, uuid } from '../../sql.ts';
import { type RequestClient, recordAudit } from '../audit-trail.ts';
import type { Caller } from '../caller.ts';
import { dropProofs, issueProof, isValidProof } from '../mail/email-tokens.ts';
import type { ClaimedMail } from '../mail/outbox.ts';
import { isSecret } from '../sessions/secrets.ts';
import type { AccountParts } from './accounts.ts';
import type { LoginCodes } from './login-codes.ts';
import { lockProved, type Proof } from './proofs.ts';
import { emailTaken, type User } from './users.ts';
import { markClaim } from './ways-in.ts';

export interface EmailChangeRequest {
  readonly email: string;
  /** Proves that the owner of the account asks: the password, or a code of a mail to the present address. */
  readonly proof: { readonly password: string } | { readonly code: string };
  readonly client: RequestClient;
}

interface EmailChangeParts extends Omit<AccountParts, 'schema' | 'tokens'> {
  readonly loginCodes: LoginCodes;
}

const PURPOSE = 'change_email';

export class EmailChange {
  readonly #parts: EmailChangeParts;

  constructor(parts: EmailChangeParts) {
    this.#parts = parts;
  }

  /**
   * Hides whether the new address belongs to an account: then the mail is left out. Throws `invalid_credentials`,
   * `validation_failed`, `rate_limited`.
   */
  async request({ principal, sessionId }: Caller, { email, proof, client }: EmailChangeRequest): Promise<void> {
    const { db, users, limiter, outbox } = this.#parts;
    const user = await users.byId(db, principal);
    if (user === undefined) throw new Problem('unauthenticated', 'the user no longer exists');
    const given = await this.#checkOwner(user, proof, { client, sessionId });
    const address = normalEmail(email);
    if (address === user.email) throw invalidEmail('this is the address of your account already');
    await limiter.mail(client);
    const detail = { client, sessionId, userId: user.id };
    await db.transaction(async (tx) => {
      if ((await lockProved(tx, given)) === undefined) throw wrongProof(proof);
      await outbox.insert(tx, { kind: 'email_change', address, detail });
      await outbox.insert(tx, {
        kind: 'email_changed',
        address: user.email,
        detail: { newEmail: address, isDone: false },
      });
      await recordAudit(tx, { event: 'email_change_requested', userId: user.id, sessionId, client });
    });
    outbox.wake();
  }

  /**
   * Makes the token of a mail, in the place of an earlier one; undefined: the address is taken, the account is over, or
   * its password was changed after the request.
   */
  async issueToken({ address, detail, createdAt }: ClaimedMail): Promise<string | undefined> {
    const { db, users } = this.#parts;
    const user = detail.userId === undefined ? undefined : await users.byId(db, detail.userId);
    if (user === undefined || (await users.byEmail(db, address)) !== undefined) return undefined;
    return db.transaction(async (tx) => {
      if (!(await hasPasswordOf(tx, user.id, createdAt))) return undefined;
      await dropProofs(tx, PURPOSE, user.id);
      return issueProof(tx, PURPOSE, { userId: user.id, email: user.email }, address);
    });
  }

  /** Ends all sessions but `caller`'s, if it is the user's. Throws `validation_failed`, `email_taken`, `rate_limited`. */
  async confirm(token: string, caller: Caller | undefined, client: RequestClient): Promise<void> {
    const { db, authenticator, limiter, outbox } = this.#parts;
    try {
      const userId = await db.transaction((tx) => this.#change(tx, token, { caller, client }));
      if (userId === undefined) {
        await limiter.wrongToken(client);
        throw badChange();
      }
      outbox.wake();
      await authenticator.userChanged(userId);
    } catch (error) {
      throw error instanceof StoreError && error.kind === 'unique' ? emailTaken(error) : error;
    }
  }

  async #change(tx: Transaction, token: string, { caller, client }: Confirmation): Promise<string | undefined> {
    const used = isSecret(token) ? await useChange(tx, token) : undefined;
    if (used === undefined) return undefined;
    const { userId } = used;
    const kept = caller?.principal === userId ? caller.sessionId : undefined;
    await moveAccount(tx, this.#parts, { ...used, kept, client });
    // Outside of a session of the account, its reader may be another person than the one who asked.
    await markClaim(tx, userId, kept !== undefined);
    return userId;
  }

  async #checkOwner(
    { email, id }: User,
    proof: EmailChangeRequest['proof'],
    { client, sessionId }: { readonly client: RequestClient; readonly sessionId: string },
  ): Promise<Proof> {
    const { passwordCheck, loginCodes } = this.#parts;
    if ('code' in proof) {
      if ((await loginCodes.spend({ email, code: proof.code }, client)) !== id) throw wrongProof(proof);
      return { userId: id, email };
    }
    const claim = { email, password: proof.password, client };
    const { proof: matched } = await passwordCheck.run(claim, { event: 'email_change_failed', sessionId });
    if (matched === undefined) throw wrongProof(proof);
    return matched;
  }
}

interface AddressChange {
  readonly userId: string;
  readonly from: string;
  readonly to: string;
  /** The session that goes on. */
  readonly kept?: string | undefined;
  /** Undefined: the operator, at the command line. */
  readonly client?: RequestClient;
}

/** Changes the address, ends the sessions and the tokens of mails, and informs the old address. */
export async function moveAccount(
  tx: Transaction,
  { users, sessions, outbox }: Pick<AccountParts, 'users' | 'sessions' | 'outbox'>,
  { userId, from, to, kept, client }: AddressChange,
): Promise<void> {
  await users.changeEmail(tx, userId, to);
  for (const purpose of ['verify_email', 'reset_password', PURPOSE] as const) await dropProofs(tx, purpose, userId);
  await sessions.endAll(tx, userId, kept);
  await outbox.insert(tx, { kind: 'email_changed', address: from, detail: { newEmail: to, isDone: true } });
  await recordAudit(tx, { event: 'email_changed', userId, client, detail: { from, to } });
}

interface Confirmation {
  readonly caller: Caller | undefined;
  readonly client: RequestClient;
}

/** Locks the account, so that a change of its password drops the token that follows. */
async function hasPasswordOf(tx: Transaction, userId: string, at: string): Promise<boolean> {
  const rows = await tx.rows(sql`
    SELECT 1
      FROM "_auth_accounts"
     WHERE user_id = ${uuid(userId)}
       AND (password_changed_at IS NULL OR password_changed_at <= ${text(at)}::timestamptz)
       FOR UPDATE`);
  return rows.length > 0;
}

async function useChange(tx: Transaction, token: string) {
  const [cells] = await tx.rows(sql`
    DELETE FROM "_auth_email_tokens" t
     USING "users" u
     WHERE ${isValidProof(PURPOSE, token)}
       AND t.new_email IS NOT NULL
 RETURNING u.id, u.email, t.new_email`);
  return cells && namedCells(cells, 'userId', 'from', 'to');
}

function invalidEmail(detail: string): Problem {
  return problemOfError('validation_failed', { pointer: '/email', code: 'invalid_value', detail });
}

function wrongProof(proof: EmailChangeRequest['proof']): Problem {
  const [pointer, detail] =
    'password' in proof
      ? ['/password', 'the password is wrong']
      : ['/code', 'the code is wrong, has expired, or was used before'];
  return problemOfError('invalid_credentials', { pointer, code: 'invalid_credentials', detail });
}

function badChange(): Problem {
  const detail = 'the token is not valid, has expired, or was used before; ask for the change again';
  return problemOfError('validation_failed', { pointer: '/token', code: 'invalid_token', detail });
}
