/**
 * The records of an import in temporary tables of its transaction: checked there as a whole, and
 * then written by a few statements.
 */

import type { Transaction } from '../../database/contract.ts';
import { LINK_TENANT_COLUMN } from '../../policy/condition.ts';
import { fold } from '../../policy/fold.ts';
import type { Scalar } from '../../policy/values.ts';
import type { Collection, ManyToMany, Schema } from '../../schema/model/model.ts';
import { VERSION_COLUMN } from '../../schema/model/stored-names.ts';
import { empty, ident, param, raw, type Sql, type SqlType, sql, text } from '../../sql.ts';
import { tableOf } from '../record-shape.ts';
import { tenancyOf } from '../scope.ts';
import { manyToManyOf, type StoredMember } from './members.ts';
import { Parking } from './parking.ts';
import type { ImportError, StagedRecord } from './read-record.ts';
import { comma, findErrors, isGiven, isKeyGiven, LINKS, STAGE } from './stage.ts';
import { UniqueCheck } from './unique-check.ts';

/** The member that finds the record which is there already; `id` among them. */
export type Upsert = StoredMember;

interface StagingPlan {
  readonly schema: Schema;
  readonly collection: Collection;
  readonly members: readonly StoredMember[];
  readonly upsert?: Upsert | undefined;
}

const foldedOf = (value: Scalar | null | undefined): string | null => (typeof value === 'string' ? fold(value) : null);

export class Staging {
  readonly #tx: Transaction;
  readonly #schema: Schema;
  readonly #collection: Collection;
  readonly #members: readonly StoredMember[];
  readonly #upsert: Upsert | undefined;

  constructor(tx: Transaction, { schema, collection, members, upsert }: StagingPlan) {
    this.#tx = tx;
    this.#schema = schema;
    this.#collection = collection;
    this.#members = members;
    this.#upsert = upsert;
  }

