// @module-tag long
/** S7: sizes of images escaped the quota, and two images stopped everybody else's. */
import { randomBytes } from 'node:crypto';
import { readdirSync, statSync } from 'node:fs';
import { join } from 'node:path';
import sharp from 'sharp';
import { beforeAll, describe, expect, it } from 'vitest';
import { FairQueue } from '../../src/files/variants/fair-queue.ts';
import { Problem } from '../../src/problem.ts';
import { describeOnOne, type User } from '../support/service.ts';
import { bytesOf, temporaryFolder, upload } from './sending.ts';

const FOLDER = temporaryFolder();
const SCHEMA = `
roles: [member]
uploads: { quota: { default: 1MiB }, images: { widths: [16, 64, 512, 2048], heights: [16, 64, 512, 2048] } }
`;
const noise = (width: number, height: number): Promise<Buffer> =>
  sharp(randomBytes(width * height * 3), { raw: { width, height, channels: 3 } })
    .png()
    .toBuffer();

const storedFor = (id: string): readonly number[] =>
  readdirSync(FOLDER, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.startsWith(id))
    .map(({ parentPath, name }) => statSync(join(parentPath, name)).size);
const sum = (sizes: readonly number[]): number => sizes.reduce((all, size) => all + size, 0);

describeOnOne(
  'S7: sizes of images',
  (service) => {
    let ann: User;
    beforeAll(async () => {
      ann = await service.user('member');
    });
    const make = async (bytes: Buffer, type: string): Promise<string> =>
      (await upload(ann.client, { bytes, type, name: 'p' })).body.data.id;
    const render = async (id: string, query: string) => {
      const { status, bytes } = await bytesOf(ann.client, `/api/files/${id}/content?${query}`);
      const { width = 0, height = 0 } = await sharp(bytes).metadata();
      return { status, bytes, width, height };
    };

    it.each([
      ['width=2048', 48, 24],
      ['height=512&fit=inside', 48, 24],
      ['width=2048&height=2048', 24, 24],
      ['width=2048&height=512', 48, 12],
      ['width=2048&height=2048&fit=inside', 48, 24],
      ['width=2048&height=2048&fit=contain', 48, 48],
      ['width=16&height=64&fit=cover', 6, 24],
      ['width=16&height=16&fit=cover', 16, 16],
      ['width=16&height=64&fit=contain', 16, 64],
    ])('%s of 48 by 24 pixels is not enlarged, and has the shape that was asked for', async (query, width, height) => {
      expect(await render(await make(await noise(48, 24), 'image/png'), query)).toMatchObject({
        status: 200,
        width,
        height,
      });
    });

    it('all kept sizes of an image take no more bytes than the image', async () => {
      const bytes = await noise(48, 48);
      const id = await make(bytes, 'image/png');
      const lengths = ['', '16', '64', '512', '2048'];
      const sizes = lengths
        .flatMap((width) => lengths.map((height) => [width && `width=${width}`, height && `height=${height}`]))
        .map((parts) => parts.filter((part) => part !== '').join('&'))
        .filter((query) => query !== '');
      const statuses = new Set<number>();
      for (const query of sizes) statuses.add((await render(id, query)).status);
      expect([sizes.length, [...statuses]]).toEqual([24, [200]]);
      const [kept, whole] = [sum(storedFor(id)), bytes.length];
      expect([kept > whole, kept <= 2 * whole]).toEqual([true, true]);
    });

    it('a size that takes more bytes than the image is sent, in ranges and to HEAD too, and not kept', async () => {
      // The rows repeat, so the PNG is small until scaling blends them.
      const row = randomBytes(512 * 3);
      const rows = Buffer.concat(
        Array.from({ length: 512 }, (_, i) => (i % 2 === 0 ? row : Buffer.from(row).reverse())),
      );
      const bytes = await sharp(rows, { raw: { width: 512, height: 512, channels: 3 } })
        .webp({ quality: 1 })
        .toBuffer();
      const id = await make(bytes, 'image/webp');
      const path = `/api/files/${id}/content?width=512`;
      const whole = await bytesOf(ann.client, path);
      expect([whole.status, whole.bytes.length > bytes.length, storedFor(id)]).toEqual([200, true, [bytes.length]]);
      const part = await bytesOf(ann.client, path, { Range: 'bytes=100-199' });
      expect([part.status, part.bytes.equals(whole.bytes.subarray(100, 200))]).toEqual([206, true]);
      const head = await ann.client.send('HEAD', path);
      expect([head.status, head.headers.get('content-length')]).toEqual([200, String(whole.bytes.length)]);
      const etag = whole.headers.get('etag')!;
      expect((await bytesOf(ann.client, path, { 'If-None-Match': etag })).status).toBe(304);
    });

    it('a picture that its camera held sideways keeps its shape', async () => {
      const bytes = await sharp(await noise(48, 24))
        .jpeg()
        .withMetadata({ orientation: 6 })
        .toBuffer();
      const id = await make(bytes, 'image/jpeg');
      expect(await render(id, 'width=2048')).toMatchObject({ status: 200, width: 24, height: 48 });
    });
  },
  { schema: SCHEMA, env: { BYLAW_DATA: FOLDER } },
);

