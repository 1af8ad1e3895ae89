// @module-tag long
/** POST /api/files: what comes in is measured, hashed, looked at and named, and is there afterwards, or not at all. */
import { createHash } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import { outcomeOf } from '../support/records.ts';
import { describeOnOne, type User } from '../support/service.ts';
import { BOUNDARY, bytesOf, FORM_TYPE, fileHead, formOf, rawly, TAIL, temporaryFolder, upload } from './sending.ts';

const FOLDER = temporaryFolder();
const SCHEMA = `
roles: { member: {}, admin: {}, guest: {} }
collections:
  files:
    fields: { note: string, kind: { type: string, enum: [open, secret, never], default: open } }
    access:
      list: '@record.owner = @request.auth.id'
      read: '@record.owner = @request.auth.id and @record.kind = "open"'
      create: [{ roles: [member], when: '@record.owner = @request.auth.id and @record.kind != "never"' }]
      update: '@record.owner = @request.auth.id'
      delete: '@record.owner = @request.auth.id'
uploads: { max_size: 100KiB, types: [text/*, image/*, application/json, application/octet-stream] }
`;
const JPEG = Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 16, 0x4a, 0x46, 0x49, 0x46, 0, 1]);
const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** Everything that lies in the folder, unfinished uploads too. */
const stored = (): readonly string[] =>
  readdirSync(FOLDER, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name !== 'mark' && !entry.parentPath.endsWith('/trash'))
    .map(({ parentPath, name }) => join(parentPath, name));