  /** The folded copies of search fields. */
  get #copies(): readonly { readonly name: string; readonly copy: string }[] {
    return this.#members.flatMap(({ name, copy }) => (copy === undefined ? [] : [{ name, copy }]));
  }

  /** No field begins with an underscore, so the first columns are no member's. */
  async open(): Promise<void> {
    const members = this.#members.map(({ column, columnType }) => {
      return sql`${ident(column)} ${raw(columnType === 'text' ? 'text COLLATE "C"' : columnType)}`;
    });
    const columns = [...members, ...this.#copies.map(({ copy }) => sql`${ident(copy)} text`)];
    await this.#tx.run(sql`
      CREATE TEMPORARY TABLE ${STAGE} (
        _line int8 NOT NULL, _given text NOT NULL, _roles text, _is_stored bool NOT NULL DEFAULT false,
        ${comma(columns)}
      ) ON COMMIT DROP`);
    await this.#tx.run(sql`
      CREATE TEMPORARY TABLE ${LINKS} (line int8 NOT NULL, relation text NOT NULL, source uuid NOT NULL, target uuid NOT NULL)
      ON COMMIT DROP`);
  }

  async add(records: readonly StagedRecord[]): Promise<void> {
    if (records.length === 0) return;
    const all: readonly (readonly [Sql, SqlType, readonly (Scalar | null)[]])[] = [
      [raw('_line'), 'int8[]', records.map(({ line }) => line)],
      [raw('_given'), 'text[]', records.map(({ given }) => [...given].join(','))],
      [raw('_roles'), 'text[]', records.map(({ roles }) => (roles === undefined ? null : roles.join(',')))],
      ...this.#members.map(
        ({ name, column, arrayType }) =>
          [ident(column), arrayType, records.map(({ values }) => values.get(name) ?? null)] as const,
      ),
      ...this.#copies.map(
        ({ name, copy }) => [ident(copy), 'text[]', records.map(({ values }) => foldedOf(values.get(name)))] as const,
      ),
    ];
    await this.#tx.run(sql`
      INSERT INTO ${STAGE} (${comma(all.map(([column]) => column))})
      SELECT * FROM unnest(${comma(all.map(([, type, values]) => sql`${param(type, values)}`))})`);
    await this.#addLinks(records);
  }

  async #addLinks(records: readonly StagedRecord[]): Promise<void> {
    const links = records.flatMap(({ line, id, links: given }) =>
      [...given].flatMap(([relation, targets]) =>
        [...new Set(targets)].map((target) => ({ line, id, relation, target })),
      ),
    );
    if (links.length === 0) return;
    await this.#tx.run(sql`
      INSERT INTO ${LINKS} (line, relation, source, target)
      SELECT *
        FROM unnest(
          ${param(
            'int8[]',
            links.map(({ line }) => line),
          )},
          ${param(
            'text[]',
            links.map(({ relation }) => relation),
          )},
          ${param(
            'uuid[]',
            links.map(({ id }) => id),
          )},
          ${param(
            'uuid[]',
            links.map(({ target }) => target),
          )})`);
  }

  /** Finds the records that are there already, then everything that the database would refuse. */
  async check(): Promise<readonly ImportError[]> {
    await this.#tx.run(sql`ANALYZE ${STAGE}`);
    const errors = [
      await this.#match(),
      await this.#checkTenant(),
      await new UniqueCheck(this.#tx, {
        schema: this.#schema,
        collection: this.#collection,
        members: this.#members,
      }).errors(),
      await this.#checkReferences(),
      await this.#checkLinks(),
      await this.#checkConstraints(),
    ];
    return errors.flat();
  }

  async #match(): Promise<readonly ImportError[]> {
    const upsert = this.#upsert;
    const table = tableOf(this.#collection);
    if (upsert === undefined) return [];
    const column = ident(upsert.column);
    const absent = await this.#errors(
      sql`SELECT s._line, NULL FROM ${STAGE} AS s WHERE s.${column} IS NULL`,
      () => `\`${upsert.name}\` must have a value: records are found by it`,
    );
    const other = await this.#errors(
      sql`
      SELECT s._line, t.id::text
        FROM ${STAGE} AS s
        JOIN ${table} AS t ON t.${column} = s.${column}
       WHERE t.id <> s.id AND 'id' = ANY(string_to_array(s._given, ','))`,
      (id) => `another record, ${id}, has this \`${upsert.name}\``,
    );
    await this.#tx.run(sql`
      UPDATE ${LINKS} AS l
         SET source = t.id
        FROM ${STAGE} AS s
        JOIN ${table} AS t ON t.${column} = s.${column}
       WHERE l.source = s.id`);
    const stored = this.#members
      .filter(({ name }) => name !== 'id')
      .map(({ name, column }) => {
        const value = ident(column);
        return sql`${value} = CASE WHEN ${isGiven(name)} THEN s.${value} ELSE t.${value} END`;
      });
    await this.#tx.run(sql`
      UPDATE ${STAGE} AS s
         SET ${comma([raw('id = t.id, _is_stored = true'), ...stored])}
        FROM ${table} AS t
       WHERE t.${column} = s.${column}`);
    return [...absent, ...other];
  }

  async #checkTenant(): Promise<readonly ImportError[]> {
    const tenancy = tenancyOf(this.#collection);
    if (tenancy === undefined) return [];
    const column = ident(tenancy.column);
    return this.#errors(
      sql`
      SELECT s._line, t.${column}::text
        FROM ${STAGE} AS s
        JOIN ${tableOf(this.#collection)} AS t ON t.id = s.id
       WHERE s._is_stored AND ${isGiven(tenancy.by)} AND t.${column} <> s.${column}`,
      (id) => `\`${tenancy.by}\` never changes; the record is of ${id}`,
    );
  }

  async #checkReferences(): Promise<readonly ImportError[]> {
    const errors: ImportError[] = [];
    for (const { name, column, references } of this.#members) {
      if (references === undefined) continue;
      const value = sql`s.${ident(column)}`;
      errors.push(
        ...(await this.#errors(
          sql`
          SELECT s._line, ${value}::text
            FROM ${STAGE} AS s
           WHERE ${value} IS NOT NULL AND NOT ${this.#exists(references, value)}`,
          (id) => `\`${name}\`: ${this.#missing(references, id)}`,
        )),
      );
    }
    return errors;
  }

  async #checkLinks(): Promise<readonly ImportError[]> {
    const errors: ImportError[] = [];
    for (const { name, collection } of manyToManyOf(this.#collection)) {
      errors.push(
        ...(await this.#errors(
          sql`
          SELECT l.line, l.target::text
            FROM ${LINKS} AS l
            JOIN ${STAGE} AS s ON s._line = l.line
           WHERE l.relation = ${text(name)} AND NOT ${this.#exists(collection, raw('l.target'))}`,
          (id) => `\`${name}\`: ${this.#missing(collection, id)}`,
        )),
      );
    }
    return errors;
  }

  /** Those that the owner of an adopted table has given it; the service makes none. */
  async #checkConstraints(): Promise<readonly ImportError[]> {
    const columns = this.#members.map(({ column }) => column);
    const constraints = await this.#tx.rows(sql`
      SELECT k.conname, pg_get_expr(k.conbin, k.conrelid)
        FROM pg_constraint k
       WHERE k.conrelid = to_regclass(quote_ident(${text(this.#collection.table)}))
         AND k.contype = 'c'
         AND NOT EXISTS (
               SELECT 1
                 FROM pg_attribute a
                WHERE a.attrelid = k.conrelid AND a.attnum = ANY(k.conkey) AND a.attname <> ALL(${param('text[]', columns)}))
       ORDER BY k.conname`);
    const errors: ImportError[] = [];
    for (const [name, condition] of constraints) {
      // As the database wrote it into its catalogue; its names are those of the columns.
      const broken = sql`SELECT _line, NULL FROM ${STAGE} WHERE NOT (${raw(condition!)})`;
      errors.push(
        ...(await this.#errors(broken, () => `expected what the constraint \`${name}\` of the database allows`)),
      );
    }
    return errors;
  }

  /** In the database, or in the file; of the tenant of the record `s` where both have one. */
  #exists(collection: string, id: Sql): Sql {
    const target = this.#schema.collections.get(collection)!;
    const [here, there] = [tenancyOf(this.#collection), tenancyOf(target)];
    const isOfTenant =
      here === undefined || there === undefined ? empty : sql` AND r.${ident(there.column)} = s.${ident(here.column)}`;
    const stored = sql`EXISTS (SELECT 1 FROM ${tableOf(target)} AS r WHERE r.id = ${id}${isOfTenant})`;
    if (target !== this.#collection) return stored;
    return sql`(${stored} OR EXISTS (SELECT 1 FROM ${STAGE} AS r WHERE r.id = ${id}${isOfTenant}))`;
  }

  #missing(collection: string, id: string): string {
    const here = tenancyOf(this.#collection);
    const isDivided = here !== undefined && tenancyOf(this.#schema.collections.get(collection)!) !== undefined;
    return `there is no record ${id} in \`${collection}\`${isDivided ? ` of the same \`${here.by}\`` : ''}`;
  }

  #errors(query: Sql, message: (cell: string) => string): Promise<readonly ImportError[]> {
    return findErrors(this.#tx, query, message);
  }

  /** → how many records were created and updated. Call it when `check` found nothing. */
  async write(now: string): Promise<{ readonly created: number; readonly updated: number }> {
    const table = tableOf(this.#collection);
    const copies = this.#copies.map(({ copy }) => ident(copy));
    const columns = [...this.#members.map(({ column }) => ident(column)), ...copies];
    const roles = this.#collection.kind === 'users' ? [raw('roles')] : [];
    const stagedRoles = roles.map(() => raw("coalesce(string_to_array(s._roles, ','), '{}')"));
    const parking = new Parking(this.#tx, this.#schema, this.#collection);
    if (this.#upsert !== undefined) await parking.park(this.#members);
    const created = await this.#tx.run(sql`
      INSERT INTO ${table} (${comma([...columns, ...roles])})
      SELECT ${comma([...columns.map((column) => sql`s.${column}`), ...stagedRoles])}
        FROM ${STAGE} AS s
       WHERE NOT s._is_stored
       ORDER BY s._line`);
    const updated = this.#upsert === undefined ? 0 : await this.#update(table, now);
    await parking.clear();
    for (const relation of manyToManyOf(this.#collection)) await this.#writeLinks(relation);
    return { created, updated };
  }

  /** What the file leaves out stays; a value that may be parked is written. The tenant stays, and a cluster refuses to set it. */
  #update(table: Sql, now: string): Promise<number> {
    const tenancy = tenancyOf(this.#collection);
    const set = this.#members
      .filter(({ name }) => name !== 'id' && name !== tenancy?.by)
      .map((member) => {
        const column = ident(member.column);
        const otherwise = member.name === 'updated_at' ? sql`${param('timestamptz', now)}` : sql`t.${column}`;
        return sql`${column} = CASE WHEN ${isKeyGiven(member)} THEN s.${column} ELSE ${otherwise} END`;
      });
    const copies = this.#copies.map(({ name, copy }) => {
      const column = ident(copy);
      return sql`${column} = CASE WHEN ${isGiven(name)} THEN s.${column} ELSE t.${column} END`;
    });
    const version = sql`${ident(VERSION_COLUMN)} = t.${ident(VERSION_COLUMN)} + 1`;
    return this.#tx.run(sql`
      UPDATE ${table} AS t
         SET ${comma([...set, ...copies, version])}
        FROM ${STAGE} AS s
       WHERE s._is_stored AND t.id = s.id${this.#isOfTenant('t', tenancy?.column)}`);
  }

  /** ` AND t.team_id = s.team_id`. */
  #isOfTenant(alias: string, column: string | undefined): Sql {
    const tenancy = tenancyOf(this.#collection);
    if (tenancy === undefined || column === undefined) return empty;
    return sql` AND ${ident(alias, column)} = s.${ident(tenancy.column)}`;
  }

  async #writeLinks({ name, linkTable, sourceColumn, targetColumn }: ManyToMany): Promise<void> {
    const [table, source, target] = [ident(linkTable), ident(sourceColumn), ident(targetColumn)];
    const relation = text(name);
    await this.#tx.run(sql`
      DELETE FROM ${table} AS l
       USING ${STAGE} AS s
       WHERE s._is_stored AND l.${source} = s.id${this.#isOfTenant('l', LINK_TENANT_COLUMN)}
         AND ${relation} = ANY(string_to_array(s._given, ','))`);
    // Links are of the tenant of their record.
    const tenancy = tenancyOf(this.#collection);
    const columns = [...(tenancy === undefined ? [] : [ident(LINK_TENANT_COLUMN)]), source, target];
    const values = [
      ...(tenancy === undefined ? [] : [sql`s.${ident(tenancy.column)}`]),
      raw('l.source'),
      raw('l.target'),
    ];
    await this.#tx.run(sql`
      INSERT INTO ${table} (${comma(columns)})
      SELECT ${comma(values)}
        FROM ${LINKS} AS l
        JOIN ${STAGE} AS s ON s._line = l.line
       WHERE l.relation = ${relation}
      ON CONFLICT DO NOTHING`);
  }

  /** Empties the tables for the next chunk. */
  async clear(): Promise<void> {
    await this.#tx.run(sql`TRUNCATE ${STAGE}, ${LINKS}`);
  }
}
