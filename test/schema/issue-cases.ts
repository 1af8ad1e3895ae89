/**
 * Faulty schema files. `⟦` marks every place that must be reported, `codes` in the order of the places.
 * Nothing else may be reported.
 */
export interface IssueCase {
  readonly about: string;
  readonly text: string;
  readonly codes: readonly string[];
  /** A part of the message, e.g. the nearest name. */
  readonly says?: string;
}

/** A collection `a` with an int field `n`, to which `lines` are added. */
const inA = (lines: string): string => `collections:\n  a:\n    fields:\n      n: int\n${lines}`;
const field = (text: string): string => `collections:\n  a:\n    fields:\n      f: ${text}\n`;
const relation = (text: string): string => `collections:\n  b: {}\n  a:\n    relations:\n      r: ${text}\n`;
const ofOwner = (text: string): string =>
  'collections:\n  b:\n    fields: { name: string, code: { type: string, unique: true } }\n' +
  `  a:\n    managed: false\n    timestamps: none\n    relations:\n      r: ${text}\n`;
const managed = (text: string, of = 'managed: true'): string =>
  `collections:\n  b:\n    ${of}\n    fields: { code: { type: string, unique: true } }\n  a:\n    relations:\n      r: ${text}\n`;
/** A key of the members `n` (an int) and `f` (a float). */
const composite = (id: string, more = '', managed = 'false'): string =>
  `collections:\n  a:\n    managed: ${managed}\n    timestamps: none\n    ${id}\n    fields: { n: int, m: int, f: float }\n${more}`;
const policy = (text: string): string => inA(`    access:\n      read: ${text}\n`);
/** A collection `b` with a reference to the key of `a`. */
const referring = (reference: string, { managed = 'false', ofC = '{}' } = {}): string =>
  composite(
    'id: [n, m]',
    `  b:
    managed: ${managed}
    timestamps: none
    fields: { x: int, y: int, z: string, h: { type: int, access: { read: false } } }
    relations:
      r: { kind: belongs_to, collection: c }
      a: { kind: belongs_to, collection: a, ${reference} }
  c:
    managed: false
    timestamps: none
    id: { type: int }
    relations: ${ofC}
`,
  );

const check = (when: string, more = ''): string => inA(`    checks:\n      c: { when: ${when}, message: m${more} }\n`);

const owned = (text: string): string =>
  `collections:\n  a:\n    fields: { title: string }\n    relations:\n      owner: { kind: belongs_to, collection: users }\n    access:\n      list: ${text}\n`;

/** Types of other systems, and their messages. */
const TYPES: readonly (readonly [type: string, says: string])[] = [
  ['text', 'did you mean `string`?'],
  ['boolean', 'did you mean `bool`?'],
  ['timestamp', 'did you mean `datetime`?'],
  ['number', '`int` is for whole numbers, `float` for others'],
  ['jsonb', 'did you mean `json`?'],
  ['bytea', 'did you mean `bytes`?'],
  ['numeric', '{ type: decimal, precision: 12, scale: 2 }'],
  ['relation', 'under `relations`'],
  ['string[]', 'a many_to_many'],
  ['file', 'a belongs_to to `files`'],
  ['select', 'enum: [a, b]'],
];
/** Words of other systems for who may do something. */
const WORDS: readonly (readonly [word: string, code: string, says: string])[] = [
  [
    'public',
    'text_unquoted',
    'write `true`, which allows every caller who is signed in, and with `guests: true` every other caller',
  ],
  ['private', 'text_unquoted', 'write `false`'],
  ['authenticated', 'text_unquoted', 'write `@request.auth.id is not null`'],
  ['admin', 'text_unquoted', 'write `[{ roles: [admin] }]`'],
  ['owner', 'variable_unknown', 'write `@record.owner = @request.auth.id`'],
];

const NOT_FOR_INDEX =
  'an index needs a condition over values of its own record and constants, such as `@record.archived = false`';
/** A field that is unique among the records of a condition. */
const keyed = (where: string): string =>
  `collections:\n  b: { fields: { n: int } }\n  a:\n    fields: { n: int, f: { type: string, unique: { where: '${where}' } } }\n` +
  '    relations:\n      b: { kind: belongs_to, collection: b }\n      bs: { kind: many_to_many, collection: b }\n';