describeOnOne(
  'uploads',
  (service) => {
    let ann: User;
    beforeAll(async () => {
      ann = await service.user('member');
    });
    /** Nothing is kept of a request that was refused. */
    const leavesNothing = async (work: () => Promise<void>): Promise<void> => {
      const before = [stored(), (await ann.client.get('/api/files?limit=100')).body.data.length];
      await work();
      expect([stored(), (await ann.client.get('/api/files?limit=100')).body.data.length]).toEqual(before);
    };

    test('an upload answers with the record, and keeps the bytes unchanged', async () => {
      const bytes = Buffer.from(Array.from({ length: 70_000 }, (_, i) => (i * 7919) % 251));
      const { status, headers, body } = await upload(ann.client, {
        bytes,
        name: 'müll.bin',
        type: 'Application/Octet-Stream; x=1',
        data: { note: 'n' },
      });
      const { id, created_at, updated_at, ...rest } = body.data;
      expect(status).toBe(201);
      expect(rest).toEqual({
        name: 'müll.bin',
        content_type: 'application/octet-stream',
        size: 70_000,
        sha256: sha256(bytes),
        owner: ann.id,
        note: 'n',
        kind: 'open',
      });
      expect(headers.get('location')).toBe(`/api/files/${id}`);
      expect((await ann.client.get(`/api/files/${id}`)).body).toEqual({
        data: { id, created_at, updated_at, ...rest },
      });
      expect(headers.get('etag')).toBe((await ann.client.get(`/api/files/${id}`)).headers.get('etag'));
      const content = await bytesOf(ann.client, `/api/files/${id}/content`);
      expect(content.bytes.equals(bytes)).toBe(true);
    });

    test('bytes that look like boundaries stay bytes, however the network cuts them', async () => {
      const bytes = Buffer.from(
        `\r\n--${BOUNDARY}x\r\n--${BOUNDARY.slice(0, -1)}\r\n\r\n--\r\n-\r--${BOUNDARY} `.repeat(40),
      );
      const form = formOf({ bytes });
      const head =
        `POST /api/files HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: Bearer ${ann.token}\r\n` +
        `Content-Type: ${FORM_TYPE['Content-Type']}\r\nContent-Length: ${form.length}\r\n\r\n`;
      for (const step of [1, 3, 17, 64]) {
        const chunked = Buffer.concat(
          Array.from({ length: Math.ceil(form.length / step) }, (_, i) => {
            const part = form.subarray(i * step, (i + 1) * step);
            return Buffer.concat([Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from('\r\n')]);
          }),
        );
        const request = Buffer.concat([
          Buffer.from(head.replace(/Content-Length: \d+/, 'Transfer-Encoding: chunked')),
          chunked,
          Buffer.from('0\r\n\r\n'),
        ]);
        const answer = await rawly(service.url, request);
        expect(answer).toContain('HTTP/1.1 201');
        expect(answer).toContain(sha256(bytes));
      }
    });

    test('PATCH changes the name and added fields, and nothing that describes the bytes', async () => {
      const { id } = (await upload(ann.client, { bytes: 'x' })).body.data;
      const { status, body } = await ann.client.patch(`/api/files/${id}`, { data: { name: 'b.txt', note: 'm' } });
      expect([status, body.data.name, body.data.note]).toEqual([200, 'b.txt', 'm']);
      const refused = await ann.client.patch(`/api/files/${id}`, {
        data: { size: 2, sha256: 'x', content_type: 'text/html', owner: ann.id },
      });
      expect(outcomeOf(refused)).toEqual([
        422,
        'validation_failed',
        '/data/size read_only',
        '/data/sha256 read_only',
        '/data/content_type read_only',
        '/data/owner read_only',
      ]);
    });

    test('DELETE removes the record and the bytes', async () => {
      const { id } = (await upload(ann.client, { bytes: 'x' })).body.data;
      const before = stored().length;
      expect((await ann.client.delete(`/api/files/${id}`)).status).toBe(204);
      expect(stored().length).toBe(before - 1);
      expect((await ann.client.get(`/api/files/${id}/content`)).status).toBe(404);
    });

    describe('names', () => {
      test.each([
        ['../../etc/passwd', 'passwd'],
        ['..\\\\..\\\\win.ini', 'win.ini'],
        ['/abs/olute.txt', 'olute.txt'],
        ['a\0b.txt', 'ab.txt'],
        ['..', 'file'],
        ['', 'file'],
        [`${'x'.repeat(300)}.txt`, `${'x'.repeat(251)}.txt`],
        ['\u202egpj.exe', 'gpj.exe'],
        ['CON', '_CON'],
        ['nul.txt', '_nul.txt'],
        ['com1.tar.gz', '_com1.tar.gz'],
        ['trailing. . ', 'trailing'],
        ['%22quoted%22.txt', '_quoted_.txt'],
        ['日本語 💾.txt', '日本語 💾.txt'],
      ])('the name %j is kept as %j', async (given, kept) => {
        const { status, body } = await upload(ann.client, { bytes: 'x', name: given });
        expect([status, body.data.name]).toEqual([201, kept]);
        const { headers } = await bytesOf(ann.client, `/api/files/${body.data.id}/content`);
        expect(headers.get('content-disposition')).toMatch(
          /^inline; filename="[ -~]*"; filename\*=UTF-8''[A-Za-z0-9!#$&+.^_`|~%-]+$/,
        );
      });

      test('a name in `data` is checked like a field', async () => {
        await leavesNothing(async () => {
          expect(outcomeOf(await upload(ann.client, { bytes: 'x', data: { name: 'a\0b' } }))).toEqual([
            422,
            'validation_failed',
            '/data/name unstorable',
          ]);
          expect(outcomeOf(await upload(ann.client, { bytes: 'x', data: { name: 'x'.repeat(256), size: 1 } }))).toEqual(
            [422, 'validation_failed', '/data/name too_long', '/data/size read_only'],
          );
        });
      });
    });

    describe('refusals leave nothing behind:', () => {
      test('an upload that is too large leaves nothing, announced or not', async () => {
        await leavesNothing(async () => {
          expect(outcomeOf(await upload(ann.client, { bytes: Buffer.alloc(102_401) }))).toEqual([413, 'too_large']);
          expect(outcomeOf(await upload(ann.client, { bytes: Buffer.alloc(4_000_000) }))).toEqual([413, 'too_large']);
        });
        expect(
          (await upload(ann.client, { bytes: Buffer.alloc(102_400), type: 'application/octet-stream' })).status,
        ).toBe(201);
      });

      test('an upload of a type off the list, or that the bytes contradict, leaves nothing', async () => {
        await leavesNothing(async () => {
          expect(outcomeOf(await upload(ann.client, { bytes: 'x', type: 'application/zip' }))).toEqual([
            415,
            'unsupported_media_type',
          ]);
          expect(outcomeOf(await upload(ann.client, { bytes: 'x', type: 'nonsense' }))).toEqual([
            422,
            'validation_failed',
            '/file invalid_media_type',
          ]);
          expect(outcomeOf(await upload(ann.client, { bytes: '<html><script>1</script>', type: 'image/png' }))).toEqual(
            [422, 'validation_failed', '/file content_type_mismatch'],
          );
          expect(outcomeOf(await upload(ann.client, { bytes: JPEG, type: 'text/html' }))).toEqual([
            422,
            'validation_failed',
            '/file content_type_mismatch',
          ]);
          expect(outcomeOf(await upload(ann.client, { bytes: 'no picture', type: 'image/jpeg' }))).toEqual([
            422,
            'validation_failed',
            '/file content_type_mismatch',
          ]);
        });
      });

      test('a body that is not a form, or another kind of form, leaves nothing', async () => {
        const send = (raw: string | Buffer<ArrayBuffer>, type = FORM_TYPE['Content-Type']) =>
          ann.client.send('POST', '/api/files', { headers: { 'Content-Type': type }, raw });
        await leavesNothing(async () => {
          expect(outcomeOf(await send('{}', 'application/json'))).toEqual([415, 'unsupported_media_type']);
          expect(outcomeOf(await send('x', 'multipart/form-data'))).toEqual([400, 'malformed_multipart']);
          expect(outcomeOf(await send('no boundary in it'))).toEqual([400, 'malformed_multipart']);
          expect(outcomeOf(await send(`--${BOUNDARY}--\r\n`))).toEqual([422, 'validation_failed', '/file required']);
          expect(outcomeOf(await send(`${fileHead('a.txt', 'text/plain')}cut off`))).toEqual([
            400,
            'malformed_multipart',
          ]);
          expect(
            outcomeOf(await send(`${fileHead('a.txt', 'text/plain')}x\r\n${fileHead('b.txt', 'text/plain')}y${TAIL}`)),
          ).toEqual([400, 'malformed_multipart']);
          expect(
            outcomeOf(await send(`${fileHead('a.txt', 'text/plain').replace('"file"', '"files"')}x${TAIL}`)),
          ).toEqual([422, 'validation_failed', '/files unknown_part']);
          expect(outcomeOf(await send(`${fileHead('a'.repeat(9_000), 'text/plain')}x${TAIL}`))).toEqual([
            400,
            'malformed_multipart',
          ]);
          expect(outcomeOf(await upload(ann.client, { bytes: 'x', data: [1] }))).toEqual([
            422,
            'validation_failed',
            '/data not_an_object',
          ]);
          expect(outcomeOf(await upload(ann.client, { bytes: 'x', data: { nope: 1 } }))).toEqual([
            422,
            'validation_failed',
            '/data/nope unknown_field',
          ]);
        });
      });

      test('a body that is cut off, or has a wrong length, leaves nothing', async () => {
        const form = formOf({ bytes: Buffer.alloc(50_000, 97) });
        const head = (length: number) =>
          `POST /api/files HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${ann.token}\r\n` +
          `Content-Type: ${FORM_TYPE['Content-Type']}\r\nContent-Length: ${length}\r\n\r\n`;
        await leavesNothing(async () => {
          await rawly(service.url, Buffer.concat([Buffer.from(head(form.length)), form.subarray(0, 30_000)]), {
            cut: true,
          });
          await rawly(service.url, Buffer.concat([Buffer.from(head(form.length + 10)), form]), { cut: true });
          const short = await rawly(service.url, Buffer.concat([Buffer.from(head(form.length - 20_000)), form]));
          expect(short).toContain('HTTP/1.1 400');
          await new Promise((settled) => setTimeout(settled, 200));
        });
      });

      test('a denied upload fails before its body where the rule can decide, and leaves nothing', async () => {
        const guest = await service.user('guest');
        await leavesNothing(async () => {
          expect(outcomeOf(await upload(ann.client, { bytes: 'x', data: { kind: 'never' } }))).toEqual([
            403,
            'forbidden',
          ]);
          const unread =
            `POST /api/files HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${guest.token}\r\n` +
            `Content-Type: ${FORM_TYPE['Content-Type']}\r\nContent-Length: 90000\r\n\r\n`;
          expect(await rawly(service.url, Buffer.from(unread))).toMatch(/^HTTP\/1.1 403/);
          expect((await upload(service.anonymous, { bytes: 'x' })).status).toBe(401);
        });
      });
    });

    test('an upload that its owner may not read afterwards answers with its id alone', async () => {
      const { status, body } = await upload(ann.client, { bytes: 'x', data: { kind: 'secret' } });
      expect([status, Object.keys(body.data)]).toEqual([201, ['id']]);
    });

    test('an Idempotency-Key gives one file, and its bytes, for two requests', async () => {
      const key = { 'Idempotency-Key': 'once' };
      const [one, two] = await Promise.all([
        upload(ann.client, { bytes: 'same' }, key),
        upload(ann.client, { bytes: 'same' }, key),
      ]);
      expect([one.status, two.status, one.body.data.id]).toEqual([201, 201, two.body.data.id]);
      expect((await bytesOf(ann.client, `/api/files/${one.body.data.id}/content`)).bytes.toString()).toBe('same');
      await leavesNothing(async () => {
        expect((await upload(ann.client, { bytes: 'same' }, key)).body).toEqual(one.body);
        expect(outcomeOf(await upload(ann.client, { bytes: 'other' }, key))).toEqual([422, 'idempotency_mismatch']);
      });
    });
  },
  { schema: SCHEMA, env: { BYLAW_DATA: FOLDER } },
);
