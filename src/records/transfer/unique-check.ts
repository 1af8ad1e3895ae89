/** Finds the values of an import that a unique constraint would reject, with their lines. */
import type { Queryable } from '../../database/contract.ts';
import type { Collection, Schema } from '../../schema/model/model.ts';
import { ident, raw, sql } from '../../sql.ts';
import { everyTenant, type ScopedRows } from '../scope.ts';
import { isExclusive, keyColumns, type StoredMember } from './members.ts';
import type { ImportError } from './read-record.ts';
import { comma, findErrors, haveSameKey, isKeyGiven, STAGE } from './staging-tables.ts';
import { canSwap, contested } from './swapped-values.ts';

interface CheckedKey {
  readonly schema: Schema;
  readonly collection: Collection;
  readonly members: readonly StoredMember[];
}

export class UniqueCheck {
  readonly #q: Queryable;
  readonly #schema: Schema;
  readonly #collection: Collection;
  readonly #members: readonly StoredMember[];
  /** The stored records `t` beside the staged records `s`. */
  readonly #stored: ScopedRows;

  constructor(q: Queryable, { schema, collection, members }: CheckedKey) {
    this.#q = q;
    this.#schema = schema;
    this.#collection = collection;
    this.#members = members.filter(isExclusive);
    this.#stored = everyTenant(schema).from(collection.name, 't').beside(sql`${STAGE} AS s`);
  }

  async errors(): Promise<readonly ImportError[]> {
    const errors: ImportError[] = [];
    for (const member of this.#members) {
      errors.push(...(await this.#twice(member)));
      errors.push(...(member.name === 'id' ? await this.#takenIds() : await this.#taken(member)));
      if (!canSwap(member, this.#schema, [this.#collection])) errors.push(...(await this.#stuck(member)));
    }
    return errors;
  }

  #twice(member: StoredMember): Promise<readonly ImportError[]> {
    const key = comma(keyColumns(member).map((column) => ident('s', column)));
    // A stored record that keeps its value is found among the stored ones.
    const isNew = member.name === 'id' ? raw('TRUE') : sql`(NOT s._is_stored OR ${isKeyGiven(member)})`;
    return findErrors(
      this.#q,
      sql`
      SELECT _line, _first::text
        FROM (SELECT s._line, min(s._line) OVER (PARTITION BY ${key}) AS _first
                FROM ${STAGE} AS s
               WHERE ${ident('s', member.column)} IS NOT NULL AND ${isNew}) AS s
       WHERE _line > _first`,
      (line) => `${ruleOf(member)}; line ${line} has the same value`,
    );
  }

  #takenIds(): Promise<readonly ImportError[]> {
    return findErrors(
      this.#q,
      sql`SELECT s._line, NULL FROM ${this.#stored.where(raw('t.id = s.id'), raw('NOT s._is_stored'))}`,
      () => 'a record with this id exists',
    );
  }

  /** Values of other records, which this import does not change. */
  #taken(member: StoredMember): Promise<readonly ImportError[]> {
    const others = [
      haveSameKey(member, 't', 's'),
      raw('t.id <> s.id'),
      sql`NOT EXISTS (SELECT 1 FROM ${STAGE} AS o WHERE o._is_stored AND o.id = t.id AND ${isKeyGiven(member, 'o')})`,
    ];
    return findErrors(
      this.#q,
      sql`SELECT s._line, t.id::text FROM ${this.#stored.where(...others)}`,
      (id) => `${ruleOf(member)}; the record ${id} has this value`,
    );
  }

  #stuck(member: StoredMember): Promise<readonly ImportError[]> {
    return findErrors(
      this.#q,
      sql`SELECT s._line, NULL FROM ${this.#stored.where(contested(member))}`,
      () => `\`${member.name}\`: it must have a value, and there is none to spare: records cannot exchange theirs`,
    );
  }
}

const ruleOf = ({ name, uniqueWithin }: StoredMember): string =>
  uniqueWithin === undefined
    ? `\`${name}\` must be unique`
    : `\`${name}\` must be unique within \`${uniqueWithin.name}\``;
