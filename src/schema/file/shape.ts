/** The shape of a schema file. `bylaw.schema.json` and the tables of docs/schema.md are generated from it. */
import { z } from 'zod';
import { ELEMENT_TYPES, elementOf, KEYS, type KeyKind } from '../../policy/scalar-types.ts';
import { PART_TYPES, RULED_ACTIONS } from '../../policy/types.ts';
import { UTC } from '../../policy/values.ts';
import { SCALAR_TYPES, STORED_AS } from '../fields/index.ts';
import { WEBHOOK_EVENTS } from '../model/model.ts';
import {
  DEFAULT_CLIENT_AUTH,
  DEFAULT_FEED_STREAMS,
  DEFAULT_LIMITS,
  DEFAULT_RETENTION,
  DEFAULT_SCOPES,
  DEFAULT_SESSIONS,
  DEFAULT_UPLOADS,
  MOST_BODY,
} from '../model/settings/defaults.ts';
import { DURATION, RATE, SIZE } from './units.ts';

/** The pattern of names of collections, fields, relations, roles and OAuth providers. */
export const NAME = /^[A-Za-z][A-Za-z0-9_]{0,47}$/;
/** `unique: within_team`. */
export const WITHIN_MEMBER = /^within_([A-Za-z][A-Za-z0-9_]{0,47})$/;
const ON_DELETE_WORDS = ['cascade', 'restrict', 'set_null'] as const;

/** The documentation of a key in the reference and in editors. Defaults and examples are values of the key. */
interface Meaning {
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
}

/** A key that may be left out. */
const key = <T extends z.ZodType>(type: T, description: string, { default: standard, examples }: Meaning = {}) =>
  type.optional().meta({
    description,
    ...(standard !== undefined && { default: standard }),
    ...(examples !== undefined && { examples: [...examples] }),
  });

const name = z.string().regex(NAME);
const names = z.array(z.string());
const duration = z.string().regex(DURATION);
const size = z.union([z.int().min(1), z.string().regex(SIZE)]);
const rate = z.string().regex(RATE);
const scalar = z.union([z.string(), z.number(), z.boolean()]);
const bound = z.union([z.number(), z.string()]);
const flag = z.boolean();
const FALSE_BY_DEFAULT = { default: false, examples: [true] };
const uniqueKey = z.strictObject({
  within: key(
    z.union([name, z.array(name).min(1)]),
    'among records with the same values of these members, which are required',
    { examples: ['project', ['floor', 'room']] },
  ),
  where: key(z.string(), 'among records that meet this condition, which compares their own values with constants', {
    examples: ['@record.archived = false'],
  }),
  ignore_case: key(flag, 'strings that differ in letter case alone are equal', FALSE_BY_DEFAULT),
});
const unique = z.union([flag, z.string().regex(WITHIN_MEMBER), uniqueKey]);

const UNIQUE = { default: false, examples: [true, 'within_team', { within: 'team', ignore_case: true }] };
const OF_RELATION = '`within_team`: among records with the same `team`, which is a required belongs_to';
const READ_ONLY = 'no request sets the value: it is the default, or what another program writes into the table';
const OLD_NAME =
  'the former name, after a rename: the migration renames the column, where it would drop one and add one';

const OLD_TABLE =
  'the former name, after a rename: the migration renames the table, where it would drop one and make one';

const policy = z.union([z.string(), z.boolean()]).describe('a policy expression; true allows always');
const rule = z.strictObject({
  roles: key(names.min(1), 'the caller has one of these roles', { examples: [['editor', 'admin']] }),
  when: key(z.union([z.string(), z.boolean()]), 'this policy is true', {
    examples: ['@record.owner = @request.auth.id'],
  }),
  message: key(
    z.string().min(1).max(200),
    'the reason, for a caller who may read the record and whom this rule alone could have allowed what it denies (403)',
    { examples: ['only drafts can be deleted'] },
  ),
});
const rules = z.union([policy, rule, z.array(rule)]).describe('a policy, or a list of rules of which one must hold');
/** Rules of a field or a belongs_to itself. */
export const MEMBER_RULE_KEYS = ['read', 'write'] as const;
const memberAccess = z.strictObject({
  read: key(
    rules,
    'rules for seeing the value; the record leaves it out for other callers; default: all readers of the record',
  ),
  write: key(
    rules,
    'rules for setting the value; `@next` is the record after the write; default: all writers of the record',
  ),
});
const ownAccess = key(
  memberAccess,
  'rules for seeing and setting the value, if they differ from the rules of the record',
  {
    examples: [{ read: [{ roles: ['hr'] }], write: [{ roles: ['hr'] }] }],
  },
);

