import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runCommand } from '../../src/cli/index.ts';

let cwd: string;
beforeAll(() => {
  cwd = mkdtempSync(join(tmpdir(), 'bylaw-'));
});
afterAll(() => rmSync(cwd, { recursive: true }));

async function run(command: string, argv: readonly string[], env: Record<string, string> = {}) {
  const out = { stdout: '', stderr: '' };
  const write = (to: keyof typeof out) => ({ write: (text: string) => (out[to] += text) });
  const code = await runCommand([command, ...argv], {
    stdout: write('stdout'),
    stderr: write('stderr'),
    stdin: Readable.from([]),
    env,
    cwd,
  });
  return { code, ...out };
}

const file = (name: string, text: string): void => writeFileSync(join(cwd, name), text);
const FAULTY = 'roles: [admin]\ncolections: {}\n';
const WARNED = "collections:\n  a:\n    fields: { n: int }\n    access: { read: '@record.n != 3' }\n";
const SOUND = "collections:\n  a:\n    fields: { n: int }\n    access: { read: '@record.n=3' }\n";

const GROWING = `collections:
  things:
    fields:
      name: { type: string, max: 80 }
      code: { type: string, max: 9, unique: true }
      rank: { type: int, index: true }
      state: { type: string, enum: [a, b] }
      note: { type: string, max: 80, index: false }
      body: string
      text: { type: string, max: 80, search: true }
      kind: { type: string, enum: [x, y] }
    access: { list: '@record.kind = "x"' }
  unlisted:
    fields: { name: { type: string, max: 80 } }
    access: { read: true }
`;

const noted = (name: string, before = ''): string =>
  `note[no_index]: ${before}a list of \`things\` that is filtered or sorted by \`${name}\` reads the whole table; ` +
  'add `index: true`, or `index: false` if it stays small or nobody does';

it('the command says which feeds a cluster refuses', async () => {
  file(
    'bylaw.yaml',
    `collections:
  teams: { distribute: reference, changes: true, access: { view: true } }
  notes:
    distribute: { by: team, lists: filtered }
    changes: true
    relations: { team: { kind: belongs_to, collection: teams, required: true } }
    access: { view: true }
`,
  );
  expect((await run('check', [])).stderr).toBe(
    'feeds of changes read `notes`, distributed by tenant: partitions have such feeds, a cluster of Citus refuses them\n',
  );
});

