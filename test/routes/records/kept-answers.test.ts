// @module-tag partitions
/** The answers kept under an Idempotency-Key: at most 64 KiB, and no content of a deleted record. */
import { beforeAll, describe, expect, test } from 'vitest';
import type { Transaction } from '../../../src/database/contract.ts';
import { raw, sql, text, uuid } from '../../../src/sql.ts';
import { outcomeOf } from '../../support/records.ts';
import { describeOnBoth, type User } from '../../support/service.ts';

const MINE = '@record.owner = @request.auth.id';
const SCHEMA = `
roles: { member: {}, admin: {} }
collections:
  folders:
    fields: { title: string }
    access: { view: true, create: true, update: true, delete: true }
  notes:
    fields: { text: string, hidden: { type: bool, default: false } }
    relations:
      folder: { kind: belongs_to, collection: folders, on_delete: cascade }
      owner: { kind: belongs_to, collection: users }
    access: { view: '${MINE} and @record.hidden = false', create: true, update: '${MINE}', delete: '${MINE}' }
  lines:
    fields: { text: string }
    relations: { note: { kind: belongs_to, collection: notes, on_delete: cascade } }
    access: { view: true, create: true, update: true, delete: true }
`;

describeOnBoth(
  'kept answers',
  (service) => {
    let ann: User;
    beforeAll(async () => {
      ann = await service.user();
    });
    let keys = 0;
    const newKey = () => ({ 'Idempotency-Key': `k${++keys}` });
    /** Sends the same request as often as it is called. */
    const repeatable = (path: string, body: object) => {
      const key = newKey();
      return () => ann.client.post(`/api/${path}`, body, key);
    };
    const made = async (path: string, data: object): Promise<string> => {
      const { status, body, text } = await ann.client.post(`/api/${path}`, { data });
      expect(status, text).toBe(201);
      return body.data.id;
    };
    const keptTexts = async (secret: string): Promise<number> => {
      const rows = await service.app.db.rows(raw('SELECT answer FROM bylaw_kept_answers'));
      return rows.filter(([answer]) => answer!.includes(secret)).length;
    };
    /** A transaction that waits for `isOver`, and the number of those that wait for it, or for one another. */
    class Open {
      readonly #isBegun = Promise.withResolvers<string>();
      readonly #isOver = Promise.withResolvers<void>();
      readonly #ended: Promise<unknown>;
      constructor(work: (tx: Transaction) => Promise<void>) {
        this.#ended = service.app.db.transaction(async (tx) => {
          await work(tx);
          const [row] = await tx.rows(raw('SELECT pg_backend_pid()'));
          this.#isBegun.resolve(row![0]!);
          await this.#isOver.promise;
        });
      }
      /** The embedded database has one connection, and all wait for it. */
      async isWaitedForBy(wanted: number): Promise<void> {
        const pid = raw(await this.#isBegun.promise);
        const waiting = async () => {
          const [row] = await service.app.db.rows(sql`
            SELECT count(*) - 1
              FROM (WITH RECURSIVE waiting (pid) AS (
                         SELECT ${pid}
                          UNION
                         SELECT a.pid
                           FROM pg_stat_activity AS a, waiting AS w
                          WHERE w.pid = ANY(pg_blocking_pids(a.pid)))
                    SELECT pid FROM waiting) AS waiting`);
          return Number(row![0]);
        };
        if (service.kind === 'embedded') return;
        try {
          await expect.poll(waiting, { interval: 20 }).toBe(wanted);
        } catch (error) {
          await this.end();
          throw error;
        }
      }
      async end(): Promise<void> {
        this.#isOver.resolve();
        await this.#ended;
      }
    }
    const keptBytes = async (): Promise<number> => {
      const [row] = await service.app.db.rows(raw('SELECT max(octet_length(answer)) FROM bylaw_kept_answers'));
      return Number(row![0]);
    };

    test('a kept answer is the first one, also after a change of the record', async () => {
      const ask = repeatable('notes', { data: { text: 'as first', owner: ann.id } });
      const first = await ask();
      await ann.client.patch(`/api/notes/${first.body.data.id}`, { data: { text: 'changed' } });
      const second = await ask();
      expect([second.status, second.text]).toEqual([201, first.text]);
      expect(second.headers.get('etag')).toBe(first.headers.get('etag'));
    });

    describe('the content of a deleted record', () => {
      test('the content goes with the record, and the key still answers once', async () => {
        const ask = repeatable('notes', { data: { text: 'secret of one', owner: ann.id } });
        const { id } = (await ask()).body.data;
        expect(await keptTexts('secret of one')).toBe(1);
        expect((await ann.client.delete(`/api/notes/${id}`)).status).toBe(204);
        expect(await keptTexts('secret of one')).toBe(0);
        const again = await ask();
        expect([again.status, again.headers.get('location'), again.body]).toEqual([
          201,
          `/api/notes/${id}`,
          { data: { id } },
        ]);
        expect((await ann.client.get(`/api/notes/${id}`)).status).toBe(404);
      });

      test('the content goes with a record that the database deletes, at any depth', async () => {
        const folder = await made('folders', { title: 'f' });
        const note = await repeatable('notes', { data: { text: 'secret of two', owner: ann.id, folder } })();
        await repeatable('lines', { data: { text: 'secret of three', note: note.body.data.id } })();
        await repeatable('lines', { data: { text: 'of another' } })();
        expect([await keptTexts('secret of two'), await keptTexts('secret of three')]).toEqual([1, 1]);
        expect((await ann.client.delete(`/api/folders/${folder}`)).status).toBe(204);
        expect([await keptTexts('secret of two'), await keptTexts('secret of three')]).toEqual([0, 0]);
        expect(await keptTexts('of another')).toBe(1);
      });

      test('the content of an expanded record goes, and the rest is read again', async () => {
        const folder = await made('folders', { title: 'secret of four' });
        const line = { data: { text: 'a line', note: await made('notes', { text: 'secret of five', owner: ann.id }) } };
        const ask = repeatable('lines?expand=note', line);
        const first = await ask();
        await repeatable('notes?expand=folder', { data: { text: 'n', owner: ann.id, folder } })();
        expect([await keptTexts('secret of four'), await keptTexts('secret of five')]).toEqual([1, 1]);
        await ann.client.delete(`/api/folders/${folder}`);
        expect([await keptTexts('secret of four'), await keptTexts('secret of five')]).toEqual([0, 1]);
        expect((await ask()).text).toBe(first.text);
      });

      test('the content goes from the answer of a batch, whose other records are read again', async () => {
        const operations = ['six', 'seven'].map((n) => ({
          op: 'create',
          collection: 'notes',
          data: { text: `secret of ${n}`, owner: ann.id },
        }));
        const ask = repeatable('batch', { operations });
        const [gone, left] = (await ask()).body.data;
        await ann.client.post('/api/batch', { operations: [{ op: 'delete', collection: 'notes', id: gone.data.id }] });
        expect([await keptTexts('secret of six'), await keptTexts('secret of seven')]).toEqual([0, 0]);
        expect((await ask()).body.data).toEqual([{ status: 201, data: { id: gone.data.id } }, left]);
      });
    });

    test('a batch keeps no content of a record that it updates and deletes, directly or by a cascade', async () => {
      const folder = await made('folders', { title: 'f' });
      const note = await made('notes', { text: 'secret of eight', owner: ann.id });
      const inFolder = await made('notes', { text: 'secret of nine', owner: ann.id, folder });
      const update = (id: string) => ({ op: 'update', collection: 'notes', id, data: { hidden: false } });
      const ask = repeatable('batch', {
        operations: [
          update(note),
          { op: 'delete', collection: 'notes', id: note },
          update(inFolder),
          { op: 'create', collection: 'notes', data: { text: 'a note that stays', owner: ann.id } },
          { op: 'delete', collection: 'folders', id: folder },
        ],
      });
      const first = await ask();
      expect(first.status, first.text).toBe(200);
      expect([await keptTexts('secret of eight'), await keptTexts('secret of nine')]).toEqual([0, 0]);
      const [, , , left] = first.body.data;
      const goneWith = (id: string) => ({ status: 200, data: { id } });
      const gone = { status: 204 };
      expect((await ask()).body.data).toEqual([goneWith(note), gone, goneWith(inFolder), left, gone]);
    });

    test('a sweep takes the content that a batch has kept while a delete waits for it', async () => {
      const id = await made('lines', { text: 'n' });
      const answer = { status: 200, headers: {}, body: 'secret of ten' };
      const writing = new Open(async (tx) => {
        await tx.run(sql`UPDATE lines SET text = 'secret of ten', _version = _version + 1 WHERE id = ${uuid(id)}`);
        await service.app.kept.keep(
          tx,
          { principal: ann.id, kind: 'user' as const, path: '/api/batch', key: 'of ten', bodyHash: 'h' },
          {
            schema: service.app.schema,
            answer,
            outline: { ...answer, body: '' },
            records: [{ collection: 'lines', id }],
          },
        );
      });
      await writing.isWaitedForBy(0);
      const deleted = ann.client.delete(`/api/lines/${id}`);
      await writing.isWaitedForBy(1);
      await writing.end();
      expect((await deleted).status).toBe(204);
      await service.app.kept.sweep(service.app.schema);
      expect(await keptTexts('secret of ten')).toBe(0);
    });

    test.each(['lines', 'lines?expand=note'])(
      'a key gives no content of records whose delete did not see the answer to %s',
      async (path) => {
        // A delete takes one statement as long as no kept answer has a record of a dependent collection.
        await service.app.db.run(raw('DELETE FROM bylaw_kept_answers'));
        const note = await made('notes', { text: 'secret of eleven', owner: ann.id });
        const key = newKey();
        const ask = () => ann.client.post(`/api/${path}`, { data: { text: 'secret of twelve', note } }, key);
        // The answer to another request under the key, which is forgotten: the first one has to wait for it.
        const holding = new Open(async (tx) => {
          const answer = { status: 201, headers: {}, body: '' };
          const held = {
            principal: ann.id,
            kind: 'user' as const,
            path: '/api/lines',
            key: key['Idempotency-Key'],
            bodyHash: 'h',
          };
          await service.app.kept.keep(tx, held, { schema: service.app.schema, answer, outline: answer, records: [] });
          await tx.run(sql`DELETE FROM bylaw_kept_answers WHERE key = ${text(held.key)}`);
        });
        await holding.isWaitedForBy(0);
        const asking = ask();
        await holding.isWaitedForBy(1);
        const deleting = ann.client.delete(`/api/notes/${note}`);
        await holding.isWaitedForBy(2);
        await holding.end();
        const first = await asking;
        expect([first.status, (await deleting).status]).toEqual([201, 204]);
        const { id } = first.body.data;
        const again = await ask();
        expect([again.status, again.headers.get('location'), again.body]).toEqual([
          201,
          `/api/lines/${id}`,
          { data: { id } },
        ]);
        await service.app.kept.sweep(service.app.schema);
        expect([await keptTexts('secret of eleven'), await keptTexts('secret of twelve')]).toEqual([0, 0]);
      },
    );

    test('a sweep leaves the content of records that exist', async () => {
      const ask = repeatable('lines', { data: { text: 'of a line that stays' } });
      const first = await ask();
      await service.app.kept.sweep(service.app.schema);
      await service.app.kept.sweep(service.app.schema);
      expect(await keptTexts('of a line that stays')).toBe(1);
      expect((await ask()).text).toBe(first.text);
    });

    test('a key gives a record that is hidden since by its id, and leaves it out of an expand', async () => {
      const ask = repeatable('notes', { data: { text: 'secret of thirteen', owner: ann.id } });
      const { id: note } = (await ask()).body.data;
      const data = { text: 'a line', note };
      const key = newKey();
      const askExpanded = (expand: string) => ann.client.post(`/api/lines${expand}`, { data }, key);
      const first = await askExpanded('?expand=note');
      expect(first.body.data.expand.note.text).toBe('secret of thirteen');
      expect((await askExpanded('?expand=note')).text).toBe(first.text);
      await ann.client.patch(`/api/notes/${note}`, { data: { hidden: true } });
      expect((await ask()).body).toEqual({ data: { id: note } });
      expect((await askExpanded('?expand=note')).body.data).toMatchObject({ text: 'a line', expand: { note: null } });
      expect((await askExpanded('')).text).not.toContain('secret of thirteen');
    });

    describe('an answer of more than 64 KiB', () => {
      const long = 'x'.repeat(70_000);

      test('a large answer is kept by its id, and the record is read again', async () => {
        const ask = repeatable('notes?expand=folder', {
          data: { text: 'n', owner: ann.id, folder: await made('folders', { title: long }) },
        });
        const first = await ask();
        const second = await ask();
        expect([second.status, second.text, second.headers.get('location')]).toEqual([
          201,
          first.text,
          first.headers.get('location'),
        ]);
        expect(second.headers.get('etag')).toBe(first.headers.get('etag'));
        expect(await keptBytes()).toBeLessThan(65_536);
      });

      test('a large answer is read by the rights that its caller has then', async () => {
        const ask = repeatable('notes', { data: { text: long, owner: ann.id } });
        const { id } = (await ask()).body.data;
        await ann.client.patch(`/api/notes/${id}`, { data: { hidden: true } });
        expect((await ask()).body).toEqual({ data: { id } });
        expect(outcomeOf(await ann.client.get(`/api/notes/${id}`))[0]).toBe(404);
      });

      test('a large batch is kept by its ids', async () => {
        const note = await made('notes', { text: 'n', owner: ann.id });
        const old = await made('notes', { text: 'old', owner: ann.id });
        const ask = repeatable('batch', {
          operations: [
            { op: 'create', collection: 'notes', data: { text: long, owner: ann.id } },
            { op: 'update', collection: 'notes', id: note, data: { text: long } },
            { op: 'delete', collection: 'notes', id: old },
          ],
        });
        const first = await ask();
        expect(first.status, first.text).toBe(200);
        expect((await ask()).text).toBe(first.text);
        expect(await keptBytes()).toBeLessThan(65_536);
      });
    });
  },
  { schema: SCHEMA },
);
