// @module-tag long
/** The whole service on a bucket, over real HTTP: what is sent, kept, shown, refused, given up and swept. With redirects: redirects.test.ts. */
import { createHash } from 'node:crypto';
import sharp from 'sharp';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { outcomeOf } from '../support/records.ts';
import { CREDENTIALS, ProtocolServer } from '../support/s3/protocol-server.ts';
import { describeOnOne, type User } from '../support/service.ts';
import { describeDownloads } from './downloads.ts';
import { expectHidden } from './hidden.ts';
import { bytesOf, upload } from './sending.ts';
import { MiB, startUpload, until } from './streaming.ts';

const SCHEMA = `
roles: { member: {}, small: {}, admin: {} }
collections:
  files:
    fields: { note: string, shared: { type: bool, required: true, default: false } }
    access:
      list: '@record.owner = @request.auth.id or @record.shared'
      read: '@record.owner = @request.auth.id or @record.shared'
      create: '@record.owner = @request.auth.id'
      update: '@record.owner = @request.auth.id'
      delete: '@record.owner = @request.auth.id'
uploads:
  max_size: 16MiB
  quota: { default: 10KiB, member: 100MiB }
  images: { widths: [16, 64], heights: [16] }
`;
Object.assign(process.env, CREDENTIALS);
const bucket = await ProtocolServer.start();
afterAll(() => bucket.close());

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');
const keptFor = async (id: string): Promise<readonly string[]> =>
  (await bucket.keys()).filter((key) => key.includes(id)).map((key) => key.slice(key.lastIndexOf('/') + 1));
/** Only sweeps list, and the first sweep of a service on PostgreSQL goes on beside the tests. */
const SWEEPING = ['ListMultipartUploads', 'ListObjectsV2'];
/** The requests to the bucket meanwhile, without those of sweeps. */
const asked = async (work: () => Promise<unknown>): Promise<readonly string[]> => {
  const before = bucket.requests.length;
  await work();
  const operations = bucket.requests.slice(before).map(({ operation }) => operation);
  return operations.filter((operation) => !SWEEPING.includes(operation));
};

