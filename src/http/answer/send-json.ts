import type { Context } from 'koa';

const TYPE = 'application/json; charset=utf-8';

/** `json` is the text. Koa would look the type up for each answer. */
export function sendJson(ctx: Context, json: string): void {
  ctx.res.setHeader('Content-Type', TYPE);
  ctx.body = json;
}