const singleType = z.enum(SCALAR_TYPES.filter((type) => elementOf(type) === undefined));
const fieldType = z.enum([...singleType.options, 'list']);
const fieldObject = z.strictObject({
  type: fieldType.meta({ description: 'the type of the values', examples: ['string'] }),
  of: key(z.enum(ELEMENT_TYPES), 'list: the type of its elements; required', { examples: ['string'] }),
  paths: key(
    z.record(z.string(), z.enum(PART_TYPES)),
    'json: paths into its values and their types, for rules, filters and sorts: `@record.meta.size.w`; a value of another type there is absent',
    { examples: [{ color: 'string', 'size.w': 'int' }] },
  ),
  required: key(flag, 'every record has a value', FALSE_BY_DEFAULT),
  unique: key(
    unique,
    `no two records have the same value; any number of records may have none; ${OF_RELATION}`,
    UNIQUE,
  ),
  index: key(flag, 'makes an index, for filters and for lists whose policies compare the field', FALSE_BY_DEFAULT),
  search: key(
    flag,
    'string: `matches` finds it whatever the letter case and the accents; a folded copy is stored beside it, with a trigram ' +
      'index where the database has `pg_trgm`',
    FALSE_BY_DEFAULT,
  ),
  lower: key(
    flag,
    'string: values are stored in lower case, as the addresses of users are, and the filter of a list takes either case',
    FALSE_BY_DEFAULT,
  ),
  default: key(
    z.union([scalar, z.array(z.unknown()), z.record(z.string(), z.unknown())]),
    'the value of a new record that gives none: a value of the type, `@now`, `@today`, or `@request.auth.<name>`',
    {
      examples: ['draft', '@now'],
    },
  ),
  enum: key(z.array(z.union([z.string(), z.number()])).min(1), 'the only values allowed (string, int, float)', {
    examples: [['draft', 'published']],
  }),
  transitions: key(
    z.record(z.string(), z.array(z.union([z.string(), z.number()]))),
    'enum: the values that an update may put in place of each one; a value without an entry stays',
    { examples: [{ applied: ['screening', 'rejected'], screening: ['offer', 'rejected'] }] },
  ),
  min: key(
    bound,
    'string: the least number of characters; list: of elements; numbers, dates and times: the least value',
    {
      examples: [1],
    },
  ),
  max: key(
    bound,
    'string: the greatest number of characters; list: of elements; numbers, dates and times: the greatest value',
    {
      examples: [200],
    },
  ),
  precision: key(z.int().min(1).max(38), 'decimal: the number of digits; required', { examples: [12] }),
  scale: key(z.int().min(0).max(38), 'decimal: the digits after the point, at most `precision`; required', {
    examples: [2],
  }),
  column: key(z.string(), 'the column of the table; default: the name of the field', { examples: ['Total Amount'] }),
  stored_as: key(
    z.enum(STORED_AS),
    'the type of the column in a table with `managed: false`, where it is not the one of the field; `bylaw introspect` writes it',
    { examples: ['timestamp'] },
  ),
  read_only: key(flag, READ_ONLY, FALSE_BY_DEFAULT),
  was: key(name, OLD_NAME, { examples: ['headline'] }),
  access: ownAccess,
});
const field = z.union([fieldType, fieldObject]).describe('a type, or a mapping with a type');

