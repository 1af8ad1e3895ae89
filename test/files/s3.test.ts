// @module-tag long
/** The same bytes through a bucket, at the interface of the storage. The whole service on one: bucket.test.ts. */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { openStorage } from '../../src/files/storage/open-storage.ts';
import { S3Storage } from '../../src/files/storage/s3.ts';
import { readS3Place } from '../../src/files/storage/s3-place.ts';
import { type Storage, StorageUnavailable } from '../../src/files/storage/storage.ts';
import { CREDENTIALS, ProtocolServer } from '../support/s3/protocol-server.ts';
import { MiB } from './streaming.ts';

const ID = '01900000-0000-7000-8000-000000000001';
const OTHER = '01900000-0000-7000-8000-000000000002';

describe('a bucket', () => {
  let server: ProtocolServer;
  let storage: Storage;
  beforeAll(async () => {
    Object.assign(process.env, CREDENTIALS);
    server = await ProtocolServer.start();
    storage = new S3Storage(readS3Place(server.place())!);
  });
  afterAll(() => server.close());

  const put = async (key: string, bytes: Buffer): Promise<void> => {
    const incoming = await storage.incoming(key);
    for (let at = 0; at < bytes.length; at += 65_536) {
      const chunk = Buffer.from(bytes.subarray(at, at + 65_536));
      const room = incoming.write(chunk);
      // The memory is the caller's again.
      chunk.fill(0);
      await room;
    }
    await incoming.publish();
  };
  const get = async (key: string, range?: { start: number; end: number }): Promise<Buffer | undefined> => {
    const stream = await storage.open(key, range);
    if (stream === undefined) return undefined;
    const chunks: Buffer[] = [];
    for await (const chunk of stream) chunks.push(Buffer.from(chunk));
    return Buffer.concat(chunks);
  };

  test.each([0, 1, 100_000, 20 * 1024 * 1024 + 7])(
    'a bucket keeps %i bytes, large objects in parts',
    async (length) => {
      const bytes = randomBytes(length);
      await put(ID, bytes);
      expect((await get(ID))!.equals(bytes)).toBe(true);
      expect(await storage.size(ID)).toBe(length);
      if (length > 10) expect((await get(ID, { start: 3, end: 9 }))!.equals(bytes.subarray(3, 10))).toBe(true);
    },
  );

  test('a bucket keeps nothing of a discarded upload, published or not', async () => {
    const incoming = await storage.incoming(OTHER);
    for (let i = 0; i < 200; i++) await incoming.write(Buffer.alloc(65_536));
    await incoming.discard();
    expect(await storage.size(OTHER)).toBeUndefined();
    expect(await get(OTHER)).toBeUndefined();
    const second = await storage.incoming(OTHER);
    await second.write(Buffer.from('x'));
    await second.publish();
    expect(await storage.size(OTHER)).toBe(1);
    await second.discard();
    expect(await storage.size(OTHER)).toBeUndefined();
  });

  test('a bucket reports a failure, also to a sender that waits for room', async () => {
    server.treat = ({ operation }) => (operation === 'CreateMultipartUpload' ? 500 : undefined);
    const incoming = await storage.incoming(OTHER);
    const chunk = Buffer.alloc(MiB);
    const writing = async (): Promise<void> => {
      for (let i = 0; i < 100; i++) await incoming.write(chunk);
    };
    await expect(writing()).rejects.toThrow(StorageUnavailable);
    expect(() => incoming.write(chunk)).toThrow(StorageUnavailable);
    await incoming.discard();
    server.treat = () => undefined;
    expect(await storage.size(OTHER)).toBeUndefined();
  });

  test('a bucket without a credential reports the settings for one', async () => {
    await expect(openStorage({ data: '', files: 's3://files?endpoint=nonsense' }, ID)).rejects.toThrow(
      'BYLAW_FILES: expected a place such as s3://bucket/prefix?region=eu-central-1',
    );
  });

  test('a bucket removes a file with its variants, and sweeps bytes without a record', async () => {
    await put(ID, Buffer.from('a'));
    await put(`${ID}.w16hcover`, Buffer.from('b'));
    await put(OTHER, Buffer.from('c'));
    expect(await storage.sweep({ grace: 60_000, alive: async () => new Set() })).toBe(0);
    expect(await storage.sweep({ grace: 0, alive: async () => new Set([ID]) })).toBe(1);
    expect([await storage.size(ID), await storage.size(`${ID}.w16hcover`), await storage.size(OTHER)]).toEqual([
      1,
      1,
      undefined,
    ]);
    await storage.remove(ID);
    expect([await storage.size(ID), await storage.size(`${ID}.w16hcover`)]).toEqual([undefined, undefined]);
  });

  test('a configured bucket redirects to an address that works without a credential', async () => {
    await put(ID, Buffer.from('elsewhere'));
    expect(await storage.redirect(ID, { contentType: 'text/plain', disposition: 'inline' })).toBeUndefined();
    const redirecting = new S3Storage(readS3Place(server.place('&redirects=true'))!);
    const address = (await redirecting.redirect(ID, {
      contentType: 'text/plain',
      disposition: 'attachment; filename="a"',
    }))!;
    const response = await fetch(address);
    expect([response.status, await response.text()]).toEqual([200, 'elsewhere']);
    expect([response.headers.get('content-type'), response.headers.get('content-disposition')]).toEqual([
      'text/plain',
      'attachment; filename="a"',
    ]);
    const forged = address.replace(/X-Amz-Signature=(.)/, (_, first) => `X-Amz-Signature=${first === '0' ? '1' : '0'}`);
    expect((await fetch(forged)).status).toBe(403);
  });

  describe('its credentials, without those of the environment', () => {
    const SECRET = CREDENTIALS.AWS_SECRET_ACCESS_KEY;
    const folder = mkdtempSync(join(tmpdir(), 'bylaw-aws-'));
    beforeEach(() => {
      vi.stubEnv('AWS_ACCESS_KEY_ID', undefined);
      vi.stubEnv('AWS_SECRET_ACCESS_KEY', undefined);
    });
    afterEach(() => vi.unstubAllEnvs());
    afterAll(() => rmSync(folder, { recursive: true }));

    test('the credentials come from the profile that AWS_PROFILE names', async () => {
      const file = join(folder, 'credentials');
      const profile = (name: string, secret: string): string =>
        `[${name}]\naws_access_key_id = S3RVER\naws_secret_access_key = ${secret}\n`;
      writeFileSync(file, profile('default', 'wrong') + profile('ours', SECRET));
      vi.stubEnv('AWS_SHARED_CREDENTIALS_FILE', file);
      vi.stubEnv('AWS_CONFIG_FILE', join(folder, 'none'));
      vi.stubEnv('AWS_PROFILE', 'ours');
      await put(ID, Buffer.from('kept'));
      expect(await new S3Storage(readS3Place(server.place())!).size(ID)).toBe(4);
    });

    test('the credentials come from the container, and are read again when they end', async () => {
      const given: string[] = [];
      const container = createServer((request, response) => {
        given.push(String(request.headers.authorization));
        const Expiration = new Date(Date.now() + 1_000).toISOString();
        response.end(JSON.stringify({ AccessKeyId: 'S3RVER', SecretAccessKey: SECRET, Token: 'session', Expiration }));
      });
      await new Promise<void>((done) => container.listen(0, '127.0.0.1', done));
      try {
        const { port } = container.address() as AddressInfo;
        vi.stubEnv('AWS_CONTAINER_CREDENTIALS_FULL_URI', `http://127.0.0.1:${port}/`);
        vi.stubEnv('AWS_CONTAINER_AUTHORIZATION_TOKEN', 'the token of the container');
        vi.stubEnv('AWS_SHARED_CREDENTIALS_FILE', join(folder, 'none'));
        vi.stubEnv('AWS_CONFIG_FILE', join(folder, 'none'));
        const inContainer = new S3Storage(readS3Place(server.place())!);
        await put(ID, Buffer.from('kept'));
        expect(await inContainer.size(ID)).toBe(4);
        await new Promise((done) => setTimeout(done, 1_100));
        expect(await inContainer.size(ID)).toBe(4);
        expect(given.length).toBeGreaterThanOrEqual(2);
        expect(new Set(given)).toEqual(new Set(['the token of the container']));
      } finally {
        container.close();
      }
    });
  });

  test.each(['s3:///folder', 'http://x', 's3://b?unknown=1', 's3://b?redirects=yes', 's3://b?endpoint=nonsense'])(
    'the place %s is rejected',
    (text) => {
      expect(readS3Place(text)).toBeUndefined();
    },
  );
});
