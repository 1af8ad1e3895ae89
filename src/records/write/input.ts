/** The `data` of a write, checked against its collection: every error at once, each at its place. */
import { hintOf, nearest } from '../../../grammar/suggest.ts';
import { memoizedBy } from '../../memoized.ts';
import type { Permit } from '../../policy/access.ts';
import { fold, foldedColumn } from '../../policy/fold.ts';
import { type ReferencedColumn, STAMPS } from '../../policy/types.ts';
import { dayOf, type Scalar } from '../../policy/values.ts';
import {
  addError,
  type ErrorDetail,
  echo,
  MAX_SHOWN_ERRORS,
  MAX_SUGGESTIONS,
  pointerPart,
  UNSHOWN_ERROR,
} from '../../problem.ts';
import { DENIED, Refusal } from '../../refusal.ts';
import { FIELD_KINDS, keyKindIn, readNewId } from '../../schema/fields/index.ts';
import { idOfValues } from '../../schema/model/composite-key.ts';
import {
  type BelongsTo,
  type Collection,
  type Default,
  type Field,
  type HasOne,
  type ManyToMany,
  madeBy,
  RESERVED_IDS,
  type Schema,
  tenantKeyOf,
} from '../../schema/model/model.ts';
import type { Place, SqlType } from '../../sql.ts';
import type { AccessContext } from '../access-context.ts';
import { recordKeyIn } from '../record-key.ts';
import { type RolesChange, readRolesChange } from './role-changes.ts';

export interface ColumnValue {
  readonly column: string;
  readonly type: SqlType;
  /** In a form, a place for the value. */
  readonly value: Scalar | readonly string[] | Place<never> | null;
  /** The type of the column, if no value of `type` can be assigned to it. */
  readonly castTo?: string | undefined;
  /** Given if the column holds another value of the related record than its id. */
  readonly references?: ReferencedColumn | undefined;
  /** Other columns make the value: no statement assigns it. */
  readonly isMade?: true;
}
/** An id in the body; the caller must be able to read its record. */
export interface ReferencedId {
  readonly collection: string;
  readonly id: string;
  readonly pointer: string;
}
export interface HasOneSetting {
  readonly relation: HasOne;
  readonly id: string | null;
  readonly pointer: string;
}
/** `set` replaces the members. `add` and `remove` have no id in common. */
export interface LinkChange extends RolesChange {
  readonly relation: ManyToMany;
}
export interface Input {
  /** The id that a new record gets from its creator, where callers make the ids of the collection. */
  readonly id: string | undefined;
  readonly values: readonly ColumnValue[];
  readonly hasOnes: readonly HasOneSetting[];
  readonly links: readonly LinkChange[];
  readonly roles: RolesChange | undefined;
  readonly references: readonly ReferencedId[];
  readonly errors: readonly ErrorDetail[];
}

/** The object under `data` of a write. */
export type Data = Readonly<Record<string, unknown>>;

export const isObject = (value: unknown): value is Data =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

const MAX_IDS = 1_000;

/** Values that the program sets on create, by the names of fields that callers cannot write. */
export type ServerValues = Readonly<Record<string, Scalar>>;

/** On create, omitted members get their default. */
export function readInput(schema: Schema, access: AccessContext, { mode, data, given = {} }: Write): Input {
  const reader = new InputReader({ schema, access, mode, given });
  reader.readAll(data);
  return reader;
}

type Mode = 'create' | 'update';
interface Write {
  readonly mode: Mode;
  readonly data: Data;
  /** The server gives these values on create. */
  readonly given?: ServerValues;
}

interface Reads {
  readonly schema: Schema;
  readonly access: AccessContext;
  readonly mode: Mode;
  readonly given: ServerValues;
}

class InputReader implements Input {
  id: string | undefined;
  values: ColumnValue[] = [];
  readonly hasOnes: HasOneSetting[] = [];
  readonly links: LinkChange[] = [];
  readonly references: ReferencedId[] = [];
  readonly errors: ErrorDetail[] = [];
  roles: RolesChange | undefined;
  readonly #schema: Schema;
  readonly #access: AccessContext;
  readonly #collection: Collection;
  readonly #mode: Mode;
  readonly #given: ServerValues;

  constructor({ schema, access, mode, given }: Reads) {
    this.#schema = schema;
    this.#access = access;
    this.#collection = access.collection;
    this.#mode = mode;
    this.#given = given;
  }

  report(pointer: string, code: string, detail: string): void {
    addError(this.errors, { pointer, code, detail });
  }

