/**
 * Lets records of an import exchange their unique values. A unique constraint is checked row by row,
 * so a value that another record takes is replaced by a free one beforehand.
 */
import type { Transaction } from '../../database/contract.ts';
import { newRecordId } from '../../record-id.ts';
import { type Collection, madeBy, type Schema } from '../../schema/model/model.ts';
import { ident, join, param, raw, type Sql, sql } from '../../sql.ts';
import { recordKeyOf } from '../record-key.ts';
import { everyTenant, type Scope } from '../scope.ts';
import { isExclusive, keyColumns, type StoredMember, storedMembersOf } from './members.ts';
import { comma, haveSameKey, STAGE } from './staging-tables.ts';

/** Makes a value that no record has from an id. */
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
 * Returns true if records can exchange values of the member. They cannot if the member is required
 * and no free value exists: for a bool, or for a reference to a collection in `chain`, whose records
 * would need each other. @param chain the collections that lead to the member's, which is the last
 */
export function canSwap(member: StoredMember, schema: Schema, chain: readonly Collection[]): boolean {
  const { required, references, columnType, referencesBy, uniqueWithin } = member;
  if (referencesBy !== undefined || uniqueWithin?.references !== undefined) return false;
  if (!required) return true;
  if (references === undefined) return FREE_VALUES.has(columnType);
  const target = schema.collections.get(references)!;
  if (chain.includes(target)) return false;
  // A placeholder needs an id that the service can make.
  if (madeBy(target) !== 'service') return false;
  // The referenced record is copied; a copy of a record that references itself references itself.
  return storedMembersOf(target, schema).every(
    (each) =>
      each.name === 'id' ||
      !isExclusive(each) ||
      each.references === references ||
      canSwap(each, schema, [...chain, target]),
  );
}

/** The stored record `t` of the staged record `s` gives up a value that another record takes. */
export function contested(member: StoredMember, collection: Collection): Sql {
  const key = recordKeyOf(collection);
  const changes = keyColumns(member).map((column) => sql`${ident('t', column)} IS DISTINCT FROM ${ident('s', column)}`);
  return sql`
           s._is_stored AND ${key.of('t')} = ${key.of('s')} AND (${join(changes, ' OR ')})
       AND EXISTS (SELECT 1 FROM ${STAGE} AS o WHERE ${haveSameKey(member, 'o', 't')} AND o._line <> s._line)`;
}

interface StandIns {
  readonly collection: Collection;
  readonly ids: readonly string[];
}

export class SwappedValues {
  readonly #tx: Transaction;
  readonly #schema: Schema;
  readonly #collection: Collection;
  readonly #scope: Scope;
  readonly #standIns: StandIns[] = [];

  constructor(tx: Transaction, schema: Schema, collection: Collection) {
    this.#scope = everyTenant(schema);
    this.#tx = tx;
    this.#schema = schema;
    this.#collection = collection;
  }

  /** Runs before anything is written. INVARIANT: the import sets each of these values afterwards. */
  async free(members: readonly StoredMember[]): Promise<void> {
    for (const member of members) {
      if (!isExclusive(member) || member.name === 'id') continue;
      if (!canSwap(member, this.#schema, [this.#collection])) continue;
      const target = this.#collectionOf(member);
      if (member.required && target !== undefined) await this.#freeReferences(member, target);
      else await this.#freeValues(member);
    }
  }

  /** Deletes the placeholders, once every record has its value. */
  async clear(): Promise<void> {
    for (const { collection, ids } of this.#standIns.reverse()) {
      const isStandIn = recordKeyOf(collection).isAmong('t', ids);
      await this.#tx.run(sql`DELETE FROM ${this.#scope.stored(collection.name, 't').where(isStandIn)}`);
    }
    this.#standIns.length = 0;
  }

  #collectionOf({ references }: StoredMember): Collection | undefined {
    return references === undefined ? undefined : this.#schema.collections.get(references);
  }

  async #freeValues(member: StoredMember): Promise<void> {
    const rows = this.#scope.stored(this.#collection.name, 't').beside(sql`${STAGE} AS s`);
    const parked = sql`${ident(member.column)} = ${freeValue(member, recordKeyOf(this.#collection).of('t'))}`;
    await this.#tx.run(sql`UPDATE ${rows.set([parked], contested(member, this.#collection))}`);
  }

