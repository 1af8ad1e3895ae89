/** The pages that sign in: by a password, a code, a link, a second factor; and the first administrator. Not a route. */

import type { App } from '../../http/app.ts';
import { guestAt } from '../../http/gate.ts';
import { clientOf } from '../../http/request.ts';
import { authenticationResponse } from '../auth/passkeys/passkey-shapes.ts';
import {
  type AccountPage,
  CODE_FIELD,
  done,
  EMAIL_FIELD,
  type FormValues,
  NEW_PASSWORD_FIELD,
  PASSWORD_FIELD,
  REDIRECT_FIELD,
  RESPONSE_FIELD,
  readCredential,
  SIGN_IN_LINK,
  TOKEN_FIELD,
  type Visit,
} from './account-page.ts';
import type { PageLink } from './form-page.ts';
import { readEmail } from './mail-pages.ts';
import { passkeyScript } from './passkey-script.ts';
import { providerLinks, withTarget } from './provider-links.ts';

export const signInPage: AccountPage = {
  name: 'sign-in',
  title: 'Sign in',
  fields: [EMAIL_FIELD, PASSWORD_FIELD, REDIRECT_FIELD],
  button: 'Sign in',
  links: (app, target) => [
    ...providerLinks(app, target),
    ...(passkeyScript() === undefined
      ? []
      : [{ to: withTarget('/auth/passkey', target), text: 'Sign in with a passkey' }]),
    { to: '/auth/forgot', text: 'Forgot your password?' },
    ...(app.schema.mail.otp ? [{ to: withTarget('/auth/code', target), text: 'Sign in with a code by mail' }] : []),
  ],
  async submit({ ctx, app, values }) {
    const claim = { email: values.get('email').trim(), password: values.get('password'), client: clientOf(ctx) };
    return { signedIn: await app.auth.accounts.login(claim, await guestAt(ctx, app)) };
  },
};

export const loginPage: AccountPage = {
  name: 'login',
  title: 'Sign in',
  text: 'Sign in with the link of your mail.',
  fields: [TOKEN_FIELD, REDIRECT_FIELD],
  button: 'Sign in',
  isOffered: ({ schema }) => schema.mail.otp,
  async submit(visit) {
    return {
      signedIn: await visit.app.auth.loginCodes.confirmToken(visit.values.get('token'), await signInRequest(visit)),
    };
  },
};

/** Asks for the address, and then for the code. */
export const codePage: AccountPage = {
  name: 'code',
  title: 'Sign in with a code',
  text: 'A mail with a code signs you in.',
  fields: [EMAIL_FIELD, REDIRECT_FIELD],
  button: 'Send the code',
  isOffered: ({ schema }) => schema.mail.otp,
  async submit(visit) {
    const { ctx, app, values } = visit;
    const email = readEmail(values.get('email'));
    const code = values.get('code').trim();
    if (code !== '')
      return { signedIn: await app.auth.loginCodes.confirmCode({ email, code }, await signInRequest(visit)) };
    await app.auth.loginCodes.request(email, clientOf(ctx));
    return { show: codeForm(values) };
  },
};

const codeForm = (values: FormValues) => ({
  title: 'Sign in with a code',
  text: 'If an account has this address, a mail with a code of six digits is on its way.',
  forms: [
    {
      page: 'code',
      fields: [{ ...EMAIL_FIELD, type: 'hidden' as const }, CODE_FIELD, REDIRECT_FIELD],
      button: 'Sign in',
      values: new Map([
        ['email', values.get('email')],
        ['redirect_to', values.get('redirect_to')],
      ]),
    },
  ],
});

/** Makes the options first, and then takes the response. */
export const passkeyPage: AccountPage = {
  name: 'passkey',
  title: 'Sign in with a passkey',
  text: 'Your device or your security key signs you in.',
  fields: [REDIRECT_FIELD],
  button: 'Continue',
  isOffered: () => passkeyScript() !== undefined,
  async submit(visit) {
    const { app, ctx, values } = visit;
    if (values.get('response') !== '') {
      const response = readCredential(authenticationResponse, values.get('response'));
      return { signedIn: await app.auth.passkeys.login({ response, ...(await signInRequest(visit)) }) };
    }
    const options = await app.auth.passkeys.requestOptions(clientOf(ctx));
    const form = {
      page: 'passkey',
      fields: [RESPONSE_FIELD, REDIRECT_FIELD],
      button: 'Use a passkey',
      values: new Map([['redirect_to', values.get('redirect_to')]]),
      ceremony: { does: 'get', options },
    } as const;
    return { show: { title: 'Sign in with a passkey', forms: [form] } };
  },
};

const CHALLENGE_FIELD = { name: 'challenge', label: '', type: 'hidden' } as const;

export const challengePage: AccountPage = {
  name: 'challenge',
  title: 'Second factor',
  text: 'Enter the code of your authenticator app, or a recovery code.',
  fields: [CHALLENGE_FIELD, CODE_FIELD, REDIRECT_FIELD],
  button: 'Sign in',
  async submit({ ctx, app, values }) {
    const code = values.get('code').trim();
    const method = /^\d{6}$/.test(code) ? 'totp' : 'recovery';
    const answer = { challenge: values.get('challenge'), method, code, client: clientOf(ctx) } as const;
    return { signedIn: await app.auth.accounts.answerChallenge(answer) };
  },
};

export const setupPage: AccountPage = {
  name: 'setup',
  title: 'The first administrator',
  text: 'The service printed an address with a token at its end. Paste the whole address, or the token alone.',
  fields: [{ ...TOKEN_FIELD, type: 'text', autocomplete: 'off' }, EMAIL_FIELD, NEW_PASSWORD_FIELD],
  button: 'Make the administrator',
  async submit({ ctx, app, values }) {
    const token = values
      .get('token')
      .trim()
      .replace(/^.*#token=/, '');
    const email = readEmail(values.get('email'));
    await app.auth.admin.setUp({ token, email, password: values.get('password'), client: clientOf(ctx) });
    return done('Done', 'The administrator is made.', signInLink(app));
  },
};

/** The sign-in leads an administrator to the studio, if there is one. */
const signInLink = ({ config, schema }: App): PageLink => ({
  ...SIGN_IN_LINK,
  to: withTarget(SIGN_IN_LINK.to, config.studio ? schema.studio.path : undefined),
});

const signInRequest = async ({ ctx, app }: Visit) => ({ client: clientOf(ctx), guest: await guestAt(ctx, app) });
