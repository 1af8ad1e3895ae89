/** A belongs_to whose value is in several members: the key of a record whose key has several. A write sets these members. */
import { hintOf, nearest } from '../../../grammar/suggest.ts';
import { FIELD_KINDS, keyKindIn } from '../fields/index.ts';
import type { DocumentPath, Report } from '../file/issue.ts';
import type { BelongsToShape, CollectionShape } from '../file/shape.ts';
import { hasCompositeKey, madeKey } from './composite-key.ts';
import type { BelongsTo, Collection, Field, HasMany, HasOne, KeyPart, ManyToMany, Relation, Schema } from './model.ts';

type Referring = Pick<Collection, 'name' | 'key' | 'managed' | 'fields' | 'relations'>;
interface Declared {
  readonly shape: CollectionShape;
  readonly path: DocumentPath;
}
interface Declaring<Of extends Referring = Referring> {
  readonly collections: ReadonlyMap<string, Of>;
  readonly declared: ReadonlyMap<string, Declared>;
  readonly report: Report;
}

/** The columns by which the rows of the relation refer to a key of several. */
export function viaColumns(
  { collections }: Pick<Schema, 'collections'>,
  relation: HasOne | HasMany | ManyToMany,
): readonly string[] | undefined {
  const via =
    relation.kind === 'many_to_many' ? undefined : collections.get(relation.collection)?.relations.get(relation.via);
  return via?.kind === 'belongs_to' ? via.columns : undefined;
}

/** The collections with the columns of their references. */
export function withCompositeReferences<Of extends Referring>(declaring: Declaring<Of>): ReadonlyMap<string, Of> {
  const all = new Map(
    [...declaring.collections].map(([name, collection]) => [name, withReferences(collection, declaring)]),
  );
  for (const { name, relations } of all.values())
    for (const relation of relations.values())
      if (relation.kind === 'has_one' && !relation.readOnly && isOfParts(all.get(relation.collection), relation.via))
        reportHasOne(name, relation, declaring);
  return all;
}

/** The member is one of several that refer to a record. */
function isOfParts(collection: Referring | undefined, name: string): boolean {
  const members = [...(collection?.relations.values() ?? [])].filter((relation) => relation.kind === 'belongs_to');
  const own = members.find((member) => member.name === name);
  return members.some(({ columns = [] }) => own !== undefined && columns.includes(own.column));
}

function reportHasOne(collection: string, { name, via }: HasOne, { declared, report }: Declaring): void {
  const message = `\`${via}\` holds a part of another reference, which it would leave incomplete; expected a has_many`;
  report({ code: 'invalid_via', message, path: [...declared.get(collection)!.path, 'relations', name, 'via'] });
}

function withReferences<Of extends Referring>(collection: Of, declaring: Declaring<Of>): Of {
  const relations = [...collection.relations].map(([name, relation]): [string, Relation] => [
    name,
    relation.kind === 'belongs_to' ? new Reference(collection, relation, declaring).read() : relation,
  ]);
  return { ...collection, relations: new Map(relations) };
}

class Reference {
  readonly #collection: Referring;
  readonly #relation: BelongsTo;
  readonly #declaring: Declaring;
  readonly #declared: Declared;

  constructor(collection: Referring, relation: BelongsTo, declaring: Declaring) {
    this.#collection = collection;
    this.#relation = relation;
    this.#declaring = declaring;
    this.#declared = declaring.declared.get(collection.name)!;
  }

  read(): BelongsTo {
    const shape = this.#declared.shape.relations?.[this.#relation.name];
    const target = this.#declaring.collections.get(this.#relation.collection);
    if (target === undefined || shape?.kind !== 'belongs_to') return this.#relation;
    const names = shape.fields;
    if (names === undefined && hasCompositeKey(target))
      this.#invalid(`${this.#expected(target)}; name them by \`fields\``, ['kind']);
    if (names === undefined || !this.#isPossible(shape, target)) return this.#relation;
    const held = names.map((name, i) => this.#memberOf(name, i));
    return held.includes(undefined) ? this.#relation : this.#of(held as readonly (Field | BelongsTo)[], target);
  }

  #isPossible(shape: BelongsToShape, target: Referring): boolean {
    if (!hasCompositeKey(target)) {
      this.#invalid(`the key of \`${target.name}\` has one column; remove \`fields\``, ['fields']);
      return false;
    }
    if (this.#collection.managed)
      this.#invalid('only a table of another program, with `managed: false`, has a reference of several columns', [
        'fields',
      ]);
    for (const key of ['column', 'references', 'required', 'unique', 'default', 'was'] as const)
      if (shape[key] !== undefined)
        this.#invalid(`a reference of several columns is read, and not written; remove \`${key}\``, [key]);
    if (shape.on_delete === 'set_null')
      this.#invalid('no write clears several columns; expected `cascade` or `restrict`', ['on_delete']);
    return true;
  }

  #memberOf(name: string, i: number): Field | BelongsTo | undefined {
    const { fields, relations } = this.#collection;
    const found = fields.get(name) ?? relations.get(name);
    const at = ['fields', i];
    if (found === undefined || !('column' in found)) {
      const near = nearest(name, [...fields.keys(), ...relations.keys()]);
      const message = `expected a field or a belongs_to of \`${this.#collection.name}\`, found \`${name}\`${hintOf(near)}`;
      return this.#invalid(message, at, near);
    }
    const { shape } = this.#declared;
    const declared = shape.fields?.[name] ?? shape.relations?.[name];
    if (typeof declared !== 'object') return found;
    if ('access' in declared && declared.access?.read !== undefined)
      return this.#invalid(
        `\`${name}\` has rules for reading, and the reference would show its value; remove them`,
        at,
      );
    if ('fields' in declared || 'references' in declared)
      return this.#invalid(`\`${name}\` has not the value of one column; name a field instead`, at);
    return found;
  }

  #of(held: readonly (Field | BelongsTo)[], target: Referring): BelongsTo {
    const parts = target.key?.parts ?? [];
    const isHeld = held.length === parts.length && held.every((member, i) => this.#hasValuesOf(member, parts[i]!));
    if (!isHeld) {
      this.#invalid(`${this.#expected(target)}, in their order`, ['fields']);
      return this.#relation;
    }
    const own = held.map((member, i) => ({ ...parts[i]!, column: member.column, readAs: readAsOf(member) }));
    return {
      ...this.#relation,
      columns: own.map(({ column }) => column),
      made: (row) => madeKey(own, row),
    };
  }

  #hasValuesOf(member: Field | BelongsTo, { kind }: KeyPart): boolean {
    const own = 'type' in member ? FIELD_KINDS[member.type] : keyKindIn(this.#declaring, member.collection);
    return own.sqlType === kind.sqlType;
  }

  #expected({ name, key, fields, relations }: Referring): string {
    const stored = [...fields.values(), ...relations.values()];
    const names = (key?.parts ?? []).map(
      ({ column }) => `\`${stored.find((each) => 'column' in each && each.column === column)?.name ?? column}\``,
    );
    return `expected the members of \`${this.#collection.name}\` that hold ${names.join(' and ')} of \`${name}\``;
  }

  #invalid(message: string, at: DocumentPath, replacement?: string): undefined {
    const path = [...this.#declared.path, 'relations', this.#relation.name, ...at];
    this.#declaring.report({ code: 'invalid_reference', message, path, replacement });
  }
}

const readAsOf = (member: Field | BelongsTo): string | undefined => ('readAs' in member ? member.readAs : undefined);