const target = z.string().meta({ description: 'the collection at the other end', examples: ['users'] });
const belongsTo = z.strictObject({
  kind: z.literal('belongs_to').describe('the record holds the id of one record of the other collection'),
  collection: target,
  required: key(flag, 'every record has one', FALSE_BY_DEFAULT),
  unique: key(unique, `no two records point at the same record; ${OF_RELATION}`, UNIQUE),
  on_delete: key(
    z.enum(ON_DELETE_WORDS),
    'when the other record is deleted: `cascade` deletes this one, `restrict` rejects the deletion, `set_null` clears ' +
      'the reference; default: `restrict` if required, otherwise `set_null`',
    { examples: ['cascade'] },
  ),
  default: key(
    z.string(),
    'the reference of a new record that gives none: `@request.auth.id`, or a reference of the caller',
    {
      examples: ['@request.auth.id'],
    },
  ),
  column: key(z.string(), 'the column of the table; default: the name of the relation and `_id`', {
    examples: ['cust_no'],
  }),
  references: key(z.string(), 'the unique field of the other collection whose values the column has; default: the id', {
    examples: ['code'],
  }),
  fields: key(
    z.array(z.string()).min(2),
    'the members of this collection that hold the key of the other one, where that has several members, in its order',
    { examples: [['order', 'line_no']] },
  ),
  read_only: key(flag, READ_ONLY, FALSE_BY_DEFAULT),
  was: key(name, OLD_NAME, { examples: ['author'] }),
  access: ownAccess,
});
const via = z.string().meta({
  description: 'the belongs_to of the other collection that points here',
  examples: ['document'],
});
const relation = z.discriminatedUnion('kind', [
  belongsTo,
  z.strictObject({
    kind: z
      .literal('has_one')
      .describe('at most one record of the other collection points here; makes its belongs_to unique'),
    collection: target,
    via,
  }),
  z.strictObject({
    kind: z.literal('has_many').describe('any number of records of the other collection point here'),
    collection: target,
    via,
  }),
  z.strictObject({
    kind: z.literal('many_to_many').describe('any number of records on either side, linked by a table of its own'),
    collection: target,
    was: key(name, OLD_TABLE, { examples: ['labels'] }),
  }),
]);

/** `view` is `list` and `read`. */
export const RULE_KEYS = ['view', ...RULED_ACTIONS] as const;
const RULE_ABOUT: Readonly<Record<(typeof RULE_KEYS)[number], string>> = {
  view: '`list` and `read` in one',
  list: 'the callers who find the record in lists, queries, aggregates and feeds; others get a list without it',
  read: 'the callers who read the record by its id, in `expand` and after a write, and may refer to it; for others it does not exist (404)',
  create: 'the callers who may create the record; `@record` is the record as it would be stored',
  update:
    'who may update the record: the rule holds before the write and after it, and one that names `@next` sees both; others get 403, or 404 ' +
    'if they do not read it',
  delete: 'the callers who may delete the record; others get 403, or 404 if they do not read it',
  restore: 'with `soft_delete`: the callers who find the deleted record, and bring it back',
};
const access = z.strictObject(Object.fromEntries(RULE_KEYS.map((name) => [name, key(rules, RULE_ABOUT[name])])));

const checkShape = z.strictObject({
  when: z.union([z.string(), z.boolean()]).meta({
    description:
      'a policy about `@next`, the record that the write makes; one that is unknown, such as by a value that is absent, passes',
    examples: ['@next.starts_at < @next.ends_at'],
  }),
  message: z
    .string()
    .min(1)
    .max(200)
    .meta({
      description: 'the reason, for the caller whose write is rejected',
      examples: ['ends before it starts'],
    }),
  fields: key(names.min(1), 'the fields and relations that the error is about; default: the record as a whole', {
    examples: [['starts_at', 'ends_at']],
  }),
});

const tenantKey = z.strictObject({
  by: z.string().meta({
    description: 'a required belongs_to to a collection with `distribute: reference`: the tenant of each record',
    examples: ['team'],
  }),
  lists: key(
    z.enum(['routed', 'filtered']),
    '`routed`: the rules prove that every request meets one tenant; `filtered`: a list needs a filter on the tenant',
    { default: 'routed', examples: ['filtered'] },
  ),
});
const distributeShape = z.union([z.literal('reference'), tenantKey]);

