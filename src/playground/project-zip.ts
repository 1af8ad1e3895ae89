/** A ZIP archive of texts, stored without compression (APPNOTE 6.3). */
const encoder = new TextEncoder();

const TABLE = Uint32Array.from({ length: 256 }, (_, n) => {
  let value = n;
  for (let i = 0; i < 8; i++) value = value & 1 ? 0xedb88320 ^ (value >>> 1) : value >>> 1;
  return value;
});

function crcOf(bytes: Uint8Array): number {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = TABLE[(crc ^ byte) & 0xff]! ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}

/** Little endian; a pair is a value and its length in bytes. */
function fields(...pairs: readonly (readonly [value: number, length: 2 | 4])[]): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(pairs.reduce((sum, [, length]) => sum + length, 0));
  const view = new DataView(bytes.buffer);
  let at = 0;
  for (const [value, length] of pairs) {
    if (length === 2) view.setUint16(at, value, true);
    else view.setUint32(at, value, true);
    at += length;
  }
  return bytes;
}

const UTF8_NAMES = 0x0800;
/** 1 January 2026, the least that the format can say of a text without a date. */
const ZIP_DATE = ((2026 - 1980) << 9) | (1 << 5) | 1;

export function zipOf(files: Readonly<Record<string, string>>): Blob {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  const entries: Uint8Array<ArrayBuffer>[] = [];
  let offset = 0;
  for (const [file, text] of Object.entries(files)) {
    const [name, bytes] = [encoder.encode(file), encoder.encode(text)];
    const common = [
      [20, 2],
      [UTF8_NAMES, 2],
      [0, 2],
      [0, 2],
      [ZIP_DATE, 2],
      [crcOf(bytes), 4],
      [bytes.length, 4],
      [bytes.length, 4],
      [name.length, 2],
      [0, 2],
    ] as const;
    const local = fields([0x04034b50, 4], ...common);
    parts.push(local, name, bytes);
    entries.push(fields([0x02014b50, 4], [20, 2], ...common, [0, 2], [0, 2], [0, 2], [0, 4], [offset, 4]), name);
    offset += local.length + name.length + bytes.length;
  }
  const size = entries.reduce((sum, { length }) => sum + length, 0);
  const count = Object.keys(files).length;
  const end = fields([0x06054b50, 4], [0, 2], [0, 2], [count, 2], [count, 2], [size, 4], [offset, 4], [0, 2]);
  return new Blob([...parts, ...entries, end], { type: 'application/zip' });
}
