/** JSON text in pieces: its length, its bytes, and the sharing of texts. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  arrayOf,
  between,
  JsonPieces,
  type JsonText,
  stringsOf,
  utf8BytesOf,
  withMembers,
} from '../../src/records/json-pieces.ts';

/** A nested text, and the same as one string. */
const nested: fc.Arbitrary<readonly [JsonText, string]> = fc.letrec<{ text: readonly [JsonText, string] }>((tie) => ({
  text: fc.oneof(
    { maxDepth: 4 },
    fc.string({ unit: 'grapheme' }).map((text) => [text, text] as const),
    fc
      .array(tie('text'), { maxLength: 4 })
      .map((texts) => [new JsonPieces(texts.map(([json]) => json)), texts.map(([, text]) => text).join('')] as const),
  ),
})).text;

describe('JSON text in pieces', () => {
  test('pieces have the text, the length and the bytes of the joined string', () => {
    fc.assert(
      fc.property(nested, ([json, text]) => {
        expect([String(json), [...stringsOf(json)].join('')]).toEqual([text, text]);
        expect([json.length, utf8BytesOf(json)]).toEqual([text.length, Buffer.byteLength(text)]);
      }),
    );
  });

  test('an answer measures a shared text once', () => {
    let reads = 0;
    class Counted extends JsonPieces {
      override get bytes(): number {
        reads++;
        return super.bytes;
      }
    }
    const shared = new Counted(['"ä"']);
    const holders = Array.from({ length: 3 }, () => new JsonPieces(['{"team":', shared, '}']));
    const page = arrayOf([...holders, ...holders]);
    expect([utf8BytesOf(page), utf8BytesOf(page), reads]).toEqual([85, 85, 3]);
  });

  test('an array separates its texts, and an object takes more members', () => {
    expect(arrayOf([])).toBe('[]');
    expect(arrayOf(['1', '2'], '{"data":', '}')).toBe('{"data":[1,2]}');
    expect(between('{"data":', '{}', '}')).toBe('{"data":{}}');
    expect(String(between('{"data":', new JsonPieces(['{', '}']), '}'))).toBe('{"data":{}}');
    expect(String(arrayOf(['1', new JsonPieces(['[', ']'])], '{"data":', '}'))).toBe('{"data":[1,[]]}');
    expect(String(withMembers('{"a":1}', '"b":2'))).toBe('{"a":1,"b":2}');
    expect(String(withMembers(new JsonPieces(['{"a":', '1', '}']), '"b":2'))).toBe('{"a":1,"b":2}');
  });

  test('a JSON string of the text is made where pieces are a value', () => {
    expect(JSON.stringify({ body: new JsonPieces(['{', '}']) })).toBe('{"body":"{}"}');
  });
});
