/** Checks of answers for suites of routes, and records made without a route. */
import type { Answer } from './client.ts';
import type { TestService } from './service.ts';
import { insertRecord } from './system-records.ts';

export const NOBODY = '01900000-0000-7000-8000-000000000000';

/** The error in short: `[422, 'validation_failed', '/data/title required']`. */
export const outcomeOf = ({ status, body }: Answer): readonly unknown[] => [
  status,
  body?.code,
  ...(body?.errors ?? []).map(
    (error: { pointer?: string; parameter?: string; code: string }) =>
      `${error.pointer ?? error.parameter} ${error.code}`,
  ),
];

export const idsOf = (records: readonly { readonly id: string }[]): readonly string[] => records.map(({ id }) => id);

/** A response without the parts that always differ: the request id and the date. */
export function saidBy({ status, headers, body }: Answer): object {
  const own = new Set(['x-request-id', 'date']);
  return {
    status,
    headers: Object.fromEntries([...headers].filter(([name]) => !own.has(name))),
    body: { ...body, request_id: undefined },
  };
}

/** A tag that no rule was asked about. */
export async function makeTag({ app }: TestService, { name = 'a tag', hidden = false } = {}): Promise<string> {
  const at = '2026-01-01T00:00:00.000000Z';
  return insertRecord(app, 'tags', { name, hidden, created_at: at, updated_at: at });
}
