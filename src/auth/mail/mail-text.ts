/** The words of mails with a token. */
import type { MailOptions } from '../../schema/model/model.ts';
import type { Mail } from './mail.ts';
import type { ClaimedMail, MailKind } from './outbox.ts';

export interface MailSecrets {
  /** The token of a link. */
  readonly token: string;
  /** To type, in place of the link. */
  readonly code?: string;
}

export interface SecretMail extends MailSecrets {
  readonly kind: SecretKind;
  readonly to: string;
}

interface MailWords {
  readonly subject: string;
  /** After "Someone". */
  readonly asked: string;
  /** After "To". */
  readonly purpose: string;
  readonly within: string;
  readonly ending: string;
}

/** Mails with a secret. */
export type SecretKind = Exclude<MailKind, 'email_changed' | 'second_factor_changed'>;

const WORDS: Readonly<Record<SecretKind, MailWords>> = {
  verify: {
    subject: 'Confirm your email address',
    asked: ', most likely you, asked to confirm that this address belongs to an account',
    purpose: 'confirm it',
    within: 'an hour',
    ending: '',
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

/** `site`: the base URL. */
export function secretMail(mail: SecretMail, { appName, urls }: MailOptions, site: string): Mail {
  const { kind, to, token, code } = mail;
  const { subject, asked, purpose, within, ending } = WORDS[kind];
  const link = urls[`${kind}_url`]?.replace('{token}', token);
  const ways = [
    ...(code === undefined && link !== undefined ? [] : [`use this code within ${within}:\n\n${code ?? token}`]),
    ...(link === undefined ? [] : [`open this address within ${within}:\n\n${link}`]),
  ];
  const text = `Someone${asked} at ${appName ?? site}.

To ${purpose}, ${ways.join('\n\nor ')}

If this was not you, ignore this mail${ending}.
`;
  return { to, subject, text };
}

/** Informs the owner of the old address. */
export function noticeMail({ address, detail }: ClaimedMail, { appName }: MailOptions, site: string): Mail {
  const { newEmail = '', isDone = false } = detail;
  const happened = isDone
    ? 'The address of your account was changed'
    : 'Somebody asked to change the address of your account';
  const text = `${happened} at ${appName ?? site}, to ${newEmail}.

If this was not you, set a new password${isDone ? ' and ask an administrator for help' : ', which also ends the request'}.
`;
  return {
    to: address,
    subject: isDone ? 'Your email address was changed' : 'A new email address was asked for',
    text,
  };
}

/** A notice without a token. `site`: the base URL. */
export function factorNotice(to: string, { appName }: MailOptions, site: string): Mail {
  const text = `The second factor of your account at ${appName ?? site} was changed.

If this was not you, set a new password, and ask an administrator.
`;
  return { to, subject: 'Your second factor was changed', text };
}