const KEY_TYPES = Object.keys(KEYS) as readonly KeyKind[];
const keyShape = z.strictObject({
  type: key(z.enum(KEY_TYPES), 'the type of the ids: a JSON number of an `int`, else a string', {
    default: 'uuid',
    examples: ['int'],
  }),
  column: key(z.string(), 'the column of the table', { default: 'id', examples: ['order_no'] }),
  made_by: key(
    z.enum(['service', 'database', 'caller']),
    'the maker of the ids of new records: the service (`uuid` alone), the database (an identity column, a sequence or a ' +
      'DEFAULT), or the `id` in the body of a create; default: `service` for uuid, `database` for int, `caller` for string',
    { examples: ['database'] },
  ),
});

const noOverlap = z.strictObject({
  on: z
    .array(z.string())
    .min(1)
    .meta({ description: 'the members that make a place: belongs_to, or fields', examples: [['room']] }),
  from: z
    .string()
    .meta({ description: 'the field of the start: a datetime, a date or an int', examples: ['starts_at'] }),
  to: z.string().meta({
    description: 'the field of the end, which the period does not include; null: it never ends',
    examples: ['ends_at'],
  }),
  where: key(z.string(), 'among records that meet this condition, as of `unique`', {
    examples: ['@record.cancelled = false'],
  }),
});

const collection = z.strictObject({
  id: key(
    z.union([keyShape, names.min(2)]),
    'the ids of its records; default: UUIDs that the service makes. A table with `managed: false` may have a key of several ' +
      'members: an id is their values, such as `8812~3`',
    { examples: [{ type: 'int', column: 'order_no', made_by: 'database' }, ['order', 'line_no']] },
  ),
  fields: key(z.record(z.string(), field), 'values of its records, by name'),
  relations: key(z.record(z.string(), relation), 'references between records, by name'),
  index: key(names.min(1), 'fields that it has by itself and that get an index, as `index: true` does for others', {
    examples: [['updated_at']],
  }),
  no_overlap: key(
    z.union([noOverlap, z.array(noOverlap).min(1)]),
    'no two records of one place overlap in time: bookings that race for a room give one; a list has several places',
    { examples: [{ on: ['room'], from: 'starts_at', to: 'ends_at' }] },
  ),
  access: key(access, 'the rules of each action; an action without a rule is denied to everyone'),
  checks: key(
    z.record(name, checkShape),
    'conditions on every record that a request creates or updates, by name; they hold for every caller, after the rules',
    { examples: [{ in_order: { when: '@next.a < @next.b', message: 'a is not before b', fields: ['a', 'b'] } }] },
  ),
  distribute: key(
    distributeShape,
    'spreads the records over machines: `reference` has all of them on each, a mapping keeps the records of one tenant together',
    { examples: ['reference', { by: 'team' }] },
  ),
  timestamps: key(
    z.union([
      z.literal('none'),
      z.strictObject({
        created_at: key(z.string(), 'the column of `created_at`; without it, records have none', {
          examples: ['made_on'],
        }),
        updated_at: key(z.string(), 'the column of `updated_at`; without it, records have none', {
          examples: ['changed_on'],
        }),
      }),
    ]),
    'the columns of the times that a record has, or `none`; default: `created_at` and `updated_at`, in columns of their names',
    { examples: ['none', { created_at: 'made_on' }] },
  ),
  table: key(
    z.string(),
    'the table of the database, or `schema.table` if it is not in the current schema; default: the name of the collection',
    { examples: ['T_ORDERS', 'shop.orders'] },
  ),
  managed: key(
    z.boolean(),
    'false: another program owns the table or view; no migration changes it, and `bylaw migrate plan` prints what its owner may change',
    { default: true },
  ),
  errors: key(
    z.literal('shown'),
    'shows callers the messages of errors that the triggers of the table raise with the SQLSTATE P0001; without it, only that there was one',
  ),
  changes: key(
    z.union([
      flag,
      z.strictObject({
        retention: key(duration, 'how long a subscriber that was away can continue where it stopped, at most 30d', {
          default: DEFAULT_RETENTION,
          examples: ['1d'],
        }),
      }),
    ]),
    'opens the feed of its changes, which sends subscribers what their own lists would show',
    { default: false, examples: [true, { retention: '1d' }] },
  ),
  history: key(
    z.union([
      z.boolean(),
      z.strictObject({
        keep: key(duration, 'how long an entry stays; without it, for ever', { examples: ['400d'] }),
      }),
    ]),
    'keeps who changed a record, when, and what was before and after',
    { default: false, examples: [true, { keep: '400d' }] },
  ),
  soft_delete: key(z.boolean(), 'keeps deleted records, which callers with a rule for `restore` find and bring back', {
    default: false,
    examples: [true],
  }),
  title: key(
    name,
    'the string field that names a record to people; default: the email of users, else the first string field',
    { examples: ['headline'] },
  ),
  was: key(name, OLD_TABLE, { examples: ['articles'] }),
});

