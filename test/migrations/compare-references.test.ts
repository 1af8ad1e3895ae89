/** `introspect --diff` of foreign keys of several columns. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../src/database/contract.ts';
import { draftSchema } from '../../src/migrations/adopt/adopt.ts';
import { compareFile } from '../../src/migrations/adopt/compare-file.ts';
import { printDifferences } from '../../src/migrations/adopt/print-differences.ts';
import { printDraft } from '../../src/migrations/adopt/print-draft.ts';
import { readExistingTables } from '../../src/migrations/adopt/read-existing-tables.ts';
import { parseSchema } from '../../src/schema/load.ts';
import { raw } from '../../src/sql.ts';
import { openEmbeddedDatabase } from '../support/embedded/embedded.ts';

const TABLES = [
  'CREATE SCHEMA depot',
  'CREATE TABLE depot.lines (order_no int, line_no int, PRIMARY KEY (order_no, line_no))',
  'CREATE TABLE depot.spares (order_no int, line_no int, PRIMARY KEY (order_no, line_no))',
  `CREATE TABLE depot.parcels (
     id int PRIMARY KEY, line_no int, order_no int, UNIQUE (order_no, line_no),
     CONSTRAINT line FOREIGN KEY (order_no, line_no) REFERENCES depot.lines ON DELETE SET NULL)`,
];

describe('foreign keys of several columns', () => {
  let db: Database;
  let draft: string;
  beforeAll(async () => {
    db = await openEmbeddedDatabase();
    for (const statement of TABLES) await db.run(raw(statement));
    draft = printDraft(draftSchema(await readExistingTables(db, ['depot'])));
  });
  afterAll(() => db.close());

  const differences = async (text = draft): Promise<readonly string[]> => {
    const { schema, issues } = parseSchema(text);
    if (schema === undefined) throw new Error(JSON.stringify(issues, null, 1));
    const found = compareFile(schema, await readExistingTables(db, ['depot']), ['depot']);
    return printDifferences(found).split('\n').slice(0, -3);
  };
  const altered = async (...changes: readonly string[]): Promise<readonly string[]> => {
    for (const change of changes) await db.run(raw(`ALTER TABLE depot.parcels ${change}`));
    return await differences();
  };

  test('a draft has no difference, and a file without the reference lacks it', async () => {
    expect(draft).toContain('{ kind: has_one, collection: parcels, via: lines }');
    expect(await differences()).toEqual([]);
    const without = draft.replaceAll(/^ *relations:\n(?: *#.*\n)* *\w+: \{.*\n/gm, '');
    expect(await differences(without)).toEqual([
      'parcels.lines: the file lacks the foreign key of `order_no`, `line_no` of depot.parcels: ' +
        '{ kind: belongs_to, collection: lines, fields: [ order_no, line_no ], on_delete: restrict }',
    ]);
  });

  test('a foreign key that is gone, deletes otherwise, or leads elsewhere differs', async () => {
    const key = 'ADD CONSTRAINT line FOREIGN KEY (order_no, line_no) REFERENCES';
    const place =
      'parcels.lines: `references` is depot.lines (line_no = line_no, order_no = order_no) in the file, and';
    expect(await altered('DROP CONSTRAINT line')).toEqual([`${place} not given in the database`]);
    expect(await altered(`${key} depot.spares`)).toEqual([
      `${place} depot.spares (line_no = line_no, order_no = order_no) in the database`,
    ]);
    expect(await altered('DROP CONSTRAINT line', `${key} depot.lines (line_no, order_no)`)).toEqual([
      `${place} depot.lines (line_no = order_no, order_no = line_no) in the database`,
    ]);
    expect(await altered('DROP CONSTRAINT line', `${key} depot.lines ON DELETE CASCADE`)).toEqual([
      'parcels.lines: `on_delete` is restrict in the file, and cascade in the database',
    ]);
    expect(await altered('DROP CONSTRAINT line', `${key} depot.lines`)).toEqual([]);
    expect(await altered('DROP CONSTRAINT parcels_order_no_line_no_key')).toEqual([
      'parcels.lines: `unique` is true in the file, and false in the database',
    ]);
  });
});
