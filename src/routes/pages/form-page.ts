/** Draws a page of accounts: a form, or a sentence. Every value is escaped. Not a route. */
import { createHash } from 'node:crypto';
import type { Schema } from '../../schema/model/model.ts';
import { html } from './escaped.ts';

export interface FormField {
  readonly name: string;
  readonly label: string;
  readonly type: 'email' | 'password' | 'text' | 'hidden';
  /** As HTML names it. */
  readonly autocomplete?: string;
}

export interface PageLink {
  readonly to: string;
  readonly text: string;
}

export interface ShownForm {
  /** The page that takes the form: the last part of its path. */
  readonly page: string;
  readonly fields: readonly FormField[];
  readonly button: string;
  /** The values of fields, by their names. Passwords are never shown again. */
  readonly values?: ReadonlyMap<string, string>;
  /** Before it is sent, the script asks the authenticator of the browser, and fills in the field `response`. */
  readonly ceremony?: Ceremony;
}

interface Ceremony {
  readonly does: 'create' | 'get';
  /** The options of WebAuthn. */
  readonly options: object;
}

export interface ShownPage {
  readonly title: string;
  readonly text?: string;
  /** The error of the form before. */
  readonly error?: string;
  /** An SVG that the service drew. */
  readonly picture?: string;
  /** Words to copy. */
  readonly words?: readonly string[];
  readonly forms?: readonly ShownForm[];
  readonly links?: readonly PageLink[];
}

const STYLE = `
:root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}
body{max-width:24rem;margin:2rem auto;padding:0 1rem;overflow-wrap:anywhere}
h1{font-size:1.4rem}
img{max-width:8rem;max-height:4rem}
svg{display:block;width:12rem;height:12rem}
label{display:block;margin:1rem 0}
input{display:block;box-sizing:border-box;width:100%;padding:.5rem;font:inherit}
button{padding:.5rem 1rem;font:inherit}
[role=alert]{border-left:.25rem solid #c00;padding-left:.75rem}`;

const STYLE_HASH = createHash('sha256').update(STYLE).digest('base64');

/** True if a form of the page needs the script. */
export const needsScript = ({ forms = [] }: ShownPage): boolean => forms.some(({ ceremony }) => ceremony !== undefined);

/**
 * Nothing is loaded but the logo; forms go to this service, and a sign-in may lead to an origin of the schema.
 * `script`: of the page, if it has one.
 */
export function pagePolicy({ mail, origins }: Schema, script: string | undefined): string {
  const logo =
    mail.logo === undefined ? [] : [`img-src ${mail.logo.startsWith('/') ? "'self'" : new URL(mail.logo).origin}`];
  return [
    "default-src 'none'",
    `style-src 'sha256-${STYLE_HASH}'`,
    ...(script === undefined ? [] : [`script-src 'sha256-${createHash('sha256').update(script).digest('base64')}'`]),
    ...logo,
    `form-action ${["'self'", ...origins].join(' ')}`,
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

interface PageFrame {
  readonly app: string;
  readonly logo: string | undefined;
  readonly script: string | undefined;
}

export function drawPage(page: ShownPage, { app, logo, script }: PageFrame): string {
  const { title, text, error, picture, words = [], forms = [], links = [] } = page;
  const parts = [
    ...(logo === undefined ? [] : [`<p><img src="${html(logo)}" alt="${html(app)}"></p>`]),
    `<h1>${html(title)}</h1>`,
    ...(error === undefined ? [] : [`<p role="alert">${html(error)}</p>`]),
    ...(text === undefined ? [] : [`<p>${html(text)}</p>`]),
    ...(picture === undefined ? [] : [picture]),
    ...(words.length === 0 ? [] : [`<ul>${words.map((word) => `<li><code>${html(word)}</code></li>`).join('')}</ul>`]),
    ...forms.map(drawForm),
    ...links.map(({ to, text: label }) => `<p><a href="${html(to)}">${html(label)}</a></p>`),
  ];
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="robots" content="noindex">
<title>${html(title)} · ${html(app)}</title><style>${STYLE}</style></head>
<body><main>
${parts.join('\n')}
</main>${script === undefined ? '' : `<noscript><p role="alert">This page needs JavaScript.</p></noscript><script>${script}</script>`}</body></html>
`;
}

function drawForm({ page, fields, button, ceremony, values = new Map() }: ShownForm): string {
  const asked = ceremony === undefined ? '' : ` data-${ceremony.does}="${html(JSON.stringify(ceremony.options))}"`;
  return `<form method="post" action="/auth/${page}"${asked}>
${fields.map((field) => drawField(field, values.get(field.name) ?? '')).join('\n')}
<button>${html(button)}</button>
</form>`;
}

function drawField({ name, label, type, autocomplete }: FormField, value: string): string {
  if (type === 'hidden') return `<input type="hidden" name="${name}" value="${html(value)}">`;
  const shown = type === 'password' ? '' : ` value="${html(value)}"`;
  const completion = autocomplete === undefined ? '' : ` autocomplete="${autocomplete}"`;
  return `<label>${html(label)} <input name="${name}" type="${type}"${shown}${completion} required></label>`;
}
