// @module-tag long
/** `bylaw export` and `bylaw import`, as an operator runs them, on both databases. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import { afterAll, describe, expect, inject, test } from 'vitest';
import { memoized } from '../../src/memoized.ts';
import { fillDataFolder } from '../support/embedded/embedded.ts';
import { isolatedUrl } from '../support/postgres.ts';
import { run, serve } from '../support/process.ts';

const SCHEMA = `
roles: [member]
collections:
  nodes:
    fields:
      name: { type: string, required: true, max: 20, unique: true }
      note: { type: string, search: true }
      size: int
      ratio: float
      open: { type: bool, required: true, default: true }
      due_at: datetime
      born: date
      price: { type: decimal, precision: 38, scale: 10 }
      code: uuid
      blob: bytes
      serial: bigint
      opens: time
      labels: { type: list, of: string }
      meta: json
      rates: { type: list, of: float, required: true, default: [] }
    relations:
      parent: { kind: belongs_to, collection: nodes }
      tags: { kind: many_to_many, collection: tags }
  tags: { fields: { label: string } }
  stops:
    fields: { code: { type: string, unique: true, required: true }, opened: date, seen_at: datetime, note: string }
    relations: { node: { kind: belongs_to, collection: nodes }, next: { kind: belongs_to, collection: stops } }
  lines: { fields: { line: { type: int, unique: true }, given: string, is_stored: bool, size: int } }
`;
const id = (n: number): string => `01900000-0000-7000-8000-${String(n).padStart(12, '0')}`;
const STAMP = '2026-01-02T03:04:05.000006Z';

const record = (n: number, members: object = {}) => ({
  id: id(n),
  created_at: STAMP,
  updated_at: STAMP,
  name: `node ${n}`,
  note: null,
  size: null,
  ratio: null,
  open: true,
  due_at: null,
  born: null,
  price: null,
  code: null,
  blob: null,
  serial: null,
  opens: null,
  labels: null,
  meta: null,
  rates: [],
  parent: null,
  tags: [],
  ...members,
});
/** Values that a format may corrupt. */
const HOSTILE = [
  record(1, { note: '', parent: id(2) }),
  record(2, { note: 'a "quoted", line\r\nand another', parent: id(1), tags: [id(91), id(92)] }),
  record(3, {
    labels: [],
    meta: { b: [1, 0.1, null, { '': [] }], a: -1e-7 },
    note: '\uFEFF = 1 ü 𝄞 \\n',
    size: -9007199254740991,
    ratio: 1e-7,
    open: false,
    due_at: STAMP,
  }),
  record(4, {
    born: '0001-01-01',
    price: '-1234567890123456789012345678.0123456789',
    code: id(7),
    blob: '+/8A',
    serial: '-9223372036854775808',
    opens: '23:59:59.5',
    note: 'null',
    size: 0,
    ratio: 12345678901234567000,
  }),
  record(5, {
    meta: 'a "b", [1]',
    blob: '',
    note: ' [{,}] ',
    labels: ['', 'a b', 'a,"b"', '{}', '\\', 'NULL', ' '],
    rates: [1e21, 0.1],
  }),
];

const folder = mkdtempSync(join(tmpdir(), 'bylaw-transfer-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
writeFileSync(join(folder, 'bylaw.yaml'), SCHEMA);

function file(name: string, text: string): string {
  writeFileSync(join(folder, name), text);
  return join(folder, name);
}
const bylawAt =
  (place: readonly string[]) =>
  (...args: string[]) =>
    run({ args: [...args, '--schema', join(folder, 'bylaw.yaml'), ...place] });
const records = (stdout: string) =>
  stdout
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));

/** With two tags. */
async function fill(bylaw: ReturnType<typeof bylawAt>): Promise<void> {
  const tags = file(
    'tags.ndjson',
    `${JSON.stringify({ id: id(91), label: 'x' })}\n${JSON.stringify({ id: id(92) })}\n`,
  );
  expect(await bylaw('import', 'tags', tags)).toMatchObject({ code: 0, stdout: '2 created, 0 updated\n' });
}

