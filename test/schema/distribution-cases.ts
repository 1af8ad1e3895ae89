/** Schema files that distribute what cannot be distributed so. As `issue-cases.ts`. */
import type { IssueCase } from './issue-cases.ts';

const TEAM = 'team: { kind: belongs_to, collection: teams, required: true }';
const TEAMS = 'teams: { distribute: reference }';

/** `documents` of teams, with more members. */
const documents = (fields: string, relations = ''): string => `collections:
  ${TEAMS}
  notes:
    distribute: { by: team }
    relations: { ${TEAM} }
  documents:
    distribute: { by: team }
    fields: { ${fields} }
    relations:
      ${TEAM}
      owner: { kind: belongs_to, collection: users, required: true }
      note: { kind: belongs_to, collection: notes, required: true }
${relations}`;

/** A collection beside those of teams. */
const beside = (lines: string): string => `${documents('')}\n${lines}`;

/** A collection `a` that is distributed by its only relation. */
const by = (relation: string, distribute = '{ by: ⟦tenant }'): string => `collections:
  ${TEAMS}
  b: {}
  a:
    distribute: ${distribute}
    fields: { n: int }
    relations:
      tenant: ${relation}
`;

/** `documents` of teams with rules; the caller has a `team`, which only admins set unless `update` says otherwise. */
const guarded = (rules: string, lists = 'lists: routed', update = ''): string => `roles: [admin]
collections:
  ${TEAMS}
  users:
    relations: { team: { kind: belongs_to, collection: teams } }
    access:
      update: ${update === '' ? '[{ roles: [admin] }]' : `"${update}"`}
  documents:
    distribute: { by: team, ${lists} }
    fields: { n: int, name: string }
    relations:
      ${TEAM}
    access:
      ${rules}
`;

