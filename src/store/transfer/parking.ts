/**
 * Frees the unique values that stored records give up in an import and other records of the file
 * take. A unique constraint is checked row by row, so records could not exchange their values.
 */
import { newRecordId } from '../../record-id.ts';
import type { Collection, Schema } from '../../schema/model.ts';
import { ident, join, param, raw, type Sql, sql, text } from '../../sql.ts';
import type { Transaction } from '../database/contract.ts';
import { tableOf } from '../records/record-shape.ts';
import { type StoredMember, storedMembersOf } from './members.ts';

/** The staged records: `_line`, `_given`, `_is_stored`, and a column for each member. */
export const STAGE = raw('"bylaw_import"');

/** The condition that the file gives the member of the record `alias`. */
export const isGiven = (name: string, alias = 's'): Sql =>
  sql`${text(name)} = ANY(string_to_array(${ident(alias, '_given')}, ','))`;

/** A value that no record has, made of an id. */
const FREE_VALUES: ReadonlyMap<string, (id: Sql) => Sql> = new Map([
  ['text', (id: Sql) => sql`${id}::text || md5(${id}::text)`],
  ['bigint', (id: Sql) => numberOf(id)],
  ['double precision', (id: Sql) => sql`${numberOf(id)}::float8`],
  [
    'timestamp with time zone',
    (id: Sql) => sql`timestamptz 'epoch' + (${numberOf(id)} / 1000) * interval '1 microsecond'`,
  ],
]);
const numberOf = (id: Sql): Sql => sql`hashtextextended(${id}::text, 4711)`;

/**
 * Whether records can exchange values of the member: not where it must have one and there is none to
 * spare, like those of a bool, or of a reference within the collection, which every record is held by.
 */
export const canPark = ({ required, references, columnType }: StoredMember, { name }: Collection): boolean =>
  !required || (references === undefined ? FREE_VALUES.has(columnType) : references !== name);

/** The stored record `t` of the staged record `s` gives up a value that another record takes. */
export function contested({ name, column }: StoredMember): Sql {
  const value = ident(column);
  return sql`
           s._is_stored AND t.id = s.id AND ${isGiven(name)} AND t.${value} IS DISTINCT FROM s.${value}
       AND EXISTS (
             SELECT 1
               FROM ${STAGE} AS o
              WHERE o.${value} = t.${value} AND o._line <> s._line AND (NOT o._is_stored OR ${isGiven(name, 'o')}))`;
}

interface StandIns {
  readonly collection: Collection;
  readonly ids: readonly string[];
}

export class Parking {
  readonly #tx: Transaction;
  readonly #schema: Schema;
  readonly #collection: Collection;
  readonly #standIns: StandIns[] = [];

  constructor(tx: Transaction, schema: Schema, collection: Collection) {
    this.#tx = tx;
    this.#schema = schema;
    this.#collection = collection;
  }

  /** Before anything is written. INVARIANT: the import sets each of these values afterwards. */
  async park(members: readonly StoredMember[]): Promise<void> {
    for (const member of members) {
      if (!member.isUnique || member.name === 'id' || !canPark(member, this.#collection)) continue;
      const target = this.#collectionOf(member);
      if (member.required && target !== undefined) await this.#parkReferences(member, target);
      else await this.#parkValues(member);
    }
  }

  /** When every record has its value. */
  async clear(): Promise<void> {
    for (const { collection, ids } of this.#standIns.reverse())
      await this.#tx.run(sql`DELETE FROM ${tableOf(collection)} WHERE id = ANY(${param('uuid[]', ids)})`);
    this.#standIns.length = 0;
  }

  #collectionOf({ references }: StoredMember): Collection | undefined {
    return references === undefined ? undefined : this.#schema.collections.get(references);
  }

  async #parkValues(member: StoredMember): Promise<void> {
    await this.#tx.run(sql`
      UPDATE ${tableOf(this.#collection)} AS t
         SET ${ident(member.column)} = ${parkedValue(member, raw('t.id'))}
        FROM ${STAGE} AS s
       WHERE ${contested(member)}`);
  }

  /** A reference that must have a value, which no other record may have: records are made for it. */
  async #parkReferences(member: StoredMember, target: Collection): Promise<void> {
    const table = tableOf(this.#collection);
    const rows = await this.#tx.rows(sql`SELECT t.id FROM ${table} AS t, ${STAGE} AS s WHERE ${contested(member)}`);
    if (rows.length === 0) return;
    const parked = rows.map(([id]) => id!);
    const standIns = await this.#makeStandIns(target, parked.length);
    await this.#tx.run(sql`
      UPDATE ${table} AS t
         SET ${ident(member.column)} = p.stand_in
        FROM unnest(${param('uuid[]', parked)}, ${param('uuid[]', standIns)}) AS p (id, stand_in)
       WHERE t.id = p.id`);
  }

  /** Copies of a record, but for their unique values. */
  async #makeStandIns(collection: Collection, count: number): Promise<readonly string[]> {
    const ids = Array.from({ length: count }, newRecordId);
    const names: Sql[] = [raw('id')];
    const lists: Sql[] = [sql`${param('uuid[]', ids)}`];
    const cells: [Sql, Sql][] = [];
    for (const member of storedMembersOf(collection)) {
      const column = ident(member.column);
      const target = this.#collectionOf(member);
      if (member.name === 'id') cells.push([column, raw('n.id')]);
      else if (!member.isUnique) cells.push([column, sql`x.${column}`]);
      else if (!member.required || target === undefined) cells.push([column, parkedValue(member, raw('n.id'))]);
      else if (target === collection) cells.push([column, raw('n.id')]);
      else {
        names.push(column);
        lists.push(sql`${param('uuid[]', await this.#makeStandIns(target, count))}`);
        cells.push([column, sql`n.${column}`]);
      }
    }
    await this.#tx.run(sql`
      INSERT INTO ${tableOf(collection)} (${comma(cells.map(([column]) => column))})
      SELECT ${comma(cells.map(([, value]) => value))}
        FROM (SELECT * FROM ${tableOf(collection)} LIMIT 1) AS x
       CROSS JOIN unnest(${comma(lists)}) AS n (${comma(names)})`);
    this.#standIns.push({ collection, ids });
    return ids;
  }
}

const comma = (parts: readonly Sql[]): Sql => join(parts, ', ');

function parkedValue({ required, columnType }: StoredMember, id: Sql): Sql {
  const value = required ? FREE_VALUES.get(columnType) : undefined;
  return value === undefined ? raw('NULL') : value(id);
}