  readAll(data: Data): void {
    for (const [key, value] of Object.entries(data)) this.#readMember(key, value);
    if (this.#mode === 'create') this.#fillIn(data);
    for (const relation of this.#collection.relations.values())
      if (relation.kind === 'belongs_to' && relation.columns !== undefined) this.#readParts(relation, relation.columns);
    this.values = withFoldedCopies(this.#collection, this.values);
    // Sorted, so that equal sets of columns give one statement for any order of the body.
    this.values.sort((a, b) => (a.column < b.column ? -1 : 1));
  }

  #readMember(key: string, value: unknown): void {
    const field = this.#collection.fields.get(key);
    const relation = this.#collection.relations.get(key);
    const isRoles = key === 'roles' && this.#collection.kind === 'users';
    const pointer = `/data/${key}`;
    if (field === undefined && relation === undefined && !isRoles && key !== 'id') this.#unknown(key);
    else if (isRoles) this.#readRoles(value, pointer);
    else if (key === 'id' && this.#takesId) this.#readOwnId(value, pointer);
    else if (
      (key === 'id' && madeBy(this.#collection) !== 'caller') ||
      field?.readOnly ||
      (relation?.kind === 'belongs_to' && relation.readOnly)
    ) {
      const isEmail = key === 'email' && this.#collection.kind === 'users';
      const way = isEmail ? '; the user changes it by POST `/api/auth/email/change/request`' : '';
      this.report(pointer, 'read_only', `\`${key}\` is set by the server${way}`);
    } else if (key === 'id' || (this.#mode === 'update' && tenantKeyOf(this.#collection)?.by === key)) {
      this.report(pointer, 'read_only', `\`${key}\` is set on create and never changes`);
    } else if (field) this.#readField(field, value, pointer);
    else if (relation?.kind === 'belongs_to') this.#readReference(relation, value, pointer);
    else if (relation?.kind === 'has_one' && relation.readOnly) {
      this.report(
        pointer,
        'read_only',
        `\`${key}\` is a record of \`${relation.collection}\`, whose \`${relation.via}\` no request sets`,
      );
    } else if (relation?.kind === 'has_one') this.#readHasOne(relation, value, pointer);
    else if (relation?.kind === 'many_to_many') this.#readLinks(relation, value, pointer);
    else if (relation !== undefined) {
      const detail = `\`${key}\` is written from the other side: by \`${relation.via}\` of the records in \`${relation.collection}\``;
      this.report(pointer, 'read_only', detail);
    }
  }

  get #takesId(): boolean {
    return this.#mode === 'create' && madeBy(this.#collection) === 'caller';
  }

  #readOwnId(value: unknown, pointer: string): void {
    const read = value === null ? undefined : readNewId(this.#collection, value);
    if (read?.error) this.report(pointer, read.error.code, read.error.detail);
    else if (read !== undefined) this.id = String(read.value);
    else this.report(pointer, 'required', '`id` must have a value');
    if (this.id !== undefined && RESERVED_IDS.includes(this.id))
      this.report(
        pointer,
        'reserved',
        `\`/api/${this.#collection.name}/${this.id}\` is another address; choose another id`,
      );
  }

  /** Any number of these fit in a body, so the work for each stays small. */
  #unknown(key: string): void {
    if (this.errors.length >= MAX_SHOWN_ERRORS) return void this.errors.push(UNSHOWN_ERROR);
    const near = this.errors.length < MAX_SUGGESTIONS ? this.#nearest(key) : undefined;
    const detail = `\`${this.#collection.name}\` has no field \`${echo(key)}\`${hintOf(near)}`;
    this.report(`/data/${pointerPart(key)}`, 'unknown_field', detail);
  }

  #nearest(key: string): string | undefined {
    const writable = [...this.#collection.fields.values(), ...this.#collection.relations.values()];
    const names = writable.filter((member) => !('readOnly' in member && member.readOnly)).map(({ name }) => name);
    return key.endsWith('_id') && names.includes(key.slice(0, -3)) ? key.slice(0, -3) : nearest(key, names);
  }

  #readField(field: Field, value: unknown, pointer: string): void {
    const kind = FIELD_KINDS[field.type];
    const read = value === null ? undefined : kind.fromJson(value, field);
    if (read === undefined) this.#setNull(field, kind.sqlType, pointer);
    else if (read.error) this.report(pointer, read.error.code, read.error.detail);
    else this.values.push(columnValueOf(field, kind.sqlType, read.value));
  }

  #setNull(member: Field | BelongsTo, type: SqlType, pointer: string): void {
    if (member.needed) this.report(pointer, 'required', `\`${member.name}\` must have a value`);
    else this.values.push(columnValueOf(member, type, null));
  }

  #readReference(relation: BelongsTo, value: unknown, pointer: string): void {
    const { collection } = relation;
    const { type } = recordKeyIn(this.#schema, collection);
    const read = value === null ? null : this.#readId(collection, value, pointer);
    if (read === null) this.#setNull(relation, type, pointer);
    if (read === null || read === undefined) return;
    this.references.push({ collection, id: read.id, pointer });
    this.values.push(columnValueOf(relation, type, read.value));
  }

  /** The caller must be able to read the record that the members name, as of any other reference. */
  #readParts(relation: BelongsTo, columns: readonly string[]): void {
    const given = columns.map((column) => this.values.find((each) => each.column === column)?.value);
    if (given.every((value) => value === undefined)) return;
    const { fields, relations } = this.#collection;
    const members = [...fields.values(), ...relations.values()];
    const names = columns.map((column) => members.find((each) => 'column' in each && each.column === column)!.name);
    const lacking = names.find((_, i) => given[i] === undefined);
    if (lacking !== undefined) {
      const detail = `\`${names.join('` and `')}\` refer to one record of \`${relation.collection}\`; give all of them`;
      this.report(`/data/${lacking}`, 'required', detail);
      return;
    }
    const id = given.includes(null) ? null : idOfValues(given as readonly Scalar[]);
    if (id !== null) this.references.push({ collection: relation.collection, id, pointer: `/data/${names.at(-1)}` });
    const { type } = recordKeyIn(this.#schema, relation.collection);
    this.values.push({ column: relation.column, type, value: id, isMade: true });
  }

  #readId(collection: string, value: unknown, pointer: string): ReadId | undefined {
    const read = keyKindIn(this.#schema, collection).fromJson(value, {});
    if (!read.error) return { id: String(read.value), value: read.value };
    this.report(pointer, read.error.code, read.error.detail);
    return undefined;
  }

  #readHasOne(relation: HasOne, value: unknown, pointer: string): void {
    const id = value === null ? null : this.#readId(relation.collection, value, pointer)?.id;
    if (id === undefined) return;
    if (id !== null) this.references.push({ collection: relation.collection, id, pointer });
    this.hasOnes.push({ relation, id, pointer });
  }

  #readLinks(relation: ManyToMany, value: unknown, pointer: string): void {
    const lists = this.#readOperation(value, pointer);
    if (lists === undefined) return;
    const idsOf = (part: 'set' | 'add' | 'remove') =>
      this.#readIds(relation.collection, lists[part], `${pointer}/${part}`);
    const [set, add = [], remove = []] = [idsOf('set'), idsOf('add'), idsOf('remove')];
    for (const { id, pointer: place } of [...(set ?? []), ...add]) {
      this.references.push({ collection: relation.collection, id, pointer: place });
    }
    const gone = new Set(placedIds(remove));
    const kept = (ids: readonly string[]) => [...new Set(ids)].filter((id) => !gone.has(id));
    this.links.push({
      relation,
      set: set && kept([...placedIds(set), ...placedIds(add)]),
      add: set ? [] : kept(placedIds(add)),
      remove: set ? [] : [...gone],
      pointer,
    });
  }