const role = z.strictObject({
  assigns: key(names, 'roles that a user with this role may give and take; `admin` assigns all', {
    examples: [['editor']],
  }),
  includes: key(names, 'roles that a user with this role has as well', { examples: [['member']] }),
});
const provider = z.strictObject({
  title: key(z.string().min(1).max(100), 'what users are shown; without it, the title of the preset, or the name', {
    examples: ['Our company'],
  }),
  issuer: key(
    z.string(),
    'the issuer of an OpenID provider, an https URL; this or `preset`; beside a preset, the address of an own server, or the tenant',
    { examples: ['https://id.example.com'] },
  ),
  preset: key(z.string(), 'a provider that is known by name; this or `issuer`', { examples: ['google'] }),
  client_id: z.string().meta({ description: 'the id that the provider gave to the service', examples: ['bylaw'] }),
  client_secret: key(
    z.string(),
    'the secret that belongs to it; for `apple`, the private key in PEM; this or `client_secret_env`',
  ),
  client_secret_env: key(z.string(), 'the environment variable that holds the secret', { examples: ['GOOGLE_SECRET'] }),
  scopes: key(names, 'the scopes that the service requests from the provider; a preset has its own', {
    default: DEFAULT_SCOPES,
    examples: [['openid', 'email']],
  }),
  client_auth: key(
    z.enum(['basic', 'post']),
    'how the secret is sent: in a header or in the body; a preset has its own',
    {
      default: DEFAULT_CLIENT_AUTH,
      examples: ['post'],
    },
  ),
  team_id: key(z.string().min(1), 'for `apple`: the id of the team', { examples: ['ABCDE12345'] }),
  key_id: key(z.string().min(1), 'for `apple`: the id of the private key', { examples: ['FGHIJ67890'] }),
});

const webhook = z.strictObject({
  collection: key(name, 'the collection whose changes are sent; without it, the one of this name', {
    examples: ['orders'],
  }),
  url: z
    .string()
    .meta({ description: 'the address that each event is posted to', examples: ['https://example.com/hooks/orders'] }),
  events: key(z.array(z.enum(WEBHOOK_EVENTS)).min(1), 'the events that are sent', {
    default: [...WEBHOOK_EVENTS],
    examples: [['enter']],
  }),
  filter: key(
    z.string(),
    'an expression over the record, as in queries; without it, all records that the key may list',
    {
      examples: ['status = "paid"'],
    },
  ),
  as: z.string().meta({
    description: 'whose view is sent: the id of an API key, or the name of one that `bylaw api-key create` made',
    examples: ['orders-hook'],
  }),
  secret_env: z.string().meta({
    description:
      'the environment variable with the secret that signs, `whsec_` and 24 to 64 bytes in base64; several are separated by spaces',
    examples: ['ORDERS_HOOK_SECRET'],
  }),
});

const lifetime = (of: keyof typeof DEFAULT_SESSIONS, description: string, example: string) =>
  key(duration, description, { default: DEFAULT_SESSIONS[of], examples: [example] });
const sessions = z.strictObject({
  access: lifetime('access', 'how long an access token is valid', '5m'),
  refresh: lifetime('refresh', 'how long a session lasts at most', '90d'),
  idle: lifetime('idle', 'how long a session lasts without a refresh', '7d'),
});

