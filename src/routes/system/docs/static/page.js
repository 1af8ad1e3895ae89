// Search, and a console for each operation. The page reads without it.

/** An element with properties and children; text stays text. */
function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes('-')) made.setAttribute(name, value);
    else made[name] = value;
  }
  made.append(...children);
  return made;
}

const operations = [...document.querySelectorAll('.operation')];
const token = element('input', { type: 'password', autocomplete: 'off', spellcheck: false, id: 'token' });

// ---------------------------------------------------------------- search

const search = element('input', {
  type: 'search',
  id: 'search',
  placeholder: 'path, method or words',
  autocomplete: 'off',
});
const found = element('output', { htmlFor: 'search' });

function labelled(text, input, ...more) {
  return element('label', { className: 'labelled' }, element('span', {}, text), input, ...more);
}

const searchable = operations.map((operation) => ({
  operation,
  text: operation.querySelector('summary').textContent.toLowerCase(),
  link: document.querySelector(`nav a[href="#${CSS.escape(operation.id)}"]`),
}));

function filter() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  let count = 0;
  for (const { operation, text, link } of searchable) {
    const fits = words.every((word) => text.includes(word));
    operation.hidden = !fits;
    if (link !== null) link.parentElement.hidden = !fits;
    if (fits) count++;
  }
  for (const section of document.querySelectorAll('main > section')) {
    const own = [...section.querySelectorAll('.operation')];
    section.hidden = words.length > 0 && own.every((operation) => operation.hidden);
  }
  for (const group of document.querySelectorAll('nav details')) {
    const links = [...group.querySelectorAll('li:has(.method)')];
    group.hidden = links.every((item) => item.hidden);
    group.open = words.length > 0;
  }
  found.value = words.length === 0 ? '' : `${count} of ${operations.length} operations`;
}
search.addEventListener('input', filter);

document.addEventListener('keydown', (event) => {
  const isTyping = event.target.matches?.('input, textarea, select');
  if (event.key === '/' && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    search.focus();
  }
  if (event.key === 'Escape' && event.target === search) {
    search.value = '';
    filter();
  }
});

const tools = document.getElementById('tools');
const hint = element('small', {}, 'Kept in this tab only. Without one, requests go with the session cookie.');

// ---------------------------------------------------------------- sign-in

/** Signs in by the session cookie, so that requests of this page, and of the studio, have a caller. */
class SignIn {
  constructor() {
    this.email = element('input', { type: 'email', autocomplete: 'username', required: true });
    this.password = element('input', { type: 'password', autocomplete: 'current-password', required: true });
    this.code = element('input', { autocomplete: 'one-time-code', required: true });
    this.state = element('output', {});
    this.form = element('form', { id: 'sign-in' });
    this.form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.submit();
    });
    this.user = undefined;
    this.showForm();
  }

  showForm(challenge) {
    this.challenge = challenge;
    const fields =
      challenge === undefined
        ? [labelled('Email', this.email), labelled('Password', this.password)]
        : [labelled('Code of the authenticator app, or a recovery code', this.code)];
    this.form.replaceChildren(...fields, element('button', { type: 'submit' }, 'Sign in'), this.state);
  }

  showUser(user) {
    this.user = user;
    const button = element('button', { type: 'button' }, 'Sign out');
    button.addEventListener('click', () => this.signOut());
    this.form.replaceChildren(element('p', {}, `Signed in as ${user.email}`), button, this.state);
    this.state.value = '';
    this.password.value = '';
    this.code.value = '';
    tools.dispatchEvent(new Event('signed-in'));
  }

  async submit() {
    const code = this.code.value.trim();
    const body =
      this.challenge === undefined
        ? { email: this.email.value, password: this.password.value }
        : { challenge: this.challenge, method: /^\d{6}$/.test(code) ? 'totp' : 'recovery', code };
    const path = this.challenge === undefined ? '/api/auth/login' : '/api/auth/challenge';
    const { ok, answer } = await this.ask(path, { method: 'POST', body: JSON.stringify(body) });
    if (!ok) this.state.value = answer.detail ?? 'The sign-in failed.';
    else if (answer.challenge !== undefined) this.showForm(answer.challenge);
    else this.showUser(answer.user);
  }

  /** A session of before, such as that of the studio. */
  async resume() {
    const { ok, answer } = await this.ask('/api/auth/me', { method: 'GET' });
    if (ok && this.user === undefined) this.showUser(answer.user);
  }

  async signOut() {
    await this.ask('/api/auth/logout', { method: 'POST' });
    this.user = undefined;
    this.showForm();
    tools.dispatchEvent(new Event('signed-in'));
  }

  async ask(path, init) {
    const headers = init.body === undefined ? {} : { 'Content-Type': 'application/json' };
    try {
      const response = await fetch(path, { ...init, headers, credentials: 'same-origin' });
      const text = await response.text();
      return { ok: response.ok, answer: text === '' ? {} : JSON.parse(text) };
    } catch (error) {
      return { ok: false, answer: { detail: `The request was not answered: ${error.message}` } };
    }
  }
}
const signIn = new SignIn();

