// Everything that the pages of both products share: the session, forms, and errors in words.
import { BylawError, createClient } from './bylaw-client.js';

// The session is a cookie that no script can read: page and service are one site.
export const client = createClient(location.origin, { auth: 'cookie' });

export const find = (selector) => document.querySelector(selector);

/** What a page itself has to say instead of doing the work. */
export class Hint extends Error {}

/** In the open dialog, if there is one: it covers the page. */
const say = (text) => {
  (find('dialog[open] [role=alert]') ?? find('main [role=alert]')).textContent = text;
};

/** Values of records become text, never markup. */
export function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children.filter((child) => child !== undefined));
  return made;
}

export function button(text, work, properties = {}) {
  const made = element('button', { type: 'button', ...properties }, text);
  made.addEventListener('click', () => attempt(work));
  return made;
}

/** The list has these cards, or says that it has none. */
export const fill = (list, cards) =>
  list.replaceChildren(...(cards.length > 0 ? cards : [element('li', { className: 'hint' }, 'None')]));

export const options = (records, text) =>
  records.map((record) => element('option', { value: record.id }, text(record)));

const page = { draw: async () => undefined, words: {} };

/** @param words sentences of this product for codes of errors */
export async function startPage(draw, words = {}) {
  Object.assign(page, { draw, words });
  if (find('#sign-in') !== null)
    onSubmit('#sign-in form', async ({ email, password }, pressed) => {
      if (pressed === 'register') await client.register({ email, password });
      await client.login({ email, password });
    });
  for (const cancel of document.querySelectorAll('dialog [value=cancel]'))
    cancel.addEventListener('click', () => cancel.closest('dialog').close());
  await attempt(async () => undefined);
}

const reasonOf = (error) =>
  page.words[error.code] ??
  (error.errors.length > 0 ? [...new Set(error.errors.map(({ detail }) => detail))].join('; ') : error.message);

let last = Promise.resolve();

/** One piece of work at a time: none meets the session that another has just ended. Says why the service rejected it. */
export function inTurn(work) {
  last = last.then(work).catch((error) => {
    if (!(error instanceof BylawError || error instanceof Hint)) throw error;
    say(error instanceof Hint ? error.message : reasonOf(error));
  });
  const done = last;
  last = last.catch(() => undefined);
  return done;
}

/** Does the work, and draws the page again. */
export async function attempt(work) {
  say('');
  await inTurn(work);
  await inTurn(page.draw);
}

/** The form keeps its values until the service has taken them; the dialog around it closes then. */
export function onSubmit(selector, work) {
  const form = find(selector);
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    const values = Object.fromEntries(new FormData(form));
    attempt(async () => {
      await work(values, event.submitter?.value);
      form.reset();
      form.closest('dialog')?.close();
    });
  });
}

/** The signed-in user; undefined for a visitor, who gets the session of a guest. */
export async function caller() {
  const user = await client.me().catch((error) => {
    if (error instanceof BylawError && [401, 403].includes(error.status)) return error.status;
    throw error;
  });
  if (user === 401) await client.beGuest();
  return typeof user === 'number' ? undefined : user;
}

/** The button of the header: signs in or out. */
export function drawAccount(user) {
  find('#account').replaceChildren(
    ...(user === undefined
      ? [element('button', { type: 'button', onclick: () => find('#sign-in').showModal() }, 'Sign in')]
      : [
          element('span', {}, user.name ?? user.email),
          button('Sign out', () => client.logout(), { className: 'quiet' }),
        ]),
  );
}
