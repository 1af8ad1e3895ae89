/** The text of files in several encodings. */
import { describe, expect, test } from 'vitest';
import { decodedText, isEncoding } from '../../../../src/cli/transfer/formats/file-text.ts';

async function textOf(bytes: Uint8Array, encoding?: string, size = bytes.length): Promise<string> {
  async function* chunks() {
    for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
  }
  let text = '';
  for await (const part of decodedText(chunks(), encoding)) text += part;
  return text;
}

const TEXT = 'a\nü€𝄞\r\n\u0a00ਊ\nlast';
const bigEndian = (text: string): Buffer => Buffer.from(`\uFEFF${text}`, 'utf16le').swap16();

describe('the text of a file', () => {
  test.each([
    ['UTF-8', Buffer.from(TEXT)],
    ['UTF-8 with a mark', Buffer.from(`\uFEFF${TEXT}`)],
    ['UTF-16LE with a mark', Buffer.from(`\uFEFF${TEXT}`, 'utf16le')],
    ['UTF-16BE with a mark', bigEndian(TEXT)],
  ])('%s is read, in chunks of any size', async (_, bytes) => {
    for (const size of [bytes.length, 3, 4, 7]) expect(await textOf(bytes, undefined, size)).toBe(TEXT);
  });

  test('a mark counts more than the encoding that is given, and is needed once only', async () => {
    expect(await textOf(Buffer.from('\uFEFFü'), 'windows-1252')).toBe('ü');
    expect(await textOf(Buffer.from('\uFEFF\uFEFFü'))).toBe('\uFEFFü');
  });

  test('an encoding is known by its name', async () => {
    expect(await textOf(Buffer.from([0x80, 0x93, 0xe9, 0x0a]), 'windows-1252')).toBe('€“é\n');
    expect(await textOf(Buffer.from([0xa4]), 'iso-8859-15')).toBe('€');
    expect(['utf-8', 'windows-1252', 'shift_jis', 'nothing', ''].map(isEncoding)).toEqual([
      true,
      true,
      true,
      false,
      false,
    ]);
  });

  test.each([
    ['UTF-8', Buffer.concat([Buffer.from('ü\nb\nc'), Buffer.from([0xe9, 0x0a, 0x41])]), undefined, 3],
    ['UTF-8', Buffer.from([0x41, 0x0a, 0xc3]), undefined, 2],
    ['UTF-16LE', Buffer.from([0xff, 0xfe, 0x0a, 0x00, 0x00, 0xd8, 0x41, 0x00]), undefined, 2],
    ['SHIFT_JIS', Buffer.from([0x41, 0x0a, 0x0a, 0xfd]), 'shift_jis', 3],
  ])('bytes that are no %s are an error with their line', async (encoding, bytes, given, line) => {
    for (const size of [bytes.length, 3])
      await expect(textOf(bytes, given, size)).rejects.toMatchObject({
        line,
        message: `expected text in ${encoding}, found other bytes; \`--encoding\` names another encoding of the file`,
      });
  });
});
