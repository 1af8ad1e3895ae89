/** A file that the caller may not read is indistinguishable from a missing one. */
import { expect } from 'vitest';
import type { Client } from '../support/client.ts';
import { NOBODY } from '../support/records.ts';

const ASKS: readonly (readonly [method: string, rest: string, headers: Readonly<Record<string, string>>])[] = [
  ['GET', '', {}],
  ['HEAD', '', {}],
  ['GET', '/content', {}],
  ['HEAD', '/content', {}],
  ['GET', '/content', { Range: 'bytes=0-1' }],
  ['GET', '/content', { Range: 'bytes=5000-' }],
  ['GET', '/content', { 'If-None-Match': '*' }],
  ['GET', '/content?width=64', {}],
  ['HEAD', '/content?width=64', {}],
  ['POST', '/link', {}],
  ['PATCH', '', { 'Content-Type': 'application/json' }],
  ['DELETE', '', {}],
];

/** The response, without the parts that differ in every response. */
async function said(client: Client, [method, rest, headers]: (typeof ASKS)[number], id: string): Promise<object> {
  const raw = method === 'PATCH' ? { raw: '{"data":{"name":"n"}}' } : {};
  const answer = await client.send(method, `/api/files/${id}${rest}`, { headers, ...raw });
  const own = Object.fromEntries([...answer.headers].filter(([name]) => !['date', 'x-request-id'].includes(name)));
  return { status: answer.status, headers: own, body: answer.text.replace(/"request_id":"[^"]*"/, '') };
}

/** Images have a size of 64 in the schemas that call this. */
export async function expectHidden(client: Client, id: string): Promise<void> {
  for (const ask of ASKS) {
    const theirs = await said(client, ask, id);
    expect([ask, theirs]).toEqual([ask, await said(client, ask, NOBODY)]);
    expect([ask, theirs]).toMatchObject([ask, { status: 404 }]);
  }
  expect((await client.get(`/api/files?id=${id}`)).body.data).toEqual([]);
}
