/** Uploads as browsers send them, and malformed ones. */
import { mkdtempSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Answer, Client } from '../support/client.ts';

export const BOUNDARY = 'xTestBoundaryx';
export const temporaryFolder = (): string => mkdtempSync(join(tmpdir(), 'bylaw-files-'));

export interface Form {
  readonly bytes: Uint8Array | string;
  /** As written in the header. */
  readonly name?: string;
  readonly type?: string;
  readonly data?: unknown;
}

export const fileHead = (name: string, type: string): string =>
  `--${BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="${name}"\r\nContent-Type: ${type}\r\n\r\n`;
export const TAIL = `\r\n--${BOUNDARY}--\r\n`;

export function formOf({ bytes, name = 'a.txt', type = 'text/plain', data }: Form): Buffer<ArrayBuffer> {
  const part =
    data === undefined
      ? ''
      : `--${BOUNDARY}\r\nContent-Disposition: form-data; name="data"\r\n\r\n${JSON.stringify(data)}\r\n`;
  return Buffer.concat([Buffer.from(part + fileHead(name, type)), Buffer.from(bytes as Uint8Array), Buffer.from(TAIL)]);
}

export const FORM_TYPE = { 'Content-Type': `multipart/form-data; boundary=${BOUNDARY}` };

export function upload(client: Client, form: Form, headers: Readonly<Record<string, string>> = {}): Promise<Answer> {
  return client.send('POST', '/api/files', { headers: { ...FORM_TYPE, ...headers }, raw: formOf(form) });
}

export interface Bytes {
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Buffer;
}

/** The answer as bytes. */
export async function bytesOf(
  client: Client,
  path: string,
  headers: Readonly<Record<string, string>> = {},
): Promise<Bytes> {
  const response = await fetch(client.url + path, { headers: { ...client.headers, ...headers }, redirect: 'manual' });
  return { status: response.status, headers: response.headers, bytes: Buffer.from(await response.arrayBuffer()) };
}

/** Sends exactly this over a socket, and closes it after `bytes`, if given; resolves with what came back. */
export function rawly(url: string, bytes: Buffer, { cut = false }: { readonly cut?: boolean } = {}): Promise<string> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    let text = '';
    const socket = connect({ host: hostname, port: Number(port) }, () =>
      socket.write(bytes, () => cut && setTimeout(() => socket.destroy(), 50)),
    );
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1');
    });
    socket.on('close', () => resolve(text));
    socket.on('error', () => undefined);
    setTimeout(() => socket.destroy(), 2_000).unref();
  });
}
