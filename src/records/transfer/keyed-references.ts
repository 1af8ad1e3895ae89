/**
 * The references of a file that names records by a unique field of theirs: staged as values of this field, and then looked
 * up, among the stored records and those of the file.
 */
import type { Transaction } from '../../database/contract.ts';
import { present } from '../../invariant.ts';
import type { Scalar } from '../../policy/values.ts';
import { type Collection, tenantKeyOf } from '../../schema/model/model.ts';
import { ident, raw, type Sql, sql, text } from '../../sql.ts';
import { recordKeyOf } from '../record-key.ts';
import type { Collections, Scope } from '../scope.ts';
import { type StoredMember, storedMembersOf } from './members.ts';
import type { StagedRecord, TargetKey } from './read-record.ts';
import { comma, type ImportCheck, LINKS, STAGE, type StagedValues } from './staging-tables.ts';

interface KeyedReference extends TargetKey {
  readonly name: string;
  /** The column of staged values. No field begins with an underscore. */
  readonly key: Sql;
  /** The column of a belongs_to; undefined: a many_to_many. */
  readonly column: Sql | undefined;
}
interface KeyedLink {
  readonly relation: string;
  readonly key?: Scalar | undefined;
}

interface StagedReferences {
  readonly staged: Scope;
  readonly keyed: ReadonlyMap<string, TargetKey>;
}

export class KeyedReferences {
  readonly #collection: Collection;
  /** Reaches the tenant of the staged record `s`. */
  readonly #staged: Scope;
  readonly #references: readonly KeyedReference[];

  constructor(schema: Collections, collection: Collection, { staged, keyed }: StagedReferences) {
    this.#collection = collection;
    this.#staged = staged;
    const columns = new Map(storedMembersOf(collection, schema).map(({ name, column }) => [name, column]));
    const made = [...keyed].map(([name, of], i): KeyedReference => {
      const column = columns.get(name);
      return { ...of, name, key: ident(`_key${i}`), column: column === undefined ? undefined : ident(column) };
    });
    // The tenant decides which records the others can be.
    const tenant = tenantKeyOf(collection)?.by;
    this.#references = made.toSorted((a, b) => Number(b.name === tenant) - Number(a.name === tenant));
  }

  get #ones(): readonly KeyedReference[] {
    return this.#references.filter(({ column }) => column !== undefined);
  }

  get #lists(): readonly KeyedReference[] {
    return this.#references.filter(({ column }) => column === undefined);
  }

  /** The columns of the staged records, and those of the links, each after a comma. */
  get columns(): Sql {
    return declared(this.#ones);
  }
  get linkColumns(): Sql {
    return declared(this.#lists);
  }

  valuesOf(records: readonly StagedRecord[]): readonly StagedValues[] {
    return this.#ones.map(({ name, key, member }) => [
      key,
      member.arrayType,
      records.map(({ keys }) => keys.get(name)?.[0] ?? null),
    ]);
  }

  linkValuesOf(links: readonly KeyedLink[]): readonly StagedValues[] {
    return this.#lists.map(({ name, key, member }) => [
      key,
      member.arrayType,
      links.map((link) => (link.relation === name ? (link.key ?? null) : null)),
    ]);
  }

  /** Looks for stored records. Records of the file may still replace them. */
  async resolveStored(tx: Transaction): Promise<void> {
    for (const { column, key, member, target } of this.#ones) {
      const rows = this.#staged.from(target.name, 't');
      const isSame = sql`t.${ident(member.column)} = s.${key}`;
      const id = recordKeyOf(target).of('t');
      await tx.run(sql`UPDATE ${STAGE} AS s SET ${present(column, 'a belongs_to')} = ${id} FROM ${rows.where(isSame)}`);
    }
    for (const { name, key, member, target } of this.#lists) {
      const rows = this.#staged.from(target.name, 't').beside(sql`${STAGE} AS s`);
      const staged = recordKeyOf(this.#collection).of('s');
      const isSame = sql`l.relation = ${text(name)} AND l.source = ${staged}::text AND t.${ident(member.column)} = l.${key}`;
      await tx.run(
        sql`UPDATE ${LINKS} AS l SET target = ${recordKeyOf(target).of('t')}::text FROM ${rows.where(isSame)}`,
      );
    }
  }

  /** Looks for records of the file, whose ids are known now. */
  async resolveStaged(tx: Transaction): Promise<void> {
    const own = this.#references.filter(({ target }) => target === this.#collection);
    for (const { name, column, key, member } of own) {
      const value = sql`r.${ident(member.column)}`;
      const id = recordKeyOf(this.#collection).of('r');
      await tx.run(
        column === undefined
          ? sql`UPDATE ${LINKS} AS l SET target = ${id}::text FROM ${STAGE} AS r WHERE l.relation = ${text(name)} AND ${value} = l.${key}`
          : sql`UPDATE ${STAGE} AS s SET ${column} = ${id} FROM ${STAGE} AS r WHERE ${value} = s.${key}`,
      );
    }
  }

  /** Finds the values that no record has. */
  get checks(): readonly ImportCheck[] {
    return this.#references.map(({ name, column, key, member, target }): ImportCheck => {
      const message = (value: string): string =>
        `\`${name}\`: no record in \`${target.name}\` has the \`${member.name}\` ${JSON.stringify(value)}`;
      if (column !== undefined)
        return [
          sql`SELECT s._line, s.${key}::text FROM ${STAGE} AS s WHERE s.${key} IS NOT NULL AND s.${column} IS NULL`,
          message,
        ];
      const isLost = sql`l.relation = ${text(name)} AND l.target IS NULL`;
      return [sql`SELECT l.line, l.${key}::text FROM ${LINKS} AS l WHERE ${isLost}`, message];
    });
  }
}

const declared = (references: readonly KeyedReference[]): Sql =>
  references.length === 0
    ? raw('')
    : sql`, ${comma(references.map(({ key, member }) => sql`${key} ${stagedType(member)}`))}`;

/** The type of a column that stages the member. */
export const stagedType = ({ columnType }: StoredMember): Sql =>
  raw(columnType === 'text' ? 'text COLLATE "C"' : columnType);