  /** A required unique reference gets new records of the target to reference. */
  async #freeReferences(member: StoredMember, target: Collection): Promise<void> {
    const column = ident(member.column);
    const key = recordKeyOf(this.#collection);
    const stored = this.#scope.stored(this.#collection.name, 't');
    const staged = stored.beside(sql`${STAGE} AS s`);
    const rows = await this.#tx.rows(
      sql`SELECT ${key.of('t')}, t.${column} FROM ${staged.where(contested(member, this.#collection))}`,
    );
    if (rows.length === 0) return;
    const parked = rows.map(([id]) => id!);
    const standIns = await this.#makeStandIns(
      target,
      rows.map(([, original]) => original!),
    );
    const pairs = sql`unnest(${key.list(parked)}, ${recordKeyOf(target).list(standIns)}) AS p (id, stand_in)`;
    await this.#tx.run(
      sql`UPDATE ${stored.beside(pairs).set([sql`${column} = p.stand_in`], sql`${key.of('t')} = p.id`)}`,
    );
  }

  /** Copies each record within its tenant, with new unique values. */
  async #makeStandIns(collection: Collection, originals: readonly string[]): Promise<readonly string[]> {
    const ids = originals.map(newRecordId);
    const names: Sql[] = [raw('original'), raw('id')];
    const lists: Sql[] = [sql`${param('uuid[]', originals)}`, sql`${param('uuid[]', ids)}`];
    const cells: [Sql, Sql][] = [];
    for (const member of storedMembersOf(collection, this.#schema)) {
      const column = ident(member.column);
      const target = this.#collectionOf(member);
      if (member.name === 'id') cells.push([column, raw('n.id')]);
      else if (!isExclusive(member)) cells.push([column, sql`x.${column}`]);
      else if (!member.required || target === undefined) cells.push([column, freeValue(member, raw('n.id'))]);
      else if (target === collection) cells.push([column, raw('n.id')]);
      else {
        const led = await this.#referencesOf(collection, member, originals);
        names.push(column);
        lists.push(sql`${param('uuid[]', await this.#makeStandIns(target, led))}`);
        cells.push([column, sql`n.${column}`]);
      }
    }
    const originalRows = this.#scope
      .from(collection.name, 'x')
      .beside(sql`unnest(${comma(lists)}) AS n (${comma(names)})`);
    await this.#tx.run(sql`
      INSERT INTO ${this.#scope.into(collection.name, 't')} (${comma(cells.map(([column]) => column))})
      SELECT ${comma(cells.map(([, value]) => value))}
        FROM ${originalRows.where(sql`${recordKeyOf(collection).of('x')} = n.original`)}`);
    this.#standIns.push({ collection, ids });
    return ids;
  }

  /** The references of the records, in their order. */
  async #referencesOf(
    collection: Collection,
    member: StoredMember,
    ids: readonly string[],
  ): Promise<readonly string[]> {
    const wanted = sql`unnest(${param('uuid[]', ids)}) WITH ORDINALITY AS n (id, place)`;
    const rows = await this.#tx.rows(sql`
      SELECT x.${ident(member.column)}
        FROM ${this.#scope
          .from(collection.name, 'x')
          .beside(wanted)
          .where(sql`${recordKeyOf(collection).of('x')} = n.id`)}
       ORDER BY n.place`);
    return rows.map(([id]) => id!);
  }
}

function freeValue({ required, columnType }: StoredMember, id: Sql): Sql {
  const value = required ? FREE_VALUES.get(columnType) : undefined;
  return value === undefined ? raw('NULL') : value(id);
}
