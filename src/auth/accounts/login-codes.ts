/**
 * Signs users in by a code or a link from a mail. An account has one live code, kept as HMAC: a hash of six
 * digits could be inverted. The first proof of an address takes every way in from a stranger who made the account.
 */

import { createHmac, randomInt, timingSafeEqual } from 'node:crypto';
import { namedCells } from '../../database/cells.ts';
import type { Transaction } from '../../database/contract.ts';
import { parseString } from '../../policy/values.ts';
import { Problem } from '../../problem.ts';
import { readVersionKey } from '../../records/versions.ts';
import { normalEmail } from '../../schema/model/normal-email.ts';
import { param, seconds, sql, text, uuid } from '../../sql.ts';
import { type RequestClient, recordAudit } from '../audit-trail.ts';
import type { ClaimedMail } from '../mail/outbox.ts';
import { hashSecret, isSecret, newSecret } from '../sessions/secrets.ts';
import type { AccountParts, Accounts, SignedIn } from './accounts.ts';
import type { Proof } from './proofs.ts';
import { claimBySignIn, dropAllWaysIn } from './ways-in.ts';

export interface LoginCodeClaim {
  readonly email: string;
  readonly code: string;
}

/** The secrets of a mail; either of them spends both. */
export interface LoginSecrets {
  readonly code: string;
  readonly token: string;
}

interface LoginCodeParts extends AccountParts {
  readonly accounts: Accounts;
  /** 32 bytes of the operator. Undefined: the key of the database. */
  readonly keySecret: Buffer | undefined;
}

/** The guest's session that the login ends, and the sender. */
interface LoginRequest {
  readonly client: RequestClient;
  readonly guest: string | undefined;
}

const DIGITS = 6;
/** Seconds. */
const CODE_LIFETIME = 600;
const MOST_TRIES = 5;

export class LoginCodes {
  readonly #parts: LoginCodeParts;
  #key: Buffer | undefined;

  constructor(parts: LoginCodeParts) {
    this.#parts = parts;
  }

  /** Hides whether the address belongs to an account. Throws `not_found` without `mail.otp`, `rate_limited`. */
  async request(email: string, client: RequestClient): Promise<void> {
    const { limiter, outbox } = this.#parts;
    this.#requireOtp();
    await limiter.mail(client);
    await outbox.add({ kind: 'login', address: normalEmail(email), detail: { client } });
  }

  /** Makes the secrets of a mail, in the place of earlier ones; undefined: the address has no enabled account. */
  async issue({ address }: ClaimedMail): Promise<LoginSecrets | undefined> {
    const { db, users } = this.#parts;
    const account = await users.accountOf(db, address);
    if (account === undefined || account.isDisabled) return undefined;
    const code = String(randomInt(10 ** DIGITS)).padStart(DIGITS, '0');
    const token = newSecret();
    const key = await this.#readKey();
    await db.run(sql`
      INSERT INTO "_auth_otp" (user_id, email, code_hmac, token_hash, tries, expires_at)
      VALUES (${uuid(account.id)}, ${text(address)}, ${text(codeHmac(key, account.id, code))},
              ${text(hashSecret(token))}, 0, now() + ${seconds(CODE_LIFETIME)})
          ON CONFLICT (user_id) DO UPDATE
         SET email = EXCLUDED.email,
             code_hmac = EXCLUDED.code_hmac,
             token_hash = EXCLUDED.token_hash,
             tries = 0,
             expires_at = EXCLUDED.expires_at`);
    return { code, token };
  }

  /** Throws `invalid_credentials` for every wrong input; `not_found`, `rate_limited`. */
  async confirmCode({ email, code }: LoginCodeClaim, { client, guest }: LoginRequest): Promise<SignedIn> {
    const userId = await this.spend({ email, code }, client);
    if (userId === undefined) throw wrongLoginCode();
    return this.#signIn({ userId, email: normalEmail(email) }, { client, guest });
  }

