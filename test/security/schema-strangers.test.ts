/** S13: a place that strangers may occupy, and a relation by which strangers may block a delete. L8: the sample. */
import { describe, expect, it } from 'vitest';
import { loadSchema } from '../../src/schema/file/load-file.ts';
import { parseSchema } from '../../src/schema/load.ts';
import { describeOnOne } from '../support/service.ts';

interface Given {
  readonly relation?: string;
  readonly create?: string;
  readonly update?: string;
  readonly read?: string;
  readonly remove?: string;
  readonly register?: string;
}

/** Warnings about `notes`, whose relation `page` points at `pages`, as `code path`. */
function warned({ relation = 'required: true', create, update, read, remove, register = '[member]' }: Given) {
  const { issues } = parseSchema(`
roles: { member: {}, boss: { includes: [member] }, admin: {} }
register: { roles: ${register} }
collections:
  pages:
    relations: { owner: { kind: belongs_to, collection: users } }
    access: { read: ${read ?? 'true'}, delete: ${remove ?? "'@record.owner = @request.auth.id'"} }
  notes:
    relations:
      owner: { kind: belongs_to, collection: users }
      page: { kind: belongs_to, collection: pages, ${relation} }
    access: { create: ${create ?? '[]'}, update: ${update ?? '[]'} }
`);
  expect(issues.filter(({ severity }) => severity === 'error')).toEqual([]);
  const places = issues.filter(({ code }) => code.startsWith('open_'));
  return places.map(({ code, path }) => `${code} ${path.replace('collections.notes.', '')}`);
}
const OWN = `'@record.owner = @request.auth.id'`;
const PAGE = `'@record.page.owner = @request.auth.id'`;
const MEMBERS = '[{ roles: [member] }]';

describe('S13: a place that strangers may occupy', () => {
  const unique = (given: Given) => warned({ relation: 'unique: true', ...given });
  it.each<[string, Given, readonly string[]]>([
    ['anyone creates', { create: 'true' }, ['open_place access.create']],
    ['a rule of several', { create: `[{ when: ${PAGE} }, { when: ${OWN} }]` }, ['open_place access.create[1].when']],
    ['the roles of registration are enough', { create: MEMBERS }, ['open_place access.create[0]']],
    ['the rule looks at the place', { create: PAGE }, []],
    ['the rule looks at which place it is', { create: `'@record.page in @request.query.page'` }, []],
    ['another role is needed', { create: '[{ roles: [boss] }]' }, []],
    ['another role is needed, in the policy', { create: `'@request.auth.roles contains "boss"'` }, []],
    ['no role is given at registration', { create: MEMBERS, register: '[]' }, []],
    ['an included role is given', { create: MEMBERS, register: '[boss]' }, ['open_place access.create[0]']],
    ['strangers cannot read the target', { create: 'true', read: `'@record.owner = @request.auth.id'` }, []],
    ['an update moves there', { update: OWN }, ['open_place access.update']],
    ['the rule looks at both places', { update: PAGE }, []],
    [
      'the rule looks at the old place only',
      { update: `'@record.page is null and @next.owner is null'` },
      ['open_place access.update'],
    ],
    ['the rule looks at the new place', { update: `'@next.page.owner = @request.auth.id'` }, []],
  ])('%s', (_, given, expected) => {
    expect(unique(given)).toEqual(expected);
  });

  it('a has_one makes its place unique too, and the message shows the remedy', () => {
    const { issues } = parseSchema(`
collections:
  pages:
    relations:
      author: { kind: belongs_to, collection: users }
      cover: { kind: has_one, collection: covers, via: page }
    access: { read: true }
  covers:
    relations: { page: { kind: belongs_to, collection: pages } }
    access: { create: true }
`);
    expect(issues.map(({ message }) => message)).toEqual([
      'this rule does not mention `page`, which is unique: anyone it allows can take the only place at any record of `pages` ' +
        'that they can read; add a condition on it, such as `@record.page.author = @request.auth.id`',
    ]);
  });
});

describe('S13: a delete that strangers may block', () => {
  it.each<[string, Given, readonly string[]]>([
    ['anyone points there', { create: 'true' }, ['open_restrict relations.page']],
    ['an update moves there', { update: OWN }, ['open_restrict relations.page']],
    ['restrict is written out', { create: 'true', relation: 'required: true, on_delete: restrict' }, []],
    ['it goes with the target', { create: 'true', relation: 'required: true, on_delete: cascade' }, []],
    ['it is optional', { create: 'true', relation: 'required: false' }, []],
    ['no caller deletes the target', { create: 'true', remove: '[]' }, []],
    ['the rule looks at the target', { create: PAGE }, []],
    ['another role is needed', { create: '[{ roles: [boss] }]' }, []],
  ])('%s', (_, given, expected) => {
    expect(warned(given)).toEqual(expected);
  });
});

it('the sample has no such place', () => {
  expect(loadSchema({ file: 'bylaw.yaml', env: {} }).issues).toEqual([]);
});

describeOnOne('L8: users of the sample', (service) => {
  it('users find themselves and the members of their teams, and no other user', async () => {
    const [ann, bob, eve] = await Promise.all([service.user(), service.user(), service.user()]);
    const emails = async ({ client }: typeof ann): Promise<readonly string[]> =>
      (await client.get('/api/users')).body.data.map(({ email }: { email: string }) => email);
    expect([await emails(eve), await emails(ann)]).toEqual([[eve.email], [ann.email]]);
    const team = (await ann.client.post('/api/teams', { data: { name: 'L8' } })).body.data.id;
    for (const { id } of [ann, bob])
      expect((await ann.client.post('/api/memberships', { data: { team, user: id, role: 'reader' } })).status).toBe(
        201,
      );
    expect((await emails(bob)).toSorted()).toEqual([ann.email, bob.email].toSorted());
    expect([await emails(eve), (await eve.client.get(`/api/users?email=${ann.email}`)).body.data]).toEqual([
      [eve.email],
      [],
    ]);
  });
});
