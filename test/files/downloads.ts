/** Downloads whose file changes or goes behave alike on every storage. */
import { createHash } from 'node:crypto';
import { request as httpRequest, type IncomingMessage } from 'node:http';
import { beforeAll, describe, expect, test } from 'vitest';
import type { TestService, User } from '../support/service.ts';
import { upload } from './sending.ts';
import { MiB } from './streaming.ts';

interface Download {
  readonly status: number;
  /** The bytes that arrived, and if they are complete. */
  rest(): Promise<{ readonly bytes: Buffer; readonly isWhole: boolean }>;
}

/** Reads nothing until `rest`: then as much is on its way as connections hold. */
async function beginDownload(user: User, path: string, headers = {}): Promise<Download> {
  const answer = await new Promise<IncomingMessage>((resolve, reject) =>
    httpRequest(user.client.url + path, { headers: { ...user.client.headers, ...headers }, agent: false }, resolve)
      .on('error', reject)
      .end(),
  );
  return {
    status: answer.statusCode!,
    async rest() {
      const chunks: Buffer[] = [];
      const ended = new Promise<void>((done) => answer.once('end', done).once('error', () => done()));
      answer.on('data', (chunk: Buffer) => chunks.push(chunk));
      await ended;
      return { bytes: Buffer.concat(chunks), isWhole: answer.complete };
    },
  };
}

/** More than a connection holds, so that most of it is still to be read when something happens. */
const BYTES = Buffer.from(
  Array.from({ length: 32 * 1024 }, (_, i) => createHash('sha256').update(String(i)).digest('hex').repeat(8)).join(''),
);

/** In a suite whose schema has files with a `note`, of 16 MiB and more. */
export function describeDownloads(service: TestService): void {
  describe('downloads that take long', () => downloadsOf(service));
}

function downloadsOf(service: TestService): void {
  let ann: User;
  let id: string;
  let path: string;
  const make = async (): Promise<void> => {
    id = (await upload(ann.client, { bytes: BYTES, type: 'application/octet-stream' })).body.data.id;
    path = `/api/files/${id}/content`;
  };
  beforeAll(async () => {
    ann = await service.user('member');
    await make();
  });

  test('an update during a download does not change the bytes', async () => {
    const download = await beginDownload(ann, path);
    const changed = await ann.client.patch(`/api/files/${id}`, { data: { name: 'other.txt', note: 'n' } });
    expect(changed.status).toBe(200);
    const { bytes, isWhole } = await download.rest();
    expect([download.status, isWhole, bytes.equals(BYTES)]).toEqual([200, true, true]);
  });

  test('a delete during downloads leaves them whole or visibly cut, and the next finds nothing', async () => {
    const [whole, part, parts] = await Promise.all([
      beginDownload(ann, path),
      beginDownload(ann, path, { Range: 'bytes=100-' }),
      beginDownload(ann, path, { Range: `bytes=0-${12 * MiB},${13 * MiB}-` }),
    ]);
    expect((await ann.client.delete(`/api/files/${id}`)).status).toBe(204);
    expect((await ann.client.get(path)).status).toBe(404);
    const ends = await Promise.all([whole.rest(), part.rest(), parts.rest()]);
    expect([whole.status, part.status, parts.status]).toEqual([200, 206, 206]);
    // A file opened before stays readable to its end.
    expect(ends.slice(0, 2).map(({ isWhole }) => isWhole)).toEqual([true, true]);
    expect(ends[0]!.bytes.equals(BYTES)).toBe(true);
    expect(ends[1]!.bytes.equals(BYTES.subarray(100))).toBe(true);
    // The second part was not opened yet: the response is cut off, as its length reveals.
    expect(ends[2]!.isWhole).toBe(false);
    expect(ends[2]!.bytes.includes(BYTES.subarray(0, 12 * MiB))).toBe(true);
    // And the service goes on.
    await make();
    expect((await (await beginDownload(ann, path)).rest()).bytes.equals(BYTES)).toBe(true);
  });
}
