/** Enrols, renews and removes the second factor of a user. */
import type { Database, Transaction } from '../../database/contract.ts';
import { Problem, problemOfError } from '../../problem.ts';
import type { PasswordCheck } from '../accounts/password-check.ts';
import { lockProved } from '../accounts/proofs.ts';
import type { Users } from '../accounts/users.ts';
import { type AuditEntry, type RequestClient, recordAudit } from '../audit-trail.ts';
import type { Caller } from '../caller.ts';
import type { Outbox } from '../mail/outbox.ts';
import type { Authenticator } from '../sessions/authenticator.ts';
import type { Sessions } from '../sessions/sessions.ts';
import { type CodeCheck, purposeOf } from './code-check.ts';
import { recordFactorChange } from './factor-change.ts';
import type { FactorKey } from './factor-key.ts';
import {
  deleteFactors,
  factorMethods,
  insertTotp,
  replaceRecoveryCodes,
  storeConfirmedTotp,
  storedTotp,
} from './factor-rows.ts';
import { newRecoveryCodes } from './recovery-codes.ts';
import { newTotpSecret, totpStep, totpUri } from './totp.ts';

export interface SecondFactorParts {
  readonly db: Database;
  readonly users: Users;
  readonly sessions: Sessions;
  readonly passwordCheck: PasswordCheck;
  readonly authenticator: Authenticator;
  readonly factorKey: FactorKey;
  readonly codes: CodeCheck;
  readonly outbox: Outbox;
  readonly baseUrl: () => string;
}

export interface TotpEnrolment {
  /** In base32, for people who type it. */
  readonly secret: string;
  readonly uri: string;
  /** An SVG of the URI. */
  readonly qr: string;
}

/** A proof that the user is present. */
export type FactorProof = { readonly code: string } | { readonly password: string };

export class SecondFactors {
  readonly #parts: SecondFactorParts;

  constructor(parts: SecondFactorParts) {
    this.#parts = parts;
  }

  async isEnrolled({ principal }: Caller): Promise<boolean> {
    return (await factorMethods(this.#parts.db, principal)).length > 0;
  }

  /** Makes a secret, which counts once a code of it is confirmed. Throws `too_many` if the user has a second factor. */
  async enrol({ principal: userId }: Caller): Promise<TotpEnrolment> {
    const { db, users, factorKey, baseUrl } = this.#parts;
    const user = await users.byId(db, userId);
    if (user === undefined) throw new Problem('unauthenticated', 'the user no longer exists');
    const secret = newTotpSecret();
    if (!(await insertTotp(db, userId, await factorKey.wrap(purposeOf(userId), secret)))) throw enrolled();
    return { secret, ...totpUri(secret, { issuer: new URL(baseUrl()).host, email: user.email }) };
  }

  /** Returns the recovery codes. Throws `invalid_credentials`, `rate_limited`, `too_many`. */
  async confirm(caller: Caller, code: string, client: RequestClient): Promise<readonly string[]> {
    const { db, sessions, authenticator, factorKey, codes, outbox } = this.#parts;
    const { principal: userId, sessionId } = caller;
    const stored = await storedTotp(db, userId);
    if (stored?.isConfirmed === true) throw enrolled();
    const recovery = await this.#newCodes(userId);
    await codes.attempt({ userId, code, sessionId, client }, async (attempt) => {
      if (stored === undefined) return undefined;
      const step = totpStep(await factorKey.unwrap(purposeOf(userId), stored.secret), code);
      if (step === undefined) return undefined;
      await attempt.succeeded();
      return db.transaction(async (tx) => {
        if (!(await storeConfirmedTotp(tx, userId, stored, step))) return undefined;
        await replaceRecoveryCodes(tx, userId, recovery.hashes);
        await sessions.confirm(tx, sessionId, true);
        await recordFactorChange(tx, this.#parts, { event: 'second_factor_enrolled', userId, sessionId, client });
        return { done: true };
      });
    });
    outbox.wake();
    await authenticator.userChanged(userId);
    return recovery.codes;
  }

  /** Returns new recovery codes; the old ones work no longer. Throws `invalid_credentials`, `rate_limited`. */
  async renewRecovery({ principal: userId, sessionId }: Caller, code: string, client: RequestClient) {
    const recovery = await this.#newCodes(userId);
    await this.#parts.codes.spend({ userId, code, sessionId, client }, async (tx) => {
      await replaceRecoveryCodes(tx, userId, recovery.hashes);
      await recordAudit(tx, { event: 'recovery_codes_renewed', userId, sessionId, client });
    });
    return recovery.codes;
  }

  /** Throws `invalid_credentials`, `rate_limited`, `not_found`. */
  async remove(caller: Caller, proof: FactorProof, client: RequestClient): Promise<void> {
    const { principal: userId, sessionId } = caller;
    await this.proved(caller, proof, client, (tx) =>
      this.#delete(tx, { event: 'second_factor_removed', userId, sessionId, client }),
    );
    await this.#deleted(userId);
  }

  /** For a user who has lost the device. Throws `not_found`. */
  async reset(userId: string, by: Pick<AuditEntry, 'actorId' | 'client'>): Promise<void> {
    await this.#parts.db.transaction((tx) => this.#delete(tx, { event: 'second_factor_reset', userId, ...by }));
    await this.#deleted(userId);
  }

  /** Runs `work` in one transaction with the proof. Throws `invalid_credentials`, `rate_limited`. */
  async proved<T>(
    { principal: userId, sessionId }: Caller,
    proof: FactorProof,
    client: RequestClient,
    work: (tx: Transaction, byCode: boolean) => Promise<T>,
  ): Promise<T> {
    const { db, users, passwordCheck, codes } = this.#parts;
    if ('code' in proof) return codes.spend({ userId, code: proof.code, sessionId, client }, (tx) => work(tx, true));
    const email = (await users.byId(db, userId))?.email ?? '';
    const claim = { email, password: proof.password, client };
    const { proof: matched } = await passwordCheck.run(claim, { event: 'confirmation_failed', sessionId });
    if (matched === undefined) throw wrongPassword();
    return db.transaction(async (tx) => {
      if ((await lockProved(tx, matched)) === undefined) throw wrongPassword();
      return work(tx, false);
    });
  }

  async #delete(tx: Transaction, entry: AuditEntry & { readonly userId: string }): Promise<void> {
    if (!(await deleteFactors(tx, entry.userId))) throw new Problem('not_found', 'the user has no second factor');
    await recordFactorChange(tx, this.#parts, entry);
  }

  async #deleted(userId: string): Promise<void> {
    const { outbox, authenticator } = this.#parts;
    outbox.wake();
    await authenticator.userChanged(userId);
  }

  async #newCodes(userId: string): Promise<{ readonly codes: readonly string[]; readonly hashes: readonly string[] }> {
    const { factorKey } = this.#parts;
    const codes = newRecoveryCodes();
    return { codes, hashes: await Promise.all(codes.map((code) => factorKey.hash(purposeOf(userId), code))) };
  }
}

const enrolled = (): Problem => new Problem('too_many', 'you have a second factor; remove it before you enrol another');

function wrongPassword(): Problem {
  const detail = 'the password is wrong';
  return problemOfError('invalid_credentials', { pointer: '/password', code: 'invalid_credentials', detail });
}
