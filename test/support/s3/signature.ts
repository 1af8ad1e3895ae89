/**
 * Signature Version 4 from the documentation of AWS, of the header and of a presigned address: s3rver encodes some characters of a query in its own way.
 */
import { createHash, createHmac } from 'node:crypto';
import type { IncomingMessage } from 'node:http';

interface Claim {
  readonly scope: readonly [date: string, region: string, service: string, terminator: string];
  readonly time: string;
  readonly signedHeaders: readonly string[];
  readonly signature: string;
  readonly payload: string;
  /** Seconds; a header is good for a quarter of an hour. */
  readonly expires: number;
}

/** https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv-create-signed-request.html */
export function isSigned({ method, url, headers }: IncomingMessage, secret: string): boolean {
  const { pathname, searchParams } = new URL(url!, 'http://s3');
  const claim = headers.authorization === undefined ? ofQuery(searchParams) : ofHeader(headers);
  if (claim === undefined || Date.now() > instantOf(claim.time) + claim.expires * 1000) return false;
  const query = [...searchParams]
    .filter(([name]) => name !== 'X-Amz-Signature')
    .map((pair) => pair.map(encode).join('='))
    .sort();
  const canonical = [
    method,
    pathname,
    query.join('&'),
    ...claim.signedHeaders.map((name) => `${name}:${String(headers[name]).trim().replace(/ +/g, ' ')}`),
    '',
    claim.signedHeaders.join(';'),
    claim.payload,
  ].join('\n');
  const hash = createHash('sha256').update(canonical).digest('hex');
  const key = claim.scope.reduce<Buffer | string>((signing, part) => hmac(signing, part), `AWS4${secret}`);
  const expected = hmac(key, ['AWS4-HMAC-SHA256', claim.time, claim.scope.join('/'), hash].join('\n'));
  return expected.toString('hex') === claim.signature;
}

function ofHeader({ authorization = '', ...headers }: IncomingMessage['headers']): Claim | undefined {
  const [, credential, signed, signature] =
    /^AWS4-HMAC-SHA256 Credential=([^,]+), ?SignedHeaders=([^,]+), ?Signature=([0-9a-f]+)$/.exec(authorization) ?? [];
  if (credential === undefined) return undefined;
  return {
    scope: scopeOf(credential),
    time: String(headers['x-amz-date']),
    signedHeaders: signed!.split(';'),
    signature: signature!,
    payload: String(headers['x-amz-content-sha256']),
    expires: 900,
  };
}

function ofQuery(query: URLSearchParams): Claim | undefined {
  const credential = query.get('X-Amz-Credential');
  if (credential === null) return undefined;
  return {
    scope: scopeOf(credential),
    time: query.get('X-Amz-Date')!,
    signedHeaders: query.get('X-Amz-SignedHeaders')!.split(';'),
    signature: query.get('X-Amz-Signature')!,
    payload: 'UNSIGNED-PAYLOAD',
    expires: Number(query.get('X-Amz-Expires')),
  };
}

const scopeOf = (credential: string): Claim['scope'] => credential.split('/').slice(1) as unknown as Claim['scope'];
const hmac = (key: Buffer | string, text: string): Buffer => createHmac('sha256', key).update(text).digest();
/** `20261121T183000Z` */
const instantOf = (time: string): number =>
  Date.parse(time.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'));
/** RFC 3986: all but the unreserved characters. */
const encode = (text: string): string =>
  encodeURIComponent(text).replaceAll(/[!'()*]/g, (c) => `%${c.charCodeAt(0).toString(16).toUpperCase()}`);