const mailUrl = (of: string, path: string) =>
  key(z.string(), `where ${of} leads, with \`{token}\` in it; without it, to a page of the service`, {
    examples: [`https://app.example.com/${path}?token={token}`],
  });
const mail = z.strictObject({
  from: key(z.string(), 'the sender of mails; MAIL_FROM counts before it', { examples: ['App <hello@example.com>'] }),
  reply_to: key(z.string(), 'the address for replies', { examples: ['help@example.com'] }),
  app_name: key(
    z.string(),
    'the name of the application in mails, on its pages and in its API document; without it, mails name the host',
    {
      examples: ['App'],
    },
  ),
  logo: key(z.string(), 'the picture on the pages of accounts: a path, or an https address', {
    examples: ['/logo.svg'],
  }),
  languages: key(names, 'the languages of mails; the first is the default', {
    default: ['en'],
    examples: [['en', 'de']],
  }),
  templates: key(z.string().min(1), 'the folder of templates, relative to this file', { examples: ['mail/'] }),
  notices: key(
    z.boolean(),
    'a sign-in from an unknown address and device is mailed to its user, where SMTP_URL is set',
    {
      default: true,
      examples: [false],
    },
  ),
  verify_url: mailUrl('the link of a mail that verifies an address', 'verify'),
  reset_url: mailUrl('the link of a mail that sets a password', 'reset'),
  invite_url: mailUrl('the link of an invitation', 'invite'),
  login_url: mailUrl('the link of a mail that signs in', 'login'),
  email_change_url: mailUrl('the link of a mail that changes the address', 'email'),
  otp: key(z.boolean(), 'codes and links that sign in are mailed on request', { default: false, examples: [true] }),
});

const audit = z.strictObject({
  keep: key(duration, 'how long an event stays in the audit trail; without it, for ever', { examples: ['400d'] }),
});

const attempts = (of: Exclude<keyof typeof DEFAULT_LIMITS, 'body' | 'answer'>, description: string) =>
  key(rate, description, { default: DEFAULT_LIMITS[of], examples: ['5 in 1h'] });
const limits = z.strictObject({
  login_account: attempts('login_account', 'failed logins for one account'),
  login_address: attempts('login_address', 'failed logins from one address'),
  register: attempts('register', 'registrations from one address, and for one email address'),
  refresh: attempts('refresh', 'refreshes from one address'),
  reset: attempts(
    'reset',
    'mails that are asked for, from one address and for one account; and wrong tokens of mails and of first steps from one address',
  ),
  guest: attempts('guest', 'sessions of guests from one address'),
  body: key(size, `the size of a JSON body, at most ${MOST_BODY}`, {
    default: DEFAULT_LIMITS.body,
    examples: ['1MiB'],
  }),
  answer: key(size, 'the size of an answer of records; a larger one is `query_too_expensive`', {
    default: DEFAULT_LIMITS.answer,
    examples: ['4MiB'],
  }),
  query_time: key(duration, 'how long the database may work on a read; longer ones are `query_too_expensive`', {
    default: DEFAULT_LIMITS.query_time,
    examples: ['5s'],
  }),
  feeds: key(
    z.strictObject({
      user: key(z.int().min(1), 'of one user, key or guest session, over all workers of a node', {
        default: DEFAULT_FEED_STREAMS,
        examples: [50],
      }),
      node: key(
        z.int().min(1),
        'of all workers of a node; default, and at most: three quarters of `BYLAW_MAX_CONNECTIONS`',
        {
          examples: [1000],
        },
      ),
    }),
    'the open streams of changes, each feed of a stream counted',
  ),
  write_time: key(duration, 'how long a batch or another transaction may take; longer ones are `unavailable`', {
    default: DEFAULT_LIMITS.write_time,
    examples: ['10s'],
  }),
});

const lengths = (description: string) =>
  key(z.array(z.int().min(1).max(10_000)), description, {
    default: DEFAULT_UPLOADS.image_lengths,
    examples: [[160, 640]],
  });
