/** The shape of a schema file, and nothing about its meaning. `bylaw.schema.json` is generated from it. */
import { z } from 'zod';
import { ACTIONS } from '../policy/types.ts';
import { SCALAR_TYPES } from './fields/index.ts';
import { DURATION, RATE, SIZE } from './units.ts';

/** Of collections, fields, relations, roles and OAuth providers. */
export const NAME = /^[A-Za-z][A-Za-z0-9_]{0,47}$/;
const ON_DELETE = ['cascade', 'restrict', 'set_null'] as const;

const name = z.string().regex(NAME);
const names = z.array(z.string());
const duration = z.string().regex(DURATION).describe('a duration: 90s, 15m, 24h, 30d, 2w');
const size = z.union([z.int().min(1), z.string().regex(SIZE)]).describe('bytes: 1048576, 512KiB, 100MiB');
const rate = z.string().regex(RATE).describe('attempts in a time: 10 in 15m');
const scalar = z.union([z.string(), z.number(), z.boolean()]);
const bound = z.union([z.number(), z.string()]);

const fieldType = z.enum(SCALAR_TYPES as [string, ...string[]]);
const fieldObject = z.strictObject({
  type: fieldType,
  required: z.boolean().optional().describe('not null'),
  unique: z.boolean().optional(),
  index: z.boolean().optional(),
  default: scalar.optional().describe('a value of the type; "@now" for a datetime'),
  enum: z
    .array(z.union([z.string(), z.number()]))
    .min(1)
    .optional(),
  min: bound.optional().describe('string: characters; int, float, datetime: the least value'),
  max: bound.optional().describe('string: characters; int, float, datetime: the greatest value'),
  was: name.optional().describe('the former name, when the field is renamed'),
});
const field = z.union([fieldType, fieldObject]).describe('a type, or an object with a type');

const belongsTo = z.strictObject({
  kind: z.literal('belongs_to'),
  collection: z.string(),
  required: z.boolean().optional().describe('not null'),
  unique: z.boolean().optional(),
  on_delete: z.enum(ON_DELETE).optional().describe('default: restrict when required, else set_null'),
  default: z.string().optional().describe('"@request.auth.id", or another reference that the caller has'),
  was: name.optional().describe('the former name, when the relation is renamed'),
});
const byVia = { collection: z.string(), via: z.string().describe('the belongs_to of the other collection') };
const relation = z.discriminatedUnion('kind', [
  belongsTo,
  z.strictObject({ kind: z.literal('has_one'), ...byVia }),
  z.strictObject({ kind: z.literal('has_many'), ...byVia }),
  z.strictObject({ kind: z.literal('many_to_many'), collection: z.string() }),
]);

const policy = z.union([z.string(), z.boolean()]).describe('a policy expression; true allows always');
const rule = z.strictObject({ roles: names.min(1).optional(), when: policy.optional() });
const rules = z.union([policy, rule, z.array(rule)]).describe('a policy, or a list of rules of which one must hold');
/** `view` is `list` and `read`. */
export const RULE_KEYS = ['view', ...ACTIONS] as const;
const access = z.strictObject(Object.fromEntries(RULE_KEYS.map((key) => [key, rules.optional()])));

const collection = z.strictObject({
  fields: z.record(z.string(), field).optional(),
  relations: z.record(z.string(), relation).optional(),
  access: access.optional().describe('an action without a rule is denied'),
});

const role = z.strictObject({
  assigns: names.optional().describe('roles that a bearer of this one may give and take'),
  includes: names.optional().describe('roles that a bearer of this one has as well'),
});
const provider = z.strictObject({
  issuer: z.string().optional(),
  preset: z.string().optional(),
  client_id: z.string(),
  client_secret: z.string().optional(),
  client_secret_env: z.string().optional().describe('the environment variable that holds the secret'),
  scopes: names.optional(),
  client_auth: z.enum(['basic', 'post']).optional(),
});

export const schemaShape = z.strictObject({
  $schema: z.string().optional(),
  roles: z.union([names, z.record(z.string(), role.nullable())]).optional(),
  register: z.strictObject({ roles: names.optional().describe('what a new user gets') }).optional(),
  collections: z.record(z.string(), collection).optional(),
  oauth: z.record(z.string(), provider).optional(),
  sessions: z
    .strictObject({ access: duration.optional(), refresh: duration.optional(), idle: duration.optional() })
    .optional(),
  limits: z
    .strictObject({
      login_account: rate.optional(),
      login_address: rate.optional(),
      register: rate.optional(),
      refresh: rate.optional(),
      reset: rate.optional(),
      body: size.optional(),
    })
    .optional(),
  uploads: z
    .strictObject({
      max_size: size.optional(),
      types: names.optional().describe('media types such as image/png or image/*'),
      quota: z.record(z.string(), size).optional().describe('bytes by role; "default" for everyone'),
      images: z
        .strictObject({
          widths: z.array(z.int().min(1).max(10_000)).optional(),
          heights: z.array(z.int().min(1).max(10_000)).optional(),
          max_pixels: z.int().min(1).optional(),
        })
        .optional(),
    })
    .optional(),
  origins: names.optional().describe('exact origins such as https://app.example'),
  proxies: names.optional().describe('addresses or CIDR ranges whose X-Forwarded-For counts'),
});

export type SchemaFile = z.infer<typeof schemaShape>;
export type CollectionShape = z.infer<typeof collection>;
export type FieldShape = z.infer<typeof fieldObject>;
export type RelationShape = z.infer<typeof relation>;
export type BelongsToShape = z.infer<typeof belongsTo>;
export type RuleShape = z.infer<typeof rule>;
export type RulesShape = z.infer<typeof rules>;

/** JSON Schema (draft 2020-12) of the format, for editors. */
export function schemaOfFormat(): Record<string, unknown> {
  return { title: 'bylaw schema', ...z.toJSONSchema(schemaShape, { io: 'input' }) };
}

export const formatSchema = (): string => `${JSON.stringify(schemaOfFormat(), null, 2)}\n`;