describeOnOne(
  'files in a bucket',
  (service) => {
    let ann: User;
    let bob: User;
    const make = async (form: Partial<Parameters<typeof upload>[1]> = {}): Promise<string> => {
      const { status, body, text } = await upload(ann.client, { bytes: 'x', ...form });
      expect([status, text]).toEqual([201, expect.stringContaining('"id"')]);
      return body.data.id;
    };
    const numberOf = async (user: User): Promise<number> =>
      (await user.client.get('/api/files?limit=1', { Prefer: 'count=exact' })).body.page.total;
    /** Neither a record nor an object nor parts of one. */
    const leavesNothing = async (work: () => Promise<void>): Promise<void> => {
      const before = [await bucket.keys(), await numberOf(ann)];
      await work();
      await until(() => bucket.uploads.size === 0);
      expect([await bucket.keys(), await numberOf(ann)]).toEqual(before);
    };
    beforeAll(async () => {
      ann = await service.user('member');
      bob = await service.user('member');
    });
    beforeEach(() => {
      bucket.treat = () => undefined;
      bucket.listsUploads = true;
      bucket.pageSize = 1000;
    });

    test('an upload makes a record, and an object of the same bytes', async () => {
      const bytes = Buffer.from(Array.from({ length: 70_000 }, (_, i) => (i * 7919) % 251));
      const { status, body } = await upload(ann.client, { bytes, type: 'application/octet-stream' });
      expect([status, body.data.size, body.data.sha256]).toEqual([201, 70_000, sha256(bytes)]);
      const [key, ...others] = (await bucket.keys()).filter((known) => known.includes(body.data.id));
      expect([others, key]).toEqual([[], expect.stringMatching(/^some\/folder\/[0-9a-f-]{36}\/[0-9a-f-]{36}$/)]);
      expect((await bucket.bytes(key!)).equals(bytes)).toBe(true);
    });

    test('a large upload is stored in parts, and is read back unchanged', async () => {
      const bytes = Buffer.alloc(9 * MiB, 'a large file ');
      let id = '';
      const operations = await asked(async () => {
        id = await make({ bytes, type: 'application/octet-stream' });
      });
      expect(operations.toSorted()).toEqual([
        'CompleteMultipartUpload',
        'CreateMultipartUpload',
        ...Array.from({ length: 2 }, () => 'UploadPart'),
      ]);
      const content = await bytesOf(ann.client, `/api/files/${id}/content`);
      expect([content.status, sha256(content.bytes)]).toEqual([200, sha256(bytes)]);
      expect((await ann.client.delete(`/api/files/${id}`)).status).toBe(204);
    });

    describe('the content', () => {
      const BYTES = Buffer.from(Array.from({ length: 1000 }, (_, i) => i % 256));
      let path: string;
      beforeAll(async () => {
        path = `/api/files/${await make({ bytes: BYTES, name: 'a.bin', type: 'application/octet-stream' })}/content`;
      });

      test('content comes whole, and HEAD has the same headers without a request to the bucket', async () => {
        const { status, headers, bytes } = await bytesOf(ann.client, path);
        expect([status, bytes.equals(BYTES), headers.get('content-length')]).toEqual([200, true, '1000']);
        const own = (of: Headers) =>
          [...of].filter(([name]) => !['date', 'x-request-id', 'connection', 'keep-alive'].includes(name));
        expect(
          await asked(async () => {
            const head = await ann.client.send('HEAD', path);
            expect([head.status, head.text, own(head.headers)]).toEqual([200, '', own(headers)]);
          }),
        ).toEqual([]);
      });

      test('content comes in one range, in several, and in none that fits', async () => {
        const one = await bytesOf(ann.client, path, { Range: 'bytes=10-19' });
        expect([one.status, one.headers.get('content-range'), one.bytes.equals(BYTES.subarray(10, 20))]).toEqual([
          206,
          'bytes 10-19/1000',
          true,
        ]);
        const several = await bytesOf(ann.client, path, { Range: 'bytes=0-1,10-12,-2' });
        const boundary = /boundary=([0-9a-f]+)$/.exec(several.headers.get('content-type')!)![1]!;
        const part = (start: number, end: number): string =>
          `\r\n--${boundary}\r\nContent-Type: application/octet-stream\r\nContent-Range: bytes ${start}-${end}/1000\r\n\r\n` +
          `${BYTES.toString('latin1', start, end + 1)}`;
        expect([several.status, several.bytes.toString('latin1')]).toEqual([
          206,
          `${part(0, 1)}${part(10, 12)}${part(998, 999)}\r\n--${boundary}--\r\n`,
        ]);
        expect(outcomeOf(await ann.client.get(path, { Range: 'bytes=1000-' }))).toEqual([416, 'range_not_satisfiable']);
      });

      test('content has an ETag, and is not sent again to a client that has it', async () => {
        const etag = (await bytesOf(ann.client, path)).headers.get('etag')!;
        expect(etag).toBe(`"${sha256(BYTES)}"`);
        expect(
          await asked(async () => {
            const { status, bytes } = await bytesOf(ann.client, path, { 'If-None-Match': etag });
            expect([status, bytes.length]).toEqual([304, 0]);
          }),
        ).toEqual([]);
      });
    });

    describeDownloads(service);

    test('the variants of a file are rendered once, kept, and deleted with it', async () => {
      const bytes = await sharp({ create: { width: 100, height: 50, channels: 3, background: '#a04020' } })
        .png()
        .toBuffer();
      const id = await make({ bytes, type: 'image/png' });
      const path = `/api/files/${id}/content?width=64`;
      const first = await bytesOf(ann.client, path);
      expect([first.status, (await sharp(first.bytes).metadata()).width]).toEqual([200, 64]);
      expect(
        await asked(async () => expect((await bytesOf(ann.client, path)).bytes.equals(first.bytes)).toBe(true)),
      ).toEqual(['HeadObject', 'GetObject']);
      expect(await keptFor(id)).toEqual([id, `${id}.w64hcover`]);
      expect((await ann.client.delete(`/api/files/${id}`)).status).toBe(204);
      expect(await keptFor(id)).toEqual([]);
      expect((await ann.client.get(`/api/files/${id}/content`)).status).toBe(404);
    });

    test('50 concurrent uploads at the edge of a quota leave objects for those that fit', async () => {
      const user = await service.user('small');
      const before = await bucket.keys();
      const answers = await Promise.all(
        Array.from({ length: 50 }, () => upload(user.client, { bytes: Buffer.alloc(1000, 97) })),
      );
      const statuses = Map.groupBy(answers, ({ status }) => status);
      expect([statuses.get(201)?.length, statuses.get(413)?.length]).toEqual([10, 40]);
      const ids = statuses.get(201)!.map(({ body }) => body.data.id);
      const added = (await bucket.keys()).filter((key) => !before.includes(key));
      expect(added.map((key) => key.split('/').at(-1))).toEqual(ids.toSorted());
      expect(await numberOf(user)).toBe(10);
    });

    describe('an upload that comes to nothing leaves nothing:', () => {
      test('an upload that is cut off leaves nothing, in a part and in parts', async () => {
        await leavesNothing(async () => {
          const operations = await asked(async () => {
            for (const length of [MiB, 9 * MiB]) {
              const sending = startUpload(ann.client, { length, isWhole: false });
              await until(() => length === MiB || bucket.requests.at(-1)?.operation === 'UploadPart');
              sending.cut();
              await expect(sending.answer).rejects.toThrow();
              await until(() => bucket.uploads.size === 0);
            }
          });
          expect(operations).toEqual(['CreateMultipartUpload', 'UploadPart', 'AbortMultipartUpload']);
        });
      });

      test('an upload that is too large without announcing it leaves nothing', async () => {
        await leavesNothing(async () => {
          const { answer } = startUpload(ann.client, { length: 16 * MiB + 1, isWhole: true });
          expect((await answer).status).toBe(413);
        });
      });

      test('an upload beyond the quota leaves nothing, when all of it is in the bucket', async () => {
        const user = await service.user('small');
        await leavesNothing(async () => {
          expect(outcomeOf(await upload(user.client, { bytes: Buffer.alloc(11 * 1024, 97) }))).toEqual([
            413,
            'too_large',
            '/file quota_exceeded',
          ]);
        });
      });

      test.each(['PutObject', 'UploadPart', 'CompleteMultipartUpload'])(
        'an upload leaves nothing if the bucket fails at %s',
        async (operation) => {
          await leavesNothing(async () => {
            bucket.treat = (seen) => (seen.operation === operation ? 503 : undefined);
            const length = operation === 'PutObject' ? MiB : 9 * MiB;
            const { status, body } = await startUpload(ann.client, { length, isWhole: true }).answer;
            expect([status, JSON.parse(body).code]).toEqual([503, 'unavailable']);
            bucket.treat = () => undefined;
          });
        },
      );
    });

    test('the service reports an unreadable bucket as unavailable, and loses nothing', async () => {
      const id = await make();
      bucket.treat = ({ operation }) => (operation === 'GetObject' ? 503 : undefined);
      expect(outcomeOf(await ann.client.get(`/api/files/${id}/content`))).toEqual([503, 'unavailable']);
      bucket.treat = () => undefined;
      expect((await bytesOf(ann.client, `/api/files/${id}/content`)).bytes.toString()).toBe('x');
    });

    test('the sweep deletes bytes that a bucket would not delete before', async () => {
      const id = await make();
      bucket.treat = ({ operation }) => (operation === 'DeleteObjects' ? 503 : undefined);
      expect((await ann.client.delete(`/api/files/${id}`)).status).toBe(204);
      expect(await keptFor(id)).toEqual([id]);
      bucket.treat = () => undefined;
      expect(await service.app.files.sweep(0)).toBe(1);
      expect(await keptFor(id)).toEqual([]);
    });

    test('callers who may not read a file get 404, and the bucket gets no request', async () => {
      const id = await make({ bytes: Buffer.alloc(1000), type: 'application/octet-stream' });
      expect(await asked(() => expectHidden(bob.client, id))).toEqual([]);
    });

    describe('the sweep', () => {
      const orphan = async (id: string): Promise<void> => {
        const incoming = await service.app.files.storage.incoming(id);
        await incoming.write(Buffer.from('orphan'));
        await incoming.publish();
      };
      const begin = async (id: string): Promise<() => Promise<void>> => {
        const incoming = await service.app.files.storage.incoming(id);
        for (let i = 0; i < 9; i++) await incoming.write(Buffer.alloc(MiB));
        await until(() => [...bucket.uploads.values()].some(({ key }) => key.endsWith(id)));
        return () => incoming.discard();
      };
      const idOf = (n: number): string => `01900000-0000-7000-8000-00000000000${n}`;

      test('the sweep takes objects without a record, and leaves young ones and those with a record', async () => {
        const kept = await make();
        await orphan(idOf(1));
        await orphan(`${idOf(1)}.w64hcover`);
        expect(await service.app.files.sweep(60_000)).toBe(0);
        expect(await keptFor(idOf(1))).toEqual([idOf(1), `${idOf(1)}.w64hcover`]);
        expect(await service.app.files.sweep(0)).toBe(2);
        expect([await keptFor(idOf(1)), await keptFor(kept)]).toEqual([[], [kept]]);
      });

      test('the sweep aborts unfinished uploads, page by page, and leaves those of today', async () => {
        const discards = [await begin(idOf(2)), await begin(idOf(3))];
        bucket.pageSize = 1;
        expect(await service.app.files.sweep(60_000)).toBe(0);
        expect(bucket.uploads.size).toBe(2);
        const [first] = bucket.uploads.values();
        bucket.uploads.set(first!.uploadId, { ...first!, initiated: new Date(Date.now() - 25 * 3_600_000) });
        expect(await service.app.files.sweep(60_000)).toBe(1);
        expect(bucket.uploads.size).toBe(1);
        bucket.uploads.set('further', { ...first!, uploadId: 'further' });
        expect(await service.app.files.sweep(0)).toBe(2);
        expect(bucket.uploads.size).toBe(0);
        for (const discard of discards) await discard();
      });

      test('the sweep goes on if an upload ended meanwhile, or the server cannot list them', async () => {
        const discard = await begin(idOf(5));
        const [upload] = [...bucket.uploads.values()];
        bucket.treat = ({ operation, key }) => {
          if (operation === 'AbortMultipartUpload' && key === upload!.key) bucket.uploads.clear();
          return undefined;
        };
        expect(await service.app.files.sweep(0)).toBe(1);
        bucket.treat = () => undefined;
        // Not the first one again: its client aborts it once more when a part of it is rejected.
        bucket.uploads.set('another', { ...upload!, uploadId: 'another' });
        bucket.listsUploads = false;
        await orphan(idOf(6));
        expect(await service.app.files.sweep(0)).toBe(1);
        expect([await keptFor(idOf(6)), bucket.uploads.has('another')]).toEqual([[], true]);
        await discard();
        bucket.uploads.clear();
      });

      test("the sweep leaves another database's bytes alone", async () => {
        const key = 'some/folder/another-store/01900000-0000-7000-8000-000000000009';
        await bucket.put(key, 'theirs');
        await service.app.files.sweep(0);
        expect((await bucket.bytes(key)).toString()).toBe('theirs');
      });
    });
  },
  { schema: SCHEMA, env: { BYLAW_FILES: bucket.place() } },
);