describe('export and import (embedded)', () => {
  // All checks share a start of the embedded database, which takes seconds.
  test('export and import work on a data folder, and through a server that has it open', async () => {
    const place = ['--data', join(folder, 'data')];
    await fillDataFolder(join(folder, 'data'));
    const bylaw = bylawAt(place);
    await fill(bylaw);
    const server = await serve(['--schema', join(folder, 'bylaw.yaml'), ...place]);
    try {
      const source = file('live.json', JSON.stringify(HOSTILE));
      expect(await bylaw('import', 'nodes', source)).toMatchObject({ code: 0, stdout: '5 created, 0 updated\n' });
      for (const format of ['ndjson', 'csv', 'json']) {
        const { stdout } = await bylaw('export', 'nodes', '--format', format);
        const copy = file(`live.${format}`, stdout);
        expect(await bylaw('import', 'nodes', copy, '--upsert', 'id')).toMatchObject({
          code: 0,
          stdout: '0 created, 5 updated\n',
        });
        expect(records((await bylaw('export', 'nodes')).stdout), format).toEqual(HOSTILE);
      }
      expect(await bylaw('import', 'nodes', source)).toMatchObject({
        code: 1,
        stderr: expect.stringMatching(
          /live\.json:2: a record with this id exists\n[\s\S]*5 errors; nothing was stored/,
        ),
      });
    } finally {
      await server.stop();
    }
  });
});

