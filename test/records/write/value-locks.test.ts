/** The turns of batches that write unique values: batches of other values do not wait, and the locks stay few. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Database } from '../../../src/database/contract.ts';
import type { Data } from '../../../src/records/write/input.ts';
import { lockValues } from '../../../src/records/write/locks/value-locks.ts';
import { raw } from '../../../src/sql.ts';
import { KINDS, openKind, schemaOf } from '../../support/store-world.ts';
import { until } from '../../support/until.ts';

const SCHEMA = schemaOf(`
roles: { admin: {} }
collections:
  users: { access: { read: true } }
  teams: { distribute: reference, access: { read: true } }
  books: { fields: { isbn: { type: string, unique: true } }, access: { read: true } }
  pages:
    fields: { slug: { type: string, unique: within_book }, number: { type: int, unique: within_book }, text: string }
    relations: { book: { kind: belongs_to, collection: books, required: true } }
    access: { read: true }
  documents:
    distribute: { by: team }
    fields: { slug: { type: string, unique: within_team } }
    relations: { team: { kind: belongs_to, collection: teams, required: true } }
    access: { read: '@record.team = @request.query.team' }
`);
const { collections } = SCHEMA;
const UNDONE = new Error('undone');

describe.each(KINDS)('turns on %s', (kind) => {
  let db: Database;
  beforeAll(async () => {
    db = await openKind(kind);
  });
  afterAll(() => db?.close());

  /** The locks that a batch holds, sorted. */
  async function heldFor(
    ...wanted: readonly (readonly [collection: string, data: Data])[]
  ): Promise<readonly string[]> {
    let held: readonly string[] = [];
    const work = db.transaction(async (tx) => {
      await lockValues(
        tx,
        SCHEMA,
        wanted.map(([name, data]) => ({ collection: collections.get(name)!, data })),
      );
      const rows = await tx.rows(
        raw(
          `SELECT classid || '.' || objid FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid() ORDER BY 1`,
        ),
      );
      held = rows.map(([lock]) => lock!);
      throw UNDONE;
    });
    await expect(work).rejects.toBe(UNDONE);
    return held;
  }

  const page = (slug: string): readonly [string, Data] => ['pages', { slug }];

  it('locks of a batch follow its values, in any order', async () => {
    const held = await heldFor(page('a'), page('b'));
    // That of the table is shared.
    expect(held).toHaveLength(3);
    expect(await heldFor(page('b'), page('a'), page('b'))).toEqual(held);
    expect(await heldFor(page('c'), page('d'))).not.toEqual(held);
    expect(await heldFor(['books', { isbn: 'a' }], ['books', { isbn: 'b' }])).not.toEqual(held);
  });

  it('a table has few locks for many values', async () => {
    const many = Array.from({ length: 2_000 }, (_, i) => [page(`a ${i}`), ['books', { isbn: `${i}` }]] as const).flat();
    expect(await heldFor(...many)).toHaveLength(2);
    expect(await heldFor(...many.filter(([name]) => name === 'pages'))).toHaveLength(1);
    expect(await heldFor(...many.slice(0, 200))).toHaveLength(202);
  });

  it.skipIf(kind === 'embedded')(
    'batches wait for each other only where they have a value or a table in common',
    async () => {
      const values = (letter: string, count: number) =>
        Array.from({ length: count }, (_, i) => ({
          collection: collections.get('books')!,
          data: { isbn: `${letter}${i}` },
        }));
      const begun: string[] = [];
      const done = Promise.withResolvers<void>();
      const batchOf = (name: string, wanted: ReturnType<typeof values>): Promise<void> =>
        db.transaction(async (tx) => {
          await lockValues(tx, SCHEMA, wanted);
          begun.push(name);
          await done.promise;
        });
      const first = batchOf('first', values('a', 100));
      await until('the first has its locks', () => begun.length === 1);
      const other = batchOf('other', values('b', 100));
      await until('the other has its locks', () => begun.length === 2);
      const waiting = [batchOf('same', values('a', 2)), batchOf('many', values('c', 300))];
      await new Promise((later) => setTimeout(later, 100));
      expect(begun).toEqual(['first', 'other']);
      done.resolve();
      await Promise.all([first, other, ...waiting]);
      expect(begun).toHaveLength(4);
    },
  );

  it('locks cover the relation that values are unique within', async () => {
    expect(await heldFor(['pages', { book: 'one' }], ['pages', { book: 'two' }])).toHaveLength(3);
    expect(await heldFor(['pages', { book: 'one', text: 'x' }], ['pages', { text: 'y' }])).toEqual([]);
  });

  it('locks leave out the tenant, which never changes', async () => {
    const of = (slug: string, team: string): readonly [string, Data] => ['documents', { slug, team }];
    expect(await heldFor(of('a', 'one'), of('b', 'one'))).toEqual(await heldFor(of('a', 'two'), of('b', 'two')));
  });

  it('locks are taken for values of any type', async () => {
    expect(await heldFor(page('a\0'), page('b\0'), ['pages', { slug: ['a'], number: null }])).toHaveLength(3);
    expect(await heldFor(page('alone'), page('alone'))).toEqual([]);
  });
});
