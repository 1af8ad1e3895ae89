/** The pages that the links of mails lead to, and the request for a reset. Not a route. */
import { emailAddress } from '../../auth/accounts/email-address.ts';
import { guestAt } from '../../http/gate.ts';
import { clientOf } from '../../http/request.ts';
import { problemOfError } from '../../problem.ts';
import { type AccountPage, done, EMAIL_FIELD, NEW_PASSWORD_FIELD, SIGN_IN_LINK, TOKEN_FIELD } from './account-page.ts';

export const verifyPage: AccountPage = {
  name: 'verify',
  title: 'Confirm your email address',
  text: 'Confirm that this address is yours, if you made the account. Otherwise close this page: the account would keep your address.',
  fields: [TOKEN_FIELD],
  button: 'Confirm',
  knowsCaller: true,
  async submit({ ctx, app, values }) {
    await app.auth.recovery.confirmVerification(values.get('token'), ctx.state.caller, clientOf(ctx));
    return done('Confirmed', 'Your email address is confirmed.', SIGN_IN_LINK);
  },
};

export const resetPage: AccountPage = {
  name: 'reset',
  title: 'Set a new password',
  fields: [TOKEN_FIELD, NEW_PASSWORD_FIELD],
  button: 'Set the password',
  async submit({ ctx, app, values }) {
    const confirmation = { token: values.get('token'), password: values.get('password'), client: clientOf(ctx) };
    await app.auth.recovery.confirmReset(confirmation);
    return done('Done', 'Your password is set, and all sessions have ended.', SIGN_IN_LINK);
  },
};

export const invitePage: AccountPage = {
  name: 'invite',
  title: 'Accept the invitation',
  text: 'Choose a password for your new account.',
  fields: [TOKEN_FIELD, NEW_PASSWORD_FIELD],
  button: 'Make the account',
  async submit({ ctx, app, values }) {
    const confirmation = { token: values.get('token'), password: values.get('password'), client: clientOf(ctx) };
    await app.auth.invitations.confirm(confirmation, await guestAt(ctx, app));
    return done('Welcome', 'Your account is made.', SIGN_IN_LINK);
  },
};

export const emailPage: AccountPage = {
  name: 'email',
  title: 'Confirm your new email address',
  text: 'Your account gets this address. If you did not ask for it, close this page: the account of another person would get your address.',
  fields: [TOKEN_FIELD],
  button: 'Confirm',
  knowsCaller: true,
  async submit({ ctx, app, values }) {
    await app.auth.emailChange.confirm(values.get('token'), ctx.state.caller, clientOf(ctx));
    return done('Done', 'Your account has the new address.', SIGN_IN_LINK);
  },
};

export const forgotPage: AccountPage = {
  name: 'forgot',
  title: 'Forgot your password?',
  text: 'A mail with a link sets a new one.',
  fields: [EMAIL_FIELD],
  button: 'Send the mail',
  async submit({ ctx, app, values }) {
    await app.auth.recovery.requestReset(readEmail(values.get('email')), clientOf(ctx));
    return done('Look into your mailbox', 'If an account has this address, a mail is on its way.', SIGN_IN_LINK);
  },
};

/** Throws `validation_failed`. */
export function readEmail(given: string): string {
  const read = emailAddress.safeParse(given.trim());
  if (read.success) return read.data;
  const detail = 'expected an email address';
  throw problemOfError('validation_failed', { pointer: '/email', code: 'invalid_value', detail });
}
