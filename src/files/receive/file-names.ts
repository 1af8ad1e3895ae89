/** Names of files, as they are stored and as headers carry them. */

/** Code points, as the field `name` counts them. */
const MAX_LENGTH = 255;
/** Reserved by Windows, with any extension. */
const DEVICE_NAMES = /^(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³]|conin\$|conout\$)(?:\..*)?$/i;
/**
 * Control characters, bidirectional overrides (`exe.gpj` shown as `jpg.exe`), lone surrogates, and
 * line separators.
 */
const HIDDEN_CHARACTERS = /[\p{Cc}\p{Cs}\u061c\u200b-\u200f\u2028-\u202e\u2066-\u2069\ufeff]/gu;

/** The sender's name of a file → a name that is safe to save under on every system. Never empty. */
export function safeName(given: string): string {
  const base = given.slice(Math.max(given.lastIndexOf('/'), given.lastIndexOf('\\')) + 1);
  const visible = base
    .toWellFormed()
    .replaceAll(HIDDEN_CHARACTERS, '')
    .replaceAll(/[<>:"|?*]/g, '_')
    .trim();
  const name = shortenedName(withoutTrailingDots(visible) || 'file');
  return DEVICE_NAMES.test(name) ? shortenedName(`_${name}`) : name;
}

/** Windows drops dots and spaces at the end. A loop: `/[. ]+$/` takes quadratic time. */
function withoutTrailingDots(name: string): string {
  let end = name.length;
  while (end > 0 && (name[end - 1] === '.' || name[end - 1] === ' ')) end--;
  return name.slice(0, end);
}

/** Keeps the extension. */
function shortenedName(name: string): string {
  const points = [...name];
  if (points.length <= MAX_LENGTH) return name;
  const extension = /\.[A-Za-z0-9]{1,16}$/.exec(name)?.[0] ?? '';
  return points.slice(0, MAX_LENGTH - extension.length).join('') + extension;
}

/** RFC 6266 with RFC 8187: the name in ASCII for old clients, and in UTF-8. */
export function dispositionOf(kind: 'inline' | 'attachment', name: string): string {
  const safe = safeName(name);
  const ascii = safe.replaceAll(/[^\x20-\x7e]/g, '_').replaceAll(/["\\%]/g, '_');
  return `${kind}; filename="${ascii}"; filename*=UTF-8''${encodeExtended(safe)}`;
}

/** RFC 8187, 3.2.1: attr-char stays, everything else is percent-encoded. */
const encodeExtended = (text: string): string =>
  encodeURIComponent(text).replaceAll(
    /['()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  );