export const DISTRIBUTION_CASES: readonly IssueCase[] = [
  // The key
  {
    about: 'a key that is absent in some records',
    text: by('{ kind: belongs_to, collection: teams }'),
    codes: ['key_optional'],
    says: 'add `required: true` to the relation `tenant`',
  },
  {
    about: 'a key to a collection of one machine',
    text: by('{ kind: belongs_to, collection: b, required: true }'),
    codes: ['key_not_reference'],
    says: 'say `distribute: reference` in `b`',
  },
  {
    about: 'a key to a collection that is distributed itself',
    text: beside(`  c:
    distribute: { by: ⟦document }
    relations: { document: { kind: belongs_to, collection: documents, required: true } }
`),
    codes: ['key_not_reference'],
    says: '`document` leads to `documents`',
  },
  {
    about: 'a key that does not exist',
    text: by('{ kind: belongs_to, collection: teams, required: true }', '{ by: ⟦tenent }'),
    codes: ['unknown_key_relation'],
    says: 'did you mean `tenant`?',
  },
  {
    about: 'a field as the key',
    text: by('{ kind: belongs_to, collection: teams, required: true }', '{ by: ⟦n }'),
    codes: ['unknown_key_relation'],
    says: '`a.n` is not a belongs_to',
  },
  {
    about: 'a many_to_many as the key',
    text: by('{ kind: many_to_many, collection: teams }'),
    codes: ['unknown_key_relation'],
    says: '`a.tenant` is not a belongs_to; expected a required belongs_to',
  },
  {
    about: 'an unknown word for where records are',
    text: by('{ kind: belongs_to, collection: teams, required: true }', '⟦everywhere'),
    codes: ['not_one_of'],
    says: 'expected `reference`',
  },
  {
    about: 'an unknown key of distribute',
    text: by('{ kind: belongs_to, collection: teams, required: true }', '{ by: tenant, ⟦list: filtered }'),
    codes: ['unknown_key'],
    says: 'did you mean `lists`?',
  },
  {
    about: 'an unknown word for lists',
    text: by('{ kind: belongs_to, collection: teams, required: true }', '{ by: tenant, lists: ⟦filter }'),
    codes: ['not_one_of'],
    says: 'did you mean `filtered`?',
  },
  {
    about: 'users by their team',
    text: `collections:
  ${TEAMS}
  users:
    ⟦distribute: { by: team }
    relations: { team: { kind: belongs_to, collection: teams } }
`,
    codes: ['distribute_built_in'],
    says: '`users` are on every machine',
  },

  // Unique values
  {
    about: 'a field that is unique in all tenants',
    text: documents('slug: { type: string, unique: ⟦true }'),
    codes: ['unique_across'],
    says: 'say `unique: within_team`',
  },
  {
    about: 'a reference that is unique in all tenants',
    text: documents('', '      lead: { kind: belongs_to, collection: users, unique: ⟦true }\n'),
    codes: ['unique_across'],
    says: '`lead` cannot be unique in the whole collection',
  },
  {
    about: 'a field that is unique within a reference collection',
    text: documents('slug: { type: string, unique: ⟦within_owner }'),
    codes: ['unique_across'],
    says: '`slug` cannot be unique within `owner`',
  },
  {
    about: 'unique values that one machine can keep',
    text: documents(
      'a: { type: string, unique: within_team }, b: { type: string, unique: within_note }',
      '      next: { kind: belongs_to, collection: notes, unique: true }\n',
    ),
    codes: [],
  },
  {
    about: 'a field that is unique within nothing',
    text: documents('slug: { type: string, unique: ⟦within_teams }'),
    codes: ['unique_within'],
    says: 'did you mean `within_team`?',
  },
  {
    about: 'a field that is unique within a field',
    text: documents('n: int, slug: { type: string, unique: ⟦within_n }'),
    codes: ['unique_within'],
    says: '`documents` has no relation `n`',
  },
  {
    about: 'a field that is unique within what may be absent',
    text: documents(
      'slug: { type: string, unique: ⟦within_lead }',
      '      lead: { kind: belongs_to, collection: users }\n',
    ),
    codes: ['unique_within'],
    says: 'records without `lead` could share a value; add `required: true`',
  },
  {
    about: 'a field that is unique within many',
    text: documents(
      'slug: { type: string, unique: ⟦within_readers }',
      '      readers: { kind: many_to_many, collection: users }\n',
    ),
    codes: ['unique_within'],
    says: '`documents.readers` is not a belongs_to',
  },
  {
    about: 'a reference that is unique within itself',
    text: `collections:
  b: {}
  a: { relations: { r: { kind: belongs_to, collection: b, required: true, unique: ⟦within_r } } }
`,
    codes: ['unique_within'],
    says: 'expected `unique: true`',
  },
  {
    about: 'a misspelt within',
    text: documents('slug: { type: string, unique: ⟦in_team }'),
    codes: ['invalid_unique'],
    says: 'expected `true`, `false` or `within_<relation>`',
  },
  {
    about: 'a key without the tenant',
    text: documents(
      `n: { type: int, required: true }, slug: { type: string, ⟦unique: { within: n, where: '@record.n > 1' } }`,
    ),
    codes: ['unique_across'],
    says: '`slug` cannot be unique within `n`: only the records of one `team` are on one machine; add `team` to `within`',
  },
  {
    about: 'a key with the tenant',
    text: documents(
      `n: { type: int, required: true }, slug: { type: string, unique: { within: [n, team], ignore_case: true } }`,
    ),
    codes: [],
  },
  {
    about: 'a key within a field that may be absent',
    text: documents('n: int, slug: { type: string, unique: { within: ⟦n } }'),
    codes: ['unique_within'],
    says: 'records without `n` could share a value; add `required: true` to the field `n`',
  },
  {
    about: 'a key within a field of a table of another program',
    text: `collections:
  b: { managed: false, fields: { n: { type: int, required: true }, slug: { type: string, unique: { within: ⟦n } } } }
`,
    codes: ['unique_within'],
    says: 'records without `n` could share a value, and another program may write some; remove `within`',
  },
  {
    about: 'a key within a list',
    text: documents('n: { type: list, of: int, required: true }, slug: { type: string, unique: { within: ⟦n } }'),
    codes: ['unique_within'],
    says: 'an index does not compare values of `n`',
  },
  {
    about: 'a key within a misspelt member',
    text: documents('slug: { type: string, unique: { within: ⟦teem } }'),
    codes: ['unique_within'],
    says: '`documents` has no field or relation `teem`; did you mean `team`?',
  },

  // Relations
  {
    about: 'a reference of one machine to records of tenants',
    text: beside('  b:\n    relations:\n      ⟦doc: { kind: belongs_to, collection: documents }\n'),
    codes: ['reference_to_distributed'],
    says: 'say `distribute: { by: … }` in `b` too',
  },
  {
    about: 'a reference collection that refers to records of tenants',
    text: beside('  users:\n    relations:\n      ⟦home: { kind: belongs_to, collection: documents }\n'),
    codes: ['reference_to_distributed'],
    says: '`users.home` leads from records of no tenant',
  },
  {
    about: 'a reference collection that looks back at records of tenants',
    text: beside('  users:\n    relations:\n      ⟦own: { kind: has_many, collection: documents, via: owner }\n'),
    codes: ['reference_to_distributed'],
    says: '`GET /api/documents?owner=<id>` lists them',
  },
  {
    about: 'a reference collection linked to records of tenants',
    text: beside('  users:\n    relations:\n      ⟦liked: { kind: many_to_many, collection: documents }\n'),
    codes: ['reference_to_distributed'],
  },
  {
    about: 'records of tenants that refer to one machine',
    text: `${documents('', '      ⟦b: { kind: belongs_to, collection: b }\n')}  b: {}\n`,
    codes: ['not_co_located'],
    says: 'say `distribute: reference` in `b`',
  },
  {
    about: 'a reference collection that refers to one machine',
    text: beside('  b: {}\n  users:\n    relations:\n      ⟦b: { kind: belongs_to, collection: b }\n'),
    codes: ['not_co_located'],
    says: 'say `distribute: reference` in `b`',
  },
  {
    about: 'records of different tenants',
    text: beside(`  c:
    distribute: { by: user }
    relations:
      user: { kind: belongs_to, collection: users, required: true }
      ⟦doc: { kind: belongs_to, collection: documents }
      ⟦docs: { kind: many_to_many, collection: documents }
`),
    codes: ['not_co_located', 'not_co_located'],
    says: '`c` and `documents` are distributed by different collections',
  },
  {
    about: 'relations that stay with their tenant, and to reference collections',
    text: beside(`  tags: { distribute: reference, relations: { maker: { kind: belongs_to, collection: users } } }
  comments:
    distribute: { by: group }
    relations:
      group: { kind: belongs_to, collection: teams, required: true }
      document: { kind: belongs_to, collection: documents, required: true }
      answers: { kind: has_many, collection: comments, via: to }
      to: { kind: belongs_to, collection: comments }
      related: { kind: many_to_many, collection: documents }
      tags: { kind: many_to_many, collection: tags }
      image: { kind: belongs_to, collection: files }
`),
    codes: [],
  },

  // Rules
  {
    about: 'a rule of roles only',
    text: guarded('list: [⟦{ roles: [admin] }]'),
    codes: ['not_routed'],
    says: "add `when: '@record.team = @request.auth.team'`",
  },
  {
    about: 'rules of every action',
    text: guarded(
      'view: ⟦true\n      create: ⟦true\n      update: [{ when: ⟦true }]\n      delete: [⟦{ roles: [admin] }]',
    ),
    codes: ['not_routed', 'not_routed', 'not_routed', 'not_routed'],
    says: 'or say `lists: filtered` in `distribute`, which makes the filter `team` required',
  },
  {
    about: 'a rule that never holds',
    text: guarded('list: false'),
    codes: [],
  },
  {
    about: 'a rule that holds for what a write would make',
    text: guarded('update: "⟦⟦@next.team = @request.auth.team"'),
    codes: ['next_alone', 'not_routed'],
    says: 'begin it with `@record.team = @request.auth.team and`',
  },
  {
    about: 'two rules of different tenants',
    text: guarded(
      'list: [{ when: "@record.team = @request.auth.team" }, { when: ⟦"@record.team = @request.query.team and @record.n = 1" }]',
    ),
    codes: ['not_routed'],
    says: 'for the `team` that is `@request.query.team`, and the one before it for `@request.auth.team`',
  },
  {
    about: 'two rules of one tenant among several',
    text: guarded(
      'list: [{ when: "@record.team = @request.auth.team and @record.team = @request.query.team" }, ' +
        '{ when: "@request.query.team = @record.team and @record.n = 1" }]',
    ),
    codes: [],
  },
  {
    about: 'rules of any tenant where lists are filtered',
    text: guarded('view: true\n      update: [{ roles: [admin] }]', 'lists: filtered'),
    codes: [],
  },
  {
    about: 'a tenant that users choose themselves',
    text: guarded(
      'list: ⟦"@record.team = @request.auth.team and @record.n = 1"',
      'lists: routed',
      '@record.id = @request.auth.id',
    ),
    codes: ['self_chosen'],
    says: 'so that they choose the tenant whose records it gives',
  },
  {
    about: 'a tenant that users choose and the rules check',
    text: guarded(
      'list: "@record.team = @request.auth.team"',
      'lists: routed',
      '@record.id = @request.auth.id and @next.team = @record.team',
    ),
    codes: [],
  },
  {
    about: 'a tenant that no one can set',
    text: guarded('create: "@record.team = @request.auth.team"').replace(
      'required: true }\n    access',
      'required: true, access: { write: ⟦false } }\n    access',
    ),
    codes: ['default_missing'],
    says: 'add a default such as `@request.auth.team`',
  },
  {
    about: 'a tenant that no one can set, with a default',
    text: guarded('create: "@record.team = @request.auth.team"').replace(
      'required: true }\n    access',
      "required: true, default: '@request.auth.team', access: { write: false } }\n    access",
    ),
    codes: [],
  },
  {
    about: 'a record of some tenant whose id the request holds',
    text:
      'conditions: { "is_one(d: documents)": d.n = 1 }\n' +
      guarded('update: ⟦"@record.team = @request.auth.team and is_one(@request.query.d)"'),
    codes: ['not_routed'],
    says: 'a record of `documents` whose id is in the request',
  },
  {
    about: 'a value of the request that is compared with a reference',
    text: guarded('update: "@record.team = @request.auth.team and @record.next = @request.data.next"').replace(
      '    access:\n      update: "@record',
      '      next: { kind: belongs_to, collection: documents }\n    access:\n      update: "@record',
    ),
    codes: [],
  },
];