  /** The object of `set`, `add` and `remove`; undefined after an error. */
  #readOperation(value: unknown, pointer: string): Data | undefined {
    const expected = 'expected an object with `set`, `add` or `remove`';
    if (!isObject(value)) return void this.report(pointer, 'wrong_type', expected);
    const keys = Object.keys(value);
    if (keys.length === 0) return void this.report(pointer, 'empty_operation', expected);
    const unknown = keys.filter((key) => !OPERATIONS.has(key));
    for (const key of unknown) this.report(`${pointer}/${pointerPart(key)}`, 'unknown_operation', expected);
    return unknown.length > 0 ? undefined : value;
  }

  #readIds(collection: string, value: unknown, pointer: string): readonly Placed[] | undefined {
    if (value === undefined) return undefined;
    if (!Array.isArray(value)) return void this.report(pointer, 'wrong_type', 'expected a list of ids');
    if (value.length > MAX_IDS) return void this.report(pointer, 'too_many', `expected at most ${MAX_IDS} ids`);
    return value.flatMap((item, i) => {
      const id = this.#readId(collection, item, `${pointer}/${i}`)?.id;
      return id === undefined ? [] : [{ id, pointer: `${pointer}/${i}` }];
    });
  }

  #readRoles(value: unknown, pointer: string): void {
    const operation = this.#readOperation(value, pointer);
    if (operation === undefined) return;
    this.roles = readRolesChange(operation, pointer, this.errors);
  }

  #fillIn(data: Data): void {
    const { now } = this.#access;
    for (const field of this.#collection.fields.values()) {
      if (Object.hasOwn(data, field.name) || STAMPS.includes(field.name)) continue;
      const value = Object.hasOwn(this.#given, field.name)
        ? this.#given[field.name]
        : valueOfDefault(field.default, now, this.#access);
      this.#default(field, FIELD_KINDS[field.type].sqlType, value);
    }
    for (const relation of this.#collection.relations.values()) {
      if (relation.kind !== 'belongs_to' || Object.hasOwn(data, relation.name)) continue;
      const { type } = recordKeyIn(this.#schema, relation.collection);
      this.#default(relation, type, valueOfDefault(relation.default, now, this.#access));
    }
    if (this.#takesId && !Object.hasOwn(data, 'id')) this.report('/data/id', 'required', '`id` must have a value');
  }

  #default(member: Field | BelongsTo, type: SqlType, value: Scalar | undefined): void {
    if (value !== undefined) this.values.push(columnValueOf(member, type, value));
    else if (member.needed) this.report(`/data/${member.name}`, 'required', `\`${member.name}\` must have a value`);
  }
}

/** The value of a member in its column. */
export function columnValueOf(member: Field | BelongsTo, type: SqlType, value: ColumnValue['value']): ColumnValue {
  const { column } = member;
  return 'kind' in member
    ? { column, type, value, references: member.references }
    : { column, type, value, castTo: member.castTo };
}

/** @param caller undefined: there is none */
export function valueOfDefault(
  value: Default | undefined,
  now: string,
  caller?: Pick<AccessContext, 'auth' | 'kind'>,
): Scalar | undefined {
  switch (value?.kind) {
    case undefined:
      return undefined;
    case 'constant':
      return value.value;
    case 'now':
      return value.zone === undefined ? now : dayOf(now, value.zone);
    case 'auth':
      // The id of a key is not a user's.
      if (value.name === 'id' && caller?.kind !== 'user') return undefined;
      return (caller?.auth[value.name] ?? undefined) as Scalar | undefined;
  }
}

// ---------------------------------------------------------------- folded copies

/** The columns of the fields that `matches` looks in. */
const searchColumns = memoizedBy(({ fields }: Collection): ReadonlySet<string> => {
  const searched = [...fields.values()].filter(({ search }) => search);
  return new Set(searched.map(({ column }) => column));
});

/** Adds a folded copy after each value of a search field: the copy is written wherever the field is. */
export function withFoldedCopies(collection: Collection, values: ColumnValue[]): ColumnValue[] {
  const searched = searchColumns(collection);
  if (searched.size === 0) return values;
  return values.flatMap((each) => (searched.has(each.column) ? [each, foldedCopyOf(each)] : [each]));
}

function foldedCopyOf({ column, value }: ColumnValue): ColumnValue {
  return { column: foldedColumn(column), type: 'text', value: typeof value === 'string' ? fold(value) : null };
}

/** An id, as text and as policies see it. */
interface ReadId {
  readonly id: string;
  readonly value: Scalar;
}

interface Placed {
  readonly id: string;
  readonly pointer: string;
}
const placedIds = (placed: readonly Placed[]): string[] => placed.map(({ id }) => id);
const OPERATIONS = new Set(['set', 'add', 'remove']);

// ---------------------------------------------------------------- members with rules of their own

/** A member that the body sets, whose rule depends on the record. */
export interface GuardedMember {
  readonly permit: Permit;
  /** The place of the member in the body. */
  readonly pointer: string;
  /** The message of the only rule that could have allowed it. */
  readonly message?: string;
}

/**
 * Returns the members whose rules depend on the record. Throws `forbidden` if the caller may never set
 * one of them to any value. A rule does not apply to a default, which is the schema's.
 */
export function guardedMembers(
  access: AccessContext,
  data: Data,
  action: 'create' | 'update',
): readonly GuardedMember[] {
  if (access.collection.memberAccess.size === 0) return [];
  const members = Object.keys(data).flatMap((name) => {
    const permit = access.member(access.collection.name, name, action);
    const message = access.denialMessage?.(access.collection.name, action, name);
    return permit === undefined
      ? []
      : [{ permit, pointer: `/data/${name}`, ...(message !== undefined && { message }) }];
  });
  const denied = members.filter(({ permit }) => permit.verdict === 'deny');
  // An update has not shown yet that the caller may read the record.
  const reported = action === 'create' ? denied : denied.map(({ permit, pointer }) => ({ permit, pointer }));
  if (denied.length > 0) throw forbiddenMembers(reported);
  return members.filter(({ permit }) => permit.verdict === 'depends');
}

type Pointed = Pick<GuardedMember, 'pointer' | 'message'>;

export function forbiddenMembers(members: readonly Pointed[]): Refusal {
  const standard = 'you may not set this here; leave it out';
  const errors = members.map(({ pointer, message }) => ({ pointer, code: 'forbidden', detail: message ?? standard }));
  return new Refusal('forbidden', DENIED, errors);
}
