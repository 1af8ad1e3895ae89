/** Archives in the format ustar (POSIX.1-1988), streamed; only folders and regular files, as backups need no more. */
import type { FileHandle } from 'node:fs/promises';

const BLOCK = 512;
/** The limit of octal sizes; larger ones are binary, as in GNU tar and star. */
const MOST_OCTAL = 8 ** 11;

export interface TarEntry {
  readonly name: string;
  readonly isFolder: boolean;
  /** Bytes. */
  readonly size: number;
}

/** Throws RangeError for a name that does not fit: 100 bytes, or 155 and 100 around a slash. */
export function tarHeader({ name, isFolder, size }: TarEntry): Buffer {
  const header = Buffer.alloc(BLOCK);
  const [prefix, rest] = splitName(name);
  header.write(rest, 0);
  header.write(isFolder ? '0000700\0' : '0000600\0', 100);
  header.write('0000000\0', 108);
  header.write('0000000\0', 116);
  if (size < MOST_OCTAL) header.write(`${size.toString(8).padStart(11, '0')}\0`, 124);
  else {
    header[124] = 0x80;
    header.writeBigUInt64BE(BigInt(size), 128);
  }
  header.write('00000000000\0', 136);
  header.write(isFolder ? '5' : '0', 156);
  header.write('ustar\x0000', 257);
  header.write(prefix, 345);
  header.write(`${checksum(header).toString(8).padStart(6, '0')}\0 `, 148);
  return header;
}

function splitName(name: string): readonly [prefix: string, rest: string] {
  if (Buffer.byteLength(name) <= 100) return ['', name];
  for (let at = name.indexOf('/'); at > 0; at = name.indexOf('/', at + 1)) {
    const [prefix, rest] = [name.slice(0, at), name.slice(at + 1)];
    if (Buffer.byteLength(prefix) <= 155 && Buffer.byteLength(rest) <= 100 && rest !== '') return [prefix, rest];
  }
  throw new RangeError(`the name ${name} is too long for an archive`);
}

/** The checksum of a header, whose own field counts as spaces. */
function checksum(header: Buffer): number {
  let sum = 0;
  for (const [at, byte] of header.entries()) sum += at >= 148 && at < 156 ? 0x20 : byte;
  return sum;
}

/** The zeros after the bytes of an entry. */
export const paddingOf = (size: number): Buffer => Buffer.alloc((BLOCK - (size % BLOCK)) % BLOCK);
export const END_OF_ARCHIVE = Buffer.alloc(2 * BLOCK);

/** The archive ends early, or the file is not an archive. */
export class BrokenArchive extends Error {}

export interface ReadEntry extends TarEntry {
  /** The reader must consume it before the next entry. */
  readonly content: AsyncIterable<Buffer>;
}

/** The bytes that are read or written at a time. */
export const CHUNK = 1 << 20;

/** Throws BrokenArchive. */
export async function* readTar(file: FileHandle): AsyncIterable<ReadEntry> {
  let at = 0;
  const take = async (size: number): Promise<Buffer> => {
    const buffer = Buffer.alloc(size);
    for (let filled = 0; filled < size; ) {
      const { bytesRead } = await file.read(buffer, filled, size - filled, at);
      if (bytesRead === 0) throw new BrokenArchive('it ends too early');
      filled += bytesRead;
      at += bytesRead;
    }
    return buffer;
  };
  async function* contentOf(size: number): AsyncIterable<Buffer> {
    for (let left = size; left > 0; ) {
      const chunk = await take(Math.min(left, CHUNK));
      left -= chunk.length;
      yield chunk;
    }
  }
  for (;;) {
    const header = await take(BLOCK);
    if (header.every((byte) => byte === 0)) return;
    const entry = entryOf(header);
    const next = at + entry.size + paddingOf(entry.size).length;
    yield { ...entry, content: contentOf(entry.size) };
    at = next;
  }
}

function entryOf(header: Buffer): TarEntry {
  const textAt = (start: number, length: number): string =>
    header.toString('utf8', start, start + length).replace(/\0[\s\S]*$/, '');
  const isOurs = textAt(257, 5) === 'ustar' && Number.parseInt(textAt(148, 8), 8) === checksum(header);
  if (!isOurs) throw new BrokenArchive('it is not an archive, or is damaged');
  const prefix = textAt(345, 155);
  const name = textAt(0, 100);
  const size = header[124] === 0x80 ? Number(header.readBigUInt64BE(128)) : Number.parseInt(textAt(124, 12), 8);
  const type = textAt(156, 1);
  if (!Number.isSafeInteger(size) || (type !== '0' && type !== '5'))
    throw new BrokenArchive('it has entries that no backup has');
  return { name: prefix === '' ? name : `${prefix}/${name}`, isFolder: type === '5', size };
}
