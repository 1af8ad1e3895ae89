/** Webhooks in a schema file: each mistake is reported at its place. */
import { expect, test } from 'vitest';
import { parseSchema } from '../../src/schema/load.ts';

const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const schemaOf = (webhook: string, env: Readonly<Record<string, string>> = { SECRET }) =>
  parseSchema(
    `
collections:
  teams: { fields: { name: string } }
  notes:
    changes: true
    fields: { title: string }
    relations: { team: { kind: belongs_to, collection: teams } }
webhooks:
  notes: ${webhook}
`,
    'test.yaml',
    env,
  );
const errorsOf = (webhook: string, env?: Readonly<Record<string, string>>) =>
  schemaOf(webhook, env)
    .issues.filter(({ severity }) => severity === 'error')
    .map(({ code, path }) => `${code} ${path}`);

test('a webhook has the collection of its name, and all events, by default', () => {
  const { schema, issues } = schemaOf(`{ url: 'https://a.example/x', as: hook, secret_env: SECRET }`);
  expect(issues.filter(({ severity }) => severity === 'error')).toEqual([]);
  expect(schema!.webhooks.get('notes')).toEqual({
    name: 'notes',
    collection: 'notes',
    url: 'https://a.example/x',
    events: ['enter', 'change', 'leave'],
    filter: undefined,
    as: 'hook',
    secrets: [SECRET],
  });
});

test.each([
  ['no address', `{ url: 'ftp://a.example', as: hook, secret_env: SECRET }`, ['webhook_url webhooks.notes.url']],
  [
    'an address with a user',
    `{ url: 'https://u:p@a.example', as: hook, secret_env: SECRET }`,
    ['webhook_url webhooks.notes.url'],
  ],
  [
    'a collection without a feed',
    `{ url: 'https://a.example', collection: teams, as: hook, secret_env: SECRET }`,
    ['webhook_feed webhooks.notes.collection'],
  ],
  [
    'an unknown collection',
    `{ url: 'https://a.example', collection: note, as: hook, secret_env: SECRET }`,
    ['unknown_collection webhooks.notes.collection'],
  ],
  [
    'a filter that does not compile',
    `{ url: 'https://a.example', as: hook, secret_env: SECRET, filter: 'titel = "x"' }`,
    ['name_unknown webhooks.notes.filter'],
  ],
  [
    'a filter that walks relations',
    `{ url: 'https://a.example', as: hook, secret_env: SECRET, filter: 'team.name = "x"' }`,
    ['not_logged webhooks.notes.filter'],
  ],
  [
    'no variable',
    `{ url: 'https://a.example', as: hook, secret_env: OTHER }`,
    ['missing_env webhooks.notes.secret_env'],
  ],
])('%s is an error', (_, webhook, expected) => {
  expect(errorsOf(webhook)).toEqual(expected);
});

test.each(['short', 'whsec_c2hvcnQ=', SECRET.slice(6), `${SECRET} whsec_!`])('the secret %s is an error', (secret) => {
  const errors = errorsOf(`{ url: 'https://a.example', as: hook, secret_env: SECRET }`, { SECRET: secret });
  expect(errors).toEqual(['webhook_secret webhooks.notes.secret_env']);
});