const images = z.strictObject({
  widths: lengths('the widths in which images can be requested, in pixels'),
  heights: lengths('the heights in which images can be requested, in pixels'),
  max_pixels: key(z.int().min(1), 'images with more pixels are not resized', {
    default: DEFAULT_UPLOADS.max_pixels,
    examples: [12_000_000],
  }),
});
const uploads = z.strictObject({
  max_size: key(size, 'the size of a file', { default: DEFAULT_UPLOADS.max_size, examples: ['25MiB'] }),
  types: key(names, 'the media types that are accepted; without it, all are', {
    examples: [['image/*', 'application/pdf']],
  }),
  quota: key(
    z.record(z.string(), size),
    'the bytes that a user may store, by role; `default` is for everyone, and the largest of a user counts; without it, there is no limit',
    { examples: [{ default: '500MiB', admin: '5GiB' }] },
  ),
  images: key(images, 'the sizes of images'),
});

const statement = z.strictObject({
  never: key(z.string(), 'no caller, request and record do this; this or `always`', {
    examples: ['guest can read documents where @record.status != "published"'],
  }),
  always: key(z.string(), 'every caller may do this, for every request and record; this or `never`', {
    examples: ['editor can update documents', 'who can update documents can read them'],
  }),
  why: key(z.string(), 'the reason, which is printed where the statement does not hold', {
    examples: ['drafts are confidential'],
  }),
});

/** The flags of `bylaw import`, for files that another program wrote. */
const seedFile = z.strictObject({
  ref: key(
    z.record(z.string(), z.string().min(1)),
    'a unique field for each relation whose records the file names by it, and not by their ids',
    { examples: [{ airline: 'carrier' }] },
  ),
  map: key(
    z.record(z.string(), z.string().min(1).nullable()),
    'the field of each name in the file; null leaves the values out',
    { examples: [{ 'tail no': 'plane', year: null }] },
  ),
  null_as: key(z.string().min(1), 'csv: a cell without quotes that is null, as the empty one is', { examples: ['NA'] }),
  date_format: key(z.string(), 'the form of dates; times are in UTC', { examples: ['DD.MM.YYYY'] }),
  delimiter: key(z.string(), 'csv: the character between cells, or `tab`', { default: ',', examples: [';'] }),
  encoding: key(z.string(), 'the encoding of the file; UTF-16 is known by its first bytes', {
    default: 'utf-8',
    examples: ['windows-1252'],
  }),
});
const seedFolder = z.string().min(1);
const seed = z.strictObject({
  folder: seedFolder.meta({ description: 'the folder, beside this file', examples: ['./seed'] }),
  files: key(z.record(z.string(), seedFile), 'the form of files, by their names in the folder', {
    examples: [{ 'flights.csv': { delimiter: ';' } }],
  }),
});

