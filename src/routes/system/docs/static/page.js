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
tools.append(labelled('Search (press /)', search, found), labelled('Bearer token', token, hint));
tools.hidden = false;

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

class Console {
  constructor(operation) {
    this.method = operation.dataset.method;
    this.path = operation.dataset.path;
    const example = operation.querySelector('.example');
    this.type = example?.dataset.type;
    this.inputs = [...operation.querySelectorAll('.parameters tr')].map((row) => {
      const { name, in: place } = row.dataset;
      return {
        name,
        place,
        input: element('input', { required: place === 'path', autocomplete: 'off', spellcheck: false }),
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
    this.show();
    token.addEventListener('input', () => this.show());
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
    if (token.value !== '') lines.push('-H "Authorization: Bearer $TOKEN"');
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
      const headers = new Headers(this.headers);
      if (token.value !== '') headers.set('Authorization', `Bearer ${token.value.trim()}`);
      const started = performance.now();
      const response = await fetch(this.url, {
        method: this.method,
        headers,
        body: this.content,
        credentials: token.value === '' ? 'same-origin' : 'omit',
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
    const bytes = await response.arrayBuffer();
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
