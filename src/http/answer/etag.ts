/**
 * Entity tags. `"<version>.<digest>"`: If-Match compares the version of the record, which the store
 * keeps; If-None-Match compares the whole tag, because the representation also depends on the
 * expanded relations and on what the caller may see.
 */
import { hash } from 'node:crypto';

/** `version` as the store gives it, without a quotation mark. */
export function etagOf(version: string, json: string): string {
  const digest = hash('sha256', json, 'base64url').slice(0, 16);
  return `"${version}.${digest}"`;
}

/** Strong, and made by `etagOf`; captures the version. */
const OWN_TAG = /^"([\x21\x23-\x7e]+)\.[\w-]+"$/;
const TAG = /(?:W\/)?"[^"]*"|[^,\s]+/g;

const tagsOf = (header: string): readonly string[] => header.match(TAG) ?? [];

/**
 * The versions that If-Match allows; undefined: any. A weak or foreign tag allows none (RFC 9110,
 * section 13.1.1).
 */
export function versionsOf(ifMatch: string | undefined): readonly string[] | undefined {
  if (ifMatch === undefined || ifMatch.trim() === '*') return undefined;
  return tagsOf(ifMatch).flatMap((tag) => {
    const version = OWN_TAG.exec(tag)?.[1];
    return version === undefined ? [] : [version];
  });
}

/** Whether If-None-Match names this tag, by weak comparison (RFC 9110, section 13.1.2). */
export function isUnchanged(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  if (ifNoneMatch.trim() === '*') return true;
  return tagsOf(ifNoneMatch).some((tag) => tag.replace(/^W\//, '') === etag);
}