describe.skipIf(inject('postgresUrl') === '')('export and import (postgres)', () => {
  /** A separate database. */
  async function newDatabase() {
    const url = await isolatedUrl(inject('postgresUrl'));
    const bylaw = bylawAt(['--database-url', url, '--data', folder]);
    await fill(bylaw);
    return { bylaw, url };
  }
  /** The database of the tests that store nothing. */
  const sharedDatabase = memoized(newDatabase);

  test('a file without records is imported, and a spreadsheet is rejected', async () => {
    const { bylaw } = await sharedDatabase();
    const nothing = { code: 0, stdout: '0 created, 0 updated: the file has no records\n' };
    expect(await bylaw('import', 'tags', file('nothing.csv', 'id,label\n'))).toMatchObject(nothing);
    const stderr = 'bylaw import: book.xlsx is a spreadsheet, which is not read; save it as CSV, and import that\n';
    expect(await bylaw('import', 'tags', 'book.xlsx')).toMatchObject({ code: 2, stderr });
  });

  test('every format imports the export of every other, cycles included', async () => {
    const { bylaw } = await newDatabase();
    const source = file('nodes.ndjson', HOSTILE.map((each) => `${JSON.stringify(each)}\n`).join(''));
    expect(await bylaw('import', 'nodes', source)).toMatchObject({ code: 0, stdout: '5 created, 0 updated\n' });
    expect(records((await bylaw('export', 'nodes')).stdout)).toEqual(HOSTILE);
    for (const format of ['csv', 'json']) {
      const { stdout } = await bylaw('export', 'nodes', '--format', format);
      const copy = await newDatabase();
      expect(await copy.bylaw('import', 'nodes', file(`copy.${format}`, stdout))).toMatchObject({
        code: 0,
        stderr: '',
      });
      expect(records((await copy.bylaw('export', 'nodes')).stdout), format).toEqual(HOSTILE);
    }
  });

  test('every error is reported with its line, and nothing is stored', async () => {
    const { bylaw } = await newDatabase();
    expect(await bylaw('import', 'nodes', file('first.ndjson', JSON.stringify(record(1))))).toMatchObject({
      code: 0,
    });
    const csv = [
      'id,name,note,size,parent,tags',
      `${id(1)},again,,,,`,
      `,"two`,
      `lines",,x,,`,
      `,node 1,,,${id(77)},`,
      `,same,,,,${id(78)}`,
      `,same,,,,`,
      ',"",,,,,',
      ',,note,1.5,,',
      `,${'long'.repeat(6)},,1.5,,`,
    ].join('\n');
    const { code, stdout, stderr } = await bylaw('import', 'nodes', file('faulty.csv', csv));
    expect([code, stdout]).toEqual([1, '']);
    const path = join(folder, 'faulty.csv');
    expect(stderr.split('\n')).toEqual([
      `${path}:2: a record with this id exists`,
      `${path}:3: \`size\`: expected a whole number within ±9007199254740991, found "x"`,
      `${path}:5: \`name\` must be unique; the record ${id(1)} has this value`,
      `${path}:5: \`parent\`: there is no record ${id(77)} in \`nodes\``,
      `${path}:6: \`tags\`: there is no record ${id(78)} in \`tags\``,
      `${path}:7: \`name\` must be unique; line 6 has the same value`,
      `${path}:8: expected 6 cells, found 7`,
      `${path}:9: \`size\`: expected a whole number within ±9007199254740991, found "1.5"`,
      `${path}:9: \`name\` must have a value`,
      `${path}:10: \`name\`: expected 20 characters or less, found "${'long'.repeat(6)}"`,
      `${path}:10: \`size\`: expected a whole number within ±9007199254740991, found "1.5"`,
      '11 errors; nothing was stored',
      '',
    ]);
    expect(records((await bylaw('export', 'nodes')).stdout)).toEqual([record(1)]);
  });

  test('an int takes no numeral of a file that only rounding makes an int, and a float takes its nearest double', async () => {
    const { bylaw } = await newDatabase();
    const rounded = '{"name":"a","size":9007199254740991.4}';
    const exact = '{"name":"b","size":90071992547409910e-1,"ratio":1.00000000000000000001,"note":"1.5"}';
    for (const [name, text, line] of [
      ['numerals.ndjson', `${exact}\n${rounded}\n`, 2],
      ['numerals.json', `[${exact},${rounded}]`, 1],
    ] as const) {
      const { code, stderr } = await bylaw('import', 'nodes', file(name, text));
      const place = `${join(folder, name)}:${line}`;
      const expected = 'expected a whole number within ±9007199254740991, found 9007199254740991.4';
      expect([code, stderr]).toEqual([1, `${place}: \`size\`: ${expected}\n1 error; nothing was stored\n`]);
    }
    expect(await bylaw('import', 'nodes', file('exact.ndjson', exact))).toMatchObject({ code: 0 });
    const stored = { name: 'b', size: 9007199254740991, ratio: 1, note: '1.5' };
    expect(records((await bylaw('export', 'nodes')).stdout)).toMatchObject([stored]);
  });

  test.each([
    ['a.ndjson', '{"name": "a"}\n\n{"name": \n[1]\n', [':3: cannot be read as JSON', ':4: expected a JSON object']],
    [
      'a.json',
      '[\n{"name": "a"},\n,\n{"naem": "b"}',
      [':3: expected a record before this', ':4: the list does not end'],
    ],
    ['b.json', '{"name": "a"}', [':1: expected a JSON list']],
    ['a.csv', 'name,name\na,b\n', [':1: the header names `name` twice']],
    ['c.csv', 'name,note\n"a"b,c\n"d', [':2: expected "," behind a quoted cell', ':3: a quoted cell does not end']],
  ])('a malformed file is reported with its errors: %s', async (name, text, expected) => {
    const { bylaw } = await sharedDatabase();
    const { code, stderr } = await bylaw('import', 'nodes', file(name, text));
    const lines = stderr.split('\n').filter((line) => line.startsWith(folder));
    expect([
      code,
      lines.map((line) => line.slice(join(folder, name).length)).map((line, i) => line.slice(0, expected[i]?.length)),
    ]).toEqual([1, expected]);
  });

  test('violated constraints of an adopted table are reported with their lines, also for updates', async () => {
    const { bylaw, url } = await newDatabase();
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    await client.query('ALTER TABLE lines ADD CHECK (size > line), ADD CHECK (_version > 0)');
    await client.end();
    const source = file('lines.csv', 'line,size,given,is_stored\n1,2,x,true\n2,,y,false\n3,4,,\n');
    expect(await bylaw('import', 'lines', source)).toMatchObject({ code: 0, stdout: '3 created, 0 updated\n' });
    const changed = file('changed.csv', 'line,size\n1,3\n2,1\n4,5\n6,6\n');
    expect(await bylaw('import', 'lines', changed, '--upsert', 'line')).toEqual({
      code: 1,
      stdout: '',
      stderr: [3, 5]
        .map((line) => `${changed}:${line}: expected what the constraint \`lines_check\` of the database allows\n`)
        .concat('2 errors; nothing was stored\n')
        .join(''),
    });
    // A column that the file leaves out keeps its value, which the constraint then judges.
    const more = file('more.csv', 'line,given\n1,z\n');
    expect(await bylaw('import', 'lines', more, '--upsert', 'line')).toMatchObject({ code: 0 });
    const kept = records((await bylaw('export', 'lines')).stdout).map(({ line, size, given }) => [line, size, given]);
    expect(kept).toEqual([
      [1, 2, 'z'],
      [2, null, 'y'],
      [3, 4, null],
    ]);
  });

  test('a dry run reports the same errors and stores nothing', async () => {
    const { bylaw } = await sharedDatabase();
    const source = file('dry.json', JSON.stringify([{ name: 'a' }, { name: 'b' }]));
    expect(await bylaw('import', 'nodes', source, '--dry-run')).toMatchObject({
      code: 0,
      stdout: 'dry run, nothing was stored: 2 created, 0 updated\n',
    });
    expect((await bylaw('export', 'nodes')).stdout).toBe('');
  });

  test('an upsert updates existing records, and keeps fields that the file does not name', async () => {
    const { bylaw } = await newDatabase();
    const before = [record(1, { note: 'kept', size: 1, tags: [id(91)] }), record(2, { tags: [id(91)] })];
    await bylaw('import', 'nodes', file('before.json', JSON.stringify(before)));
    const changes = [
      { name: 'node 1', size: 2 },
      { name: 'node 2', tags: [id(92)], updated_at: STAMP },
      { name: 'new' },
    ];
    const source = file('changes.json', JSON.stringify(changes));
    expect(await bylaw('import', 'nodes', source, '--upsert', 'name')).toMatchObject({
      code: 0,
      stdout: '1 created, 2 updated\n',
    });
    const [one, two, three] = records((await bylaw('export', 'nodes')).stdout);
    expect(one).toEqual({ ...before[0], size: 2, updated_at: expect.not.stringMatching(STAMP) });
    expect(two).toEqual({ ...before[1], tags: [id(92)] });
    expect(three).toMatchObject({ name: 'new', open: true });
    expect(await bylaw('import', 'nodes', source, '--upsert', 'note')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('`note` is not a unique field of `nodes`; there are: `id`, `name`'),
    });
  });

  test('a resumable import continues where it stopped', async () => {
    const { bylaw } = await newDatabase();
    const many = Array.from({ length: 5001 }, (_, i) => JSON.stringify({ name: `n${i}` }));
    // The second chunk fails as long as a record of its name is there.
    const blocker = file('blocker.json', JSON.stringify([record(1, { name: 'n5000' })]));
    await bylaw('import', 'nodes', blocker);
    const source = file('many.ndjson', many.join('\n'));
    expect(await bylaw('import', 'nodes', source, '--dry-run', '--resume')).toEqual({
      code: 2,
      stdout: '',
      stderr:
        'bylaw import: a dry run commits nothing, so there is nothing to resume; expected one of --dry-run and --resume\n',
    });
    const stopped = await bylaw('import', 'nodes', source, '--resume');
    expect([stopped.code, stopped.stderr]).toEqual([
      1,
      expect.stringContaining(`${source}:5001: \`name\` must be unique`),
    ]);
    await bylaw('import', 'nodes', file('away.json', JSON.stringify([{ id: id(1), name: 'away' }])), '--upsert', 'id');
    expect(await bylaw('import', 'nodes', source, '--resume')).toMatchObject({
      code: 0,
      stdout: '1 created, 0 updated, 5000 of an earlier run\n',
    });
  });

  test('a file of another program is read by its names, keys, dates, delimiter, nulls and encoding', async () => {
    const { bylaw } = await newDatabase();
    await bylaw('import', 'nodes', file('named.json', JSON.stringify([record(1), record(2)])));
    const lines = [
      'Code;Node;Next stop;Opened;Comment;Unused',
      'A1;node 1;B2;31.12.2025;Café;1',
      'B2;node 2;NA;1.2.2026;"NA";2',
      'C3;NA;A1;;NA;',
    ];
    const source = join(folder, 'stops.csv');
    writeFileSync(source, Buffer.from(lines.join('\n'), 'latin1'));
    const names = ['Code=code', 'Node=node', 'Next stop=next', 'Opened=opened', 'Comment=note', 'Unused='];
    const flags = [
      ...names.flatMap((pair) => ['--map', pair]),
      ...['--ref', 'node=name', '--ref', 'next=code', '--delimiter', ';', '--null', 'NA', '--date-format', 'D.M.YYYY'],
    ];
    expect(await bylaw('import', 'stops', source, ...flags)).toMatchObject({
      code: 1,
      stderr:
        `${source}:2: expected text in UTF-8, found other bytes; \`--encoding\` names another encoding of the file\n` +
        '1 error; nothing was stored\n',
    });
    expect(await bylaw('import', 'stops', source, ...flags, '--encoding', 'windows-1252')).toMatchObject({
      code: 0,
      stdout: '3 created, 0 updated\n',
    });
    const found = records((await bylaw('export', 'stops')).stdout);
    const codeOf = new Map(found.map(({ id: of, code }) => [of, code]));
    const shown = found.map(({ code, node, next, opened, note }) => [code, node, codeOf.get(next), opened, note]);
    expect(shown.toSorted()).toEqual([
      ['A1', id(1), 'B2', '2025-12-31', 'Café'],
      ['B2', id(2), undefined, '2026-02-01', 'NA'],
      ['C3', null, 'A1', null, null],
    ]);
  });

  test('dates with a time are instants of UTC, and others are errors', async () => {
    const { bylaw } = await newDatabase();
    const source = file('seen.json', JSON.stringify([{ code: 'a', seen_at: '1/31/2026 9:05', opened: '2026-01-31' }]));
    const format = ['--date-format', 'M/D/YYYY H:mm'];
    expect(await bylaw('import', 'stops', source, ...format)).toMatchObject({ code: 0 });
    const [found] = records((await bylaw('export', 'stops')).stdout);
    expect([found.seen_at, found.opened]).toEqual(['2026-01-31T09:05:00.000000Z', '2026-01-31']);
    file(
      'seen.json',
      JSON.stringify([
        { code: 'b', seen_at: '2026-01-31' },
        { code: 'c', seen_at: '2/31/2026 9:05' },
      ]),
    );
    const { code, stderr } = await bylaw('import', 'stops', source, ...format);
    expect([code, stderr.split('\n').slice(0, 2)]).toEqual([
      1,
      [
        `${source}:1: \`seen_at\`: expected M/D/YYYY H:mm, found "2026-01-31"`,
        expect.stringContaining(`${source}:1: \`seen_at\`: expected RFC 3339`),
      ],
    ]);
  });

  test('an unknown column is one error of the header, which may have another delimiter', async () => {
    const { bylaw } = await sharedDatabase();
    const mistyped = file('mistyped.csv', 'code,noet\na,1\nb,2\n');
    const delimited = file('delimited.csv', 'code;note\na;b\nc;d\n');
    expect((await bylaw('import', 'stops', mistyped)).stderr.split('\n')).toEqual([
      `${mistyped}:1: \`stops\` has no field \`noet\`; did you mean \`note\`?`,
      '1 error; nothing was stored',
      '',
    ]);
    expect((await bylaw('import', 'stops', delimited)).stderr.split('\n')[0]).toBe(
      `${delimited}:1: \`stops\` has no field \`code;note\`; \`--delimiter\` names the character between the cells of the file`,
    );
  });

  test('a carriage return without a line feed is an error outside quotes, and ends no line', async () => {
    const { bylaw } = await sharedDatabase();
    const says = 'a carriage return without a line feed';
    const cases: readonly (readonly [text: string, lines: readonly number[]])[] = [
      ['line,given\n1,a\rb\n2,c\n3,"d"\re\n', [2, 4]],
      ['line,given\n1,"a\rb"\r\n2,c\r', [3]],
      ['line,given\r1,a\r2,b\r', [1]],
      ['line,noet\r\r\n1,a\n', [1]],
    ];
    for (const [text, lines] of cases) {
      const source = file('returns.csv', text);
      const { code, stderr } = await bylaw('import', 'lines', source);
      expect([code, stderr.split('\n').slice(0, -2)]).toEqual([
        1,
        lines.map((line) => expect.stringContaining(`${source}:${line}: ${says}`)),
      ]);
    }
    const quoted = file('returns.csv', 'line,given\r\n1,"a\rb"\r\n');
    expect(await bylaw('import', 'lines', quoted, '--dry-run')).toMatchObject({ code: 0 });
  });

  test('the header of a file without records is checked', async () => {
    const { bylaw } = await sharedDatabase();
    const source = file('header.csv', 'code,noet\n\n');
    const unknown = `${source}:1: \`stops\` has no field \`noet\`; did you mean \`note\`?`;
    const missing = `${source}:1: the header has no \`missing\``;
    for (const [says, ...flags] of [
      [unknown],
      [unknown, '--resume'],
      [missing, '--map', 'missing=note'],
      [`${source}:1: the record gives \`code\` twice`, '--map', 'noet=code'],
    ] as const)
      expect(await bylaw('import', 'stops', source, ...flags)).toMatchObject({
        code: 1,
        stderr: expect.stringContaining(says),
      });
    expect(await bylaw('import', 'stops', source, '--map', 'noet=note', '--ref', 'next=code')).toMatchObject({
      code: 0,
    });
  });

  test('flags that do not fit the file or the collection are named', async () => {
    const { bylaw } = await sharedDatabase();
    const source = file('flags.csv', 'code,other\na,b\n');
    const cases: readonly (readonly [code: number, says: string, ...flags: string[]])[] = [
      [2, '--delimiter: expected one character, or `tab`, found ";;"', '--delimiter', ';;'],
      [2, '--encoding: unknown encoding martian', '--encoding', 'martian'],
      [2, '--map: expected a name, `=` and a field, found "code"', '--map', 'code'],
      [2, '--ref: expected a name, `=` and a field, found "node="', '--ref', 'node='],
      [2, '--map has the field `note` twice', '--map', 'code=note', '--map', 'other=note'],
      [2, '`note` is not a unique field of `stops`; there are: `id`, `code`', '--ref', 'next=note'],
      [2, '--date-format: expected one each of YYYY', '--date-format', 'YY'],
      [2, '--null needs the format csv', '--null', 'x', '--format', 'ndjson'],
      [1, `${source}:1: the header has no \`missing\``, '--map', 'missing=note'],
      [1, `${source}:2: the record gives \`code\` twice`, '--map', 'other=code'],
    ];
    for (const [code, says, ...flags] of cases)
      expect([flags, await bylaw('import', 'stops', source, ...flags)]).toEqual([
        flags,
        { code, stdout: '', stderr: expect.stringContaining(says) },
      ]);
  });

  test('users are imported with roles, and files are rejected', async () => {
    const { bylaw } = await newDatabase();
    const users = file('users.csv', 'email,roles\nAda@example.com,member\nben@example.com,boss\n');
    expect(await bylaw('import', 'users', users)).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('users.csv:3: `roles`: unknown role "boss"'),
    });
    file('users.csv', 'email,roles\nAda@example.com,member\nben@example.com,\n\u212Aim@example.com,\n');
    expect(await bylaw('import', 'users', users)).toMatchObject({ code: 0 });
    const found = records((await bylaw('export', 'users')).stdout);
    expect(found.map(({ email, roles }) => [email, roles])).toEqual([
      ['ada@example.com', ['member']],
      ['ben@example.com', []],
      // The Kelvin sign: not another user's address.
      ['\u212Aim@example.com', []],
    ]);
    expect(await bylaw('import', 'files', users)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('files are uploaded'),
    });
  });

  test('cells that a spreadsheet would calculate get a quote, which an import removes', async () => {
    const { bylaw } = await newDatabase();
    const labels = ['=1+1', '+x', '-x', '@x', '\tx', '\rx', "'=x", "''+", "'x", 'a=b', '-', ''];
    const lines = labels.map((label, i) => JSON.stringify({ id: id(200 + i), label }));
    expect(await bylaw('import', 'tags', file('formulas.ndjson', lines.join('\n')))).toMatchObject({ code: 0 });
    const { stdout } = await bylaw('export', 'tags', '--format', 'csv', '--safe-cells');
    const cells = stdout.split('\r\n').map((line) => line.slice(line.lastIndexOf(',') + 1).replaceAll('"', ''));
    expect(cells).toEqual(
      expect.arrayContaining(["'=1+1", "'+x", "'-x", "'@x", "'\tx", "''=x", "'''+", "'x", 'a=b', "'-"]),
    );
    expect(cells.filter((cell) => /^[=+\-@\t\r]/.test(cell))).toEqual([]);
    const before = (await bylaw('export', 'tags')).stdout;
    const again = file('formulas.csv', stdout);
    const imported = await bylaw('import', 'tags', again, '--upsert', 'id', '--safe-cells');
    expect(imported).toMatchObject({ code: 0, stdout: expect.stringContaining('0 created') });
    const labelsOf = (text: string) => records(text).map(({ label }) => label);
    expect(labelsOf((await bylaw('export', 'tags')).stdout)).toEqual(labelsOf(before));
    expect(await bylaw('export', 'tags', '--safe-cells')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('--safe-cells needs the format csv'),
    });
  });

  test('several collections are exported into a folder, and unknown names are errors', async () => {
    const { bylaw } = await sharedDatabase();
    const out = join(folder, 'out');
    expect(await bylaw('export', 'tags', 'nodes', '--out', out, '--format', 'csv')).toMatchObject({
      code: 0,
      stdout: '',
    });
    expect(readFileSync(join(out, 'tags.csv'), 'utf8')).toMatch(/^id,created_at,updated_at,label\r\n.*,x\r\n.*,\r\n$/s);
    expect(await bylaw('export', 'nods')).toMatchObject({
      code: 2,
      stderr: expect.stringContaining('did you mean `nodes`?'),
    });
  });
});
