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

interface ShownForm {
  /** The page that takes the form: the last part of its path. */
  readonly page: string;
  readonly fields: readonly FormField[];
  readonly button: string;
}

export interface ShownPage {
  readonly title: string;
  readonly text?: string;
  /** The error of the form before. */
  readonly error?: string;
  readonly form?: ShownForm;
  /** The values of fields, by their names. Passwords are never shown again. */
  readonly values?: ReadonlyMap<string, string>;
  readonly links?: readonly PageLink[];
}

const STYLE = `
:root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}
body{max-width:24rem;margin:2rem auto;padding:0 1rem;overflow-wrap:anywhere}
h1{font-size:1.4rem}
img{max-width:8rem;max-height:4rem}
label{display:block;margin:1rem 0}
input{display:block;box-sizing:border-box;width:100%;padding:.5rem;font:inherit}
button{padding:.5rem 1rem;font:inherit}
[role=alert]{border-left:.25rem solid #c00;padding-left:.75rem}`;

const STYLE_HASH = createHash('sha256').update(STYLE).digest('base64');

/** Nothing is loaded but the logo; forms go to this service, and a sign-in may lead to an origin of the schema. */
export function pagePolicy({ mail, origins }: Schema): string {
  const logo =
    mail.logo === undefined ? [] : [`img-src ${mail.logo.startsWith('/') ? "'self'" : new URL(mail.logo).origin}`];
  return [
    "default-src 'none'",
    `style-src 'sha256-${STYLE_HASH}'`,
    ...logo,
    `form-action ${["'self'", ...origins].join(' ')}`,
    "base-uri 'none'",
    "frame-ancestors 'none'",
  ].join('; ');
}

interface PageFrame {
  readonly app: string;
  readonly logo: string | undefined;
}

export function drawPage(page: ShownPage, { app, logo }: PageFrame): string {
  const { title, text, error, form, values = new Map(), links = [] } = page;
  const parts = [
    ...(logo === undefined ? [] : [`<p><img src="${html(logo)}" alt="${html(app)}"></p>`]),
    `<h1>${html(title)}</h1>`,
    ...(error === undefined ? [] : [`<p role="alert">${html(error)}</p>`]),
    ...(text === undefined ? [] : [`<p>${html(text)}</p>`]),
    ...(form === undefined ? [] : [drawForm(form, values)]),
    ...links.map(({ to, text: label }) => `<p><a href="${html(to)}">${html(label)}</a></p>`),
  ];
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><meta name="robots" content="noindex">
<title>${html(title)} · ${html(app)}</title><style>${STYLE}</style></head>
<body><main>
${parts.join('\n')}
</main></body></html>
`;
}

function drawForm({ page, fields, button }: ShownForm, values: ReadonlyMap<string, string>): string {
  return `<form method="post" action="/auth/${page}">
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
