// @module-tag long
/** `bylaw lsp` over its protocol: framing, diagnostics, completions, hovers, navigation, renames, fixes. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { pathToFileURL } from 'node:url';
import { afterAll, afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CHANGE_CALLS, COMPARE_OPS, QUANTIFIERS } from '../../grammar/tokens.ts';
import { runCommand } from '../../src/cli/index.ts';
import { CONNECTIVES, docOf } from '../../src/policy/words.ts';
import { parseSchema } from '../../src/schema/load.ts';

/** A message, as `JSON.parse` types it. */
type Json = ReturnType<JSON['parse']>;

interface Edit {
  readonly range: Range;
  readonly newText: string;
}
interface Place {
  readonly line: number;
  readonly character: number;
}
interface Range {
  readonly start: Place;
  readonly end: Place;
}

/** The client of one server, whose texts have a `¦` at each cursor. */
class Editor {
  readonly notices: Json[] = [];
  readonly #stdin = new PassThrough();
  readonly #answers = new Map<number, (message: Json) => void>();
  readonly ended: Promise<number>;
  #received = '';
  #requests = 0;

  constructor(cwd: string) {
    const io = {
      stdin: this.#stdin,
      stdout: { write: (text: string) => this.#receive(text) },
      stderr: { write: () => true },
      env: {},
      cwd,
    };
    this.ended = runCommand(['lsp', '--stdio'], io);
  }

  #receive(text: string): void {
    this.#received += text;
    for (;;) {
      const head = /^Content-Length: (\d+)\r\n\r\n/.exec(this.#received);
      if (head === null) return;
      const rest = Buffer.from(this.#received.slice(head[0].length));
      const length = Number(head[1]);
      if (rest.length < length) return;
      const message = JSON.parse(rest.subarray(0, length).toString());
      this.#received = rest.subarray(length).toString();
      if (message.method !== undefined || message.id === null) this.notices.push(message);
      else this.#answers.get(message.id)?.(message);
    }
  }

  send(message: object): void {
    const body = JSON.stringify({ jsonrpc: '2.0', ...message });
    this.sendText(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
  }

  sendText(text: string): void {
    this.#stdin.write(text);
  }

  ask(method: string, params: object = {}): Promise<Json> {
    const id = ++this.#requests;
    return new Promise((resolve) => {
      this.#answers.set(id, resolve);
      this.send({ id, method, params });
    });
  }

  async result(method: string, params: object): Promise<Json> {
    const { result, error } = await this.ask(method, params);
    if (error !== undefined) throw new Error(error.message);
    return result;
  }

  /** Opens the text without its cursors, and returns the places of these. */
  open(uri: string, marked: string): readonly Place[] {
    const parts = marked.split('¦');
    this.send({ method: 'textDocument/didOpen', params: { textDocument: { uri, text: parts.join('') } } });
    return parts.slice(1).map((_, i) => placeAfter(parts.slice(0, i + 1).join('')));
  }

  /** The diagnostics of the last text, after all messages so far. */
  async diagnostics(uri: string): Promise<readonly Json[]> {
    const nowhere = { line: 0, character: 0 };
    await this.ask('textDocument/codeAction', { textDocument: { uri }, range: { start: nowhere, end: nowhere } });
    return this.notices.filter(({ params }) => params.uri === uri).at(-1)?.params.diagnostics;
  }

  close(): void {
    this.#stdin.end();
  }

  /** True: the server has let go of its input, though the client keeps it open. */
  get isReleased(): boolean {
    return this.#stdin.destroyed;
  }
}

function placeAfter(text: string): Place {
  const lines = text.split('\n');
  return { line: lines.length - 1, character: lines.at(-1)!.length };
}

/** The text after the edits, which do not overlap. */
function edited(text: string, edits: readonly Edit[]): string {
  const lines = text.split('\n');
  const starts = lines.map((_, i) => lines.slice(0, i).join('\n').length + (i === 0 ? 0 : 1));
  const at = ({ line, character }: Place): number => starts[line]! + character;
  return edits
    .toSorted((a, b) => at(b.range.start) - at(a.range.start))
    .reduce(
      (result, { range, newText }) => result.slice(0, at(range.start)) + newText + result.slice(at(range.end)),
      text,
    );
}

const SCHEMA = `roles:
  admin: { includes: [editor] }
  editor: {}
conditions:
  'is_member(team: teams)': 'any(team.members as m, m.id = @request.auth.id)'
collections:
  teams:
    fields: { name: string }
    relations: { members: { kind: many_to_many, collection: users } }
  documents:
    fields:
      title: string
      status: { type: string, enum: [draft, published], index: true }
    relations:
      owner: { kind: belongs_to, collection: users }
      team: { kind: belongs_to, collection: teams }
    access:
      view: '@record.status = "published" or is_member(@record.team)'
      update:
        - when: '@record.owner_id = @request.auth.id and not changed(@record.owner)'
        - { roles: [admin], when: '@request.auth.roles contains "editor" and @record.team.name = "it''s"' }
prove:
  - never: 'guest can update documents where @record.status = "draft" and @record.owner is null'
  - never: 'guest can update documents.title'
`;
const TESTS = `as:
  ada: { roles: [editor] }
rows:
  documents:
    draft: { owner: ada, title: Draft }
tests:
  - documents: draft
    ada: { read: { title: yes } }
`;

const folder = mkdtempSync(join(tmpdir(), 'bylaw-lsp-'));
const uri = pathToFileURL(join(folder, 'bylaw.yaml')).href;
const testUri = pathToFileURL(join(folder, 'documents.policy.yaml')).href;
const document = { textDocument: { uri } };
writeFileSync(join(folder, 'documents.policy.yaml'), TESTS);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

let editor: Editor;
beforeEach(async () => {
  editor = new Editor(folder);
  await editor.result('initialize', { capabilities: {} });
});
afterEach(() => editor.close());

describe('the protocol', () => {
  it('a server starts by `initialize`, reports unknown methods, and ends by `shutdown` and `exit`', async () => {
    const fresh = new Editor(folder);
    expect((await fresh.ask('textDocument/hover', document)).error.code).toBe(-32_002);
    expect((await fresh.ask('initialize')).result).toMatchObject({
      capabilities: { positionEncoding: 'utf-16', hoverProvider: true },
      serverInfo: { name: 'bylaw' },
    });
    expect((await fresh.ask('workspace/nothing')).error.code).toBe(-32_601);
    expect(await fresh.result('textDocument/hover', document)).toBeNull();
    expect(await fresh.result('shutdown', {})).toBeNull();
    expect((await fresh.ask('textDocument/hover', document)).error.code).toBe(-32_600);
    fresh.send({ method: 'exit' });
    expect(await fresh.ended).toBe(0);
    // An open stdin would keep the process.
    expect(fresh.isReleased).toBe(true);
  });

  it('a client that disappears ends the server with 1, and a message that is not JSON is an error', async () => {
    editor.sendText('Content-Length: 3\r\n\r\n{"a');
    editor.close();
    expect(await editor.ended).toBe(1);
    expect(editor.notices.at(-1)).toMatchObject({ error: { code: -32_700 } });
  });

  it('messages may come in pieces, with characters of several bytes', async () => {
    const text = `# ÄÖ😀\n${SCHEMA}`;
    const body = Buffer.from(
      JSON.stringify({ jsonrpc: '2.0', method: 'textDocument/didOpen', params: { textDocument: { uri, text } } }),
    );
    const whole = Buffer.concat([Buffer.from(`Content-Length: ${body.length}\r\n\r\n`), body]);
    for (let i = 0; i < whole.length; i += 7) editor.sendText(whole.subarray(i, i + 7) as never);
    expect(await editor.diagnostics(uri)).toEqual([]);
  });
});

describe('diagnostics', () => {
  it('the issues are those of `bylaw check`, at their places, until they are mended', async () => {
    const wrong = SCHEMA.replace('@record.status = "published"', '@record.statsu = "published"');
    editor.open(uri, wrong);
    const { issues } = parseSchema(wrong);
    expect(await editor.diagnostics(uri)).toEqual(
      issues.map(({ line, column, end_line, end_column, code, message }) => ({
        range: {
          start: { line: line - 1, character: column - 1 },
          end: { line: end_line - 1, character: end_column - 1 },
        },
        severity: 1,
        code,
        source: 'bylaw',
        message,
      })),
    );
    const [fix] = await editor.result('textDocument/codeAction', {
      ...document,
      range: (await editor.diagnostics(uri))[0].range,
    });
    expect(fix).toMatchObject({ title: 'replace by `status`', kind: 'quickfix' });
    expect(edited(wrong, fix.edit.changes[uri])).toBe(SCHEMA);
    editor.send({ method: 'textDocument/didChange', params: { ...document, contentChanges: [{ text: SCHEMA }] } });
    expect(await editor.diagnostics(uri)).toEqual([]);
    editor.send({ method: 'textDocument/didClose', params: document });
    expect(await editor.diagnostics(uri)).toEqual([]);
  });

  it('a rule that decides nothing is marked as unnecessary', async () => {
    const asks = '@request.auth.roles contains "editor"';
    const rules = [`${asks} and @record.team.name = "x"`, asks].map((rule) => `        - when: '${rule}'\n`);
    editor.open(uri, SCHEMA.replace('update:\n', `update:\n${rules.join('')}`));
    expect(await editor.diagnostics(uri)).toContainEqual(
      expect.objectContaining({ code: 'idle_rule', severity: 2, tags: [1] }),
    );
  });

  it('a text that is not YAML is one error, and completions keep the last good state', async () => {
    editor.open(uri, SCHEMA);
    const [place] = editor.open(
      uri,
      SCHEMA.replace('name: string }', 'name: string').replace('@record.status =', '@record.¦ ='),
    );
    expect(await editor.diagnostics(uri)).toMatchObject([{ code: 'yaml_syntax' }]);
    const kept = await editor.result('textDocument/completion', { ...document, position: place });
    expect(kept.map((item: Json) => item.label)).toEqual(expect.arrayContaining(['status', 'title', 'team']));
    const [again] = editor.open(
      uri,
      SCHEMA.replace('title: string', 'title: strng').replace('@record.status =', '@record.¦ ='),
    );
    const labels = (await editor.result('textDocument/completion', { ...document, position: again })).map(
      (item: Json) => item.label,
    );
    expect(labels).toEqual(expect.arrayContaining(['status', 'title', 'team']));
  });

  it('test files are judged by the schema beside them, with its unsaved text', async () => {
    editor.open(testUri, TESTS.replace('ada: { read', 'adda: { read'));
    expect(await editor.diagnostics(testUri)).toEqual([]);
    editor.open(uri, SCHEMA);
    expect(await editor.diagnostics(testUri)).toMatchObject([
      { code: 'unknown_caller', range: { start: { line: 7 } } },
    ]);
    editor.open(testUri, TESTS);
    expect(await editor.diagnostics(testUri)).toEqual([]);
  });
});

describe('completions', () => {
  const labels = async (of: string, position: Place): Promise<readonly string[]> =>
    (await editor.result('textDocument/completion', { textDocument: { uri: of }, position })).map(
      (item: Json) => item.label,
    );

  it('a policy offers members, values of enums and roles, as its YAML string writes them', async () => {
    const [member, value, role, quoted] = editor.open(
      uri,
      SCHEMA.replace('@record.status = "published"', '@record.st¦atus = ¦"published"').replace(
        'contains "editor" and @record.team.name',
        'contains ¦"editor" and @record.team.¦name',
      ),
    );
    expect(await labels(uri, member!)).toEqual(expect.arrayContaining(['status', 'owner', 'title']));
    expect(await labels(uri, value!)).toEqual(expect.arrayContaining(['"draft"', '"published"']));
    expect(await labels(uri, role!)).toEqual(expect.arrayContaining(['"admin"', '"editor"']));
    const [name] = (await editor.result('textDocument/completion', { ...document, position: quoted! })).filter(
      (item: Json) => item.label === 'name',
    );
    expect(name).toMatchObject({ detail: 'string or null', textEdit: { newText: 'name' } });
    expect(edited(SCHEMA, [name.textEdit])).toBe(SCHEMA);
  });

  it('other places offer roles and collections', async () => {
    const [title, target, role] = editor.open(
      uri,
      SCHEMA.replace('roles: [admin]', 'roles: [adm¦in]')
        .replace('collection: teams }', 'collection: te¦ams }')
        .replace('title: str', 'title: s¦tr'),
    );
    expect(await labels(uri, role!)).toEqual(['admin', 'editor']);
    expect(await labels(uri, target!)).toEqual(expect.arrayContaining(['teams', 'documents', 'users']));
    expect(await labels(uri, title!)).toEqual([]);
  });

  it('a test offers callers, rows and actions', async () => {
    editor.open(uri, SCHEMA);
    const [row, action] = editor.open(
      testUri,
      TESTS.replace('documents: draft', 'documents: dr¦aft').replace('ada: { read', 'ada: { re¦ad'),
    );
    expect(await labels(testUri, row!)).toEqual(['draft']);
    expect(await labels(testUri, action!)).toEqual(
      expect.arrayContaining(['list', 'read', 'update', 'delete', 'none']),
    );
    const [caller] = editor.open(testUri, `${TESTS}  - documents: draft\n    as: a¦da\n`);
    expect(await labels(testUri, caller!)).toEqual(['guest', 'ada']);
  });

  it('a list leaves out the documentation of words, and resolving an item adds it', async () => {
    const [position] = editor.open(uri, SCHEMA.replace('@record.status =', '@record.status ¦='));
    const items = await editor.result('textDocument/completion', { ...document, position });
    const item = items.find(({ label }: Json) => label === 'in');
    expect(item.documentation).toBeUndefined();
    const resolved = await editor.result('completionItem/resolve', item);
    expect(resolved).toEqual({ ...item, documentation: docOf('in').doc });
    expect(resolved.documentation.length).toBeGreaterThan(10);
  });
});

describe('questions about a place', () => {
  const hover = async (position: Place) =>
    (await editor.result('textDocument/hover', { ...document, position }))?.contents.value as string | undefined;

  it('a hover has the type and the SQL of a leaf, the callers with a role, and the body of a condition', async () => {
    const [outside, field, condition, role] = editor.open(
      uri,
      SCHEMA.replace('@record.status =', '@record.st¦atus =')
        .replace('or is_member(', 'or is_m¦ember(')
        .replace('contains "editor"', 'contains "edi¦tor"')
        .replace('title: str', 'title: st¦r'),
    );
    expect(await hover(field!)).toBe(`string, or null\n\n\`\`\`sql\n"t"."status" = 'published'::text\n\`\`\``);
    expect(await hover(condition!)).toContain('any(team.members as m, m.id = @request.auth.id)');
    expect(await hover(role!)).toContain('users with `admin`, `editor`');
    expect(await hover(outside!)).toBeUndefined();
  });

  it('definitions lead to fields, relations, conditions, roles and collections', async () => {
    const places = editor.open(
      uri,
      SCHEMA.replace('@record.status =', '@record.st¦atus =')
        .replace('or is_member(@record.team)', 'or is_mem¦ber(@record.te¦am)')
        .replace('roles: [admin]', 'roles: [ad¦min]')
        .replace('collection: teams }', 'collection: te¦ams }')
        .replace('any(team.members', 'any(team.mem¦bers'),
    );
    const lines: string[] = [];
    for (const position of places) {
      const found = await editor.result('textDocument/definition', { ...document, position });
      if (found === null) throw new Error(JSON.stringify(position));
      const { start, end } = found.range as Range;
      lines.push(SCHEMA.split('\n')[start.line]!.slice(start.character, end.character));
    }
    // The places are in the order of the text.
    expect(lines).toEqual(['members', 'teams', 'status', "'is_member(team: teams)'", 'team', 'admin']);
  });

  it('references are all places of a condition, role or collection, the declaration first', async () => {
    const places = editor.open(
      uri,
      SCHEMA.replace('  editor: {}', '  edit¦or: {}')
        .replace("'is_member(", "'is_mem¦ber(")
        .replace('  teams:\n', '  tea¦ms:\n'),
    );
    const shown: string[][] = [];
    for (const position of places) {
      const found = await editor.result('textDocument/references', { ...document, position });
      shown.push(found.map(({ range: { start } }: Json) => SCHEMA.split('\n')[start.line]!.trim()));
    }
    const [roles, conditions, collections] = shown;
    expect(roles).toEqual([
      'editor: {}',
      'admin: { includes: [editor] }',
      ...SCHEMA.split('\n').flatMap((line) => (line.includes('"editor"') ? [line.trim()] : [])),
    ]);
    expect(conditions).toEqual([
      `'is_member(team: teams)': 'any(team.members as m, m.id = @request.auth.id)'`,
      ...SCHEMA.split('\n').flatMap((line) => (line.includes('is_member(@') ? [line.trim()] : [])),
    ]);
    expect(collections).toEqual(['teams:', 'team: { kind: belongs_to, collection: teams }']);
  });

  it('callers and rows of tests have a definition and references', async () => {
    editor.open(uri, SCHEMA);
    const [row, caller] = editor.open(
      testUri,
      TESTS.replace('    ada: { read', '    ad¦a: { read').replace('documents: draft', 'documents: dr¦aft'),
    );
    const ask = (method: string, position: Place) =>
      editor.result(`textDocument/${method}`, { textDocument: { uri: testUri }, position });
    const lineOf = ({ range, uri: at }: Json) => [at === testUri, range.start.line, range.start.character];
    expect(lineOf(await ask('definition', caller!))).toEqual([true, 1, 2]);
    expect(lineOf(await ask('definition', row!))).toEqual([true, 4, 4]);
    expect((await ask('references', caller!)).map(lineOf)).toEqual([
      [true, 1, 2],
      [true, 4, 20],
      [true, 7, 4],
    ]);
    expect((await ask('references', row!)).map(lineOf)).toEqual([
      [true, 4, 4],
      [true, 6, 15],
    ]);
  });

  it('a hover in a test file has the values of a caller or row, and the type of a member', async () => {
    editor.open(uri, SCHEMA);
    const [member, row, caller, nothing] = editor.open(
      testUri,
      TESTS.replace('{ owner: ada', '{ ow¦ner: ada')
        .replace('documents: draft', 'documents: dr¦aft')
        .replace('    ada: { read', '    ad¦a: { re¦ad'),
    );
    const hover = async (position: Place) =>
      (await editor.result('textDocument/hover', { textDocument: { uri: testUri }, position }))?.contents.value;
    expect(await hover(row!)).toMatch(/^row `draft` of `documents`\n\n```yaml\n\{"owner":"ada"/);
    expect(await hover(member!)).toMatch(/^`documents.owner`: belongs_to of `users`/);
    expect(await hover(caller!)).toMatch(/^caller `ada`\n\n```yaml\n/);
    expect(await hover(nothing!)).toBeUndefined();
  });

  it('a rename in a test file follows a caller, unless the name is taken', async () => {
    editor.open(uri, SCHEMA);
    const [position] = editor.open(testUri, TESTS.replace('    ada: { read', '    ad¦a: { read'));
    const at = { textDocument: { uri: testUri }, position };
    expect(await editor.result('textDocument/prepareRename', at)).toMatchObject({ placeholder: 'ada' });
    const { changes } = await editor.result('textDocument/rename', { ...at, newName: 'eve' });
    expect(edited(TESTS, changes[testUri])).toBe(TESTS.replaceAll('ada', 'eve'));
    const message = async (newName: string) =>
      (await editor.ask('textDocument/rename', { ...at, newName })).error.message;
    expect(await message('ada')).toBe('`users` has a `ada` already');
    expect(await message('guest')).toBe('no caller can be named `guest`');
  });

  it('a YAML file without collections is left alone', async () => {
    const other = pathToFileURL(join(folder, 'compose.yaml')).href;
    const [position] = editor.open(other, 'services: { a¦: { image: x } }');
    expect(await editor.diagnostics(other)).toBeUndefined();
    const at = { textDocument: { uri: other }, position };
    expect(await editor.result('textDocument/completion', at)).toEqual([]);
    expect(await editor.result('textDocument/hover', at)).toBeNull();
  });

  it('a lens runs the tests, and then says how many there are, and how many mutants are alive', async () => {
    const own = mkdtempSync(join(folder, 'tested-'));
    const text = "collections: { notes: { fields: { title: string }, access: { read: '@record.title is null' } } }\n";
    writeFileSync(join(own, 'bylaw.yaml'), text);
    writeFileSync(
      join(own, 'a.policy.yaml'),
      'rows: { notes: { a: {} } }\ntests: [{ notes: a, guest: { read: yes } }]\n',
    );
    const at = pathToFileURL(join(own, 'bylaw.yaml')).href;
    await editor.result('initialize', { capabilities: { workspace: { codeLens: { refreshSupport: true } } } });
    editor.open(at, text);
    const lenses = async (): Promise<Json[]> => editor.result('textDocument/codeLens', { textDocument: { uri: at } });
    const [before] = await lenses();
    const place = { line: 0, character: text.indexOf('@record') };
    expect(before).toEqual({
      range: { start: place, end: place },
      command: { title: 'run the tests', command: 'bylaw.test', arguments: [at] },
    });
    expect(await editor.result('workspace/executeCommand', before.command)).toBeNull();
    expect(editor.notices.at(-1).method).toBe('workspace/codeLens/refresh');
    expect((await lenses()).map(({ command }) => command.title)).toEqual(['1 test, 0 mutants alive']);
    // Places of a text with errors are not those of the latest schema.
    editor.open(at, `${text}: :\n`);
    expect(await lenses()).toEqual([]);
    const { error } = await editor.ask('workspace/executeCommand', { command: 'rm', arguments: [at] });
    expect(error.message).toBe('unknown command rm');
  });

  it('a rename follows a relation through policies and `was`, and the new file is a schema', async () => {
    const [position] = editor.open(uri, SCHEMA.replace('      owner:', '      own¦er:'));
    expect(await editor.result('textDocument/prepareRename', { ...document, position })).toMatchObject({
      placeholder: 'owner',
    });
    expect((await editor.result('textDocument/references', { ...document, position, context: {} })).length).toBe(4);
    const { changes } = await editor.result('textDocument/rename', { ...document, position, newName: 'author' });
    const text = edited(SCHEMA, changes[uri]);
    expect(text).toContain('author: { was: owner, kind: belongs_to, collection: users }');
    expect(text).toContain('@record.author_id = @request.auth.id and not changed(@record.author)');
    expect(text).toContain('@record.status = "draft" and @record.author is null');
    expect(parseSchema(text).issues).toEqual([]);
    expect(edited(TESTS, changes[testUri])).toBe(TESTS.replace('owner: ada', 'author: ada'));
  });

  it('a rename of a field changes its tests, and a name that exists or is reserved is an error', async () => {
    const [position] = editor.open(uri, SCHEMA.replace('      title:', '      ti¦tle:'));
    const rename = (newName: string) => editor.ask('textDocument/rename', { ...document, position, newName });
    const { changes } = (await rename('headline')).result;
    expect(edited(SCHEMA, changes[uri])).toContain('headline: { type: string, was: title }');
    expect(edited(SCHEMA, changes[uri])).toContain('guest can update documents.headline');
    expect(edited(TESTS, changes[testUri])).toBe(
      TESTS.replace('title: Draft', 'headline: Draft').replace('title: yes', 'headline: yes'),
    );
    expect((await rename('status')).error).toMatchObject({
      code: -32_602,
      message: '`documents` has a `status` already',
    });
    expect((await rename('xmin')).error.message).toContain('reserved');
  });

  it('a rename follows a member to every key and policy that names it', async () => {
    const text = `
conditions:
  'mine(r: bookings)': 'r.holder = @request.auth.id'
collections:
  bookings:
    soft_delete: true
    title: label
    no_overlap: [{ on: [room], from: starts, to: ends }]
    fields:
      label: { type: string, unique: { within: [room] } }
      room: { type: string, required: true }
      meta: { type: json, paths: { color: string } }
      starts: datetime
      ends: datetime
    relations: { holder: { kind: belongs_to, collection: users } }
    access:
      list: 'mine(@record) and @record.label = "x" and @record.meta.color = "red"'
      restore: '@record.room = "x" and @record.deleted_at < @now'
    checks:
      in_order: { when: '@next.starts < @next.ends', message: too late, fields: [starts, ends] }
prove:
  - never: guest can restore bookings where @record.label = "x"
`;
    for (const member of ['label', 'room', 'meta', 'starts', 'ends', 'holder']) {
      const [position] = editor.open(
        uri,
        text.replace(`      ${member}: `, `      ¦${member}: `).replace('{ holder', '{ ¦holder'),
      );
      const { changes } = await editor.result('textDocument/rename', { ...document, position, newName: 'other' });
      const renamed = edited(text, changes[uri]);
      expect(renamed.replace(/was: \w+/, '')).not.toMatch(new RegExp(`\\b${member}\\b`));
      expect(parseSchema(renamed).issues.filter(({ severity }) => severity === 'error')).toEqual([]);
    }
  });

  it('the outline and the formatting are of the whole file', async () => {
    editor.open(uri, SCHEMA.replace('@record.status = "published" or', '@record.status="published"||'));
    const outline = await editor.result('textDocument/documentSymbol', document);
    expect(outline.map((symbol: Json) => symbol.name)).toEqual([
      'admin',
      'editor',
      'is_member(team: teams)',
      'teams',
      'documents',
    ]);
    expect(outline.at(-1).children.map((symbol: Json) => symbol.name)).toEqual([
      'title',
      'status',
      'owner',
      'team',
      'view',
      'update',
    ]);
    const folds: Json[] = await editor.result('textDocument/foldingRange', document);
    const lines = SCHEMA.split('\n').map((line) => line.trim());
    expect(folds.map(({ startLine, endLine }) => [lines[startLine], lines[endLine]!.slice(0, 20)])).toEqual([
      ['teams:', 'relations: { members'],
      ['documents:', '- { roles: [admin], '],
      ['update:', '- { roles: [admin], '],
    ]);
    const [edit] = await editor.result('textDocument/formatting', { ...document, options: {} });
    expect(edit.newText).toContain('@record.status = "published" or is_member(@record.team)');
  });
});

it('the issues of a schema with 200 policies follow a change', async () => {
  const at = SCHEMA.indexOf('prove:');
  const documents = SCHEMA.slice(SCHEMA.indexOf('  documents:'), at);
  const many = Array.from({ length: 66 }, (_, i) => documents.replace('documents', `papers${i}`)).join('');
  const times: number[] = [];
  for (let i = 0; i < 3; i++) {
    const start = performance.now();
    editor.open(uri, `${SCHEMA.slice(0, at)}${many}${SCHEMA.slice(at)}${'#'.repeat(i)}`);
    expect(await editor.diagnostics(uri)).toEqual([]);
    times.push(performance.now() - start);
  }
  // `bench -- workbench` measures it on a quiet machine: 100 ms at most.
  expect(Math.min(...times)).toBeLessThan(2_000);
});

it('the extension starts `bylaw lsp`, and its grammar names every word of the language', () => {
  const folder = join(import.meta.dirname, '../../editors/vscode');
  const manifest = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
  expect(manifest.contributes.configuration.properties['bylaw.command'].default).toEqual(['npx', 'bylaw', 'lsp']);
  expect(manifest.version).toBe(JSON.parse(readFileSync(join(folder, '../../package.json'), 'utf8')).version);
  const [grammar] = manifest.contributes.grammars;
  const { patterns, scopeName } = JSON.parse(readFileSync(join(folder, grammar.path), 'utf8'));
  expect(scopeName).toBe(grammar.scopeName);
  const colours = (text: string) => patterns.some(({ match }: Json) => new RegExp(match).test(text));
  const words = [...Object.keys(CONNECTIVES), ...COMPARE_OPS].filter((word) => word !== 'not' && word !== '==');
  expect(words.filter((word) => !colours(`x ${word} y`))).toEqual([]);
  expect([...QUANTIFIERS, ...CHANGE_CALLS, 'count', 'ancestors'].filter((word) => !colours(`${word}(x)`))).toEqual([]);
  expect(colours('title')).toBe(false);
});
