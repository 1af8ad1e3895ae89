/** The words of mails. */
import type { MailOptions } from '../../schema/model/model.ts';
import type { Mail } from './mail.ts';
import type { TokenMailKind } from './outbox.ts';

export interface TokenMail {
  readonly kind: TokenMailKind;
  readonly to: string;
  readonly token: string;
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

const WORDS: Readonly<Record<TokenMailKind, MailWords>> = {
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
};

/** `site`: the base URL. */
export function tokenMail({ kind, to, token }: TokenMail, { appName, urls }: MailOptions, site: string): Mail {
  const { subject, asked, purpose, within, ending } = WORDS[kind];
  const link = urls[`${kind}_url`]?.replace('{token}', token);
  const way = link === undefined ? `use this code within ${within}` : `open this address within ${within}`;
  const text = `Someone${asked} at ${appName ?? site}.

To ${purpose}, ${way}:

${link ?? token}

If this was not you, ignore this mail${ending}.
`;
  return { to, subject, text };
}

/** A notice without a token. `site`: the base URL. */
export function factorNotice(to: string, { appName }: MailOptions, site: string): Mail {
  const text = `The second factor of your account at ${appName ?? site} was changed.

If this was not you, set a new password, and ask an administrator.
`;
  return { to, subject: 'Your second factor was changed', text };
}
