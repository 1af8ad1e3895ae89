/** Registers accounts, logs users in and out, and shows, refreshes and ends their sessions. */

import type { Database, Transaction } from '../../database/contract.ts';
import { GUEST_ROW } from '../../policy/check/guests.ts';
import { Problem } from '../../problem.ts';
import { effectiveRoles } from '../../schema/model/effective-roles.ts';
import type { Schema } from '../../schema/model/model.ts';
import { normalEmail } from '../../schema/model/normal-email.ts';
import { sql } from '../../sql.ts';
import { auditing, type RequestClient, recordAudit } from '../audit-trail.ts';
import type { Caller } from '../caller.ts';
import { type Challenged, countWrongAnswer, openChallenge, readChallenge } from '../factors/challenges.ts';
import { type CodeCheck, wrongCode } from '../factors/code-check.ts';
import { factorMethods, type SecondFactorMethod } from '../factors/factor-rows.ts';
import type { Limiter } from '../limits/limiter.ts';
import type { Outbox } from '../mail/outbox.ts';
import type { AccessTokens } from '../sessions/access-tokens.ts';
import type { Authenticator } from '../sessions/authenticator.ts';
import { keepFormerGuest } from '../sessions/former-guests.ts';
import type { NewSession, SessionRow, SessionSecrets, SessionStart, Sessions } from '../sessions/sessions.ts';
import { isNewPlace, type RecordedSignIn } from './new-sign-ins.ts';
import type { PasswordCheck, PasswordClaim } from './password-check.ts';
import { checkNewPassword, type PasswordPool } from './passwords.ts';
import { lockProved, type Proof } from './proofs.ts';
import { requireOpenRegistration } from './registration.ts';
import type { User, Users } from './users.ts';
import { VerifiedLogins } from './verified-logins.ts';
import { markClaim } from './ways-in.ts';

/** A guest where a login has its user. */
export interface Guest {
  readonly roles: readonly string[];
}

/** The response body of a login, and its cookie. */
export interface Issued {
  readonly body: {
    readonly access_token: string;
    readonly token_type: 'Bearer';
    readonly expires_in: number;
    readonly refresh_token: string;
    readonly refresh_expires_in: number;
    readonly user: User | Guest;
  };
  /** `maxAge` in seconds. */
  readonly cookie: { readonly value: string; readonly maxAge: number };
}

/** `required`: roles of the user are left out of the session until a second factor is enrolled, or a code confirmed. */
export const FACTOR_STATES = ['none', 'enrolled', 'required', 'used'] as const;
type SecondFactorState = (typeof FACTOR_STATES)[number];

export interface Me {
  readonly user: User;
  readonly second_factor: SecondFactorState;
}

/** A sign-in, or its first step where the user has a second factor. */
export type SignedIn = Issued | Challenged;

export interface ListedSession extends SessionRow {
  readonly current: boolean;
}

export interface AccountParts {
  readonly db: Database;
  readonly schema: Schema;
  readonly users: Users;
  readonly sessions: Sessions;
  readonly tokens: AccessTokens;
  readonly passwords: PasswordPool;
  readonly passwordCheck: PasswordCheck;
  readonly authenticator: Authenticator;
  readonly limiter: Limiter;
  readonly outbox: Outbox;
  /** A mail server is set, and the schema allows notices. */
  readonly sendsNotices: boolean;
  readonly codes: CodeCheck;
}

export class Accounts {
  readonly #parts: AccountParts;
  readonly #verified: VerifiedLogins;

  constructor(parts: AccountParts) {
    this.#parts = parts;
    this.#verified = new VerifiedLogins(parts);
  }

