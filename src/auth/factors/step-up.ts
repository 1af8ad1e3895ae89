/** Confirms in a session that its user is present, so that rules may require a recent sign-in. */
import { Problem } from '../../problem.ts';
import { type RequestClient, recordAudit } from '../audit-trail.ts';
import type { Caller } from '../caller.ts';
import type { Authenticator } from '../sessions/authenticator.ts';
import type { Sessions } from '../sessions/sessions.ts';
import type { FactorProof, SecondFactors } from './second-factors.ts';

export interface StepUpParts {
  readonly sessions: Sessions;
  readonly authenticator: Authenticator;
  readonly secondFactors: SecondFactors;
}

export class StepUp {
  readonly #parts: StepUpParts;

  constructor(parts: StepUpParts) {
    this.#parts = parts;
  }

  /** Returns the new `signed_in_at`. Throws `invalid_credentials`, `rate_limited`, `invalid_token`. */
  async confirm(caller: Caller, proof: FactorProof, client: RequestClient): Promise<string> {
    const { sessions, authenticator, secondFactors } = this.#parts;
    const { principal: userId, sessionId } = caller;
    const signedInAt = await secondFactors.proved(caller, proof, client, async (tx, byCode) => {
      const renewed = await sessions.confirm(tx, sessionId, byCode);
      if (renewed === undefined) throw new Problem('invalid_token', 'the session has ended; sign in again');
      await recordAudit(tx, { event: 'sign_in_confirmed', userId, sessionId, client });
      return renewed;
    });
    await authenticator.sessionChanged(sessionId);
    return signedInAt;
  }
}
