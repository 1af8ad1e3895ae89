/** The words of the service's own mails, for kinds and languages without a template. */
import type { MailData } from './mail-data.ts';
import type { MailKind } from './outbox.ts';

/** Mails with a secret. */
export const SECRET_KINDS = ['verify', 'reset', 'invite', 'login', 'email_change'] as const;
export type SecretKind = (typeof SECRET_KINDS)[number];
type NoticeKind = Exclude<MailKind, SecretKind>;

interface SecretWords {
  readonly subject: string;
  /** After "Someone". */
  readonly asked: string;
  /** After "To". */
  readonly purpose: string;
  readonly within: string;
  readonly ending: string;
}

const SECRET_WORDS: Readonly<Record<SecretKind, SecretWords>> = {
  verify: {
    subject: 'Confirm your email address',
    asked: ', most likely you, asked to confirm that this address belongs to an account',
    purpose: 'confirm it',
    within: 'an hour',
    ending: ': otherwise another account would keep your address',
  },
  reset: {
    subject: 'Set a new password',
    asked: ', most likely you, asked to set a new password for the account with this address',
    purpose: 'set it',
    within: 'an hour',
    ending: ': your password stays as it is',
  },
  invite: {
    subject: 'You are invited',
    asked: ' has invited you to make an account with this address',
    purpose: 'accept and choose a password',
    within: 'seven days',
    ending: '',
  },
  email_change: {
    subject: 'Confirm your new email address',
    asked: ', most likely you, asked to give an account this address',
    purpose: 'confirm it',
    within: 'an hour',
    ending: ': the account keeps its address',
  },
  login: {
    subject: 'Your code to sign in',
    asked: ', most likely you, asked to sign in with this address',
    purpose: 'sign in',
    within: 'ten minutes',
    ending: '; without the code, the account stays shut',
  },
};

export type MailPart = string | { readonly link: string } | { readonly code: string };

/** A mail as its paragraphs; a link and a code are paragraphs of their own. */
interface MailWords {
  readonly subject: string;
  readonly paragraphs: readonly MailPart[];
}

const isSecretKind = (kind: MailKind): kind is SecretKind => (SECRET_KINDS as readonly string[]).includes(kind);

export function mailWords(kind: MailKind, data: MailData): MailWords {
  return isSecretKind(kind) ? secretWords(kind, data) : NOTICES[kind](data);
}

function secretWords(kind: SecretKind, { app, link, code }: MailData): MailWords {
  const { subject, asked, purpose, within, ending } = SECRET_WORDS[kind];
  // A long token is typed only where no page takes it.
  const typed = code !== null && (kind === 'login' || link === null) ? code : undefined;
  return {
    subject,
    paragraphs: [
      `Someone${asked} at ${app}.`,
      ...(typed === undefined ? [] : [`To ${purpose}, use this code within ${within}:`, { code: typed }]),
      ...(link === null ? [] : [`To ${purpose}, open this address within ${within}:`, { link }]),
      `If this was not you, ignore this mail${ending}.`,
    ],
  };
}

const CHANGES: ReadonlyMap<string, string> = new Map([
  ['second_factor_enrolled', 'An authenticator app was added to your account'],
  ['second_factor_removed', 'The authenticator app was removed from your account'],
  ['second_factor_reset', 'An administrator removed the authenticator app from your account'],
  ['passkey_added', 'A passkey was added to your account'],
  ['passkey_removed', 'A passkey was removed from your account'],
]);

const NOTICES: Readonly<Record<NoticeKind, (data: MailData) => MailWords>> = {
  email_changed: ({ app, event }) =>
    event?.is_done
      ? {
          subject: 'Your email address was changed',
          paragraphs: [
            `The address of your account was changed at ${app}, to ${event.new_email}.`,
            'If this was not you, set a new password and ask an administrator for help.',
          ],
        }
      : {
          subject: 'A new email address was asked for',
          paragraphs: [
            `Somebody asked to change the address of your account at ${app}, to ${event?.new_email}.`,
            'If this was not you, set a new password, which also ends the request.',
          ],
        },
  second_factor_changed: ({ app, event }) => ({
    subject: 'Your second factor was changed',
    paragraphs: [
      `${CHANGES.get(event?.change ?? '') ?? 'The second factor of your account was changed'} at ${app}.`,
      'If this was not you, set a new password, and ask an administrator.',
    ],
  }),
  new_sign_in: ({ app, event }) => ({
    subject: 'A new sign-in to your account',
    paragraphs: [
      `Your account at ${app} was signed in to from a new device: ${event?.device ?? 'unknown'}, at the address ${event?.ip ?? 'unknown'}, ${event?.at ?? ''}.`,
      'If this was not you, set a new password: that ends all sessions.',
    ],
  }),
};
