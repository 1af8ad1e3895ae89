import type { ClientCall, Transport } from './transport.ts';

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

export type FactorState = 'none' | 'enrolled' | 'required' | 'used';

/** A proof that the user is present. */
export type Proof = { readonly password: string } | { readonly code: string };

/** A passkey of the caller. */
export interface Passkey {
  readonly id: string;
  readonly name: string;
  readonly created_at: string;
  readonly last_used_at: string | null;
}

/** A secret for an authenticator app. */
export interface Enrolment {
  readonly secret: string;
  readonly uri: string;
  /** An SVG. */
  readonly qr: string;
}

/** The password, the address, the second factor and the sessions of an account. Every method may throw BylawError. */
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
  async confirm(proof: Proof): Promise<string> {
    const call = { method: 'POST', body: proof } as const;
    return (await this.#transport.json<{ readonly signed_in_at: string }>('/api/auth/confirm', call)).signed_in_at;
  }

  /**
   * The second factor of this session. `required`: roles of the user are left out of it until they enrol, or confirm by
   * a code of what they have enrolled.
   */
  async secondFactor(): Promise<FactorState> {
    type Answer = { readonly second_factor: FactorState };
    return (await this.#transport.json<Answer>('/api/auth/me')).second_factor;
  }

  /** Begins to enrol an authenticator app; `confirmTotp` ends it. */
  enrolTotp(): Promise<Enrolment> {
    return this.#transport.json('/api/auth/totp/enrol', { method: 'POST' });
  }

  /** → the recovery codes, which are shown once. */
  confirmTotp(code: string): Promise<readonly string[]> {
    return this.#recoveryCodes('confirm', code);
  }

  /** → new recovery codes, in place of the old ones. */
  renewRecoveryCodes(code: string): Promise<readonly string[]> {
    return this.#recoveryCodes('recovery', code);
  }

  async removeTotp(proof: Proof): Promise<void> {
    await this.#transport.send('/api/auth/totp', { method: 'DELETE', body: proof });
  }

  /**
   * Links the account with an identity at a provider. → the address that the browser goes to; it returns to `redirectTo`,
   * with `?error=<code>` if the identity could not be linked.
   */
  async linkIdentity(provider: string, redirectTo = '/'): Promise<string> {
    const path = `/api/auth/identities/${encodeURIComponent(provider)}`;
    const body = { redirect_to: redirectTo };
    return (
      await this.#transport.json<{ readonly location: string }>(path, { method: 'POST', body, keepsCookie: true })
    ).location;
  }

  /** The last way to sign in cannot be removed. */
  async unlinkIdentity(provider: string): Promise<void> {
    await this.#transport.send(`/api/auth/identities/${encodeURIComponent(provider)}`, { method: 'DELETE' });
  }

  /** The options of `navigator.credentials.create`, in JSON. */
  passkeyOptions(): Promise<Readonly<Record<string, unknown>>> {
    return this.#transport.json('/api/auth/passkeys/options', { method: 'POST' });
  }

  /** `response`: the credential's `toJSON()`. */
  addPasskey(name: string, response: object): Promise<Passkey> {
    return this.#passkey('', { method: 'POST', body: { name, response } });
  }

  async passkeys(): Promise<readonly Passkey[]> {
    return (await this.#transport.json<{ readonly data: readonly Passkey[] }>('/api/auth/passkeys')).data;
  }

  renamePasskey(id: string, name: string): Promise<Passkey> {
    return this.#passkey(`/${encodeURIComponent(id)}`, { method: 'PATCH', body: { name } });
  }

  /** The last way to sign in cannot be removed. */
  async removePasskey(id: string): Promise<void> {
    await this.#transport.send(`/api/auth/passkeys/${encodeURIComponent(id)}`, { method: 'DELETE' });
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

  /**
   * Mails a token to the new address, and a notice to the present one. `proof`: the password, or a code of a mail to the
   * present address.
   */
  requestEmailChange(email: string, proof: { readonly password: string } | { readonly code: string }): Promise<void> {
    return this.#post('email/change/request', { email, ...proof });
  }

  /** `token`: of the mail to the new address. All other sessions of the user end. */
  confirmEmailChange(token: string): Promise<void> {
    return this.#post('email/change/confirm', { token });
  }

  /** Mails a code and a link that sign in, if an account has this address; `loginByMail` takes them. */
  requestCode(email: string): Promise<void> {
    return this.#post('otp/request', { email });
  }

  async sessions(): Promise<readonly OwnSession[]> {
    return (await this.#transport.json<{ readonly data: readonly OwnSession[] }>('/api/auth/sessions')).data;
  }

  async endSession(id: string): Promise<void> {
    await this.#transport.send(`/api/auth/sessions/${encodeURIComponent(id)}`, { method: 'DELETE' });
  }

  async #passkey(path: string, call: ClientCall): Promise<Passkey> {
    return (await this.#transport.json<{ readonly data: Passkey }>(`/api/auth/passkeys${path}`, call)).data;
  }

  async #recoveryCodes(path: string, code: string): Promise<readonly string[]> {
    const call = { method: 'POST', body: { code } } as const;
    type Answer = { readonly recovery_codes: readonly string[] };
    return (await this.#transport.json<Answer>(`/api/auth/totp/${path}`, call)).recovery_codes;
  }

  async #post(path: string, body?: object): Promise<void> {
    await this.#transport.send(`/api/auth/${path}`, { method: 'POST', body });
  }
}
