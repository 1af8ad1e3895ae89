/** The response to a write, as a value that can be kept and sent again. Not a route. */
import type { Context } from 'koa';
import { entityTagOf, sendJson } from '../../http/answer/send.ts';
import type { Written } from '../../records/read.ts';

export interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export function answerCreated(path: string, written: Written): Answer {
  const { headers, body } = answerWritten(written);
  return { status: 201, headers: { Location: `${path}/${written.id}`, ...headers }, body };
}

/** Only the id where the caller may not read the result. */
export function answerWritten({ id, json, version }: Written): Answer {
  if (json === undefined || version === undefined) {
    return { status: 200, headers: {}, body: JSON.stringify({ data: { id } }) };
  }
  return { status: 200, headers: { ETag: entityTagOf(version, json) }, body: `{"data":${json}}` };
}

export function send(ctx: Context, { status, headers, body }: Answer): void {
  ctx.status = status;
  for (const name in headers) ctx.res.setHeader(name, headers[name]!);
  sendJson(ctx, body);
}