  /** Returns the user whose code it was, which works no more; undefined: it is wrong. Throws `not_found`, `rate_limited`. */
  spend(claim: LoginCodeClaim, client: RequestClient): Promise<string | undefined> {
    this.#requireOtp();
    return this.#parts.limiter.passwordAttempt(claim.email, client, async (attempt) => {
      const found = await this.#spendCode(claim, client, attempt.isOverLimit);
      if (found === undefined) await attempt.failed();
      else await attempt.succeeded();
      return found;
    });
  }

  /** Throws `invalid_credentials`, `not_found`, `rate_limited`. */
  async confirmToken(token: string, { client, guest }: LoginRequest): Promise<SignedIn> {
    const { db, limiter } = this.#parts;
    this.#requireOtp();
    const [cells] = isSecret(token)
      ? await db.write(sql`
          DELETE FROM "_auth_otp" o
           USING "users" u
           WHERE o.token_hash = ${text(hashSecret(token))}
             AND ${IS_LIVE}
       RETURNING u.id, u.email`)
      : [];
    if (cells === undefined) {
      await limiter.wrongToken(client);
      throw wrongLoginCode();
    }
    return this.#signIn(namedCells(cells, 'userId', 'email'), { client, guest });
  }

  #requireOtp(): void {
    if (!this.#parts.schema.mail.otp) throw new Problem('not_found', 'this service mails no codes');
  }

  /**
   * Counts the try before it compares: of concurrent tries, only five learn anything, and one is right. An unknown address
   * takes a transaction with a write as well; so does a try over the limit, which spends none of the five.
   */
  async #spendCode({ email, code }: LoginCodeClaim, client: RequestClient, isOverLimit: boolean) {
    const key = await this.#readKey();
    return this.#parts.db.transaction(async (tx) => {
      const found = parseString(email) === undefined ? undefined : await countTry(tx, normalEmail(email), isOverLimit);
      const expected = codeHmac(key, found?.userId ?? '', code);
      if (found !== undefined && isEqual(found.hmac, expected)) {
        await tx.run(sql`DELETE FROM "_auth_otp" WHERE user_id = ${uuid(found.userId)}`);
        return found.userId;
      }
      await recordAudit(tx, { event: 'login_failed', userId: found?.userId, client, detail: { reason: 'wrong_code' } });
      return undefined;
    });
  }

  async #signIn(proof: Proof, { client, guest }: LoginRequest): Promise<SignedIn> {
    const { accounts, authenticator } = this.#parts;
    let isFirstProof = false;
    const { userId } = proof;
    const outcome = await accounts.signIn({ ...proof, method: 'code', client, guest }, async (tx) => {
      isFirstProof = await this.#prove(tx, userId);
    });
    if (isFirstProof) await authenticator.userChanged(userId);
    return outcome;
  }

  /** Returns false if the address was proved before. */
  async #prove(tx: Transaction, userId: string): Promise<boolean> {
    const { users, sessions } = this.#parts;
    const isFirst = await users.proveEmail(tx, userId);
    if (!(await claimBySignIn(tx, userId)) && !isFirst) return false;
    await dropAllWaysIn(tx, userId);
    await sessions.endAll(tx, userId);
    return true;
  }

  /** Read outside of transactions, and kept. */
  async #readKey(): Promise<Buffer> {
    const { db, keySecret } = this.#parts;
    if (this.#key !== undefined) return this.#key;
    const secret = keySecret ?? (await readVersionKey(db));
    this.#key = createHmac('sha256', secret).update('bylaw login codes').digest();
    return this.#key;
  }
}

/** The user is part of the text: equal codes of two users differ. */
const codeHmac = (key: Buffer, userId: string, code: string): string =>
  createHmac('sha256', key).update(`${userId} ${code}`).digest('base64url');

/** Tests the rows `o` and `u`. */
const IS_LIVE = sql`
                 u.id = o.user_id
             AND u.email = o.email
             AND NOT u.disabled
             AND o.expires_at > now()`;

async function countTry(tx: Transaction, email: string, isOverLimit: boolean) {
  const [cells] = await tx.rows(sql`
    UPDATE "_auth_otp" o
       SET tries = o.tries + 1
      FROM "users" u
     WHERE u.email = ${text(email)}
       AND ${IS_LIVE}
       AND o.tries < ${param('int8', MOST_TRIES)}
       AND NOT ${param('bool', isOverLimit)}
 RETURNING u.id, o.code_hmac`);
  return cells && namedCells(cells, 'userId', 'hmac');
}

const isEqual = (one: string, other: string): boolean => timingSafeEqual(Buffer.from(one), Buffer.from(other));

const wrongLoginCode = (): Problem =>
  new Problem('invalid_credentials', 'the code is wrong, has expired, or was used before; ask for a new one');
