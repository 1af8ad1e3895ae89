/** A page of accounts: its form, and the work of its submission. Not a route. */
import type { Context } from 'koa';
import type { z } from 'zod';
import type { Caller, SignedIn } from '../../auth/auth.ts';
import type { App } from '../../http/app.ts';
import { problemOfError } from '../../problem.ts';
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
  /** `target`: the address that a sign-in leads to. */
  readonly links?: (app: App, target: string | undefined) => readonly PageLink[];
  /** Default: always. */
  readonly isOffered?: (app: App) => boolean;
  /** A session is kept where the page changes the account of its user. */
  readonly knowsCaller?: true;
  /** In place of the form: the page of a user who has signed in. Changes nothing. */
  readonly show?: (ctx: Context, app: App, user: Caller) => Promise<ShownPage>;
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

/** The credential of the browser, as JSON. */
export const RESPONSE_FIELD: FormField = { name: 'response', label: '', type: 'hidden' };

/** Throws `validation_failed`. */
export function readCredential<T>(shape: z.ZodType<T>, text: string): T {
  const read = shape.safeParse(parsedJson(text));
  if (read.success) return read.data;
  const detail = 'expected the response of the browser; use the button of the page';
  throw problemOfError('validation_failed', { pointer: '/response', code: 'invalid_value', detail });
}

function parsedJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export const SIGN_IN_LINK: PageLink = { to: '/auth/sign-in', text: 'Sign in' };

export const done = (title: string, text: string, ...links: readonly PageLink[]): Submitted => ({
  show: { title, text, links },
});