  /** Throws `registration_closed`, `validation_failed`, `email_taken`, `rate_limited`, `unavailable`. */
  async register({ email, password, client }: PasswordClaim, guest?: string): Promise<User> {
    const { db, limiter, outbox, passwords, schema, users } = this.#parts;
    requireOpenRegistration(schema);
    await limiter.register(client, email);
    checkNewPassword(password, email, '/password');
    const passwordHash = await passwords.hash(password);
    const user = { email, emailVerified: false, roles: schema.register.roles, passwordHash, isOfVisitor: true };
    const made = await users.insert(user, async (tx, userId) => {
      await this.endGuest(tx, guest, userId);
      await recordAudit(tx, { event: 'register', userId, client, detail: guestDetail(guest) });
      await this.#verified.onRegistered(tx, normalEmail(email), client);
    });
    outbox.wake();
    await this.guestEnded(guest);
    return users.shown(db, made);
  }

  /**
   * Ends the session `guest`, which the client had before. Throws `invalid_credentials` for every wrong input;
   * `email_unverified`, `rate_limited`, `unavailable`.
   */
  async login(claim: PasswordClaim, guest?: string): Promise<SignedIn> {
    const { users, passwords, passwordCheck } = this.#parts;
    const { proof, rehash } = await passwordCheck.run(claim, { event: 'login_failed' });
    if (proof === undefined) throw wrongSignIn('password');
    const start = { ...proof, method: 'password', client: claim.client, guest } as const;
    if (!rehash) return this.signIn(start);
    const passwordHash = await passwords.hash(claim.password);
    return this.signIn({ ...start, passwordHash }, (tx) => users.storeRehash(tx, proof, passwordHash));
  }

  /** Finishes a sign-in by the second factor. Throws `invalid_credentials` for every wrong input; `rate_limited`. */
  async answerChallenge({ challenge, method, code, client }: AnsweredChallenge): Promise<Issued> {
    const { db, users, codes, limiter } = this.#parts;
    const first = await readChallenge(db, users, challenge);
    if (first === undefined) {
      await limiter.wrongToken(client);
      throw wrongCode();
    }
    const { userId, guest, user } = first;
    const onWrong = (): Promise<void> => countWrongAnswer(db, first);
    const start = { userId, method: first.method, guest, client, secondFactor: true };
    const session = this.#newSession(start);
    const finished = { ...first, session };
    const begun = await codes.spend({ userId, code, method, client, challenge: finished, onWrong }, async (tx) => {
      // A reader of the mailbox who has the second factor is the owner: a later reset leaves the keys and passkeys.
      if (first.method === 'code') await markClaim(tx, userId, true);
      return this.#afterStored(tx, start, session);
    });
    return this.#begun(begun, guest, user);
  }

  /** Throws `invalid_token`, `refresh_reused`, `rate_limited`. */
  async refresh(token: string, client: RequestClient): Promise<Issued> {
    const { db, sessions, limiter, authenticator } = this.#parts;
    await limiter.refresh(client);
    const refreshed = await db.transaction(async (tx) => {
      const outcome = await sessions.refresh(tx, token);
      if (outcome.outcome === 'reused') {
        const { principal: userId, sessionId } = outcome;
        await recordAudit(tx, { event: 'refresh_reused', userId, sessionId, client });
      }
      return outcome;
    });
    switch (refreshed.outcome) {
      case 'ok':
        return this.issue(refreshed.secrets);
      case 'unknown':
        throw new Problem('invalid_token', 'the refresh token is not valid or has expired');
      case 'reused':
        await authenticator.sessionEnded(refreshed.sessionId);
        throw new Problem('refresh_reused', 'this refresh token was used before; its session has ended, sign in again');
    }
  }

  async logout({ principal: userId, sessionId }: Caller, client: RequestClient): Promise<void> {
    const { db, sessions, authenticator } = this.#parts;
    await db.transaction(async (tx) => {
      await sessions.end(tx, sessionId, userId);
      await recordAudit(tx, { event: 'logout', userId, sessionId, client });
    });
    await authenticator.sessionEnded(sessionId);
  }

