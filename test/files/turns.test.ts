// @module-tag long
/** Callers store files in turn: a caller with many or slow uploads holds up no other caller. */
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { LocalStorage } from '../../src/files/storage/local.ts';
import { S3Storage } from '../../src/files/storage/s3.ts';
import { readS3Place } from '../../src/files/storage/s3-place.ts';
import { type Incoming, type Storage, storeBytes } from '../../src/files/storage/storage.ts';
import { StoringTurns } from '../../src/files/storage/storing-turns.ts';
import { QueuePerKey } from '../../src/queue-per-key.ts';
import { asCaller } from '../../src/queued-caller.ts';
import { newRecordId } from '../../src/record-id.ts';
import { CREDENTIALS, ProtocolServer } from '../support/s3/protocol-server.ts';
import { describeOnOne, type User } from '../support/service.ts';
import { temporaryFolder, upload } from './sending.ts';
import { startUpload, until } from './streaming.ts';

Object.assign(process.env, CREDENTIALS);
const bucket = await ProtocolServer.start();
afterAll(() => bucket.close());

const STORAGES: readonly (readonly [string, () => Storage])[] = [
  ['a folder', () => new LocalStorage(temporaryFolder())],
  ['a bucket', () => new S3Storage(readS3Place(bucket.place())!)],
];

/** Uploads of one caller that the service reads at a time. */
const OPEN = 8;
const FLOOD = 100;
const as = <T>(id: string, work: () => Promise<T>): Promise<T> => asCaller({ id, isKept: false }, work);
const begin = (storage: Storage, id: string): Promise<Incoming> => as(id, () => storage.incoming(newRecordId()));
const store = async (storage: Storage, id: string): Promise<void> =>
  storeBytes(await begin(storage, id), Buffer.from('x'));

describe.each(STORAGES)('%s', (_, open) => {
  test('the upload of a caller is stored while another floods the storage, whoever delivers its bytes', async () => {
    const storage = open();
    let stored = 0;
    const incoming = await begin(storage, 'bob');
    const flood = Array.from({ length: FLOOD }, () => store(storage, 'ann').then(() => stored++));
    await Promise.race(flood);
    await as('ann', () => storeBytes(incoming, Buffer.alloc(1_000_000)));
    expect(stored).toBeLessThan(FLOOD / 2);
    await Promise.all(flood);
  });

  test('an upload whose client sends no more bytes holds no place', async () => {
    const storage = open();
    const slow = await Promise.all(Array.from({ length: 30 }, () => begin(storage, 'ann')));
    for (const incoming of slow) await incoming.write(Buffer.from('the first bytes'));
    await store(storage, 'bob');
    await Promise.all(slow.map((incoming) => incoming.discard()));
  });
});

test('a place is free again when its work fails', async () => {
  const turns = new StoringTurns(1);
  await expect(turns.run(() => Promise.reject(new Error('a full disk')))).rejects.toThrow('a full disk');
  expect(await turns.run(async () => 'stored')).toBe('stored');
});

test('an upload that waits too long behind others of its caller is refused', async () => {
  const queues = new QueuePerKey({ running: 1, waiting: 5, patienceMs: 20 }, () => new Error('too many'));
  const { promise, resolve } = Promise.withResolvers<void>();
  const first = queues.run('ann', () => promise);
  await expect(queues.run('ann', async () => {})).rejects.toThrow('too many');
  expect(await queues.run('bob', async () => 'stored')).toBe('stored');
  resolve();
  await first;
});

const SCHEMA = `
roles: [member]
register: { roles: [member] }
collections:
  files: { access: { view: true, create: true } }
`;

const uploadsOf = (place: string | undefined) =>
  describeOnOne(
    `uploads into ${place === undefined ? 'a folder' : 'a bucket'}`,
    (service) => {
      let ann: User;
      let bob: User;
      beforeAll(async () => {
        ann = await service.user();
        bob = await service.user();
      });

      test('slow uploads of one caller wait behind each other, and an upload of another passes them', async () => {
        const opened = vi.spyOn(service.app.files.storage, 'incoming');
        const slow = Array.from({ length: 20 }, () => startUpload(ann.client, { length: 1_000, isWhole: false }));
        await until(() => opened.mock.calls.length === OPEN);
        let answered = 0;
        const whole = startUpload(ann.client, { length: 1_000, isWhole: true });
        for (const { answer } of [...slow, whole]) answer.then(() => answered++).catch(() => undefined);
        // The uploads of another caller go on, one after another.
        for (let i = 0; i < 10; i++) expect((await upload(bob.client, { bytes: `file ${i}` })).status).toBe(201);
        expect([answered, opened.mock.calls.length]).toEqual([0, OPEN + 10]);
        for (const { cut } of slow) cut();
        expect((await whole.answer).status).toBe(201);
      });
    },
    { schema: SCHEMA, ...(place !== undefined && { env: { BYLAW_FILES: place } }) },
  );
uploadsOf(undefined);
uploadsOf(bucket.place());