export const schemaShape = z.strictObject({
  $schema: key(z.string(), 'the JSON Schema of this file, for editors'),
  roles: key(
    z.union([names, z.record(z.string(), role.nullable())]),
    'a list of roles, or a mapping from names to the permissions of the role',
    {
      examples: [['member', 'editor']],
    },
  ),
  register: key(
    z.strictObject({
      roles: key(names, 'the roles of a user who registers', { default: [], examples: [['member']] }),
      open: key(z.boolean(), 'anyone may register; without it, an admin adds users', {
        default: true,
        examples: [false],
      }),
      verify: key(z.boolean(), 'a login needs a verified address; registration mails a token', {
        default: false,
        examples: [true],
      }),
    }),
    'who may register, and the roles that registration gives',
  ),
  guests: key(z.boolean(), 'callers who are not signed in are admitted, with the role `guest`', {
    default: false,
    examples: [true],
  }),
  second_factor: key(
    z.strictObject({
      required_for: key(
        names,
        'a session without a second factor has none of these roles, and none that includes one',
        {
          default: [],
          examples: [['admin']],
        },
      ),
    }),
    'who needs a second factor',
  ),
  passkeys: key(
    z.strictObject({
      rp_id: key(z.string().min(1), 'the domain of the passkeys; default: that of the base URL', {
        examples: ['example.com'],
      }),
      rp_name: key(z.string().min(1), 'the name that authenticators show; default: the host of the base URL', {
        examples: ['Example'],
      }),
      origins: key(names.min(1), 'the pages that use them; default: that of the base URL', {
        examples: [['https://app.example.com']],
      }),
    }),
    'the site that passkeys belong to',
  ),
  cookie: key(
    z.strictObject({
      same_site: key(
        z.enum(['lax', 'none']),
        'for `none`, browsers send the cookie from pages of other sites, too; it needs https and `origins`',
        { default: 'lax', examples: ['none'] },
      ),
      domain: key(
        z.string().min(1),
        'a domain all of whose hosts get the session cookie; default: the host of the base URL alone',
        { examples: ['example.com'] },
      ),
    }),
    'the session cookie',
  ),
  studio: key(
    z.strictObject({
      path: key(z.string(), 'the path of the pages', {
        default: '/studio',
        examples: ['/admin'],
      }),
      origins: key(names.min(1), 'the origins at which they answer; default: each that leads to the service', {
        examples: [['https://admin.example.com']],
      }),
    }),
    'the pages for people',
  ),
  conditions: key(z.record(z.string(), policy), 'named conditions, by their name and typed parameters', {
    examples: [{ 'is_member(team: teams)': 'any(team.memberships as m, m.user = @request.auth.id)' }],
  }),
  collections: key(z.record(z.string(), collection), 'the collections, by name'),
  prove: key(z.array(statement), 'statements about all rules together, which `bylaw prove` decides', {
    examples: [[{ never: 'guest can delete documents' }]],
  }),
  oauth: key(z.record(z.string(), provider), 'providers of sign-in, by name'),
  webhooks: key(z.record(z.string(), webhook), 'addresses that are sent the changes of records, by name'),
  sessions: key(sessions, 'how long sessions last'),
  mail: key(mail, 'mails of accounts'),
  audit: key(audit, 'the trail of events of accounts'),
  limits: key(limits, 'limits against guessing and flooding'),
  uploads: key(uploads, 'limits of uploads'),
  timezone: key(z.string(), 'the time zone of `@today`, as IANA names it', {
    default: UTC,
    examples: ['Europe/Amsterdam'],
  }),
  origins: key(names, 'origins of web pages that may call the service with credentials', {
    default: [],
    examples: [['https://app.example']],
  }),
  redirects: key(
    names,
    'addresses of native apps that a sign-in may return to: a private scheme, or `http://127.0.0.1` with any port',
    { default: [], examples: [['com.example.app://']] },
  ),
  proxies: key(names, 'addresses or CIDR ranges of proxies, whose X-Forwarded-For is believed', {
    default: [],
    examples: [['10.0.0.0/8']],
  }),
  seed: key(
    z.union([seedFolder, seed]),
    'a folder beside this file with a file for each collection (`posts.ndjson`, `.json` or `.csv`), which `bylaw dev` loads into ' +
      'collections that are empty; `bylaw serve` never does. A mapping also says how files of other programs are read',
    { examples: ['./seed', { folder: './seed', files: { 'flights.csv': { null_as: 'NA' } } }] },
  ),
});

export type SchemaFile = z.infer<typeof schemaShape>;
export type CollectionShape = z.infer<typeof collection>;
export type FieldShape = z.infer<typeof fieldObject>;
export type RelationShape = z.infer<typeof relation>;
export type BelongsToShape = z.infer<typeof belongsTo>;
export type CheckShape = z.infer<typeof checkShape>;
export type SeedFormShape = z.infer<typeof seedFile>;
export type StatementShape = z.infer<typeof statement>;
export type RuleShape = z.infer<typeof rule>;
export type RulesShape = z.infer<typeof rules>;

/** JSON Schema (draft 2020-12) of the format, for editors. */
export function schemaOfFormat(): Record<string, unknown> {
  return { title: 'bylaw schema', ...z.toJSONSchema(schemaShape, { io: 'input' }) };
}

export const formatSchema = (): string => `${JSON.stringify(schemaOfFormat(), null, 2)}\n`;
