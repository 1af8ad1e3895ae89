// @module-tag long
/** Strings come back as they went in, on both databases: every code point at the start, in the middle and at the end. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../src/database/contract.ts';
import { param, sql } from '../../src/sql.ts';
import { KINDS, openKind, World } from '../support/store-world.ts';

/** All that PostgreSQL can keep: without NUL and the halves of surrogate pairs. */
function* codePoints(plane: number): Iterable<string> {
  for (let point = plane * 0x10000; point < (plane + 1) * 0x10000; point++) {
    if (point !== 0 && (point < 0xd800 || point > 0xdfff)) yield String.fromCodePoint(point);
  }
}

describe.each(KINDS)('code points on %s', (kind) => {
  let db: Database;
  beforeAll(async () => {
    db = await openKind(kind);
  });
  afterAll(() => db?.close());

  it('every code point is read as the database makes it', async () => {
    const wrong: string[] = [];
    for (let plane = 0; plane <= 0x10; plane++) {
      const rows = await db.rows(sql`
        SELECT chr(point) || 'x' || chr(point) || 'x' || chr(point)
          FROM generate_series(${param('int8', plane * 0x10000)}::int, ${param('int8', plane * 0x10000 + 0xffff)}::int) AS point
         WHERE point <> 0
           AND point NOT BETWEEN x'D800'::int AND x'DFFF'::int
         ORDER BY point`);
      let i = 0;
      for (const each of codePoints(plane)) {
        if (rows[i++]?.[0] !== `${each}x${each}x${each}`) wrong.push(each.codePointAt(0)!.toString(16));
      }
      if (i !== rows.length) wrong.push(`${rows.length} rows of plane ${plane}`);
    }
    expect(wrong).toEqual([]);
  });

  it('every code point is written as it is sent', async () => {
    for (let plane = 0; plane <= 0x10; plane++) {
      const all = [...codePoints(plane)].join('');
      const [row] = await db.rows(sql`
        SELECT string_agg(chr(point), '' ORDER BY point) = ${param('text', all)}, length(${param('text', all)})
          FROM generate_series(${param('int8', plane * 0x10000)}::int, ${param('int8', plane * 0x10000 + 0xffff)}::int) AS point
         WHERE point <> 0
           AND point NOT BETWEEN x'D800'::int AND x'DFFF'::int`);
      expect([plane, ...row!]).toEqual([plane, 't', String([...all].length)]);
    }
  });

  it('records keep every code point, a byte order mark too', async () => {
    const world = await World.open(
      db,
      `
roles: { admin: {}, member: {} }
register: { roles: [member] }
collections:
  notes:
    fields: { text: string }
    access: { list: true, read: true, create: true, update: true }
`,
    );
    const ann = await world.user('ann@example.org');
    const field = world.schema.collections.get('notes')!.fields.get('text')!;
    for (const text of ['\uFEFF', '\uFEFFa', 'a\uFEFF', 'a\uFEFFb', '\uFEFF\uFEFF', '\uFFFE', '\u2028\uFEFF']) {
      const made = await ann.create('notes', { text });
      expect(made.text).toBe(text);
      expect(await ann.read('notes', made.id)).toEqual(made);
      expect((await ann.update('notes', made.id, { text: `${text}!` })).text).toBe(`${text}!`);
      await ann.update('notes', made.id, { text });
      expect((await ann.list('notes', { exact: [{ kind: 'field', field, value: text }] })).data).toEqual([
        { ...made, text },
      ]);
    }
  });
});
