export type FactorMethod = 'totp' | 'recovery';

export interface SignInChallenge {
  readonly challenge: string;
  readonly methods: readonly FactorMethod[];
}

export interface ChallengeAnswer {
  readonly challenge: string;
  readonly method: FactorMethod;
  readonly code: string;
}

/** The password was right, and the user has a second factor: a code is due within five minutes. */
export class SecondFactorNeeded extends Error {
  readonly challenge: string;
  readonly methods: readonly FactorMethod[];

  constructor({ challenge, methods }: SignInChallenge) {
    super('a code of the second factor is needed');
    this.name = 'SecondFactorNeeded';
    this.challenge = challenge;
    this.methods = methods;
  }
}
