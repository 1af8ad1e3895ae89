/** A page of accounts: its form, and the work of its submission. Not a route. */
import type { Context } from 'koa';
import type { SignedIn } from '../../auth/auth.ts';
import type { App } from '../../http/app.ts';
import type { FormField, PageLink, ShownPage } from './form-page.ts';

export interface Visit {
  readonly ctx: Context;
  readonly app: App;
  readonly values: FormValues;
}

/** The fields of the page; a missing one is empty. */
export interface FormValues {
  get(name: string): string;
}

/** A page to show, or a sign-in. */
export type Submitted = { readonly show: ShownPage } | { readonly signedIn: SignedIn };

export interface AccountPage {
  /** The last part of its path. */
  readonly name: string;
  readonly title: string;
  readonly text?: string;
  readonly fields: readonly FormField[];
  readonly button: string;
  readonly links?: (app: App) => readonly PageLink[];
  /** Default: always. */
  readonly isOffered?: (app: App) => boolean;
  /** A session is kept where the page changes the account of its user. */
  readonly knowsCaller?: true;
  /** Throws problems, which are shown above the form. */
  submit(visit: Visit): Promise<Submitted>;
}

export const TOKEN_FIELD: FormField = { name: 'token', label: 'Token', type: 'hidden' };
export const EMAIL_FIELD: FormField = { name: 'email', label: 'Email', type: 'email', autocomplete: 'username' };
export const PASSWORD_FIELD: FormField = {
  name: 'password',
  label: 'Password',
  type: 'password',
  autocomplete: 'current-password',
};
export const NEW_PASSWORD_FIELD: FormField = {
  name: 'password',
  label: 'New password',
  type: 'password',
  autocomplete: 'new-password',
};
export const CODE_FIELD: FormField = { name: 'code', label: 'Code', type: 'text', autocomplete: 'one-time-code' };
/** Carries the address that a sign-in leads to. */
export const REDIRECT_FIELD: FormField = { name: 'redirect_to', label: '', type: 'hidden' };

export const SIGN_IN_LINK: PageLink = { to: '/auth/sign-in', text: 'Sign in' };

export const done = (title: string, text: string, ...links: readonly PageLink[]): Submitted => ({
  show: { title, text, links },
});
