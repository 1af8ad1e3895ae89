/** Reads the body of an HTML form, strictly: a field that is given twice is an error. */
import { isUtf8 } from 'node:buffer';
import type { Context } from 'koa';
import { Problem } from '../problem.ts';
import { withDeadline } from '../with-deadline.ts';
import { AUTH_BODY_LIMIT, arrivedBody, askForBody } from './body.ts';
import { ARRIVAL_LIMITS } from './server/client-limits.ts';

/** Throws `unsupported_media_type`, `too_large`, `request_timeout`, `validation_failed`. */
export async function readForm(ctx: Context): Promise<ReadonlyMap<string, string>> {
  if (ctx.request.type.toLowerCase() !== 'application/x-www-form-urlencoded')
    throw new Problem('unsupported_media_type', 'send the form as `application/x-www-form-urlencoded`');
  const onLate = (): never => {
    throw new Problem('request_timeout', 'the form did not arrive in time', { headers: { Connection: 'close' } });
  };
  if (Number(ctx.req.headers['content-length']) > AUTH_BODY_LIMIT) throw formTooLarge();
  askForBody(ctx);
  const bytes = arrivedBody(ctx.req) ?? (await withDeadline(collectBytes(ctx), ARRIVAL_LIMITS.bodyMs, onLate));
  if (bytes.length > AUTH_BODY_LIMIT) throw formTooLarge();
  if (!isUtf8(bytes)) throw malformedForm('the form is not valid UTF-8');
  const values = new Map<string, string>();
  for (const [name, value] of new URLSearchParams(bytes.toString('utf8'))) {
    if (values.has(name)) throw malformedForm('a field of the form is given twice');
    values.set(name, value);
  }
  return values;
}

async function collectBytes({ req }: Context): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let length = 0;
  try {
    // A stream that the reader destroyed would take the connection with it, before its answer.
    for await (const piece of req.iterator({ destroyOnReturn: false })) {
      length += (piece as Buffer).length;
      if (length > AUTH_BODY_LIMIT) throw formTooLarge();
      pieces.push(piece as Buffer);
    }
  } catch (error) {
    throw error instanceof Problem ? error : malformedForm('the form ended before its announced length');
  }
  return Buffer.concat(pieces);
}

const formTooLarge = (): Problem => new Problem('too_large', `a form may hold ${AUTH_BODY_LIMIT} bytes at most`);

const malformedForm = (detail: string): Problem => new Problem('validation_failed', detail);
