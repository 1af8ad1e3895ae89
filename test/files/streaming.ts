/** Uploads that are on their way for as long as a test wants. */
import { type ClientRequest, request as httpRequest } from 'node:http';
import { expect } from 'vitest';
import type { Client } from '../support/client.ts';
import { FORM_TYPE, fileHead, TAIL } from './sending.ts';

export const MiB = 1024 * 1024;

export interface Started {
  /** Rejects where the connection ends without one. */
  readonly answer: Promise<{ readonly status: number; readonly body: string }>;
  /** Closes the connection. */
  cut(): void;
}

/** Sends this many bytes of a file in a form, and then the end of the form, or nothing more. */
export function startUpload(
  client: Client,
  { length, isWhole }: { readonly length: number; readonly isWhole: boolean },
): Started {
  const { promise, resolve, reject } = Promise.withResolvers<{ status: number; body: string }>();
  const sending = httpRequest(
    `${client.url}/api/files`,
    { method: 'POST', headers: { ...client.headers, ...FORM_TYPE } },
    (answer) => {
      let body = '';
      answer.setEncoding('utf8').on('data', (text) => {
        body += text;
      });
      answer.on('end', () => resolve({ status: answer.statusCode!, body })).on('error', reject);
    },
  );
  sending.on('error', reject).on('close', () => reject(new Error('no answer')));
  // Reported where it is awaited.
  promise.catch(() => undefined);
  void send(sending, { length, isWhole });
  return { answer: promise, cut: () => void sending.destroy() };
}

async function send(
  to: ClientRequest,
  { length, isWhole }: { readonly length: number; readonly isWhole: boolean },
): Promise<void> {
  const closed = new Promise((done) => to.once('close', done));
  to.write(fileHead('big.bin', 'application/octet-stream'));
  for (let sent = 0; sent < length && !to.destroyed; sent += MiB) {
    const hasRoom = to.write(Buffer.alloc(Math.min(MiB, length - sent), 97));
    if (!hasRoom) await Promise.race([closed, new Promise((room) => to.once('drain', room))]);
  }
  if (isWhole) to.end(TAIL);
}

export async function until(isSo: () => boolean | Promise<boolean>): Promise<void> {
  for (let i = 0; i < 1_000 && !(await isSo()); i++) await new Promise((later) => setTimeout(later, 10));
  expect(await isSo()).toBe(true);
}
