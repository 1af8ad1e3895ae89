/** Writes a mail: by the template of the application for its kind and language, or in the service's own words. */
import { Eta } from 'eta';
import { datetimeOf } from '../../policy/values.ts';
import type { MailUrl, Schema } from '../../schema/model/model.ts';
import type { User } from '../accounts/users.ts';
import { languageAmong } from './languages.ts';
import { type MailData, type MailEvent, userNames } from './mail-data.ts';
import { MailTemplates, splitSubject } from './mail-templates.ts';
import { type MailPart, mailWords, type SecretKind } from './mail-words.ts';
import type { Mail } from './mailer.ts';
import type { MailKind } from './outbox.ts';

export interface MailSecrets {
  /** The token of a link. */
  readonly token: string;
  /** To type, in place of the link. */
  readonly code?: string;
}

export interface MailRecipient {
  readonly address: string;
  /** The account of the recipient, if there is one. */
  readonly user: User | undefined;
  /** The language of the request, one of the schema. */
  readonly language: string | undefined;
}

/** Seconds that the secrets of each kind last. */
const LIFETIMES: Readonly<Record<SecretKind, number>> = {
  verify: 3_600,
  reset: 3_600,
  email_change: 3_600,
  login: 600,
  invite: 604_800,
};

/** The pages that links lead to: those of the application, or those of the service under `/auth/`. */
const MAIL_LINKS: Readonly<Record<SecretKind, { readonly url: MailUrl; readonly page: string }>> = {
  verify: { url: 'verify_url', page: 'verify' },
  reset: { url: 'reset_url', page: 'reset' },
  invite: { url: 'invite_url', page: 'invite' },
  login: { url: 'login_url', page: 'login' },
  email_change: { url: 'email_change_url', page: 'email' },
};

/** The HTML of the service's own words. */
const MAIL_PAGE = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="color-scheme" content="light dark"></head>
<body style="font:16px/1.5 sans-serif;max-width:32em;margin:2em auto;padding:0 1em"><% for (const part of it.paragraphs) { %>
<% if (part.link !== undefined) { %><p><a href="<%= part.link %>"><%= part.link %></a></p>
<% } else if (part.code !== undefined) { %><p style="font:1.4em monospace;overflow-wrap:anywhere"><%= part.code %></p>
<% } else { %><p><%= part.text %></p>
<% } } %></body></html>
`;

const page = new Eta({ autoTrim: false });
const renderPage = page.compile(MAIL_PAGE);

/** Strings have a method `link`. */
const shownPart = (part: MailPart): object => (typeof part === 'string' ? { text: part } : part);

export class MailWriter {
  readonly #schema: Schema;
  readonly #baseUrl: () => string;
  readonly #templates: MailTemplates;

  /** Throws for a template that fails. */
  constructor(schema: Schema, baseUrl: () => string, templates = MailTemplates.load(schema)) {
    const [issue] = templates.issues;
    if (issue !== undefined) throw new Error(`${issue.file}: ${issue.message}`);
    this.#schema = schema;
    this.#baseUrl = baseUrl;
    this.#templates = templates;
  }

  secret(kind: SecretKind, recipient: MailRecipient, { token, code = token }: MailSecrets): Mail {
    const { url, page } = MAIL_LINKS[kind];
    const address = this.#schema.mail.urls[url] ?? `${this.#baseUrl()}/auth/${page}?token={token}`;
    const link = address.replace('{token}', token);
    const expires = datetimeOf(new Date(Date.now() + LIFETIMES[kind] * 1_000));
    return this.#write(kind, recipient, { link, code, expires, event: null });
  }

  notice(kind: Exclude<MailKind, SecretKind>, recipient: MailRecipient, event: MailEvent): Mail {
    return this.#write(kind, recipient, { link: null, code: null, expires: null, event });
  }

  /** Writes a mail of given data. */
  render(kind: MailKind, language: string, data: MailData): Omit<Mail, 'to'> {
    const [text, html] = (['txt', 'html'] as const).map((part) => this.#templates.find(kind, language, part));
    const words = mailWords(kind, data);
    const own = words.paragraphs.map((part) =>
      typeof part === 'string' ? part : 'link' in part ? part.link : part.code,
    );
    return {
      ...(text === undefined ? { subject: words.subject, text: `${own.join('\n\n')}\n` } : splitSubject(text(data))),
      html: html === undefined ? page.render(renderPage, { paragraphs: words.paragraphs.map(shownPart) }) : html(data),
    };
  }

  #write(kind: MailKind, recipient: MailRecipient, data: Omit<MailData, 'app' | 'user'>): Mail {
    const { address, user } = recipient;
    const app = this.#schema.mail.appName ?? this.#baseUrl();
    const named = Object.fromEntries(userNames(this.#schema).map((name) => [name, user?.[name] ?? null]));
    const written = this.render(kind, this.#languageOf(recipient), {
      ...data,
      app,
      user: { ...named, email: address },
    });
    return { to: address, ...written };
  }

  /** The language of the user's own field, of the request, or the first. */
  #languageOf({ user, language }: MailRecipient): string {
    const { languages } = this.#schema.mail;
    const own = typeof user?.locale === 'string' ? languageAmong(languages, user.locale) : undefined;
    return own ?? language ?? languages[0] ?? 'en';
  }
}