tools.append(labelled('Search (press /)', search, found), labelled('Bearer token', token, hint), signIn.form);
tools.hidden = false;
signIn.resume();

// ---------------------------------------------------------------- links

function openTarget() {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target === null) return;
  if (target.hidden || target.closest('section[hidden]') !== null) {
    search.value = '';
    filter();
  }
  if (target.tagName === 'DETAILS') target.open = true;
  target.scrollIntoView();
}
addEventListener('hashchange', openTarget);

// ---------------------------------------------------------------- console

const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

/** A stream of events does not end: its first part is shown. */
async function bytesOf(response, type) {
  if (!type.startsWith('text/event-stream')) return response.arrayBuffer();
  const reader = response.body.getReader();
  const { value = new Uint8Array() } = await reader.read();
  await reader.cancel();
  return value.slice().buffer;
}

class Console {
  constructor(operation) {
    this.method = operation.dataset.method;
    this.path = operation.dataset.path;
    const example = operation.querySelector('.example');
    this.type = example?.dataset.type;
    this.inputs = [...operation.querySelectorAll('.parameters tr')].map((row) => {
      const { name, in: place, value = '' } = row.dataset;
      return {
        name,
        place,
        input: element('input', { value, required: place === 'path', autocomplete: 'off', spellcheck: false }),
      };
    });
    this.isForm = this.type === 'multipart/form-data';
    if (this.isForm) this.file = element('input', { type: 'file', required: true });
    if (this.type !== undefined) {
      const value = this.isForm ? '' : example.textContent;
      this.body = element('textarea', { value, rows: Math.min(12, value.split('\n').length + 1), spellcheck: false });
    }
    this.curl = operation.querySelector('.curl');
    this.answer = element('div', { className: 'answer', 'aria-live': 'polite' });
    this.form = this.makeForm();
    this.curl.after(this.form, this.answer);
    this.references = JSON.parse(example?.dataset.references ?? '{}');
    this.example = this.body?.value;
    this.show();
    this.fillReferences();
    token.addEventListener('input', () => this.show());
    tools.addEventListener('signed-in', () => {
      this.show();
      this.fillReferences();
    });
  }

  get credentials() {
    return token.value === ''
      ? { headers: {}, credentials: 'same-origin' }
      : { headers: { Authorization: `Bearer ${token.value.trim()}` }, credentials: 'omit' };
  }

  /** Puts ids of records that the caller sees in the place of made-up ones, until the body is edited. */
  async fillReferences() {
    if (token.value === '' && signIn.user === undefined) return;
    for (const [name, collection] of Object.entries(this.references)) {
      const found = await fetch(`/api/${encodeURIComponent(collection)}?limit=1`, this.credentials).catch(
        () => undefined,
      );
      if (found?.ok !== true || this.body.value !== this.example) continue;
      const { data } = await found.json();
      if (data.length === 0 || this.body.value !== this.example) continue;
      const body = JSON.parse(this.example);
      body.data[name] = data[0].id;
      this.example = JSON.stringify(body, null, 2);
      this.body.value = this.example;
      this.show();
    }
  }

