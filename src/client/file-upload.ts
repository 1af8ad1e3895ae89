import { BylawError, type ProblemDocument } from './bylaw-error.ts';
import { recordOf, withEtag } from './collection.ts';
import type { Transport } from './transport.ts';

/**
 * The part of the browser's XMLHttpRequest that an upload uses; the DOM's types would be visible in all
 * of this project.
 */
interface UploadRequest {
  readonly upload: { onprogress: ((event: { readonly loaded: number }) => void) | null };
  readonly status: number;
  readonly statusText: string;
  readonly response: unknown;
  withCredentials: boolean;
  responseType: string;
  onload: (() => void) | null;
  onerror: (() => void) | null;
  onabort: (() => void) | null;
  open(method: string, url: string): void;
  setRequestHeader(name: string, value: string): void;
  getResponseHeader(name: string): string | null;
  send(body: FormData): void;
  abort(): void;
}
const browser = globalThis as { readonly XMLHttpRequest?: new () => UploadRequest };

export interface Progress {
  readonly sent: number;
  readonly total: number;
}
export interface UploadOptions {
  /** Values of the fields that the schema adds to `files`. */
  readonly data?: object;
  /** Default: the file's own, else `file`. */
  readonly name?: string;
  /** Called while bytes are sent, where the platform reports it (browsers), and once at the end. */
  readonly onProgress?: (progress: Progress) => void;
  readonly signal?: AbortSignal;
}

export async function uploadFile<R extends object>(
  transport: Transport,
  file: Blob,
  options: UploadOptions,
): Promise<R> {
  const form = new FormData();
  if (options.data !== undefined) form.append('data', JSON.stringify(options.data));
  form.append('file', file, options.name ?? (file as Partial<File>).name ?? 'file');
  const headers = { 'idempotency-key': crypto.randomUUID() };
  if (options.onProgress !== undefined && browser.XMLHttpRequest !== undefined) {
    // fetch reports no progress of uploads. This request refreshes expired tokens first, so that the
    // upload is not sent twice.
    await transport.send('/api/auth/me', { signal: options.signal });
    // A signal that is aborted already has no further event.
    options.signal?.throwIfAborted();
    const request = new browser.XMLHttpRequest();
    return sendWithProgress(transport, form, { ...options, headers, size: file.size, request });
  }
  const response = await transport.send('/api/files', {
    method: 'POST',
    body: form,
    headers,
    repeatable: true,
    signal: options.signal,
  });
  options.onProgress?.({ sent: file.size, total: file.size });
  return recordOf(response);
}

interface ProgressUpload extends UploadOptions {
  readonly headers: Readonly<Record<string, string>>;
  readonly size: number;
  readonly request: UploadRequest;
}

function sendWithProgress<R extends object>(transport: Transport, form: FormData, options: ProgressUpload): Promise<R> {
  const { request } = options;
  request.open('POST', transport.urlOf('/api/files'));
  request.withCredentials = transport.cookie;
  request.responseType = 'json';
  const token = transport.cookie ? undefined : transport.session.tokens?.access_token;
  if (token !== undefined) request.setRequestHeader('authorization', `Bearer ${token}`);
  for (const [name, value] of Object.entries(options.headers)) request.setRequestHeader(name, value);
  return new Promise((resolve, reject) => {
    // `loaded` includes the form around the file.
    request.upload.onprogress = ({ loaded }) =>
      options.onProgress?.({ sent: Math.min(loaded, options.size), total: options.size });
    request.onerror = () => reject(new TypeError('the upload failed: the network did not carry it'));
    request.onabort = () => reject(options.signal?.reason);
    request.onload = () => {
      if (request.status === 201) {
        options.onProgress?.({ sent: options.size, total: options.size });
        resolve(withEtag((request.response as { data: R }).data, request.getResponseHeader('etag')));
      } else {
        reject(new BylawError(problemOfResponse(request)));
      }
    };
    options.signal?.addEventListener('abort', () => request.abort(), { once: true });
    request.send(form);
  });
}

function problemOfResponse({ status, statusText, response }: UploadRequest): ProblemDocument {
  const body = response as Partial<ProblemDocument> | null;
  const fallback = { type: 'about:blank', title: statusText || `HTTP ${status}`, status, code: 'http_error' };
  return typeof body?.code === 'string' ? { ...fallback, ...body } : fallback;
}
