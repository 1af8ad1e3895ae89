/** `seed:` of a schema: files of other programs in their own forms. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { loadSeed } from '../../../src/cli/transfer/seed.ts';
import type { Database } from '../../../src/database/contract.ts';
import { applyMigration } from '../../../src/migrations/apply-migration.ts';
import { raw } from '../../../src/sql.ts';
import { ONE_KIND, openKind, schemaOf } from '../../support/store-world.ts';

const SCHEMA = `
roles: [member]
collections:
  airlines: { fields: { carrier: { type: string, unique: true }, name: string } }
  flights:
    fields: { code: string, flown: date, note: string }
    relations: { airline: { kind: belongs_to, collection: airlines } }
`;
const FILES = `
seed:
  folder: .
  files:
    flights.csv:
      ref: { airline: carrier }
      map: { Line: airline, No: code, Day: flown, Note: note, Row: null }
      null_as: NA
      date_format: D.M.YYYY
      delimiter: ';'
      encoding: windows-1252
`;
const LINES = ['Row;Line;No;Day;Note', '1;AA;7;1.2.2026;Café', '2;NA;8;NA;"NA"'];

describe.each(ONE_KIND)('the seed of a schema (%s)', (kind) => {
  const folder = mkdtempSync(join(tmpdir(), 'bylaw-seed-'));
  let db: Database;
  const seeded = (seed: string) =>
    loadSeed(db, { schema: { ...schemaOf(SCHEMA + seed), file: 'bylaw.yaml' }, cwd: folder });

  beforeAll(async () => {
    db = await openKind(kind);
    await applyMigration(db, schemaOf(SCHEMA));
    writeFileSync(join(folder, 'airlines.ndjson'), '{"carrier":"AA"}\n');
    writeFileSync(join(folder, 'flights.csv'), Buffer.from(LINES.join('\n'), 'latin1'));
  });
  afterAll(async () => {
    await db?.close();
    rmSync(folder, { recursive: true, force: true });
  });

  test('a file that is none of bylaw is an issue for each form that it lacks', async () => {
    const issuesOf = async (seed: string) => (await seeded(seed)).issues;
    expect(await issuesOf('seed: .')).toEqual([expect.stringMatching(/^flights\.csv:2: expected text in UTF-8/)]);
    expect(await issuesOf(FILES.replace('carrier', 'name'))).toEqual([
      'flights.csv: `name` is not a unique field of `airlines`; there are: `id`, `carrier`',
    ]);
    expect(await issuesOf(FILES.replace('windows-1252', 'martian'))).toEqual([
      'flights.csv: --encoding: unknown encoding martian',
    ]);
    expect(await issuesOf(FILES.replace('D.M.YYYY', 'D.M'))).toEqual([
      expect.stringMatching(/^flights\.csv: --date-format: expected one each of YYYY/),
    ]);
    expect(await issuesOf(FILES.replace("';'", "';;'"))).toEqual([
      'flights.csv: --delimiter: expected one character, or `tab`, found ";;"',
    ]);
    const ofOthers = `${FILES}    airlines.ndjson: { null_as: x }\n    gone.csv: {}\n`;
    await db.run(raw('DELETE FROM airlines'));
    expect(await issuesOf(ofOthers)).toEqual([
      'seed: the file gone.csv does not exist',
      'airlines.ndjson: --null needs the format csv',
      expect.stringMatching(/^flights\.csv:2: `airline`/),
    ]);
  });

  test('the forms of files are those of an import', async () => {
    const { done, issues } = await seeded(FILES);
    expect([done.toSorted(), issues]).toEqual([
      ['1 record into airlines (airlines.ndjson)', '2 records into flights (flights.csv)'],
      [],
    ]);
    const rows = await db.rows(
      raw('SELECT code, carrier, flown, note FROM flights LEFT JOIN airlines AS a ON a.id = airline_id ORDER BY code'),
    );
    expect(rows.map((cells) => [...cells])).toEqual([
      ['7', 'AA', '2026-02-01', 'Café'],
      ['8', null, null, 'NA'],
    ]);
  });
});
