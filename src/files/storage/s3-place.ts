/** The bucket that the setting `BYLAW_FILES` names. */

export interface S3Place {
  readonly bucket: string;
  /** Ends in a slash. */
  readonly prefix: string;
  readonly region: string;
  /** Default: the endpoint of AWS. Credentials come from the AWS environment. */
  readonly endpoint?: string;
  /** Clients get the bytes from the bucket itself, at a signed address. */
  readonly redirects: boolean;
}

/** `s3://bucket/prefix?region=…&endpoint=…&redirects=true`. Undefined: the text is not of that form. */
export function readS3Place(text: string): S3Place | undefined {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== 's3:' || url.hostname === '') return undefined;
  const unknown = [...url.searchParams.keys()].some((key) => !['region', 'endpoint', 'redirects'].includes(key));
  const endpoint = url.searchParams.get('endpoint');
  const redirects = url.searchParams.get('redirects') ?? 'false';
  if (unknown || !/^(?:true|false)$/.test(redirects) || (endpoint !== null && !URL.canParse(endpoint)))
    return undefined;
  const folder = decodeURIComponent(url.pathname).replace(/^\/+|(?<!\/)\/+$/g, '');
  return {
    bucket: url.hostname,
    prefix: folder === '' ? '' : `${folder}/`,
    region: url.searchParams.get('region') ?? 'us-east-1',
    redirects: redirects === 'true',
    ...(endpoint === null ? {} : { endpoint }),
  };
}