describe('bylaw check --growth', () => {
  it('the command lists strings without a greatest length, which callers may write', async () => {
    file(
      'bylaw.yaml',
      `collections:
  notes:
    fields: { title: string, label: { type: string, max: 9 }, kind: { type: string, enum: [a] } }
    access: { create: true }
  read_only:
    fields: { title: string }
    access: { read: true }
`,
    );
    expect((await run('check', [])).stderr).toBe('1 string has no `max`; `bylaw check --growth` names them\n');
    const { stdout } = await run('check', ['--growth']);
    expect(stdout.match(/note\[no_max\]: .*\n.*/g)).toEqual([
      'note[no_max]: `title` has no `max`: a value is as long as a request can be, and each list and expansion repeats it; add `max`\n' +
        ' --> bylaw.yaml:3:15 (collections.notes.fields.title)',
    ]);
  });

  it('the command lists required strings that may be empty, which callers may write', async () => {
    const fields = 'a: { type: string, required: true, max: 9 }, b: { type: string, required: true, min: 0, max: 9 }';
    file('bylaw.yaml', `collections: { notes: { fields: { ${fields} }, access: { create: true } } }`);
    expect((await run('check', [])).stderr).toBe('1 required string has no `min`; `bylaw check --growth` names them\n');
    const { stdout } = await run('check', ['--growth']);
    expect(stdout.match(/note\[no_min\]: .*/g)).toEqual([
      'note[no_min]: `a` is required and has no `min`, so `""` is a value; add `min: 1`, or `min: 0` if it may be empty',
    ]);
  });

  it('the command lists filterable fields without an index', async () => {
    file('bylaw.yaml', GROWING);
    expect(await run('check', [])).toEqual({
      code: 0,
      stdout: 'no errors, no warnings\n',
      stderr: '3 fields have no index for filters and sorts; `bylaw check --growth` names them\n',
    });
    expect(await run('check', ['--growth', '--strict'])).toEqual({
      code: 0,
      stdout: [
        'no errors, no warnings',
        '',
        'note[no_index]: a list of `things` that is filtered or sorted by `updated_at` reads the whole table; ' +
          'if somebody does that, add `index: [updated_at]` to the collection',
        ' --> bylaw.yaml:2:3 (collections.things)',
        '2 |   things:',
        '  |   ^^^^^^',
        '',
        noted('name'),
        ' --> bylaw.yaml:4:7 (collections.things.fields.name)',
        '4 |       name: { type: string, max: 80 }',
        '  |       ^^^^',
        '',
        noted('state'),
        ' --> bylaw.yaml:7:7 (collections.things.fields.state)',
        '7 |       state: { type: string, enum: [a, b] }',
        '  |       ^^^^^',
        '',
        noted('text', '`search: true` serves only `matches`: '),
        '  --> bylaw.yaml:10:7 (collections.things.fields.text)',
        '10 |       text: { type: string, max: 80, search: true }',
        '   |       ^^^^',
        '',
      ].join('\n'),
      stderr: '',
    });
    const asJson = JSON.parse((await run('check', ['--growth', '--json'])).stdout);
    expect(asJson.map(({ code, severity, path }: Record<string, string>) => [code, severity, path])).toEqual([
      ['no_index', 'note', 'collections.things'],
      ['no_index', 'note', 'collections.things.fields.name'],
      ['no_index', 'note', 'collections.things.fields.state'],
      ['no_index', 'note', 'collections.things.fields.text'],
    ]);
    expect(JSON.parse((await run('check', ['--json'])).stdout)).toEqual([]);
  });

  it('the command prints no note if every field has an index, or the file has errors', async () => {
    const indexed = 'collections:\n  a: { fields: { n: { type: int, index: true } }, access: { list: true }';
    file('bylaw.yaml', `${indexed} }\n`);
    // No command may require a part that each collection has by itself.
    expect(await run('check', [])).toEqual({ code: 0, stdout: 'no errors, no warnings\n', stderr: '' });
    expect((await run('check', ['--growth'])).stdout).toContain('add `index: [updated_at]` to the collection');
    file('bylaw.yaml', `${indexed}, index: [updated_at] }\n  files: { access: { list: true } }\n`);
    expect((await run('check', ['--growth'])).stdout).toContain(
      'add `index: [updated_at, name, content_type, size, sha256]`',
    );
    file('bylaw.yaml', `${indexed}, index: [updated_at] }\n`);
    expect((await run('check', ['--growth'])).stdout).toBe(
      'no errors, no warnings\nevery field of the file that lists can be filtered by has an index\n',
    );
    expect(await run('check', [])).toEqual({ code: 0, stdout: 'no errors, no warnings\n', stderr: '' });
    file('bylaw.yaml', FAULTY);
    expect((await run('check', [])).stderr).toBe('');
  });
});

