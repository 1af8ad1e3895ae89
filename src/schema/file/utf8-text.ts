/** The text of a schema file. Decoded from another encoding, a policy would compare with another string than its author wrote. */
import { lineAndColumn } from '../../../grammar/policy-error.ts';

/** The file has bytes that are not UTF-8. */
export class NotUtf8 extends Error {
  /** The first of these bytes. */
  readonly place: ReturnType<typeof lineAndColumn>;

  constructor(place: NotUtf8['place']) {
    super(`line ${place.line} is not UTF-8; save the file as UTF-8`);
    this.name = 'NotUtf8';
    this.place = place;
  }
}

/** Throws NotUtf8. */
export function utf8Text(bytes: Uint8Array): string {
  try {
    return decoder().decode(bytes);
  } catch {
    const before = textBeforeError(bytes);
    throw new NotUtf8(lineAndColumn(before, before.length));
  }
}

const decoder = () => new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function textBeforeError(bytes: Uint8Array): string {
  const reading = decoder();
  let text = '';
  try {
    for (const byte of bytes) text += reading.decode(Uint8Array.of(byte), { stream: true });
  } catch {
    // The byte begins no character, or ends none.
  }
  return text;
}