  makeForm() {
    const fields = this.inputs.map(({ name, place, input }) => labelled(`${name} (${place})`, input));
    if (this.isForm) fields.push(labelled('file', this.file), labelled('data (JSON, may be empty)', this.body));
    else if (this.body !== undefined) fields.push(labelled('body', this.body));
    const form = element('form', {}, ...fields, element('button', { type: 'submit' }, 'Send the request'));
    form.addEventListener('input', () => this.show());
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      this.send();
    });
    return form;
  }

  of(place) {
    return this.inputs.filter((each) => each.place === place && each.input.value !== '');
  }

  get url() {
    let path = this.path;
    for (const { name, input } of this.of('path')) path = path.replace(`{${name}}`, encodeURIComponent(input.value));
    const query = new URLSearchParams(this.of('query').map(({ name, input }) => [name, input.value])).toString();
    return `${location.origin}${path}${query === '' ? '' : `?${query}`}`;
  }

  get headers() {
    const headers = Object.fromEntries(this.of('header').map(({ name, input }) => [name, input.value]));
    return this.type === undefined || this.isForm ? headers : { ...headers, 'Content-Type': this.type };
  }

  /** The curl line of what the form holds; the token is not shown. */
  show() {
    const verb = { GET: '', HEAD: ' -I' }[this.method] ?? ` -X ${this.method}`;
    const lines = [`curl${verb} ${quoted(this.url)}`];
    if (token.value !== '' || signIn.user !== undefined) lines.push('-H "Authorization: Bearer $TOKEN"');
    for (const [name, value] of Object.entries(this.headers)) lines.push(`-H ${quoted(`${name}: ${value}`)}`);
    if (this.isForm) {
      lines.push(`-F ${quoted(`file=@${this.file.files[0]?.name ?? 'photo.png'}`)}`);
      if (this.body.value !== '') lines.push(`-F ${quoted(`data=${this.body.value};type=application/json`)}`);
    } else if (this.body !== undefined) {
      lines.push(`-d ${quoted(this.body.value)}`);
    }
    this.curl.textContent = lines.join(' \\\n  ');
  }

  get content() {
    if (!this.isForm) return this.body?.value;
    const form = new FormData();
    if (this.body.value !== '') form.append('data', new Blob([this.body.value], { type: 'application/json' }));
    form.append('file', this.file.files[0]);
    return form;
  }

  async send() {
    const button = this.form.querySelector('button');
    button.disabled = true;
    this.answer.replaceChildren('Sending…');
    try {
      const started = performance.now();
      const response = await fetch(this.url, {
        ...this.credentials,
        method: this.method,
        headers: { ...this.headers, ...this.credentials.headers },
        body: this.content,
      });
      await this.showAnswer(response, performance.now() - started);
    } catch (error) {
      this.answer.replaceChildren(
        element('p', { className: 'failure' }, `The request was not answered: ${error.message}`),
      );
    } finally {
      button.disabled = false;
    }
  }

  async showAnswer(response, milliseconds) {
    const { status, statusText, ok } = response;
    const type = response.headers.get('content-type') ?? '';
    const bytes = await bytesOf(response, type);
    const line = `${status} ${statusText} in ${Math.round(milliseconds)} ms, ${bytes.byteLength} bytes`;
    const headers = [...response.headers].map(([name, value]) => `${name}: ${value}`).join('\n');
    this.answer.replaceChildren(
      element('p', { className: ok ? 'success' : 'failure' }, line),
      element('details', {}, element('summary', {}, 'Headers'), element('pre', { tabIndex: 0 }, headers)),
    );
    if (bytes.byteLength > 0)
      this.answer.append(element('pre', { tabIndex: 0, className: 'content' }, readable(bytes, type)));
    this.keepToken(bytes, type, ok);
  }

  /** A login in the console is one for the console. */
  keepToken(bytes, type, ok) {
    if (!ok || !this.path.startsWith('/api/auth/') || !/\bjson\b/.test(type)) return;
    const { access_token: given } = JSON.parse(new TextDecoder().decode(bytes));
    if (typeof given !== 'string') return;
    token.value = given;
    token.dispatchEvent(new Event('input'));
    this.answer.append(element('p', {}, 'The next requests carry this access token.'));
  }
}

const LONGEST = 100_000;

function readable(bytes, type) {
  if (!/^text\/|\bjson\b/.test(type)) return `${type || 'content of no type'}, not shown`;
  const text = new TextDecoder().decode(bytes);
  const shown = /\bjson\b/.test(type) ? JSON.stringify(JSON.parse(text), null, 2) : text;
  return shown.length > LONGEST ? `${shown.slice(0, LONGEST)}\n… ${shown.length - LONGEST} more characters` : shown;
}

for (const operation of operations) {
  operation.addEventListener('toggle', () => {
    if (!operation.open || operation.dataset.ready !== undefined) return;
    operation.dataset.ready = '';
    new Console(operation);
  });
}
openTarget();
