// @module-tag long
/** The requests of docs/authentication.md get the statuses that the page shows. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Answer, Client } from '../support/client.ts';
import { describeOnOne } from '../support/service.ts';

const PAGE = readFileSync(join(import.meta.dirname, '../../docs/authentication.md'), 'utf8');
const SAMPLE = readFileSync(join(import.meta.dirname, '../../bylaw.yaml'), 'utf8');
const blocks = [...PAGE.matchAll(/```http\n([\s\S]*?)```/g)].map(([, text]) => text!.trim().split('\n'));

interface Told {
  readonly id: string;
  readonly token: string;
}

/** The ids and tokens of an answer; those of an answer without any stay as they were. */
function toldBy({ body }: Answer, before: Told): Told {
  const id = body?.data?.id ?? body?.user?.id ?? before.id;
  return { id, token: body?.secret ?? body?.access_token ?? before.token };
}

test('the page has requests', () => {
  expect(blocks.length).toBeGreaterThan(0);
});

describeOnOne(
  'docs/authentication.md',
  (service) => {
    test.each(blocks.map((lines) => [lines.find((line) => /^[A-Z]+ \//.test(line))!, lines] as const))(
      'the requests from %s on get what the page shows',
      async (_, lines) => {
        const admin = await service.user('admin');
        const callers: Readonly<Record<string, (told: Told) => Client>> = {
          '# an admin': () => admin.client,
          '# anyone': () => service.anonymous,
          '# the key': ({ token }) => service.anonymous.with({ Authorization: `Bearer ${token}` }),
          '# the guest': ({ token }) => service.anonymous.with({ Authorization: `Bearer ${token}` }),
        };
        let told: Told = { id: '', token: '' };
        let caller = service.anonymous;
        let answer: Answer | undefined;
        for (const line of lines) {
          if (line.startsWith('#')) caller = callers[line]!(told);
          else if (line.startsWith('→')) {
            expect([line, `→ ${[answer!.status, answer!.body?.code].join(' ').trim()}`]).toEqual([line, line]);
          } else {
            const [, method = '', path = '', body = ''] = /^([A-Z]+) (\S+) ?(.*)$/.exec(line)!;
            answer = await caller.send(
              method,
              path.replace('{id}', told.id),
              body === '' ? {} : { json: JSON.parse(body) },
            );
            told = toldBy(answer, told);
          }
        }
      },
    );
  },
  { schema: `guests: true\n${SAMPLE}` },
);
