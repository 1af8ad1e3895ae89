/** The served schema compared with a text: the document of `bylaw diff`, and errors at their characters. */
import { beforeAll, expect, test } from 'vitest';
import { outcomeOf } from '../support/records.ts';
import { describeOnOne, type User } from '../support/service.ts';

const SCHEMA = `
roles: [admin, member]
register: { roles: [member] }
collections:
  notes:
    fields: { text: string, open: { type: bool, default: false } }
    relations: { owner: { kind: belongs_to, collection: users, default: '@request.auth.id' } }
    access:
      view: '@record.owner = @request.auth.id'
      delete: '@record.owner = @request.auth.id'
`;
const OAUTH = "oauth: { example: { issuer: 'https://id.example', client_id: a, client_secret_env: SECRET } }\n";

describeOnOne(
  'a comparison with the served schema',
  (service) => {
    let root: User;
    beforeAll(async () => {
      root = await service.user('admin');
    });
    const compare = (text: string, client = root.client) => client.post('/api/_diff', { text });

    test('a wider rule has its callers and an example, and the others are the same', async () => {
      const changed = SCHEMA.replace("view: '", "view: '@record.open or ") + OAUTH;
      const { status, body, headers } = await compare(changed);
      expect([status, headers.get('cache-control')]).toEqual([200, 'no-store']);
      const changes = body.data.changes as { collection: string; action: string; verdict: string }[];
      const verdicts = changes.filter(({ verdict }) => verdict !== 'same');
      expect(verdicts).toMatchObject([
        { collection: 'notes', action: 'list', verdict: 'wider', callers: { guest: { gains: true, loses: false } } },
        { collection: 'notes', action: 'read', verdict: 'wider', wider: { record: { open: true } } },
      ]);
      expect(body.data.settings).toEqual([]);
      expect(changes.length).toBe(15);
      const same = await compare(SCHEMA);
      expect(new Set(same.body.data.changes.map(({ verdict }: { verdict: string }) => verdict))).toEqual(
        new Set(['same']),
      );
    });

    test('errors of the text have their characters, and no answer tells of the environment', async () => {
      const wrong = SCHEMA.replace('@record.owner = @request.auth.id', '@record.ower = @request.auth.id');
      const { status, body } = await compare(wrong);
      expect([status, body.code]).toEqual([422, 'validation_failed']);
      const [{ pointer, code, offset, length, detail }] = body.errors;
      expect([pointer, code, wrong.slice(offset, offset + length)]).toEqual(['/text', 'name_unknown', 'ower']);
      expect(detail).toMatch(/^line 9: .*did you mean `owner`/);
      expect(outcomeOf(await compare(': ['))[0]).toBe(422);
      // Equal rules have no counterexample, and open no database.
      const known = await compare(SCHEMA + OAUTH.replace('SECRET', 'PATH'));
      const unknown = await compare(SCHEMA + OAUTH.replace('SECRET', 'NO_SUCH_VARIABLE'));
      expect([known.status, known.text]).toEqual([200, unknown.text]);
    });

    test('only admins compare, with a session', async () => {
      const member = await service.user();
      expect(outcomeOf(await compare(SCHEMA, service.anonymous))).toEqual([401, 'unauthenticated']);
      expect(outcomeOf(await compare(SCHEMA, member.client))).toEqual([403, 'forbidden']);
      const made = await root.client.post('/api/auth/keys', {
        name: 'k',
        roles: ['admin'],
        limit: { users: ['read', 'update'] },
      });
      const key = service.anonymous.with({ Authorization: `Bearer ${made.body.secret}` });
      expect(outcomeOf(await compare(SCHEMA, key))).toEqual([403, 'forbidden']);
    });
  },
  { schema: SCHEMA },
);