export const ISSUE_CASES: readonly IssueCase[] = [
  {
    about: 'a title that is not a field',
    text: 'collections:\n  a:\n    title: ⟦headlin\n    fields: { headline: string }\n',
    codes: ['unknown_field'],
    says: 'did you mean `headline`?',
  },
  { about: 'a title that is not a string', text: inA('    title: ⟦n\n'), codes: ['unknown_field'] },
  // The conditions of unique keys
  ...[
    '@record.n > 1 and ⟦@request.auth.email = "a"',
    '⟦@record.b.n = 1',
    '⟦any(@record.bs as b, b.n = 1)',
    '@record.created_at < ⟦@now',
    '⟦@record.id = "00000000-0000-4000-8000-000000000001"',
    '⟦@request.kind = "user"',
    '⟦true',
  ].map((where) => ({
    about: `a key with the condition ${where}`,
    text: keyed(where),
    codes: ['not_for_index'],
    says: NOT_FOR_INDEX,
  })),
  { about: 'a key with a condition that does not parse', text: keyed('@record.n ⟦>'), codes: ['operand_expected'] },
  { about: 'a key with an unknown field', text: keyed('@record.⟦m = 1'), codes: ['name_unknown'] },
  {
    about: 'a key with a condition that an index can have',
    text: keyed('@record.b is null and (@record.n in [1, 2] or not (@record.f starts with "x"))'),
    codes: [],
  },
  ...(
    [
      ['{ on: [⟦bz], from: n, to: m }', 'unknown_field', '`a` has no member `bz`'],
      ['{ on: [⟦f], from: n, to: m }', 'no_overlap_on', '`f` is float'],
      ['{ on: [⟦bs], from: n, to: m }', 'no_overlap_on', '`bs` is a many_to_many'],
      ['{ on: [s], from: ⟦f, to: m }', 'no_overlap_time', 'expected a field of the type datetime, date, int, bigint'],
      ['{ on: [s], from: n, to: ⟦d }', 'no_overlap_time', '`n` is int, and `d` is date; expected one type'],
      ['[{ on: [s], from: n, to: m }, { on: [⟦f], from: n, to: m }]', 'no_overlap_on', '`f` is float'],
      ['[{ on: [s], from: n, to: m }, ⟦{ on: [s], from: n, to: m }]', 'no_overlap_twice', 'in the list already'],
      ["{ on: [s], from: n, to: m, where: '⟦@request.auth.email = @record.s' }", 'not_for_index', NOT_FOR_INDEX],
    ] as const
  ).map(([text, code, says]) => ({
    about: `no_overlap: ${text}`,
    text:
      'collections:\n  b: {}\n  a:\n    fields: { n: int, m: int, f: float, d: date, s: string }\n' +
      `    relations: { bs: { kind: many_to_many, collection: b } }\n    no_overlap: ${text}\n`,
    codes: [code],
    says,
  })),
  {
    about: 'letter case of ints',
    text: field('{ type: int, unique: { ignore_case: ⟦true } }'),
    codes: ['ignore_case_of_type'],
    says: '`ignore_case` is for string fields, found int',
  },
  // Indexes of fields that every record has
  {
    about: 'an index of a field that is misspelled',
    text: inA('    index: [⟦update_at]\n'),
    codes: ['unknown_field'],
    says: 'expected one of `created_at`, `updated_at`, found `update_at`; did you mean `updated_at`?',
  },
  {
    about: 'an index of a field of its own',
    text: inA('    index: [updated_at, ⟦n]\n'),
    codes: ['unknown_field'],
    says: 'write `index: true` at the field instead',
  },
  {
    about: 'a rule that compares a field that every record has',
    text: inA("    access:\n      list: ⟦'@record.updated_at > @now - 1d'\n"),
    codes: ['unindexed'],
    says: 'add `index: [updated_at]` to the collection',
  },
  // Messages of rules
  {
    about: 'a message that reaches no caller',
    text: policy('{ when: true, ⟦message: m }'),
    codes: ['message_never_told'],
  },
  {
    about: 'a message that is too long',
    text: inA(`    access:\n      delete: { when: true, message: ⟦'${'m'.repeat(201)}' }\n`),
    codes: ['out_of_range'],
  },
  // Checks
  {
    about: 'a check of the stored record alone',
    text: check("⟦'@record.n > 1'"),
    codes: ['check_without_next'],
    says: 'write `@next` for the record after the write',
  },
  { about: 'a check of a field that does not exist', text: check("'@next.⟦m > 1'"), codes: ['name_unknown'] },
  {
    about: 'a check about a field that does not exist',
    text: check("'@next.n > 1'", ', fields: [n, ⟦created]'),
    codes: ['unknown_field'],
    says: 'did you mean `created_at`?',
  },
  {
    about: 'a check without a message',
    text: inA("    checks:\n      ⟦c: { when: '@next.n > 1' }\n"),
    codes: ['missing_key'],
  },
  { about: 'a check that always fails', text: check("'@next.n > 1 and ⟦@next.n < 1'"), codes: ['never_true'] },
  {
    about: 'a check that YAML cuts',
    text: inA('    checks:\n      c:\n        message: m\n        when: ⟦n is 1 # or so\n'),
    codes: ['yaml_comment'],
  },
  {
    about: 'a check that reads a hidden value',
    text: inA(
      "      m: { type: int, access: { read: false } }\n    checks:\n      c: { when: ⟦'@next.n < @next.m', message: m }\n",
    ),
    codes: ['check_reveals'],
    says: 'the check reads `a.m`',
  },
  {
    about: 'transitions of a field without an enum',
    text: field('{ type: string, ⟦transitions: { a: [b] } }'),
    codes: ['transitions_of_enum'],
  },
  {
    about: 'transitions between values that the enum does not have',
    text: field('{ type: string, enum: [draft, done], transitions: { ⟦daft: [done], draft: [⟦don] } }'),
    codes: ['enum_unknown', 'enum_unknown'],
    says: 'did you mean `draft`?',
  },
  // The file
  { about: 'a file that is a list', text: '⟦- 1\n', codes: ['wrong_type'] },
  { about: 'a file that is a text', text: '⟦hello\n', codes: ['wrong_type'] },
  { about: 'an unclosed bracket', text: 'roles: [a,\n⟦', codes: ['yaml_syntax'] },
  {
    about: 'tabs as indentation: the first only',
    text: 'collections:\n⟦\ta:\n\t\tfields:\n\t\t\tn: int\n',
    codes: ['yaml_syntax'],
    says: 'use spaces',
  },
  { about: 'a bracket in a flow mapping', text: field('{ type: string⟦[] }'), codes: ['yaml_syntax'] },
  { about: 'nothing but a comment', text: '⟦# later\n', codes: ['no_collections'], says: 'under `collections`' },
  {
    about: 'a collection in upper case',
    text: 'collections:\n  ⟦Posts: {}\n',
    codes: ['upper_case'],
    says: '/api/Posts',
  },
  ...TYPES.map(([type, says]) => ({ about: `the type ${type}`, text: field(`⟦${type}`), codes: ['not_one_of'], says })),
  ...WORDS.map(([word, code, says]) => ({ about: `the policy ${word}`, text: owned(`⟦${word}`), codes: [code], says })),
  {
    about: 'words in a list of rules',
    text: owned('[⟦admin, ⟦public, ⟦true]'),
    codes: ['wrong_type', 'wrong_type', 'wrong_type'],
    says: '`{ roles: [admin] }`',
  },
  {
    about: 'a role as a condition',
    text: owned('[{ when: ⟦admin }]'),
    codes: ['text_unquoted'],
    says: 'write `roles: [admin]` in place of `when`',
  },
  {
    about: 'a pattern operator',
    text: owned(`'@record.title ⟦~ ⟦"x"'`),
    codes: ['no_arithmetic', 'operator_expected'],
    says: '`contains`',
  },
  {
    about: 'a bound in quotes',
    text: field('{ type: string, max: ⟦"80" }'),
    codes: ['wrong_type'],
    says: 'found the string `80`',
  },
  {
    about: 'two documents',
    text: 'roles: []\n⟦---\nroles: []\n',
    codes: ['yaml_syntax'],
    says: 'expected one document, found another one after it; `---` may only begin the file',
  },
  { about: 'an alias of nothing', text: 'roles: ⟦*nope\n', codes: ['yaml_alias'] },
  { about: 'a key given twice', text: 'roles: [a]\n⟦roles: [b]\n', codes: ['duplicate_key'] },
  { about: 'a field given twice', text: inA('      ⟦n: int\n'), codes: ['duplicate_key'], says: '`n` is given twice' },
  { about: 'an unknown key', text: '⟦colections: {}\n', codes: ['unknown_key'], says: 'did you mean `collections`?' },
  {
    about: 'keys of collections in other systems',
    text: 'collections: { a: { fields: { b: int }, ⟦unique: [b], ⟦rules: {} } }\n',
    codes: ['unknown_key', 'unknown_key'],
    says: 'a field says `unique: true`, or `unique: { within: other }`',
  },
  { about: 'several unknown keys', text: '⟦foo: 1\n⟦bar: 2\n', codes: ['unknown_key', 'unknown_key'] },
  {
    about: 'JSON with an unknown key',
    text: '{\n  "collections": { "a": { "⟦feilds": {} } }\n}\n'.replace('"⟦', '⟦"'),
    codes: ['unknown_key'],
    says: 'did you mean `fields`?',
  },
  { about: 'a mapping as a key', text: 'roles: []\n⟦{ a: 1 }: 2\n', codes: ['yaml_key'] },
  // Roles and registration
  { about: 'a role given twice', text: 'roles: [a, ⟦a]\n', codes: ['duplicate_value'] },
  { about: 'a role that is not a string', text: 'roles: [a, ⟦5]\n', codes: ['wrong_type'] },
  { about: 'a name of a role with a dash', text: 'roles: [⟦a-b]\n', codes: ['invalid_name'] },
  {
    about: 'an undeclared role of registration',
    text: 'roles: [member]\nregister: { roles: [⟦membr] }\n',
    codes: ['role_unknown'],
    says: 'did you mean `member`?',
  },
  {
    about: 'an undeclared included role',
    text: 'roles:\n  boss: { includes: [⟦clerk], assigns: [⟦clerc] }\n',
    codes: ['role_unknown', 'role_unknown'],
  },
  {
    about: 'an unknown key of a role',
    text: 'roles:\n  boss: { ⟦include: [] }\n',
    codes: ['unknown_key'],
    says: 'did you mean `includes`?',
  },
  // Rules of members
  {
    about: 'an unknown key of the rules of a field',
    text: field('{ type: int, access: { ⟦list: true } }'),
    codes: ['unknown_key'],
    says: 'expected `read` or `write`',
  },
  {
    about: 'rules of a many_to_many',
    text: relation('{ kind: many_to_many, collection: b, ⟦access: { read: true } }'),
    codes: ['unknown_key'],
  },
  {
    about: 'a rule for reading that speaks of the result',
    text: field("{ type: int, access: { read: '⟦@next.f = 1' } }"),
    codes: ['next_misplaced'],
  },
  {
    about: 'a rule for reading that speaks of the body',
    text: field("{ type: int, access: { read: '⟦@request.data.f = 1' } }"),
    codes: ['data_misplaced'],
  },
  {
    about: 'a rule for reading that speaks of changes',
    text: field("{ type: int, access: { read: '⟦changed(@record.f)' } }"),
    codes: ['change_misplaced'],
  },
  {
    about: 'a role of a field that is not declared',
    text: `roles: [admin]\n${field('{ type: int, access: { write: [{ roles: [⟦admn] }] } }')}`,
    codes: ['role_unknown'],
    says: 'did you mean `admin`?',
  },
  {
    about: 'a field that does not exist',
    text: field("{ type: int, access: { write: [{ when: '@record.⟦g = 1' }] } }"),
    codes: ['name_unknown'],
  },
  {
    about: 'an empty rule of a belongs_to',
    text: relation('{ kind: belongs_to, collection: b, access: { write: [⟦{}] } }'),
    codes: ['empty_rule'],
  },
  {
    about: 'a role where a policy is expected',
    text: `roles: [hr]\n${field('{ type: int, access: { read: ⟦hr } }')}`,
    codes: ['text_unquoted'],
    says: '[{ roles: [hr] }]',
  },
  {
    about: 'a list of roles in place of rules',
    text: `roles: [hr]\n${field('{ type: int, access: { read: [⟦hr] } }')}`,
    codes: ['wrong_type'],
    says: '{ roles: [hr] }',
  },
  // Names
  { about: 'a collection called auth', text: 'collections:\n  ⟦auth: {}\n', codes: ['reserved_name'] },
  { about: 'a collection called batch', text: 'collections:\n  ⟦batch: {}\n', codes: ['reserved_name'] },
  {
    about: 'a field whose name is a word of the language',
    text: 'collections:\n  a:\n    fields: { ⟦in: bool, total: int, ⟦by: int }\n    relations: { ⟦contains: { kind: belongs_to, collection: a } }\n',
    codes: ['word_name', 'word_name', 'word_name'],
    says: 'no filter of a query can name it',
  },
  { about: 'a collection called keys', text: 'collections:\n  ⟦keys: {}\n', codes: ['reserved_name'] },
  {
    about: 'a field called like a word of lists',
    text: 'collections:\n  a:\n    fields: { ⟦count: int }\n',
    codes: ['reserved_name'],
    says: '`column: count`',
  },
  { about: 'a field called can', text: 'collections:\n  a:\n    fields: { ⟦can: bool }\n', codes: ['reserved_name'] },
  {
    about: 'a collection with the service’s prefix',
    text: 'collections:\n  ⟦bylaw_jobs: {}\n',
    codes: ['reserved_name'],
  },
  { about: 'a collection with a dash', text: 'collections:\n  ⟦my-posts: {}\n', codes: ['invalid_name'] },
  { about: 'a collection with two underscores', text: 'collections:\n  ⟦a__b: {}\n', codes: ['invalid_name'] },
  { about: 'a collection that begins with a digit', text: 'collections:\n  ⟦1a: {}\n', codes: ['invalid_name'] },
  { about: 'a collection of 49 letters', text: `collections:\n  ⟦${'a'.repeat(49)}: {}\n`, codes: ['invalid_name'] },
  {
    about: 'a name that an object of JavaScript has, wherever a name can be',
    text: `⟦__proto__: 1
roles: { ⟦__proto__: {} }
conditions: { ⟦__proto__: true }
collections:
  ⟦__proto__: { fields: { f: nonsense } }
  a:
    fields: { title: string, ⟦"__proto__": { type: nonsense }, j: { type: json, default: { ⟦__proto__: 1 } } }
    relations: { ⟦__proto__: { kind: nonsense } }
    access: { ⟦__proto__: true }
    checks: { ⟦__proto__: { when: '@next.title != "a"', message: never } }
`,
    codes: Array.from({ length: 9 }, () => 'invalid_name'),
  },
  {
    about: 'names of checks with a dash, a first underscore and 49 letters',
    text: inA(
      `    checks: { ⟦in-order: { when: '@next.n > 1', message: m }, ⟦_c: {}, ⟦${'a'.repeat(49)}: { when: '@next.n > 1', message: m } }\n`,
    ),
    codes: ['invalid_name', 'invalid_name', 'invalid_name'],
    says: '`in-order` is not a valid name; expected a letter, then letters, digits and single underscores',
  },
  { about: 'a field called id', text: 'collections:\n  a:\n    fields: { ⟦id: int }\n', codes: ['reserved_name'] },
  {
    about: 'a field called limit',
    text: 'collections:\n  a:\n    fields: { ⟦limit: int }\n',
    codes: ['reserved_name'],
  },
  {
    about: 'a field called as a system column',
    text: 'collections:\n  a:\n    fields: { ⟦xmin: int }\n',
    codes: ['reserved_name'],
  },
  {
    about: 'a relation called expand',
    text: 'collections:\n  a:\n    relations:\n      ⟦expand: { kind: belongs_to, collection: a }\n',
    codes: ['reserved_name'],
  },
  {
    about: 'a field beside a relation of its name',
    text: inA('    relations:\n      ⟦n: { kind: belongs_to, collection: a }\n'),
    codes: ['name_taken'],
  },
  {
    about: 'owner beside owner_id',
    text: 'collections:\n  a:\n    fields: { owner_id: string }\n    relations:\n      ⟦owner: { kind: belongs_to, collection: users }\n',
    codes: ['name_taken'],
    says: 'the relation `owner` is also called `owner_id`; remove the field',
  },
  {
    about: 'a field called as a to-many filter',
    text: 'collections:\n  a:\n    fields: { bs_any: string }\n    relations:\n      ⟦bs: { kind: many_to_many, collection: a }\n',
    codes: ['name_taken'],
  },
  {
    about: 'a built-in field of users',
    text: 'collections:\n  users:\n    fields: { ⟦email: string }\n',
    codes: ['name_taken'],
    says: 'has by itself',
  },
  {
    about: 'roles as a field of users',
    text: 'collections:\n  users:\n    fields: { ⟦roles: string }\n',
    codes: ['name_taken'],
  },
  {
    about: 'owner_id as a field of files',
    text: 'collections:\n  files:\n    fields: { ⟦owner_id: string }\n',
    codes: ['name_taken'],
  },
  // Fields
  { about: 'an unknown type, short', text: field('⟦strng'), codes: ['not_one_of'], says: 'did you mean `string`?' },
  {
    about: 'an unknown type, long',
    text: field('{ type: ⟦boolean }'),
    codes: ['not_one_of'],
    says: 'did you mean `bool`?',
  },
  { about: 'a field of nothing', text: 'collections:\n  a:\n    fields:\n      ⟦f:\n', codes: ['wrong_type'] },
  {
    about: 'a field without a type',
    text: 'collections:\n  a:\n    fields:\n      ⟦f: { required: true }\n',
    codes: ['missing_key'],
  },
  {
    about: 'an unknown key of a field',
    text: field('{ type: int, ⟦requierd: true }'),
    codes: ['unknown_key'],
    says: 'did you mean `required`?',
  },
  { about: 'a text where a bool belongs', text: field('{ type: int, required: ⟦yes }'), codes: ['wrong_type'] },
  { about: 'min above max', text: field('{ type: int, min: ⟦5, max: 1 }'), codes: ['min_above_max'] },
  { about: 'a bound of a bool', text: field('{ type: bool, ⟦max: 1 }'), codes: ['not_for_this_type'] },
  { about: 'a length that is negative', text: field('{ type: string, min: ⟦-1 }'), codes: ['wrong_type'] },
  { about: 'a bound that is not an int', text: field('{ type: int, min: ⟦1.5 }'), codes: ['wrong_type'] },
  {
    about: 'a bound that is not a datetime',
    text: field('{ type: datetime, min: ⟦2026-01-01 }'),
    codes: ['wrong_type'],
  },
  { about: 'a decimal without its digits', text: field('⟦decimal'), codes: ['digits_missing'] },
  {
    about: 'a decimal of more decimals than digits',
    text: field('{ type: decimal, precision: 2, scale: ⟦3 }'),
    codes: ['scale_above_precision'],
  },
  { about: 'a list without the type of its elements', text: field('⟦list'), codes: ['of_missing'] },
  { about: 'a string of something', text: field('{ type: string, ⟦of: int }'), codes: ['not_for_this_type'] },
  {
    about: 'a list of too many elements',
    text: field('{ type: list, of: int, max: ⟦1001 }'),
    codes: ['wrong_type'],
  },
  { about: 'a unique list', text: field('{ type: list, of: int, ⟦unique: true }'), codes: ['not_for_this_type'] },
  { about: 'an enum of lists', text: field('{ type: list, of: string, ⟦enum: [a] }'), codes: ['not_for_this_type'] },
  {
    about: 'a default that is not a list',
    text: field('{ type: list, of: int, default: ⟦1 }'),
    codes: ['invalid_default'],
  },
  { about: 'paths of a string', text: field('{ type: string, ⟦paths: { a: int } }'), codes: ['not_for_this_type'] },
  {
    about: 'a path of other characters',
    text: field("{ type: json, paths: { ⟦'a-b': int } }"),
    codes: ['invalid_path'],
  },
  { about: 'an index of json', text: field('{ type: json, ⟦index: true }'), codes: ['not_for_this_type'] },
  {
    about: 'a managed column of another type',
    text: field('{ type: datetime, ⟦stored_as: timestamp }'),
    codes: ['not_for_managed'],
  },
  {
    about: 'a managed column of values that a record may lack',
    text: managed('{ kind: belongs_to, collection: b, ⟦references: code }'),
    codes: ['invalid_references'],
    says: 'add `required: true`',
  },
  {
    about: 'a managed column of values of a table of another owner',
    text: managed('{ kind: belongs_to, collection: b, ⟦references: code }', 'managed: false\n    timestamps: none'),
    codes: ['invalid_references'],
    says: 'is not managed',
  },
  {
    about: 'a history of rows that have other values than ids',
    text: managed('{ kind: belongs_to, collection: users, ⟦references: email }\n    history: true'),
    codes: ['invalid_references'],
    says: '`history` keeps rows',
  },
  {
    about: 'a collection of the service with other values than ids',
    text: 'collections:\n  users:\n    relations:\n      r: { kind: belongs_to, collection: users, ⟦references: email }\n',
    codes: ['invalid_references'],
  },
  {
    about: 'a condition of an index on a column of other values than ids',
    text: managed(
      "{ kind: belongs_to, collection: users, references: email, unique: { where: '⟦@record.r is not null' } }",
    ),
    codes: ['not_for_index'],
  },
  {
    about: 'a place of other values than ids',
    text: managed(
      '{ kind: belongs_to, collection: users, references: email }\n    fields: { x: int, y: int }\n    no_overlap: { on: [⟦r], from: x, to: y }',
    ),
    codes: ['no_overlap_on'],
  },
  {
    about: 'a feed that reads rows which have other values than ids',
    text: `${managed('{ kind: belongs_to, collection: users, references: email }')}  c:\n    relations: { a: { kind: belongs_to, collection: a } }
    ⟦changes: true\n    access: { list: '@record.a.r = @request.auth.id', read: true }\n`,
    codes: ['not_logged'],
    says: '`references`',
  },
  {
    about: 'a reference by a field that is not unique',
    text: ofOwner('{ kind: belongs_to, collection: b, references: ⟦name }'),
    codes: ['invalid_references'],
  },
  {
    about: 'a reference by an unknown field',
    text: ofOwner('{ kind: belongs_to, collection: b, references: ⟦cod }'),
    codes: ['invalid_references'],
  },
  {
    about: 'a column of a type that no value of the field has',
    text: field('{ type: int, ⟦stored_as: ⟦timestamp }'),
    codes: ['not_for_managed', 'stored_as_of_type'],
  },
  { about: 'paths into a point', text: field('{ type: point, ⟦paths: { lat: float } }'), codes: ['not_for_this_type'] },
  { about: 'a string with digits', text: field('{ type: string, ⟦scale: 2 }'), codes: ['not_for_this_type'] },
  { about: 'an enum of datetimes', text: field('{ type: datetime, ⟦enum: [a] }'), codes: ['not_for_this_type'] },
  { about: 'an enum value of another type', text: field('{ type: int, enum: [1, ⟦x] }'), codes: ['wrong_type'] },
  { about: 'an enum value twice', text: field('{ type: string, enum: [x, y, ⟦x] }'), codes: ['duplicate_value'] },
  { about: 'an enum value out of bounds', text: field('{ type: int, max: 3, enum: [1, ⟦5] }'), codes: ['wrong_type'] },
  {
    about: 'an empty enum',
    text: field('{ type: string, enum: ⟦[] }').replace('enum: ⟦', '⟦enum: '),
    codes: ['out_of_range'],
  },
  { about: 'a default of another type', text: field('{ type: int, default: ⟦x }'), codes: ['invalid_default'] },
  { about: 'an int for a string', text: field('{ type: string, default: ⟦5 }'), codes: ['invalid_default'] },
  {
    about: 'a default outside the enum',
    text: field('{ type: string, enum: [draft, live], default: ⟦drft }'),
    codes: ['invalid_default'],
    says: 'did you mean `draft`?',
  },
  {
    about: 'a default out of bounds',
    text: field('{ type: string, max: 2, default: ⟦abc }'),
    codes: ['invalid_default'],
  },
  { about: 'now as the default of an int', text: field("{ type: int, default: ⟦'@now' }"), codes: ['invalid_default'] },
  {
    about: 'an unknown moment',
    text: field("{ type: datetime, default: ⟦'@nwo' }"),
    codes: ['invalid_default'],
    says: 'did you mean `@now`?',
  },
  {
    about: 'an index on long texts',
    text: field('{ type: string, index: true, max: ⟦5000 }'),
    codes: ['index_too_long'],
  },
  {
    about: 'a former name that is still there',
    text: inA('      m: { type: int, was: ⟦n }\n'),
    codes: ['invalid_was'],
  },
  {
    about: 'a former name of two fields',
    text: inA('      m: { type: int, was: old }\n      o: { type: int, was: ⟦old }\n'),
    codes: ['invalid_was'],
  },
  {
    about: 'a former name of a collection that is still there',
    text: 'collections:\n  a: { was: ⟦b }\n  b: {}\n',
    codes: ['invalid_was'],
  },
  {
    about: 'a former name of two collections',
    text: 'collections:\n  a: { was: old }\n  b: { was: ⟦old }\n',
    codes: ['invalid_was'],
  },
  {
    about: 'a former name of users',
    text: 'collections:\n  users: { was: ⟦people }\n',
    codes: ['invalid_was'],
  },
  {
    about: 'a former name of a many_to_many that is still there',
    text: 'collections:\n  a:\n    fields: { n: int }\n    relations: { m: { kind: many_to_many, collection: a, was: ⟦n } }\n',
    codes: ['invalid_was'],
  },
  {
    about: 'a column of two fields',
    text: inA('      m: { type: int, column: ⟦n }\n'),
    codes: ['invalid_stored_name'],
    says: '`n` is the column of `n` already',
  },
  {
    about: 'ints made by the service',
    text: 'collections:\n  a:\n    id: { type: int, made_by: ⟦service }\n',
    codes: ['invalid_key'],
    says: 'the service makes UUIDs alone',
  },
  { about: 'a key of one member in a list', text: composite('⟦id: [n]'), codes: ['out_of_range'] },
  {
    about: 'a managed table with a key of two columns',
    text: composite('⟦id: [n, m]', '', 'true'),
    codes: ['invalid_key'],
    says: 'only a table of another program',
  },
  {
    about: 'a key of an unknown member',
    text: composite('id: [n, ⟦mm]'),
    codes: ['invalid_key'],
    says: 'found `mm`',
  },
  { about: 'a member twice in a key', text: composite('id: [n, ⟦n]'), codes: ['invalid_key'] },
  {
    about: 'a float in a key',
    text: composite('id: [n, ⟦f]'),
    codes: ['invalid_key'],
    says: 'expected a belongs_to, or string, bool, int, bigint, datetime, date, time, uuid',
  },
  {
    about: 'a hidden member in a key',
    text: composite('id: [n, ⟦h]').replace('f: float', 'h: { type: int, access: { read: false } }'),
    codes: ['invalid_key'],
    says: 'every id would show its value',
  },
  {
    about: 'a write of records with a key of two columns',
    text: composite('id: [n, m]', '    access: { view: true, update: ⟦true }\n'),
    codes: ['invalid_key'],
    says: 'are read, and not written',
  },
  {
    about: 'a belongs_to to a key of two columns',
    text: composite('id: [n, m]', '  b:\n    relations: { a: { kind: ⟦belongs_to, collection: a } }\n'),
    codes: ['invalid_reference'],
    says: 'expected the members of `b` that hold `n` and `m` of `a`; name them by `fields`',
  },
  {
    about: 'a reference of several members in a managed table',
    text: referring('⟦fields: [x, y]', { managed: 'true' }),
    codes: ['invalid_reference'],
    says: 'only a table of another program',
  },
  {
    about: 'a reference of unknown members',
    text: referring('fields: [x, ⟦yy]'),
    codes: ['invalid_reference'],
    says: 'found `yy`',
  },
  {
    about: 'a reference of members of other types',
    text: referring('⟦fields: [x, z]'),
    codes: ['invalid_reference'],
    says: 'expected the members of `b` that hold `n` and `m` of `a`, in their order',
  },
  {
    about: 'a reference that shows a hidden member',
    text: referring('fields: [x, ⟦h]'),
    codes: ['invalid_reference'],
    says: 'the reference would show its value',
  },
  {
    about: 'a reference of several members with a column',
    text: referring('fields: [x, y], column: ⟦k'),
    codes: ['invalid_reference'],
    says: 'remove `column`',
  },
  {
    about: 'a reference of several members that a delete clears',
    text: referring('fields: [x, y], on_delete: ⟦set_null'),
    codes: ['invalid_reference'],
    says: 'expected `cascade` or `restrict`',
  },
  {
    about: 'several members for a key of one',
    text: referring('⟦fields: [x, y]').replace('id: [n, m]', 'id: { type: int }'),
    codes: ['invalid_reference'],
    says: 'the key of `a` has one column',
  },
  {
    about: 'a reference of several members in a key',
    text: referring('fields: [x, y]').replace('fields: { x', 'id: [⟦a, x]\n    fields: { x'),
    codes: ['invalid_key'],
    says: 'name each member instead',
  },
  {
    about: 'a has_one by a part of a reference',
    text: referring('fields: [x, r]', { ofC: '{ b: { kind: has_one, collection: b, via: ⟦r } }' }),
    codes: ['invalid_via'],
    says: 'holds a part of another reference',
  },
  {
    about: 'links of a key of two columns',
    text: composite('id: [n, m]', '    relations: { l: { kind: ⟦many_to_many, collection: users } }\n'),
    codes: ['invalid_key'],
    says: 'declare the many_to_many in `users`',
  },
  {
    about: 'a key of the users',
    text: 'collections:\n  users:\n    ⟦id: { type: int }\n',
    codes: ['invalid_key'],
  },
  {
    about: 'the column of the ids for a field',
    text: 'collections:\n  a:\n    id: { type: int, column: n }\n    fields: { m: { type: int, column: ⟦n } }\n',
    codes: ['invalid_stored_name'],
    says: '`n` is the column of `id` already',
  },
  {
    about: 'a column of the service',
    text: inA('      m: { type: int, column: ⟦_version }\n'),
    codes: ['invalid_stored_name'],
  },
  {
    about: 'a column of PostgreSQL',
    text: inA('      m: { type: int, column: ⟦xmin }\n'),
    codes: ['invalid_stored_name'],
  },
  {
    about: 'a column that PostgreSQL would shorten',
    text: inA(`      m: { type: int, column: ⟦${'ä'.repeat(29)} }\n`),
    codes: ['invalid_stored_name'],
    says: 'expected the name of a column, of 1 to 56 bytes',
  },
  {
    about: 'a table of two collections',
    text: 'collections:\n  a: { table: ⟦b }\n  b: {}\n',
    codes: ['invalid_stored_name'],
    says: '`b` is the table of `b` already',
  },
  {
    about: 'a table of links',
    text: 'collections:\n  a: { relations: { m: { kind: many_to_many, collection: a } } }\n  b: { table: ⟦a__m }\n',
    codes: ['invalid_stored_name'],
    says: '`a__m` is the table of `a.m` already',
  },
  {
    about: 'another table for users',
    text: 'collections:\n  users: { table: ⟦people }\n',
    codes: ['invalid_stored_name'],
  },
  {
    about: 'another column for the times of users',
    text: 'collections:\n  users: { ⟦timestamps: { created_at: made_on } }\n',
    codes: ['invalid_stored_name'],
  },
  {
    about: 'a column of a time and of a field',
    text: 'collections:\n  a: { timestamps: { created_at: made_on }, fields: { m: { type: int, column: ⟦made_on } } }\n',
    codes: ['invalid_stored_name'],
    says: '`made_on` is the column of `created_at` already',
  },
  {
    about: 'a table of the service',
    text: 'collections:\n  a: { table: ⟦bylaw_a }\n',
    codes: ['invalid_stored_name'],
  },
  {
    about: 'a required field that is read-only',
    text: inA('      m: { type: int, required: ⟦true, read_only: true }\n'),
    codes: ['required_read_only'],
    says: 'give it a default',
  },
  {
    about: 'a has_one by a relation that is read-only',
    text:
      'collections:\n  a: { relations: { o: { kind: has_one, collection: b, via: ⟦a } } }\n' +
      '  b: { relations: { a: { kind: belongs_to, collection: a, read_only: true } } }\n',
    codes: ['read_only_via'],
  },
  {
    about: 'a required field of users',
    text: 'collections:\n  users:\n    fields:\n      nick: { type: string, required: ⟦true }\n',
    codes: ['required_of_users'],
  },
  // Relations
  {
    about: 'a relation without a kind',
    text: relation('{ collection: b }').replace('r: {', '⟦r: {'),
    codes: ['missing_key'],
    says: '`belongs_to`',
  },
  {
    about: 'an unknown kind',
    text: relation('{ kind: ⟦belong_to, collection: b }'),
    codes: ['not_one_of'],
    says: 'did you mean `belongs_to`?',
  },
  {
    about: 'a relation without a collection',
    text: relation('{ kind: belongs_to }').replace('r: {', '⟦r: {'),
    codes: ['missing_key'],
  },
  {
    about: 'an unknown collection',
    text: relation('{ kind: belongs_to, collection: ⟦user }'),
    codes: ['unknown_collection'],
    says: 'did you mean `users`?',
  },
  {
    about: 'via on a belongs_to',
    text: relation('{ kind: belongs_to, collection: b, ⟦via: r }'),
    codes: ['unknown_key'],
  },
  { about: 'an unknown via', text: relation('{ kind: has_many, collection: b, via: ⟦nope }'), codes: ['invalid_via'] },
  {
    about: 'a via to another collection',
    text:
      'collections:\n  b:\n    relations:\n      u: { kind: belongs_to, collection: users }\n' +
      '  a:\n    relations:\n      r: { kind: has_one, collection: b, via: ⟦u }\n',
    codes: ['invalid_via'],
  },
  {
    about: 'set_null of a required relation',
    text: relation('{ kind: belongs_to, collection: b, required: true, on_delete: ⟦set_null }'),
    codes: ['set_null_required'],
  },
  {
    about: 'an unknown on_delete',
    text: relation('{ kind: belongs_to, collection: b, on_delete: ⟦casade }'),
    codes: ['not_one_of'],
    says: 'did you mean `cascade`?',
  },
  {
    about: 'the caller as the default of another collection',
    text: relation("{ kind: belongs_to, collection: b, default: ⟦'@request.auth.id' }"),
    codes: ['invalid_default'],
  },
  {
    about: 'a required relation of users',
    text: 'collections:\n  users:\n    relations:\n      boss: { kind: belongs_to, collection: users, required: ⟦true }\n',
    codes: ['required_of_users'],
  },
  // Access
  {
    about: 'an unknown action',
    text: inA('    access:\n      ⟦craete: true\n'),
    codes: ['unknown_key'],
    says: 'did you mean `create`?',
  },
  { about: 'a rule that is a number', text: policy('⟦5'), codes: ['wrong_type'] },
  {
    about: 'a rule with an unknown key',
    text: policy('[{ ⟦wen: true }]'),
    codes: ['unknown_key'],
    says: 'did you mean `when`?',
  },
  { about: 'a rule of nothing', text: policy('[{ roles: [admin] }, ⟦{}]'), codes: ['empty_rule'] },
  {
    about: 'an undeclared role in a rule',
    text: `roles: [editor]\n${policy('[{ roles: [⟦editr] }]')}`,
    codes: ['role_unknown'],
    says: 'did you mean `editor`?',
  },
  {
    about: 'an undeclared role in a policy',
    text: `roles: [editor]\n${policy(`'@request.auth.roles contains ⟦"editr"'`)}`,
    codes: ['role_unknown'],
  },
  {
    about: 'create on users',
    text: 'collections:\n  users:\n    access:\n      ⟦create: true\n',
    codes: ['no_such_action'],
  },
  {
    about: 'strings in a list for an int',
    text: policy(`'@record.n in [⟦"x"] or @record.n in [1, ⟦"x"]'`),
    codes: ['type_mismatch', 'type_mismatch'],
    says: 'expected int, found string',
  },
  {
    about: 'a condition with parameters, unquoted in a flow mapping',
    text: 'conditions: { is_a: true, ⟦is_b(n: int, m: int): "n = m" }\n',
    codes: ['yaml_unquoted'],
    says: 'put the name and the parameters of the condition in quotes',
  },
  { about: 'a policy that begins with @ unquoted', text: policy('⟦@record.n = 1'), codes: ['yaml_unquoted'] },
  { about: 'a policy that begins with ! unquoted', text: policy('⟦!(@record.n = 1)'), codes: ['yaml_unquoted'] },
  {
    about: 'the same in a flow mapping',
    text: policy('[{ when: ⟦!(@record.n = 1) }, { roles: [⟦nope] }]'),
    codes: ['yaml_unquoted', 'role_unknown'],
  },
  { about: 'a policy cut by a comment', text: policy('⟦not @record.n = 1 # and more'), codes: ['yaml_comment'] },
  {
    about: 'an error in a single-quoted policy',
    text: policy(`'@request.auth.email = "it''s" and @record.⟦m = 1'`),
    codes: ['name_unknown'],
    says: '`n`',
  },
  {
    about: 'an error in a double-quoted policy',
    text: policy(`"@request.auth.email = \\"\\u0041\\" and @record.⟦m = 1"`),
    codes: ['name_unknown'],
  },
  { about: 'an error in a plain policy', text: policy('(@record.⟦m = 1)'), codes: ['name_unknown'] },
  {
    about: 'an error on the second line of a folded block',
    text: policy('>-\n        @record.n = 1 and\n        @record.⟦m = 2\n'),
    codes: ['name_unknown'],
  },
  {
    about: 'an error on the second line of a literal block',
    text: policy('|\n        @record.n = 1\n          and @record.⟦m = 2\n'),
    codes: ['name_unknown'],
  },
  {
    about: 'two errors of one policy',
    text: policy("'@record.⟦m = 1 or @record.⟦o = 2'"),
    codes: ['name_unknown', 'name_unknown'],
  },
  {
    about: 'a name that was declared wrongly is not reported again',
    text: `collections:\n  a:\n    fields: { n: ⟦nit }\n    access:\n      read: '@record.n = 1'\n`,
    codes: ['not_one_of'],
  },
  {
    about: 'a rule that another one makes idle',
    text: policy(`[{ roles: [admin] }, ⟦{ roles: [admin], when: '@record.n is not null' }]`),
    codes: ['idle_rule'],
  },
  // Settings
  { about: 'a duration with a space', text: 'sessions: { access: ⟦15 m }\n', codes: ['invalid_duration'] },
  {
    about: 'an unknown session key',
    text: 'sessions: { ⟦acess: 15m }\n',
    codes: ['unknown_key'],
    says: 'did you mean `access`?',
  },
  {
    about: 'an access token that outlives the session',
    text: 'sessions: { access: ⟦2d, refresh: 1d }\n',
    codes: ['invalid_sessions'],
  },
  {
    about: 'a body that is larger than memory should hold',
    text: 'limits: { body: ⟦17MiB }\n',
    codes: ['invalid_limits'],
    says: 'expected at most 16MiB',
  },
  { about: 'a rate that is none', text: 'limits: { register: ⟦10/15m }\n', codes: ['invalid_rate'] },
  { about: 'a size with a space', text: 'uploads: { max_size: ⟦10 MiB }\n', codes: ['invalid_size'] },
  { about: 'a media type that is none', text: 'uploads: { types: [⟦png] }\n', codes: ['invalid_media_type'] },
  { about: 'a quota of an undeclared role', text: 'uploads: { quota: { ⟦boss: 1GiB } }\n', codes: ['role_unknown'] },
  {
    about: 'an origin with a path',
    text: 'origins: [⟦https://app.example/]\n',
    codes: ['invalid_origin'],
    says: 'did you mean `https://app.example`?',
  },
  {
    about: 'a cookie for other sites, and no list of them',
    text: 'cookie: { same_site: ⟦none }\n',
    codes: ['invalid_cookie'],
    says: 'under `origins`',
  },
  { about: 'a cookie for a top-level domain', text: 'cookie: { domain: ⟦com }\n', codes: ['invalid_cookie'] },
  { about: 'a cookie for an address', text: 'cookie: { domain: ⟦10.0.0.1 }\n', codes: ['invalid_cookie'] },
  {
    about: 'a cookie with another attribute',
    text: 'cookie: { domain: ⟦"a.example; Path=/x" }\n',
    codes: ['invalid_cookie'],
  },
  {
    about: 'a path of the studio without a slash',
    text: 'studio: { path: ⟦admin }\n',
    codes: ['invalid_studio'],
    says: 'such as `/admin`',
  },
  {
    about: 'a path of the studio in another spelling',
    text: 'studio: { path: ⟦/Admin/ }\n',
    codes: ['invalid_studio'],
  },
  {
    about: 'a path of the studio that other routes have',
    text: 'studio: { path: ⟦/api/studio }\n',
    codes: ['invalid_studio'],
    says: '`/api` belongs to other routes',
  },
  {
    about: 'an origin of the studio with a path',
    text: 'studio: { origins: [⟦https://admin.example/] }\n',
    codes: ['invalid_origin'],
    says: 'did you mean `https://admin.example`?',
  },
  { about: 'a proxy that is not an address', text: 'proxies: [⟦10.0.0.0/33]\n', codes: ['invalid_proxy'] },
  {
    about: 'a provider without a secret',
    text: 'oauth:\n  ⟦google: { preset: google, client_id: x }\n',
    codes: ['oauth_secret'],
  },
  {
    about: 'a secret that is not in the environment',
    text: 'oauth:\n  google: { preset: google, client_id: x, client_secret_env: ⟦NOT_SET }\n',
    codes: ['missing_env'],
  },
  {
    about: 'an issuer without TLS',
    text: 'oauth:\n  corp: { issuer: ⟦http://id.example, client_id: x, client_secret: y }\n',
    codes: ['oauth_issuer'],
  },
  {
    about: 'neither issuer nor preset',
    text: 'oauth:\n  ⟦corp: { client_id: x, client_secret: y }\n',
    codes: ['oauth_issuer'],
  },
  {
    about: 'a page among the addresses of apps',
    text: "redirects: ['com.example.app://', ⟦'https://app.example/']\n",
    codes: ['invalid_redirect'],
  },
  {
    about: 'a scheme that other programs have, too',
    text: "redirects: [⟦'javascript:alert(1)']\n",
    codes: ['invalid_redirect'],
  },
  {
    about: 'a name in place of the loopback address',
    text: "redirects: [⟦'http://localhost/cb']\n",
    codes: ['invalid_redirect'],
  },
  {
    about: 'Apple without the id of its key',
    text: 'oauth:\n  ⟦apple: { preset: apple, team_id: t, client_id: x, client_secret: y }\n',
    codes: ['oauth_apple'],
  },
  {
    about: 'a team of another provider',
    text: 'oauth:\n  git: { preset: github, ⟦team_id: t, client_id: x, client_secret: y }\n',
    codes: ['oauth_apple'],
  },
];
