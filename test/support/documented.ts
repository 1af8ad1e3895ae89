/** Holds every answer that a suite gets to the OpenAPI document: its status, and the code of a problem. */
import type { Check } from './client.ts';

// biome-ignore lint/suspicious/noExplicitAny: the document is JSON
type Json = any;

interface Place {
  readonly path: RegExp;
  readonly operations: Readonly<Record<string, Json>>;
}

export function documented(document: Json): Check {
  const places: readonly Place[] = Object.entries<Json>(document.paths)
    .map(([path, operations]) => ({ path: new RegExp(`^${path.replaceAll(/\{\w+\}/g, '[^/]+')}$`), operations }))
    // `/api/auth/sessions` is not the record `sessions` of a collection `auth`.
    .sort((a, b) => Number(a.path.source.includes('[')) - Number(b.path.source.includes('[')));
  return (method, path, { status, body }) => {
    const place = places.find((each) => each.path.test(path.split('?')[0]!));
    const operation = place?.operations[method.toLowerCase()];
    if (operation === undefined) return;
    const answered = `${method} ${path} answered ${status} ${body?.code ?? ''}`;
    if (status < 400) {
      if (operation.responses[status] === undefined) throw new Error(`${answered}, which is not documented`);
      return;
    }
    // The head of an answer to HEAD has no code.
    if (body === undefined) return;
    const codes = [status, 'default'].flatMap((key) => codesOf(operation.responses[key], document));
    if (!codes.includes(body.code)) throw new Error(`${answered}; documented are ${codes.join(', ')}`);
  };
}

function codesOf(response: Json, document: Json): readonly string[] {
  if (response === undefined) return [];
  const { content } = document.components.responses[response.$ref.split('/').at(-1)];
  return content['application/problem+json'].schema.allOf[1].properties.code.enum;
}
