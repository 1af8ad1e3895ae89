/**
 * The operations of a batch, checked in shape before the first runs: every error at once, each at
 * its place. Not a route.
 */

import { keyOf } from '../../policy/types.ts';
import { addError, type ErrorDetail, Problem, pointerPart } from '../../problem.ts';
import { newRecordId } from '../../record-id.ts';
import { type Data, isObject, type ServerValues } from '../../records/write/input.ts';
import { keyKindOf } from '../../schema/fields/index.ts';
import { type Collection, madeBy, madeByDatabase, type Relation, type Schema } from '../../schema/model/model.ts';
import { expectedFields, uniqueFieldOf } from '../records/upsert-request.ts';

export type BatchOperation = CreateOperation | UpdateOperation | UpsertOperation | DeleteOperation;

interface NamedRecord {
  /** The name as sent: the collection may not exist. */
  readonly collection: string;
}
interface CreateOperation extends NamedRecord {
  readonly op: 'create';
  /** The id of the new record; left out where its creator gives it, or the database makes it. */
  readonly id?: string;
  readonly data: Data;
  readonly given?: ServerValues;
}
interface UpdateOperation extends NamedRecord {
  readonly op: 'update';
  /** The id as sent, or the id of the record that a `$ref` names. */
  readonly id: string;
  readonly data: Data;
  readonly ifMatch: string | undefined;
}
interface UpsertOperation extends NamedRecord {
  readonly op: 'upsert';
  /** The name of a unique field, of which `data` has the value. */
  readonly on: string;
  readonly data: Data;
}
interface DeleteOperation extends NamedRecord {
  readonly op: 'delete';
  readonly id: string;
  readonly ifMatch: string | undefined;
}