  /** Reads the caller now, as every route shows users. */
  async me(caller: Caller): Promise<Me> {
    const { db, users } = this.#parts;
    const user = await users.byId(db, caller.principal);
    if (user === undefined) throw new Problem('unauthenticated', 'the user no longer exists');
    return { user: await users.shown(db, user, caller.auth), second_factor: await this.#factorOf(caller, user) };
  }

  async #factorOf({ auth }: Caller, { id, roles }: User): Promise<SecondFactorState> {
    const { db, schema } = this.#parts;
    if (auth.second_factor === true) return 'used';
    if (effectiveRoles(schema, roles).some((name) => schema.secondFactorRoles.has(name))) return 'required';
    return (await factorMethods(db, id)).length > 0 ? 'enrolled' : 'none';
  }

  /** Lists the caller's own sessions, newest first. */
  async sessions(caller: Caller): Promise<readonly ListedSession[]> {
    const { db, sessions } = this.#parts;
    const rows = await sessions.list(db, caller.principal);
    return rows.map((row) => ({ ...row, current: row.id === caller.sessionId }));
  }

  /** Throws `not_found` for a session that is not the caller's own. */
  async endSession(caller: Caller, id: string, client: RequestClient): Promise<void> {
    const { db, sessions, authenticator } = this.#parts;
    await db.transaction(async (tx) => {
      if (!(await sessions.end(tx, id, caller.principal))) throw new Problem('not_found', 'you have no such session');
      await recordAudit(tx, { event: 'session_ended', userId: caller.principal, sessionId: id, client });
    });
    await authenticator.sessionEnded(id);
  }

  /** Starts the session of a guest. Throws `not_found` if the schema admits none; `rate_limited`. */
  async beGuest(client: RequestClient): Promise<SignedIn> {
    const { schema, limiter } = this.#parts;
    if (!schema.guests) throw new Problem('not_found', 'this service admits no guests');
    await limiter.guest(client);
    return this.signIn({ userId: undefined, method: 'guest', client });
  }

  /**
   * `start.userId`: a user who has been identified. A second factor makes it a challenge instead of a session.
   * `also` is part of the transaction. Throws `email_unverified`; `invalid_credentials` if the account or what the user
   * proved has changed since.
   */
  async signIn(start: SignInStart, also?: (tx: Transaction) => Promise<void>): Promise<SignedIn> {
    const { userId, method, client } = start;
    // A code by mail verifies the address.
    if (userId !== undefined && method !== 'code') await this.#verified.check(userId, client);
    const { db } = this.#parts;
    try {
      const outcome = await db.transaction(async (tx) => {
        await also?.(tx);
        return (await this.#challenge(tx, start)) ?? this.#begin(tx, start);
      });
      return 'challenge' in outcome ? outcome : await this.#begun(outcome, start.guest);
    } catch (error) {
      if (!(error instanceof ProofLost)) throw error;
      await recordAudit(db, { event: 'login_failed', userId, client, detail: { reason: 'account_changed' } });
      throw wrongSignIn(method);
    }
  }

  async #challenge(tx: Transaction, start: SignInStart): Promise<Challenged | undefined> {
    const { userId, method, secondFactor, guest, client } = start;
    if (userId === undefined) return undefined;
    const methods = await lockProved(tx, { ...start, userId });
    if (methods === undefined) throw new ProofLost();
    if (secondFactor === true || methods.length === 0) return undefined;
    return openChallenge(tx, { userId, method, guest }, { methods, client });
  }

