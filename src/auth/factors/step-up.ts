/** Confirms in a session that its user is present, so that rules may require a recent sign-in. */
import type { Database } from '../../database/contract.ts';
import { Problem, problemOfError } from '../../problem.ts';
import type { PasswordCheck } from '../accounts/password-check.ts';
import type { Users } from '../accounts/users.ts';
import { type RequestClient, recordAudit } from '../audit-trail.ts';
import type { Caller } from '../caller.ts';
import type { Authenticator } from '../sessions/authenticator.ts';
import type { Sessions } from '../sessions/sessions.ts';

export interface StepUpParts {
  readonly db: Database;
  readonly users: Users;
  readonly sessions: Sessions;
  readonly passwordCheck: PasswordCheck;
  readonly authenticator: Authenticator;
}

export class StepUp {
  readonly #parts: StepUpParts;

  constructor(parts: StepUpParts) {
    this.#parts = parts;
  }

  /** Returns the new `signed_in_at`. Throws `invalid_credentials`, `rate_limited`, `invalid_token`. */
  async confirm(caller: Caller, password: string, client: RequestClient): Promise<string> {
    const { db, users, passwordCheck } = this.#parts;
    const { sessionId } = caller;
    const email = (await users.byId(db, caller.principal))?.email ?? '';
    const claim = { email, password, client };
    const { account } = await passwordCheck.run(claim, { event: 'confirmation_failed', sessionId });
    if (account === undefined) throw wrong('/password', 'the password is wrong');
    return this.#renew(caller, client);
  }

  async #renew({ principal: userId, sessionId }: Caller, client: RequestClient): Promise<string> {
    const { db, sessions, authenticator } = this.#parts;
    const signedInAt = await db.transaction(async (tx) => {
      const renewed = await sessions.confirm(tx, sessionId, false);
      if (renewed === undefined) throw new Problem('invalid_token', 'the session has ended; sign in again');
      await recordAudit(tx, { event: 'sign_in_confirmed', userId, sessionId, client });
      return renewed;
    });
    await authenticator.sessionChanged(sessionId);
    return signedInAt;
  }
}

function wrong(pointer: string, detail: string): Problem {
  return problemOfError('invalid_credentials', { pointer, code: 'invalid_credentials', detail });
}
