/** Finds the media type of bytes by their beginning, and says how each type may be served. */

/** Bytes that are enough to recognise a type. */
export const HEAD_LENGTH = 4096;

interface MagicBytes {
  readonly type: string;
  readonly at: number;
  /** Latin-1. */
  readonly bytes: string;
  readonly also?: { readonly at: number; readonly bytes: string };
}
const SIGNATURES: readonly MagicBytes[] = [
  { type: 'image/jpeg', at: 0, bytes: '\xff\xd8\xff' },
  { type: 'image/png', at: 0, bytes: '\x89PNG\r\n\x1a\n' },
  { type: 'image/gif', at: 0, bytes: 'GIF87a' },
  { type: 'image/gif', at: 0, bytes: 'GIF89a' },
  { type: 'image/webp', at: 0, bytes: 'RIFF', also: { at: 8, bytes: 'WEBP' } },
  { type: 'image/avif', at: 4, bytes: 'ftypavif' },
  { type: 'image/avif', at: 4, bytes: 'ftypavis' },
  { type: 'image/heic', at: 4, bytes: 'ftyphei' },
  { type: 'image/tiff', at: 0, bytes: 'II*\0' },
  { type: 'image/tiff', at: 0, bytes: 'MM\0*' },
  { type: 'image/bmp', at: 0, bytes: 'BM', also: { at: 6, bytes: '\0\0\0\0' } },
  { type: 'application/pdf', at: 0, bytes: '%PDF-' },
  { type: 'audio/wav', at: 0, bytes: 'RIFF', also: { at: 8, bytes: 'WAVE' } },
  { type: 'audio/mpeg', at: 0, bytes: 'ID3' },
  { type: 'audio/flac', at: 0, bytes: 'fLaC' },
  { type: 'audio/ogg', at: 0, bytes: 'OggS' },
  { type: 'video/webm', at: 0, bytes: '\x1a\x45\xdf\xa3' },
  { type: 'video/mp4', at: 4, bytes: 'ftyp' },
  { type: 'application/gzip', at: 0, bytes: '\x1f\x8b' },
  { type: 'application/zip', at: 0, bytes: 'PK\x03\x04' },
  { type: 'application/zip', at: 0, bytes: 'PK\x05\x06' },
  { type: 'application/x-7z-compressed', at: 0, bytes: '7z\xbc\xaf\x27\x1c' },
  { type: 'application/x-msdownload', at: 0, bytes: 'MZ', also: { at: 3, bytes: '\0' } },
  { type: 'application/x-elf', at: 0, bytes: '\x7fELF' },
  { type: 'application/wasm', at: 0, bytes: '\0asm' },
];
/** For a recognised type, the claimed types that have the same container or are the same by another name. */
const KIN: Readonly<Record<string, RegExp>> = {
  'application/zip': /zip|openxml|opendocument|epub|java-archive|\+zip$/,
  'application/gzip': /gzip|tgz/,
  'audio/ogg': /ogg/,
  'audio/wav': /wav/,
  'video/webm': /webm|matroska/,
  'video/mp4': /mp4|quicktime|3gpp|m4a|m4v|heif|heic|avif/,
  'image/heic': /heic|heif/,
  'image/bmp': /bmp/,
  'application/x-msdownload': /msdownload|dos-exec|portable-executable/,
  'application/x-elf': /elf|executable|sharedlib/,
};
const UNKNOWN_TYPE = 'application/octet-stream';
const HTML_TYPE = /<(?:!doctype\s+html|html|head|body|script|iframe|h1|div|table|a\s|br|p>|title|style|font)/i;
const SVG = /<svg[\s>]/i;
/** Types whose signature must be present if they are claimed. */
const SIGNED = new Set(
  SIGNATURES.map(({ type }) => type).filter((type) => !/audio\/mpeg|video\/mp4|application\/zip/.test(type)),
);

/** Finds the type by its signature, and markup as a browser would. Undefined: unknown. */
function sniff(head: Buffer): string | undefined {
  const text = head.toString('latin1');
  const has = (at: number, bytes: string): boolean => text.startsWith(bytes, at);
  const found = SIGNATURES.find(
    ({ at, bytes, also }) => has(at, bytes) && (also === undefined || has(also.at, also.bytes)),
  );
  if (found !== undefined) return found.type;
  if (head.includes(0)) return undefined;
  if (SVG.test(text)) return 'image/svg+xml';
  if (HTML_TYPE.test(text)) return 'text/html';
  return undefined;
}

/** The type as it is stored: lower case, without parameters. Undefined: not a media type. */
export function essenceOf(claimed: string | undefined): string | undefined {
  const essence = (claimed ?? UNKNOWN_TYPE).split(';', 1)[0]!.trim().toLowerCase();
  return /^[a-z0-9][a-z0-9!#$&^_.+-]{0,126}\/[a-z0-9][a-z0-9!#$&^_.+-]{0,126}$/.test(essence) ? essence : undefined;
}

/** Returns the contradiction of the bytes to the claimed type, if any. `application/octet-stream` has none. */
export function contradiction(claimed: string, head: Buffer): string | undefined {
  if (claimed === UNKNOWN_TYPE) return undefined;
  const found = sniff(head);
  if (found === undefined) {
    return SIGNED.has(claimed) ? `the bytes are not ${claimed}` : undefined;
  }
  if (found === claimed || KIN[found]?.test(claimed)) return undefined;
  // Markup is text and may be sent as any text or XML; it is never served as a page.
  if (
    (found === 'text/html' || found === 'image/svg+xml') &&
    /^text\/|xml|json|javascript|^application\//.test(claimed)
  )
    return undefined;
  return `the bytes are ${found}, not ${claimed}`;
}

/** Types that a browser may display: none of them can run script. */
const INLINE =
  /^(?:image\/(?:png|jpeg|gif|webp|avif|bmp)|audio\/(?:mpeg|ogg|wav|flac|mp4)|video\/(?:mp4|webm|ogg)|text\/plain)$/;
export const isInline = (type: string): boolean => INLINE.test(type);

/** `types` names types or `image/*`; an empty list allows all. */
export const isAllowedType = (type: string, types: readonly string[]): boolean =>
  types.length === 0 ||
  types.some((allowed) => allowed === type || (allowed.endsWith('/*') && type.startsWith(allowed.slice(0, -1))));
