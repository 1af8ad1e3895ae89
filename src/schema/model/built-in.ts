/** `users` and `files` before the schema file extends them. */
import { type Action, SESSION_FACTS, STAMPS } from '../../policy/types.ts';
import type { RuleShape } from '../file/shape.ts';
import type { Collection, Field, Relation } from './model.ts';

type BuiltInField = Partial<Field> & Pick<Field, 'name' | 'type'>;

export function fieldOf(given: BuiltInField): Field {
  const { name: column, required: needed = false } = given;
  return { required: false, needed, unique: false, index: false, readOnly: false, column, ...given };
}

/**
 * Fields of every record. Queries often ask for the newest first; its index grows at one end, so that it
 * costs a create little.
 */
const STAMP_FIELDS: readonly Field[] = STAMPS.map((name) =>
  fieldOf({
    name,
    type: 'datetime',
    required: true,
    readOnly: true,
    index: name === 'created_at',
    default: { kind: 'now' },
  }),
);

/** RFC 5321, 4.5.3.1.3, less the angle brackets. */
const EMAIL_LENGTH = 254;
const SHA256_LENGTH = 64;

const BUILT_IN_FIELDS: Readonly<Record<Collection['kind'], readonly Field[]>> = {
  plain: [],
  users: [
    fieldOf({ name: 'email', type: 'string', required: true, unique: true, max: EMAIL_LENGTH, readOnly: true }),
    fieldOf({
      name: 'email_verified',
      type: 'bool',
      required: true,
      readOnly: true,
      default: { kind: 'constant', value: false },
    }),
  ],
  files: [
    fieldOf({ name: 'name', type: 'string', required: true, min: 1, max: 255 }),
    fieldOf({ name: 'content_type', type: 'string', required: true, max: 255, readOnly: true }),
    fieldOf({ name: 'size', type: 'int', required: true, min: 0, readOnly: true }),
    fieldOf({ name: 'sha256', type: 'string', required: true, min: SHA256_LENGTH, max: SHA256_LENGTH, readOnly: true }),
  ],
};

const OWNER: Relation = {
  kind: 'belongs_to',
  name: 'owner',
  collection: 'users',
  required: true,
  needed: true,
  column: 'owner_id',
  onDelete: 'restrict',
  unique: false,
  default: { kind: 'auth', name: 'id' },
  readOnly: true,
};

/**
 * Names that a schema file cannot use. `roles` and `disabled` are columns; `password` would be
 * mistaken for one; `@request.auth` has facts of the session beside the fields of the user.
 */
const TAKEN: Readonly<Record<Collection['kind'], readonly string[]>> = {
  plain: [],
  users: ['roles', 'password', 'disabled', ...SESSION_FACTS.map(([name]) => name)],
  files: ['file', 'content'],
};

const ITSELF: readonly RuleShape[] = [{ when: '@record.id = @request.auth.id' }];
const OWNED_BY_CALLER: readonly RuleShape[] = [{ when: '@record.owner = @request.auth.id' }];
const SEEN: readonly RuleShape[] = [{ roles: ['admin'] }, ...ITSELF];

type BuiltInRules = Readonly<Partial<Record<Action, readonly RuleShape[]>>>;
const ACCESS: Readonly<Record<Collection['kind'], BuiltInRules>> = {
  plain: {},
  users: { list: SEEN, read: SEEN, update: ITSELF },
  files: {
    list: OWNED_BY_CALLER,
    read: OWNED_BY_CALLER,
    create: OWNED_BY_CALLER,
    update: OWNED_BY_CALLER,
    delete: OWNED_BY_CALLER,
  },
};

export const kindOf = (collection: string): Collection['kind'] =>
  collection === 'users' || collection === 'files' ? collection : 'plain';
export const builtInFields = (kind: Collection['kind']): readonly Field[] => [
  ...STAMP_FIELDS,
  ...BUILT_IN_FIELDS[kind],
];
export const builtInRelations = (kind: Collection['kind']): readonly Relation[] => (kind === 'files' ? [OWNER] : []);
export const takenNames = (kind: Collection['kind']): readonly string[] => TAKEN[kind];
export const builtInAccess = (kind: Collection['kind']): BuiltInRules => ACCESS[kind];
