/** `bylaw migrate plan | apply | status`, as an operator runs them. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runCommand } from '../../src/cli/index.ts';
import type { Database } from '../../src/database/contract.ts';
import { openDatabase } from '../../src/database/open-database.ts';
import { packageVersion } from '../../src/service/version.ts';
import { raw } from '../../src/sql.ts';
import { hasPostgres, postgresUrl } from '../support/store-world.ts';

const folder = mkdtempSync(join(tmpdir(), 'bylaw-migrate-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const FIRST = `
collections:
  things:
    fields: { name: string, size: int, kind: { type: string, enum: [a, b] } }
    relations: { tags: { kind: many_to_many, collection: things } }
`;

describe.runIf(hasPostgres)('bylaw migrate', () => {
  let db: Database;
  let url: string;
  const bylaw = async (...argv: string[]): Promise<{ code: number; out: string; err: string }> => {
    const output = { out: '', err: '' };
    const to = (name: 'out' | 'err') =>
      new Writable({
        decodeStrings: false,
        write(text, _encoding, done) {
          output[name] += text;
          done();
        },
      });
    const io = { stdout: to('out'), stderr: to('err'), stdin: process.stdin, env: { DATABASE_URL: url }, cwd: folder };
    return { code: await runCommand(argv, io), ...output };
  };
  const schema = (text: string): void => writeFileSync(join(folder, 'bylaw.yaml'), text);
  beforeAll(async () => {
    url = await postgresUrl();
    db = await openDatabase({ url, pipelines: 1, poolSize: 2 });
    schema(FIRST);
  });
  afterAll(() => db?.close());

  test('`migrate status` prints the history, which is empty at first', async () => {
    const before = await bylaw('migrate', 'status');
    expect(before.out).toMatch(/^\d+ statements are to be run; bylaw migrate plan prints them\n$/);
    const applied = await bylaw('migrate', 'apply');
    expect(applied).toMatchObject({ code: 0, err: '' });
    expect(applied.out).toMatch(/create table "things"[\s\S]*;\ndone\n$/);
    expect((await bylaw('migrate', 'apply')).out).toBe('nothing to do\n');
    const lines = (await bylaw('migrate', 'status')).out.split('\n');
    const time = String.raw`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`;
    expect(lines).toEqual([
      expect.stringMatching(/^started +ended +version +steps$/),
      expect.stringMatching(new RegExp(`^${time} +${time} +${packageVersion()} +\\d+$`)),
      'the database matches the schema',
      '',
    ]);
    const { data } = JSON.parse((await bylaw('migrate', 'status', '--json')).out);
    expect(data).toMatchObject({ migrations: [{ version: packageVersion() }], pending: [] });
    expect((await bylaw('migrate', 'status', '--steps')).out).toContain('  create table "things"');
  });

  test('`migrate plan` counts the records that break a rule, with the query that finds them', async () => {
    await db.run(
      raw(`INSERT INTO things (id, name, size, kind)
           SELECT gen_random_uuid(), repeat('ä', n), n, CASE WHEN n = 9 THEN 'b' ELSE 'a' END FROM generate_series(1, 9) n`),
    );
    schema(`
collections:
  things:
    fields: { title: { type: string, max: 6, was: name }, size: { type: int, min: 2 }, kind: { type: string, enum: [a, "it's"] } }
    relations: { tags: { kind: many_to_many, collection: things } }
`);
    const { code, out } = await bylaw('migrate', 'plan');
    const rules = out.split('\n').filter((line) => line.startsWith('-- RULE'));
    expect([code, rules]).toEqual([
      0,
      [
        '-- RULE: 3 records of `things` break `max 6` of `title`; nothing changes them, and their next update has to; ' +
          'SELECT "id" FROM "things" WHERE char_length("name") > 6 finds them',
        '-- RULE: 1 record of `things` breaks `min 2` of `size`; nothing changes them, and their next update has to; ' +
          'SELECT "id" FROM "things" WHERE "size" < 2 finds them',
        '-- RULE: 1 record of `things` breaks `enum` of `kind`; nothing changes them, and their next update has to; ' +
          `SELECT "id" FROM "things" WHERE "kind" <> ALL (ARRAY['a', 'it''s']::text[]) finds them`,
      ],
    ]);
    for (const [i, count] of ['3', '1', '1'].entries()) {
      const query = /SELECT "id" .* (?=finds them)/.exec(rules[i]!)![0];
      expect(await db.rows(raw(`SELECT count(*) FROM (${query}) AS found`))).toEqual([[count]]);
    }
  });

  test('`migrate plan` counts the values of a bigint that an int does not hold', async () => {
    const numbers = (type: string) => schema(`collections: { numbers: { fields: { n: ${type} } } }\n`);
    const values = ['9007199254740991', '9007199254740992', '-9223372036854775808'];
    await db.run(raw('CREATE TABLE numbers (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), n bigint)'));
    await db.run(raw(`INSERT INTO numbers (n) VALUES ${values.map((n) => `(${n})`).join()}`));
    const rules = async () => (await bylaw('migrate', 'plan')).out.match(/^-- RULE.*`numbers`.*$/gm) ?? [];
    numbers('bigint');
    expect(await rules()).toEqual([]);
    numbers('int');
    expect(await rules()).toEqual([
      expect.stringContaining('2 records of `numbers` break `a whole number within ±(2^53−1)` of `n`'),
    ]);
    await db.run(raw('DROP TABLE numbers'));
  });

  test('`migrate plan` distinguishes impossible from destructive statements, and writes a file', async () => {
    schema(`
collections:
  things: { fields: { name: { type: string, required: true }, size: string, kind: { type: string, unique: true } } }
`);
    expect(await bylaw('migrate', 'plan', '--sql', 'none/plan.sql')).toEqual({
      code: 2,
      out: '',
      err: `bylaw migrate plan: none/plan.sql cannot be written: the folder ${join(folder, 'none')} does not exist\n`,
    });
    expect(await bylaw('migrate', 'plan', '--sql', 'plan.sql')).toEqual({
      code: 0,
      out: expect.stringMatching(/^wrote \d statements into plan\.sql\n$/),
      err: '',
    });
    const plan = readFileSync(join(folder, 'plan.sql'), 'utf8');
    expect(plan.match(/^-- [A-Z]+/gm)).toEqual(['-- DESTRUCTIVE', '-- DESTRUCTIVE', '-- IMPOSSIBLE']);
    expect(plan).toContain(
      '-- IMPOSSIBLE: "things"."kind" becomes unique, and some rows have equal values; change them first; ' +
        'SELECT "kind" FROM "things" WHERE "kind" IS NOT NULL GROUP BY "kind" HAVING count(*) > 1 finds them\n' +
        'alter table "things" add constraint',
    );
    const refused = await bylaw('migrate', 'apply', '--allow-destructive');
    expect(refused).toMatchObject({ code: 1, out: '' });
    expect(refused.err).toMatch(/^bylaw migrate: the schema asks for changes that the rows do not allow:\n- "things"/);
    expect(refused.err).not.toContain('--allow-destructive');
  });

  test('`migrate apply` renames a collection with its links, and hints at possible renames', async () => {
    schema('collections:\n  items:\n    fields: { name: string, size: int, kind: string }\n');
    const { err } = await bylaw('migrate', 'apply');
    expect(err).toContain('its rows would be lost; if `items` is its new name, give that `was: things`');
    schema(`
collections:
  items:
    was: things
    fields: { name: string, size: int, kind: string }
    relations: { labels: { kind: many_to_many, collection: items, was: tags } }
`);
    await db.run(raw('INSERT INTO things__tags (record_id, member_id) SELECT id, id FROM things'));
    const { code, out } = await bylaw('migrate', 'apply');
    expect([code, out]).toEqual([0, expect.stringContaining('ALTER TABLE "things" RENAME TO "items";\n')]);
    expect(await db.rows(raw('SELECT count(*), count(name) FROM items'))).toEqual([['9', '9']]);
    expect(await db.rows(raw('SELECT count(*) FROM items__labels'))).toEqual([['9']]);
    expect((await bylaw('migrate', 'status')).out).toMatch(/the database matches the schema\n$/);
    // The names of the former table are free.
    schema(
      `${readFileSync(join(folder, 'bylaw.yaml'), 'utf8').replace('    was: things\n', '')}${FIRST.replace('\ncollections:', '')}`,
    );
    expect((await bylaw('migrate', 'apply')).code).toBe(0);
  });
});
