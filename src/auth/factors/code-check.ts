/** Checks the codes of second factors within limits. A code works once. */
import type { Database, Transaction } from '../../database/contract.ts';
import { type Problem, problemOfError } from '../../problem.ts';
import type { Sql } from '../../sql.ts';
import { type RequestClient, recordAudit } from '../audit-trail.ts';
import { LimitReached } from '../limits/attempt-counter.ts';
import type { Attempt, Limiter } from '../limits/limiter.ts';
import { closingChallenge, type ReadChallenge } from './challenges.ts';
import type { FactorKey } from './factor-key.ts';
import {
  type FinishedSignIn,
  type MatchedCode,
  type SecondFactorMethod,
  spendCode,
  storedTotp,
} from './factor-rows.ts';
import { readRecoveryCode } from './recovery-codes.ts';
import { totpStep } from './totp.ts';

export interface CodeClaim {
  readonly userId: string;
  readonly code: string;
  readonly sessionId?: string | undefined;
  /** Default: any. */
  readonly method?: SecondFactorMethod | undefined;
  readonly client: RequestClient;
  /** The code finishes this sign-in, and begins its session. */
  readonly challenge?: ReadChallenge & { readonly session: Pick<FinishedSignIn, 'storing'> };
  /** Runs before a wrong code is reported. */
  readonly onWrong?: (() => Promise<void>) | undefined;
}

export interface CodeCheckParts {
  readonly db: Database;
  readonly limiter: Limiter;
  readonly factorKey: FactorKey;
}

type SpendWork<T> = (tx: Transaction, method: SecondFactorMethod) => Promise<T>;

export class CodeCheck {
  readonly #parts: CodeCheckParts;

  constructor(parts: CodeCheckParts) {
    this.#parts = parts;
  }

  /** Spends the code, and its challenge, in the transaction of `work`. Throws `invalid_credentials`, `rate_limited`. */
  spend<T>(claim: CodeClaim, work: SpendWork<T>): Promise<T> {
    const { db } = this.#parts;
    const { challenge } = claim;
    const finished = challenge && {
      closing: (isSpent: Sql) => closingChallenge(challenge, isSpent),
      storing: challenge.session.storing,
    };
    return this.attempt(claim, async (attempt) => {
      const matched = await this.#match(claim);
      if (matched === undefined) return undefined;
      await attempt.succeeded();
      return db.transaction(async (tx) => {
        const spending = await spendCode(tx, claim.userId, matched, finished);
        if (spending === 'void') throw wrongCode();
        return spending === 'spent' ? { done: await work(tx, matched.method) } : undefined;
      });
    });
  }

  /** Counts the attempt as failed if `work` returns undefined. Throws `invalid_credentials`, `rate_limited`. */
  async attempt<T>(
    claim: CodeClaim,
    work: (attempt: Attempt) => Promise<{ readonly done: T } | undefined>,
  ): Promise<T> {
    const { db, limiter } = this.#parts;
    const { userId, sessionId, client, onWrong } = claim;
    try {
      return await limiter.codeAttempt(userId, async (attempt) => {
        const outcome = await work(attempt);
        if (outcome !== undefined) return outcome.done;
        await onWrong?.();
        await attempt.failed();
        await recordAudit(db, { event: 'second_factor_failed', userId, sessionId, client });
        throw wrongCode();
      });
    } catch (error) {
      // Once per window, as for passwords.
      if (error instanceof LimitReached && error.first)
        await recordAudit(db, { event: 'login_limited', userId, client, detail: { limit: error.limit } });
      throw error;
    }
  }

  async #match({ userId, code, method, challenge }: CodeClaim): Promise<MatchedCode | undefined> {
    const { db, factorKey } = this.#parts;
    const recovery = method === 'totp' ? undefined : readRecoveryCode(code);
    if (recovery !== undefined) return { method: 'recovery', hash: await factorKey.hash(purposeOf(userId), recovery) };
    if (method === 'recovery') return undefined;
    const secret = challenge === undefined ? await confirmedSecret(db, userId) : challenge.totpSecret;
    if (secret === undefined) return undefined;
    const step = totpStep(await factorKey.unwrap(purposeOf(userId), secret), code);
    return step === undefined ? undefined : { method: 'totp', step };
  }
}

async function confirmedSecret(db: Database, userId: string): Promise<string | undefined> {
  const totp = await storedTotp(db, userId);
  return totp?.isConfirmed === true ? totp.secret : undefined;
}

/** Binds secrets and hashes to their user. */
export const purposeOf = (userId: string): string => `second factor of ${userId}`;

export const wrongCode = (): Problem =>
  problemOfError('invalid_credentials', {
    pointer: '/code',
    code: 'invalid_credentials',
    detail: 'the code is wrong, has expired, or was used before',
  });
