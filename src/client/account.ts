import type { Transport } from './transport.ts';

/** A session of the caller. */
export interface OwnSession {
  readonly id: string;
  readonly created_at: string;
  readonly last_used_at: string;
  readonly user_agent: string | null;
  readonly ip: string | null;
  /** True for the session of this client. */
  readonly current: boolean;
}

/** The password, the address and the sessions of an account. Every method may throw BylawError. */
export class Account {
  readonly #transport: Transport;

  constructor(transport: Transport) {
    this.#transport = transport;
  }

  /** All other sessions of the user end. */
  changePassword(password: string, newPassword: string): Promise<void> {
    return this.#post('password', { password, new_password: newPassword });
  }

  /** Renews the time of the sign-in, which a rule may require to be recent. Returns it. */
  async confirm(proof: { readonly password: string }): Promise<string> {
    const call = { method: 'POST', body: proof } as const;
    return (await this.#transport.json<{ readonly signed_in_at: string }>('/api/auth/confirm', call)).signed_in_at;
  }

  /** Mails a token, if an account has this address; nothing in the answer says whether. */
  requestPasswordReset(email: string): Promise<void> {
    return this.#post('password/reset/request', { email });
  }

  /** `token`: of the mail. All sessions of the user end. */
  resetPassword(token: string, password: string): Promise<void> {
    return this.#post('password/reset/confirm', { token, password });
  }

  /** Mails a token to the address of the caller. */
  requestVerification(): Promise<void> {
    return this.#post('email/verify/request');
  }

  /** `token`: of the mail. */
  verifyEmail(token: string): Promise<void> {
    return this.#post('email/verify/confirm', { token });
  }

  /** Makes the first administrator. `token`: printed by `bylaw serve` while no user is an admin. */
  setUp(token: string, email: string, password: string): Promise<void> {
    return this.#post('setup', { token, email, password });
  }

  /** `token`: of the mail of an invitation. Makes the account, which is not logged in. */
  acceptInvite(token: string, password: string): Promise<void> {
    return this.#post('invite/confirm', { token, password });
  }

  async sessions(): Promise<readonly OwnSession[]> {
    return (await this.#transport.json<{ readonly data: readonly OwnSession[] }>('/api/auth/sessions')).data;
  }

  async endSession(id: string): Promise<void> {
    await this.#transport.send(`/api/auth/sessions/${encodeURIComponent(id)}`, { method: 'DELETE' });
  }

  async #post(path: string, body?: object): Promise<void> {
    await this.#transport.send(`/api/auth/${path}`, { method: 'POST', body });
  }
}
