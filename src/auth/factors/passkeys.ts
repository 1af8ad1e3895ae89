/** Registers passkeys, and signs in with them: the authenticator has verified the user, so no other factor is asked. */

import type { Database } from '../../database/contract.ts';
import { Problem, problemOfError } from '../../problem.ts';
import type { Schema } from '../../schema/model/model.ts';
import type { Accounts, SignedIn } from '../accounts/accounts.ts';
import type { Users } from '../accounts/users.ts';
import { type RequestClient, recordAudit } from '../audit-trail.ts';
import type { Caller } from '../caller.ts';
import type { Limiter } from '../limits/limiter.ts';
import { isLoopback } from '../loopback.ts';
import type { Outbox } from '../mail/outbox.ts';
import { recordFactorChange } from './factor-change.ts';
import {
  type AuthenticationResponse,
  type CreationOptions,
  creationOptions,
  type RegistrationResponse,
  type RelyingParty,
  type RequestOptions,
  requestOptions,
  verifiedCounter,
  verifiedCredential,
} from './passkey-ceremony.ts';
import {
  countUse,
  credentialIdsOf,
  deletePasskey,
  findCredential,
  hasWayIn,
  insertPasskey,
  keepChallenge,
  lockUser,
  passkeysOf,
  type StoredPasskey,
  storePasskeyName,
  takeChallenge,
} from './passkey-rows.ts';
import { requireUsedFactor } from './used-factor.ts';

export interface PasskeyParts {
  readonly db: Database;
  readonly schema: Schema;
  readonly users: Users;
  readonly limiter: Limiter;
  readonly outbox: Outbox;
  readonly accounts: Accounts;
  readonly baseUrl: () => string;
}

export interface NewPasskey {
  readonly name: string;
  readonly response: RegistrationResponse;
  readonly client: RequestClient;
}

export interface PasskeyLogin {
  readonly response: AuthenticationResponse;
  readonly client: RequestClient;
  /** The session of a guest, which the login ends. */
  readonly guest: string | undefined;
}

const MAX_PASSKEYS = 20;

export class Passkeys {
  readonly #parts: PasskeyParts;

  constructor(parts: PasskeyParts) {
    this.#parts = parts;
  }

  list({ principal }: Caller): Promise<readonly StoredPasskey[]> {
    return passkeysOf(this.#parts.db, principal);
  }

  /** Throws `forbidden` in a session that lacks the second factor of its user; `too_many`. */
  async creationOptions(caller: Caller): Promise<CreationOptions> {
    const { db, users } = this.#parts;
    const { principal: id } = caller;
    const user = await users.byId(db, id);
    if (user === undefined) throw new Problem('unauthenticated', 'the user no longer exists');
    await requireUsedFactor(db, caller);
    const known = await credentialIdsOf(db, id);
    if (known.length >= MAX_PASSKEYS) throw tooMany();
    const options = await creationOptions(this.#party(), { id, email: user.email, known });
    await keepChallenge(db, options.challenge, id);
    return options;
  }

  /** Throws `forbidden`, `too_many`, `validation_failed`. */
  async add(caller: Caller, { name, response, client }: NewPasskey): Promise<StoredPasskey> {
    const { db, outbox } = this.#parts;
    const { principal: userId, sessionId } = caller;
    await requireUsedFactor(db, caller);
    const credential = await verifiedCredential(this.#party(), response, (given) => takeChallenge(db, given, userId));
    if (credential === undefined) throw badResponse();
    const made = await db.transaction(async (tx) => {
      await lockUser(tx, userId);
      if ((await credentialIdsOf(tx, userId)).length >= MAX_PASSKEYS) throw tooMany();
      const passkey = await insertPasskey(tx, userId, { name, ...credential });
      if (passkey === undefined) throw badResponse();
      await recordFactorChange(tx, this.#parts, {
        event: 'passkey_added',
        userId,
        sessionId,
        client,
        detail: { passkey: passkey.id },
      });
      return passkey;
    });
    outbox.wake();
    return made;
  }

  /** Throws `not_found`. */
  async rename({ principal }: Caller, id: string, name: string): Promise<StoredPasskey> {
    const renamed = await storePasskeyName(this.#parts.db, principal, id, name);
    if (renamed === undefined) throw noPasskey();
    return renamed;
  }

  /** Throws `not_found`, `last_credential`. */
  async remove({ principal: userId, sessionId }: Caller, id: string, client: RequestClient): Promise<void> {
    const { db, outbox } = this.#parts;
    await db.transaction(async (tx) => {
      await lockUser(tx, userId);
      if (!(await deletePasskey(tx, userId, id))) throw noPasskey();
      if (!(await hasWayIn(tx, userId)))
        throw new Problem('last_credential', 'this passkey is your last way to sign in; set a password first');
      await recordFactorChange(tx, this.#parts, {
        event: 'passkey_removed',
        userId,
        sessionId,
        client,
        detail: { passkey: id },
      });
    });
    outbox.wake();
  }

  /** Says nothing of any account. Throws `rate_limited`. */
  async requestOptions(client: RequestClient): Promise<RequestOptions> {
    const { db, limiter } = this.#parts;
    await limiter.refresh(client);
    const options = await requestOptions(this.#party());
    await keepChallenge(db, options.challenge);
    return options;
  }

  /** Throws `invalid_credentials` for every wrong response; `email_unverified`, `rate_limited`. */
  async login({ response, client, guest }: PasskeyLogin): Promise<SignedIn> {
    const { db, limiter, accounts } = this.#parts;
    await limiter.refresh(client);
    const known = await findCredential(db, response.id);
    if (known === undefined || !isHandleOf(response, known.userId)) throw wrongPasskey();
    const { id, userId } = known;
    const counter = await verifiedCounter(this.#party(), known, response, (given) => takeChallenge(db, given));
    if (counter === undefined) throw wrongPasskey();
    try {
      return await accounts.signIn({ userId, method: 'passkey', secondFactor: true, client, guest }, async (tx) => {
        if (!(await countUse(tx, id, counter))) throw new CounterWentBack();
      });
    } catch (error) {
      if (!(error instanceof CounterWentBack)) throw error;
      await recordAudit(db, { event: 'passkey_counter_went_back', userId, client, detail: { passkey: id } });
      throw wrongPasskey();
    }
  }

  /** Browsers take `localhost`, but no address, for the site of a passkey. */
  #party(): RelyingParty {
    const { schema, baseUrl } = this.#parts;
    const site = new URL(baseUrl());
    if (isLoopback(site.hostname)) site.hostname = 'localhost';
    const { id = site.hostname, name = site.host, origins = [site.origin] } = schema.passkeys;
    return { id, name, origins };
  }
}

class CounterWentBack extends Error {}

/** The handle that the authenticator keeps is the id of the user. */
const isHandleOf = ({ response: { userHandle } }: AuthenticationResponse, userId: string): boolean =>
  userHandle === undefined || Buffer.from(userHandle, 'base64url').toString('utf8') === userId;

const noPasskey = (): Problem => new Problem('not_found', 'you have no such passkey');
const tooMany = (): Problem => new Problem('too_many', `you have ${MAX_PASSKEYS} passkeys; remove one first`);
const wrongPasskey = (): Problem =>
  new Problem('invalid_credentials', 'the passkey is unknown, or its response is not valid');

function badResponse(): Problem {
  const detail = 'the response is not valid, or its options have expired; ask for new options';
  return problemOfError('validation_failed', { pointer: '/response', code: 'invalid_value', detail });
}