const MAX_OPERATIONS = 100;
const ALIAS_FORMAT = /^[A-Za-z_][A-Za-z0-9_]*$/;
const OPERATION_KEYS: ReadonlySet<string> = new Set(['op', 'collection', 'id', 'on', 'data', 'if_match', 'as']);
const UNKNOWN_KEY = `unknown key; expected ${[...OPERATION_KEYS].map((key) => `\`${key}\``).join(', ')}`;
const OPERATION_KINDS: readonly unknown[] = [
  'create',
  'update',
  'upsert',
  'delete',
] satisfies readonly BatchOperation['op'][];

type Writes = NonNullable<Collection['writes']>;

/** Throws `validation_failed`. */
export function readOperations(body: unknown, schema: Schema, newIds: NewIds): Promise<readonly BatchOperation[]> {
  return new OperationReader(schema, newIds).read(body);
}

/** Ids that the database makes for new records of the collection. */
type NewIds = (collection: Collection, count: number) => Promise<readonly string[]>;

/** The record of an earlier create. */
interface Alias {
  readonly index: number;
  /** The name of its collection, as sent. */
  readonly collection: unknown;
  /** Undefined: its own create has no valid id. */
  readonly id: string | undefined;
}

class OperationReader {
  readonly #schema: Schema;
  readonly #newIds: NewIds;
  readonly #errors: ErrorDetail[] = [];
  readonly #aliases = new Map<string, Alias>();
  readonly #reserved = new Map<Collection, string[]>();
  #firstWithErrors: number | undefined;
  /** The operation that is being read. */
  #index = 0;

  constructor(schema: Schema, newIds: NewIds) {
    this.#schema = schema;
    this.#newIds = newIds;
  }

  async read(body: unknown): Promise<readonly BatchOperation[]> {
    const items = this.#itemsOf(body);
    await this.#reserve(items);
    // Reads all names first, to distinguish a reference to a later operation from one to nothing.
    for (const [index, item] of items.entries()) this.#declare(item, index);
    const operations = items.flatMap((item, index) => {
      this.#index = index;
      return this.#operation(item) ?? [];
    });
    if (this.#errors.length === 0) return operations;
    const detail = 'the body is not `{ "operations": [ … ] }`, or an operation in it is not well formed';
    throw new Problem('validation_failed', detail, { errors: this.#errors, operation: this.#firstWithErrors });
  }

  #itemsOf(body: unknown): readonly unknown[] {
    const detail = `expected a list of 1 to ${MAX_OPERATIONS} operations`;
    if (!isObject(body)) {
      this.#report('', 'not_an_object', 'expected an object with the key `operations`');
      return [];
    }
    for (const key of Object.keys(body)) {
      if (key !== 'operations')
        this.#report(`/${pointerPart(key)}`, 'unknown_key', 'unknown key; expected `operations`');
    }
    const items = Object.hasOwn(body, 'operations') ? body.operations : undefined;
    if (items === undefined) this.#report('/operations', 'required', detail);
    else if (!Array.isArray(items)) this.#report('/operations', 'wrong_type', detail);
    else if (items.length === 0) this.#report('/operations', 'too_few', detail);
    else if (items.length > MAX_OPERATIONS) this.#report('/operations', 'too_many', detail);
    else return items;
    return [];
  }

  #declare(item: unknown, index: number): void {
    if (!isObject(item) || item.op !== 'create' || typeof item.as !== 'string' || !ALIAS_FORMAT.test(item.as)) return;
    if (!this.#aliases.has(item.as))
      this.#aliases.set(item.as, { index, collection: item.collection, id: this.#newId(item) });
  }

  /** The database makes the ids of all named creates of a collection at once. */
  async #reserve(items: readonly unknown[]): Promise<void> {
    const named = items.filter(
      (item): item is Data => isObject(item) && item.op === 'create' && Object.hasOwn(item, 'as'),
    );
    const made = Map.groupBy(named, ({ collection }) => this.#schema.collections.get(String(collection)));
    for (const [collection, creates] of made)
      if (collection !== undefined && madeByDatabase(collection))
        this.#reserved.set(collection, [...(await this.#newIds(collection, creates.length))]);
  }

  #newId({ collection: name, data }: Data): string | undefined {
    const collection = this.#schema.collections.get(String(name));
    if (collection === undefined || madeBy(collection) === 'service') return newRecordId();
    if (madeByDatabase(collection)) return this.#reserved.get(collection)?.pop();
    const read = isObject(data) && data.id != null ? keyKindOf(collection).fromJson(data.id, {}) : undefined;
    return read?.error === undefined && read !== undefined ? String(read.value) : undefined;
  }

  #operation(item: unknown): BatchOperation | undefined {
    if (!isObject(item)) {
      const detail = 'expected an object with `op`, `collection` and what the operation needs';
      return this.#reportHere('', 'not_an_object', detail);
    }
    for (const key of Object.keys(item)) {
      if (!OPERATION_KEYS.has(key)) this.#reportHere(`/${pointerPart(key)}`, 'unknown_key', UNKNOWN_KEY);
    }
    const collection = this.#collectionOf(item);
    const { op } = item;
    if (!OPERATION_KINDS.includes(op)) {
      const isMissing = op === undefined;
      return this.#reportHere(
        '/op',
        isMissing ? 'required' : 'not_in_enum',
        'expected `create`, `update`, `upsert` or `delete`',
      );
    }
    for (const action of op === 'upsert' ? (['create', 'update'] as const) : [op as keyof Writes]) {
      if (this.#schema.collections.get(collection)?.writes?.[action] === false)
        this.#reportHere('/op', 'not_taken', `the database takes no ${action} of \`${collection}\``);
    }
    if (op === 'upsert') return this.#upsert(item, collection);
    this.#refuse(item, 'on', 'only an upsert finds its record by a field');
    if (op === 'create') return this.#create(item, collection);
    this.#refuse(item, 'as', 'only a create takes a name');
    const id = this.#idOf(item, collection);
    const ifMatch = this.#ifMatchOf(item);
    if (op === 'update') {
      const data = this.#dataOf(item, collection);
      return { op, collection, id, data, ifMatch };
    }
    this.#refuse(item, 'data', 'a delete takes no data');
    return { op: 'delete', collection, id, ifMatch };
  }

  #create(item: Data, collection: string): CreateOperation {
    const kind = this.#schema.collections.get(collection)?.kind;
    if (kind === 'users') this.#reportHere('/op', 'not_created_here', 'users are created by `POST /api/auth/register`');
    if (kind === 'files') this.#reportHere('/op', 'not_created_here', 'files are created by `POST /api/files`');
    this.#refuse(item, 'id', 'the server makes the id; name the record by `as` to refer to it');
    this.#refuse(item, 'if_match', 'a new record has no version to match');
    const data = this.#dataOf(item, collection);
    const id = this.#aliasOf(item) ?? this.#idOfNew(collection);
    return { op: 'create', collection, ...(id !== undefined && { id }), data };
  }

  #upsert(item: Data, name: string): UpsertOperation {
    this.#refuse(item, 'as', 'only a create takes a name');
    this.#refuse(item, 'id', 'an upsert finds its record by the field that `on` names');
    this.#refuse(item, 'if_match', 'an upsert takes any version of its record');
    const data = this.#dataOf(item, name);
    const collection = this.#schema.collections.get(name);
    const on =
      typeof item.on === 'string' ? item.on : this.#noText('/on', item.on, 'expected the name of a unique field');
    if (collection !== undefined && typeof item.on === 'string' && uniqueFieldOf(collection, on) === undefined)
      this.#reportHere('/on', 'not_unique', `not a unique field; ${expectedFields(collection)}`);
    else if (on !== '' && isObject(item.data) && (!Object.hasOwn(data, on) || data[on] === null))
      this.#reportHere(`/data/${pointerPart(on)}`, 'required', 'the record is found by this value');
    return { op: 'upsert', collection: name, on, data };
  }

  #idOfNew(name: string): string | undefined {
    const collection = this.#schema.collections.get(name);
    return collection === undefined || madeBy(collection) === 'service' ? newRecordId() : undefined;
  }

  #collectionOf({ collection }: Data): string {
    if (typeof collection === 'string') return collection;
    return this.#noText('/collection', collection, 'expected the name of a collection');
  }

  /** The id of the record that `as` names. */
  #aliasOf(item: Data): string | undefined {
    const { as: name } = item;
    if (!Object.hasOwn(item, 'as')) return undefined;
    if (typeof name !== 'string') return this.#reportHere('/as', 'wrong_type', 'expected a name');
    const alias = this.#aliases.get(name);
    if (alias === undefined) {
      return this.#reportHere('/as', 'invalid_value', 'expected a letter or `_`, then letters, digits and `_`');
    }
    if (alias.index === this.#index) return alias.id;
    return this.#reportHere('/as', 'duplicate', `operation ${alias.index} has this name already`);
  }

  #idOf({ id }: Data, collection: string): string {
    const read = isReference(id) ? (this.#resolved(id, '/id', collection) ?? '') : id;
    const of = this.#schema.collections.get(collection);
    if (typeof read === (of !== undefined && keyOf(of).kind === 'int' ? 'number' : 'string')) return String(read);
    return this.#noText('/id', id, 'expected the id of a record, or `{ "$ref": … }`');
  }

  #noText(pointer: string, given: unknown, detail: string): string {
    this.#reportHere(pointer, given === undefined ? 'required' : 'wrong_type', detail);
    return '';
  }

  #ifMatchOf(item: Data): string | undefined {
    const { if_match: ifMatch } = item;
    if (!Object.hasOwn(item, 'if_match')) return undefined;
    if (typeof ifMatch === 'string') return ifMatch;
    return this.#reportHere(
      '/if_match',
      'wrong_type',
      'expected an ETag in its quotation marks, several of them, or `*`',
    );
  }

  #dataOf(item: Data, collection: string): Data {
    const { data } = item;
    if (isObject(data)) return this.#withoutReferences(data, this.#schema.collections.get(collection));
    const code = data === undefined ? 'required' : 'not_an_object';
    this.#reportHere('/data', code, 'expected an object with the fields of the record');
    return {};
  }

  /** Replaces each `$ref` by the id of the new record. */
  #withoutReferences(data: Data, collection: Collection | undefined): Data {
    if (collection === undefined) return data;
    const members = Object.entries(data).map(([key, value]) => {
      const relation = collection.relations.get(key);
      const pointer = `/data/${pointerPart(key)}`;
      return [key, relation === undefined ? value : this.#related(relation, value, pointer)] as const;
    });
    return Object.fromEntries(members);
  }

  #related({ kind, collection }: Relation, value: unknown, pointer: string): unknown {
    if (kind !== 'many_to_many' || !isObject(value)) return this.#resolved(value, pointer, collection);
    const lists = Object.entries(value).map(([key, ids]) => {
      const place = `${pointer}/${pointerPart(key)}`;
      return [
        key,
        Array.isArray(ids) ? ids.map((id, i) => this.#resolved(id, `${place}/${i}`, collection)) : ids,
      ] as const;
    });
    return Object.fromEntries(lists);
  }

  /** Returns anything but a `$ref` unchanged. @param collection whose id is expected */
  #resolved(value: unknown, pointer: string, collection: string): unknown {
    if (!isReference(value)) return value;
    const { $ref: name } = value;
    if (typeof name !== 'string' || Object.keys(value).length > 1) {
      return this.#reportHere(pointer, 'wrong_type', 'expected `{ "$ref": "<as of an earlier create>" }`');
    }
    const alias = this.#aliases.get(name);
    if (alias !== undefined && alias.index < this.#index) return this.#idIn(collection, alias, pointer);
    if (alias === undefined) return this.#reportHere(pointer, 'unknown_ref', 'no create of the batch has this name');
    const which = alias.index === this.#index ? 'this operation itself' : `the later operation ${alias.index}`;
    return this.#reportHere(pointer, 'unknown_ref', `${which} has this name; a \`$ref\` names an earlier create`);
  }

  /** The id as JSON has it. Collections may have records of equal ids. */
  #idIn(name: string, { collection, id }: Alias, pointer: string): unknown {
    const target = this.#schema.collections.get(name);
    if (target === undefined || id === undefined) return id ?? null;
    const isOwn = collection === name || (isUuid(target) && isUuid(this.#schema.collections.get(String(collection))));
    if (isOwn) return keyKindOf(target).fromQuery(id);
    const detail = `expected a record of \`${name}\`, found one of \`${String(collection)}\``;
    return this.#reportHere(pointer, 'unknown_ref', detail);
  }

  #refuse(item: Data, key: string, detail: string): void {
    if (Object.hasOwn(item, key)) this.#reportHere(`/${key}`, 'unexpected_key', detail);
  }

  #reportHere(pointer: string, code: string, detail: string): undefined {
    this.#firstWithErrors ??= this.#index;
    this.#report(`/operations/${this.#index}${pointer}`, code, detail);
  }

  #report(pointer: string, code: string, detail: string): void {
    addError(this.#errors, { pointer, code, detail });
  }
}

/** UUIDs are of one record in all collections. */
const isUuid = (collection: Collection | undefined): boolean =>
  collection !== undefined && keyOf(collection).kind === 'uuid';

const isReference = (value: unknown): value is Data => isObject(value) && Object.hasOwn(value, '$ref');