describe('bylaw check', () => {
  it('the command prints every error with its place, underlined, and exits with 1', async () => {
    file('bylaw.yaml', FAULTY);
    expect(await run('check', [])).toEqual({
      code: 1,
      stdout: [
        'error[unknown_key]: unknown key `colections`; did you mean `collections`?',
        ' --> bylaw.yaml:2:1 (colections)',
        '2 | colections: {}',
        '  | ^^^^^^^^^^',
        '  = fix: collections',
        '',
        '1 error, no warnings',
        '',
      ].join('\n'),
      stderr: '',
    });
  });

  it('the commands report a folder in the place of the schema file', async () => {
    mkdirSync(join(cwd, 'folder'));
    const reason = 'cannot be read: it is a folder; expected a file';
    const check = await run('check', ['--schema', 'folder']);
    expect([check.code, check.stdout.split('\n')[0]]).toEqual([1, `error[no_file]: the schema ${reason}`]);
    expect(await run('fmt', ['--schema', 'folder'])).toEqual({
      code: 2,
      stdout: '',
      stderr: `bylaw fmt: folder ${reason}\n`,
    });
  });

  it('the commands read no file in another encoding, and `fmt` leaves its bytes', async () => {
    const bytes = Buffer.from(`${SOUND}# Zürich\n`, 'latin1');
    writeFileSync(join(cwd, 'bylaw.yaml'), bytes);
    const check = await run('check', []);
    expect([check.code, check.stdout]).toEqual([
      1,
      expect.stringContaining(
        'error[not_utf8]: the schema cannot be read: line 5 is not UTF-8; save the file as UTF-8',
      ),
    ]);
    const format = await run('fmt', []);
    expect([format.code === 0, format.stderr]).toEqual([
      false,
      expect.stringContaining('bylaw.yaml cannot be read: line 5 is not UTF-8; save the file as UTF-8'),
    ]);
    expect(readFileSync(join(cwd, 'bylaw.yaml'))).toEqual(bytes);
  });

  it('the command prints the same as JSON', async () => {
    file('bylaw.yaml', FAULTY);
    const { code, stdout } = await run('check', ['--json']);
    expect([code, JSON.parse(stdout)]).toEqual([
      1,
      [
        {
          code: 'unknown_key',
          severity: 'error',
          message: 'unknown key `colections`; did you mean `collections`?',
          file: 'bylaw.yaml',
          line: 2,
          column: 1,
          end_line: 2,
          end_column: 11,
          path: 'colections',
          fix: { line: 2, column: 1, end_line: 2, end_column: 11, replacement: 'collections' },
        },
      ],
    ]);
  });

  it('the command fails on warnings only with the flag', async () => {
    file('w.yaml', WARNED);
    const codes = [
      await run('check', ['--schema', 'w.yaml']),
      await run('check', ['--schema=w.yaml', '--strict']),
      await run('check', [], { BYLAW_SCHEMA: 'w.yaml' }),
    ];
    expect(codes.map(({ code, stdout }) => [code, stdout.split('\n').at(-2)])).toEqual([
      [0, 'no errors, 1 warning'],
      [1, 'no errors, 1 warning (an error each under --strict)'],
      [0, 'no errors, 1 warning'],
    ]);
  });

  it('the flag names the required strings that may be empty, which are no warnings', async () => {
    const fields =
      '{ name: { type: string, required: true, max: 9 }, code: { type: string, required: true, min: 0, max: 9 } }';
    file('empty.yaml', `collections: { things: { fields: ${fields}, access: { create: true } } }\n`);
    const { code, stdout, stderr } = await run('check', ['--schema', 'empty.yaml', '--strict']);
    expect([code, stderr]).toEqual([0, '']);
    expect(stdout).toMatch(
      /^no errors, no warnings\n\nnote\[no_min\]: `name` is required and has no `min`, .*add `min: 1`/,
    );
    expect(stdout).not.toContain('`code`');
    const { stderr: hint } = await run('check', ['--schema', 'empty.yaml']);
    expect(hint).toBe('1 required string has no `min`; `bylaw check --growth` names them\n');
  });

  it('the command prints no issue of a valid file, and exits with 2 after a wrong call', async () => {
    file('s.yaml', SOUND);
    expect(await run('check', ['--schema', 's.yaml', '--json', '--strict'])).toEqual({
      code: 0,
      stdout: '[]\n',
      stderr: '',
    });
    expect(await run('check', ['--jsn', 'x'])).toEqual({
      code: 2,
      stdout: '',
      stderr: 'bylaw check: unknown flag `--jsn`; did you mean `--json`?\n',
    });
    expect((await run('check', ['--schema', 'none.yaml'])).code).toBe(1);
  });
});

describe('bylaw fmt', () => {
  it('the command exits with 2 for a policy that cannot be read', async () => {
    file('s.yaml', SOUND.replace('@record.n=3', '@record.n='));
    const { code, stdout, stderr } = await run('fmt', ['--schema', 's.yaml']);
    expect([code, stdout, stderr]).toEqual([2, '', expect.stringMatching(/^error\[/)]);
  });

  it('the command lists its changes, and makes them', async () => {
    file('s.yaml', SOUND);
    expect(await run('fmt', ['--check', '--schema', 's.yaml'])).toEqual({
      code: 1,
      stdout: 'collections.a.access.read\n',
      stderr: '',
    });
    expect(readFileSync(join(cwd, 's.yaml'), 'utf8')).toBe(SOUND);
    expect((await run('fmt', ['--schema', 's.yaml'])).code).toBe(0);
    expect(readFileSync(join(cwd, 's.yaml'), 'utf8')).toBe(SOUND.replace('n=3', 'n = 3'));
    expect(await run('fmt', ['--check', '--schema', 's.yaml'])).toEqual({ code: 0, stdout: '', stderr: '' });
  });
});

describe('bylaw openapi and types', () => {
  it('the commands print no document of a faulty schema', async () => {
    file('bylaw.yaml', FAULTY);
    for (const command of ['openapi', 'types']) {
      const { code, stdout, stderr } = await run(command, []);
      expect([code, stdout, stderr.split('\n')[0]]).toEqual([
        2,
        '',
        'error[unknown_key]: unknown key `colections`; did you mean `collections`?',
      ]);
    }
  });

  it('the commands print documents of a valid schema', async () => {
    file('s.yaml', SOUND);
    expect(JSON.parse((await run('openapi', ['--schema', 's.yaml'])).stdout).openapi).toBe('3.1.0');
    expect((await run('types', ['--schema', 's.yaml'])).stdout).toContain('export interface A {\n  id: Id;');
  });
});