describe('S7: the queue of renders', () => {
  const limits = { atOnce: 2, perUser: 1, waitingPerUser: 3, waiting: 5 };
  /** A queue whose work ends on command. */
  function manual() {
    const queue = new FairQueue(limits);
    const started: string[] = [];
    const ends = new Map<string, () => void>();
    const add = (user: string, name: string): Promise<void> =>
      queue.run(user, () => {
        started.push(name);
        return new Promise<void>((resolve) => ends.set(name, resolve));
      });
    const settle = () => new Promise((resolve) => setImmediate(resolve));
    const end = async (name: string) => {
      ends.get(name)!();
      await settle();
    };
    return { started, add, end, settle };
  }

  it('the queue gives each user one place at most, and the next to the user who waited longest', async () => {
    const { started, add, end, settle } = manual();
    for (const name of ['a1', 'a2', 'a3']) void add('a', name);
    void add('b', 'b1');
    for (const name of ['c1', 'c2']) void add('c', name);
    await settle();
    expect(started).toEqual(['a1', 'b1']);
    await end('b1');
    expect(started).toEqual(['a1', 'b1', 'c1']);
    await end('a1');
    expect(started).toEqual(['a1', 'b1', 'c1', 'a2']);
    await end('a2');
    await end('c1');
    expect(started.slice(4).toSorted()).toEqual(['a3', 'c2']);
  });

  it('the queue is bounded for each user and for all, and goes on afterwards', async () => {
    const { started, add, end, settle } = manual();
    for (let i = 0; i < 4; i++) void add('a', `a${i}`);
    const unavailable = { code: 'unavailable', status: 503 } satisfies Partial<Problem>;
    await expect(add('a', 'a4')).rejects.toMatchObject(unavailable);
    for (let i = 0; i < 3; i++) void add('b', `b${i}`);
    await expect(add('b', 'b3')).rejects.toMatchObject(unavailable);
    await expect(add('c', 'c0')).rejects.toBeInstanceOf(Problem);
    await settle();
    await end('a0');
    void add('c', 'c1');
    await end('b0');
    await end('a1');
    await end('b1');
    expect(started.slice(0, 4)).toEqual(['a0', 'b0', 'a1', 'b1']);
    expect(started.slice(4).toSorted()).toEqual(['a2', 'c1']);
  });

  it('the queue frees the place of work that failed', async () => {
    const queue = new FairQueue(limits);
    const failing = Array.from({ length: 3 }, () => queue.run('a', () => Promise.reject(new Error('broken'))));
    expect((await Promise.allSettled(failing)).map(({ status }) => status)).toEqual(Array(3).fill('rejected'));
    expect(await queue.run('a', async () => 'done')).toBe('done');
  });
});