  async #begin(tx: Transaction, start: SignInStart): Promise<BegunSession> {
    const session = this.#newSession(start);
    await tx.run(sql`WITH ${session.storing()} SELECT 1`);
    return this.#afterStored(tx, start, session);
  }

  #newSession({ guest, ...start }: SignInStart): NewSession {
    const { method, client } = start;
    const [event, detail] = [SIGN_IN_EVENTS[method], signInDetail(start, guest)];
    return this.#parts.sessions.make(start, ({ principal: userId, sessionId }, from) =>
      auditing({ event, userId, sessionId, client, detail }, from),
    );
  }

  /** The rest of the transaction that stores a session. */
  async #afterStored(tx: Transaction, start: SignInStart, { secrets }: NewSession): Promise<BegunSession> {
    const { userId, guest, client } = start;
    await this.endGuest(tx, guest, userId);
    const { sessionId } = secrets;
    return { secrets, isNotified: userId !== undefined && (await this.#notify(tx, { userId, sessionId, client })) };
  }

  /** After the commit. `user`: as it was read just before. */
  async #begun({ secrets, isNotified }: BegunSession, guest: string | undefined, user?: User): Promise<Issued> {
    if (isNotified) this.#parts.outbox.wake();
    await this.guestEnded(guest);
    return this.issue(secrets, user);
  }

  /** Informs the user of a sign-in from a new place. The caller wakes the outbox after the commit, if it returns true. */
  async #notify(tx: Transaction, signIn: RecordedSignIn): Promise<boolean> {
    const { users, outbox, sendsNotices } = this.#parts;
    if (!sendsNotices || !(await isNewPlace(tx, signIn))) return false;
    const { email } = await users.known(tx, signIn.userId);
    await outbox.insert(tx, { kind: 'new_sign_in', address: email, detail: { client: signIn.client } });
    return true;
  }

  /** Ends the session of a guest that another one follows. Announce it by `guestEnded` after the commit. */
  async endGuest(tx: Transaction, guest: string | undefined, userId: string | undefined): Promise<void> {
    if (guest === undefined || userId === undefined) return;
    if (await this.#parts.sessions.end(tx, guest, guest)) await keepFormerGuest(tx, userId, guest);
  }

  async guestEnded(guest: string | undefined): Promise<void> {
    if (guest !== undefined) await this.#parts.authenticator.sessionEnded(guest);
  }

  /** `user`: if it was read already. */
  async issue(secrets: SessionSecrets, user?: User): Promise<Issued> {
    const { schema, tokens } = this.#parts;
    const { principal: userId, sessionId, cookie, refreshToken, expiresIn } = secrets;
    const lifetime = Math.min(schema.sessions.access, secrets.endsIn);
    const expires = Math.floor(Date.now() / 1000) + lifetime;
    return {
      body: {
        access_token: await tokens.sign({ userId, sessionId, expires }),
        token_type: 'Bearer',
        expires_in: lifetime,
        refresh_token: refreshToken,
        refresh_expires_in: expiresIn,
        user: await this.#shownUser(secrets, user),
      },
      cookie: { value: cookie, maxAge: expiresIn },
    };
  }

  async #shownUser({ kind, principal, secondFactor, signedInAt }: SessionSecrets, known?: User): Promise<User | Guest> {
    const { db, users } = this.#parts;
    if (kind === 'guest') return { roles: GUEST_ROW.roles };
    const user = known ?? (await users.byId(db, principal));
    if (user === undefined) throw new Problem('invalid_token', 'the user no longer exists');
    return users.shown(db, user, users.caller(user, { secondFactor, signedInAt }));
  }
}

export interface AnsweredChallenge {
  readonly challenge: string;
  readonly method: SecondFactorMethod;
  readonly code: string;
  readonly client: RequestClient;
}

interface SignInStart extends SessionStart, Omit<Proof, 'userId'> {
  /** The session of a guest, which the sign-in ends. */
  readonly guest?: string | undefined;
}

/** Undoes the transaction of a sign-in. */
class ProofLost extends Error {}

/** Hides whether the account changed before or after the proof. */
export const wrongSignIn = (method: SessionStart['method']): Problem =>
  new Problem(
    'invalid_credentials',
    method === 'password' ? 'the email or the password is wrong' : 'the sign-in is not valid any more; start again',
  );

interface BegunSession {
  readonly secrets: SessionSecrets;
  /** A mail waits. */
  readonly isNotified: boolean;
}

const SIGN_IN_EVENTS = {
  password: 'login',
  code: 'login',
  oauth: 'oauth_login',
  passkey: 'passkey_login',
  guest: 'guest_started',
} as const;

const signInDetail = ({ method }: SessionStart, guest: string | undefined) =>
  method === 'code' ? { method, ...guestDetail(guest) } : guestDetail(guest);

const guestDetail = (guest: string | undefined) => (guest === undefined ? undefined : { guest });
