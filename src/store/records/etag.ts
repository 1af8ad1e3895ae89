/**
 * Entity tags. `"<version>.<members>.<representation>"`: a representation differs by what is expanded and by whose eyes see it, so the whole tag answers
 * If-None-Match; the first two parts are the record's own, and answer If-Match.
 */
import { createHash } from 'node:crypto';
import { Problem } from '../../problem.ts';

export interface Version {
  readonly row: string;
  readonly members: string;
}

const ownPart = ({ row, members }: Version): string => `${row}.${members.slice(0, 12)}`;

export function etagOf(version: Version, json: string): string {
  const representation = createHash('sha256').update(json).digest('base64url').slice(0, 16);
  return `"${ownPart(version)}.${representation}"`;
}

const STRONG_TAG = /^"([\x21\x23-\x7e\x80-\xff]*)"$/;
const TAGS = /(?:W\/)?"[^"]*"|[^,\s]+/g;

const tagsOf = (header: string): readonly string[] => header.match(TAGS) ?? [];

/** If-Match: strong comparison (RFC 9110, 13.1.1). */
export function assertIfMatch(ifMatch: string | undefined, version: Version): void {
  if (ifMatch === undefined || ifMatch.trim() === '*') return;
  const own = ownPart(version);
  const matches = tagsOf(ifMatch).some((tag) => {
    const text = STRONG_TAG.exec(tag)?.[1];
    return text !== undefined && text.slice(0, text.lastIndexOf('.')) === own;
  });
  if (!matches) throw new Problem('changed', 'the record has changed since; read it again');
}

/** If-None-Match: weak comparison (RFC 9110, 13.1.2). */
export function isUnchanged(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  if (ifNoneMatch.trim() === '*') return true;
  return tagsOf(ifNoneMatch).some((tag) => tag.replace(/^W\//, '') === etag);
}
