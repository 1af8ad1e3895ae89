// @module-tag long
/** docs/queries.md: its curl lines and its client calls say the same, and find what the page promises, on the schema of the helpdesk recipe. */
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { beforeAll, expect, test } from 'vitest';
import { createClient } from '../../src/client/client.ts';
import { describeOnOne, type User } from '../support/service.ts';

const read = (page: string): string => readFileSync(join(import.meta.dirname, '../../docs', page), 'utf8');
const SCHEMA = /```yaml bylaw\n([\s\S]*?)```/.exec(read('recipes/helpdesk.md'))![1]!;
const PAGE = read('queries.md');
const CURLS = [...PAGE.matchAll(/```sh\n(curl [\s\S]*?)```/g)].map(([, line]) => line!);
const CALLS = [...PAGE.matchAll(/```ts\nconst (\w+) = (await tickets[\s\S]*?);\n```/g)].map(
  ([, name, code]) => [name!, code!] as const,
);

type Answer = { readonly data: readonly { readonly [key: string]: unknown }[]; readonly page: object };

describeOnOne(
  'queries.md',
  (service) => {
    let agent: User;
    let ann: User;

    beforeAll(async () => {
      [agent, ann] = await Promise.all([service.user('agent'), service.user('customer')]);
      const make = async (user: User, collection: string, data: object): Promise<string> => {
        const { status, body, text } = await user.client.post(`/api/${collection}`, { data });
        if (status !== 201) throw new Error(text);
        return body.data.id;
      };
      const printer = await make(ann, 'tickets', { subject: 'The printer is broken' });
      await make(agent, 'tickets', {
        subject: 'Late',
        requester: ann.id,
        due_at: '2026-01-01T00:00:00Z',
        priority: 'high',
      });
      await make(agent, 'tickets', {
        subject: 'Later',
        requester: ann.id,
        due_at: '2026-01-02T00:00:00Z',
        status: 'pending',
        assignee: agent.id,
      });
      const login = await make(ann, 'tickets', { subject: 'Login' });
      await make(agent, 'comments', { ticket: login, body: 'their keyboard is broken', internal: true });
      await make(agent, 'tickets', {
        subject: 'Done',
        requester: ann.id,
        due_at: '2026-01-03T00:00:00Z',
        status: 'closed',
      });
      await make(agent, 'comments', { ticket: printer, body: 'We are on it' });
    });

    const byCurl = async (line: string, { token }: User): Promise<Answer> => {
      const env = { ...process.env, BASE: service.url, TOKEN: token };
      const { stdout } = await promisify(execFile)('bash', ['-c', line], { env });
      return JSON.parse(stdout) as Answer;
    };
    const byClient = async (code: string, { email, password }: User): Promise<Answer> => {
      const client = createClient(service.url);
      await client.login({ email, password });
      const call = new Function('tickets', `return (async () => ${code})()`) as (tickets: object) => Promise<Answer>;
      return call(client.collection('tickets'));
    };

    const expected: readonly (readonly [name: string, agents: readonly unknown[], customers?: readonly unknown[]])[] = [
      ['newest', ['Done', 'Login', 'Later', 'Late', 'The printer is broken']],
      ['overdue', ['Late', 'Later']],
      ['unassigned', ['Late', 'Login', 'The printer is broken']],
      ['active', ['Late', 'Login', 'Later', 'The printer is broken']],
      ['search', ['The printer is broken', 'Login'], ['The printer is broken']],
      ['states', ['open', 'closed', 'pending']],
      ['many', ['open']],
    ];

    test('the page has a curl line and a client call for each view', () => {
      expect(CALLS.map(([name]) => name)).toEqual(expected.map(([name]) => name));
      expect(CURLS).toHaveLength(CALLS.length);
    });

    test.each(expected.map((each, i) => [each[0], i] as const))('%s', async (_, i) => {
      const [, agents, customers = agents] = expected[i]!;
      for (const [user, found] of [
        [agent, agents],
        [ann, customers],
      ] as const) {
        const [sent, called] = [await byCurl(CURLS[i]!, user), await byClient(CALLS[i]![1], user)];
        expect(sent).toEqual(called);
        expect(sent.data.map(({ subject, status }) => subject ?? status)).toEqual(found);
      }
    });
  },
  { schema: SCHEMA },
);
