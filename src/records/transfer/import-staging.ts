/**
 * The records of an import in temporary tables of its transaction: checked there as a whole, and
 * then written by a few statements.
 */
import type { Transaction } from '../../database/contract.ts';
import { fold } from '../../policy/fold.ts';
import { valueReferringTo } from '../../policy/stored-rows.ts';
import type { Scalar } from '../../policy/values.ts';
import { type Collection, type ManyToMany, type Schema, tenantKeyOf } from '../../schema/model/model.ts';
import { VERSION_COLUMN } from '../../schema/model/stored-names.ts';
import { ident, join, param, raw, regclassOf, type Sql, sql, text } from '../../sql.ts';
import { overridingIds } from '../new-ids.ts';
import { type RecordKey, recordKeyIn, recordKeyOf } from '../record-key.ts';
import { everyTenant, Scope, type ScopedRows } from '../scope.ts';
import { type AskedCheck, failsStored } from '../write/checks.ts';
import { RowHistory } from '../write/row-history.ts';
import { logAsBulk } from './bulk-changes.ts';
import { KeyedReferences, stagedType } from './keyed-references.ts';
import { manyToManyOf, type StoredMember } from './members.ts';
import type { ImportError, StagedRecord, TargetKey } from './read-record.ts';
import {
  comma,
  findErrors,
  type ImportCheck,
  isGiven,
  isKeyGiven,
  LINKS,
  STAGE,
  type StagedValues,
} from './staging-tables.ts';
import { SwappedValues } from './swapped-values.ts';
import { uniqueChecks } from './unique-checks.ts';

/** The member that identifies a stored record; it can be `id`. */
export type StagedUpsert = StoredMember;

interface StagingPlan {
  readonly schema: Schema;
  readonly collection: Collection;
  readonly members: readonly StoredMember[];
  readonly upsert?: StagedUpsert | undefined;
  /** Relations whose records the file names by a unique field. */
  readonly keyed: ReadonlyMap<string, TargetKey>;
}

const foldedOf = (value: Scalar | null | undefined): string | null => (typeof value === 'string' ? fold(value) : null);

export class ImportStaging {
  readonly #tx: Transaction;
  readonly #schema: Schema;
  readonly #collection: Collection;
  readonly #members: readonly StoredMember[];
  readonly #upsert: StagedUpsert | undefined;
  /** The stored records `t`. */
  readonly #stored: ScopedRows;
  /** Reaches the tenant of the staged record `s`. */
  readonly #staged: Scope;
  readonly #references: KeyedReferences;

  constructor(tx: Transaction, { schema, collection, members, upsert, keyed }: StagingPlan) {
    this.#tx = tx;
    this.#schema = schema;
    this.#collection = collection;
    this.#members = members;
    this.#upsert = upsert;
    this.#stored = everyTenant(schema).from(collection.name, 't');
    const tenant = tenantKeyOf(collection);
    this.#staged = new Scope(schema, tenant && ident('s', tenant.column));
    this.#references = new KeyedReferences(schema, collection, { staged: this.#staged, keyed });
  }

  get #key(): RecordKey {
    return recordKeyOf(this.#collection);
  }

  get #isSame(): Sql {
    return sql`${this.#key.of('t')} = ${this.#key.of('s')}`;
  }

  /** The folded copies of search fields. */
  get #copies(): readonly { readonly name: string; readonly copy: string }[] {
    return this.#members.flatMap(({ name, copy }) => (copy === undefined ? [] : [{ name, copy }]));
  }

  /** No field begins with an underscore, so the first columns belong to no member. */
  async open(): Promise<void> {
    const members = this.#members.map((member) => sql`${ident(member.column)} ${stagedType(member)}`);
    const columns = [...members, ...this.#copies.map(({ copy }) => sql`${ident(copy)} text`)];
    await this.#tx.run(sql`
      CREATE TEMPORARY TABLE ${STAGE} (
        _line int8 NOT NULL, _given text NOT NULL, _roles text, _is_stored bool NOT NULL DEFAULT false,
        ${comma(columns)}${this.#references.columns}
      ) ON COMMIT DROP`);
    await this.#tx.run(sql`
      CREATE TEMPORARY TABLE ${LINKS} (
        line int8 NOT NULL, relation text NOT NULL, 
        source text COLLATE "C" NOT NULL, target text COLLATE "C"${this.#references.linkColumns}
      )
      ON COMMIT DROP`);
  }

  async add(records: readonly StagedRecord[]): Promise<void> {
    if (records.length === 0) return;
    await this.#insert(STAGE, [
      [raw('_line'), 'int8[]', records.map(({ line }) => line)],
      [raw('_given'), 'text[]', records.map(({ given }) => [...given].join(','))],
      [raw('_roles'), 'text[]', records.map(({ roles }) => (roles === undefined ? null : roles.join(',')))],
      ...this.#members.map(
        ({ name, column, arrayType, castTo }) =>
          [ident(column), arrayType, records.map(({ values }) => values.get(name) ?? null), castTo] as const,
      ),
      ...this.#copies.map(
        ({ name, copy }) => [ident(copy), 'text[]', records.map(({ values }) => foldedOf(values.get(name)))] as const,
      ),
      ...this.#references.valuesOf(records),
    ]);
    await this.#addLinks(records);
  }

  async #addLinks(records: readonly StagedRecord[]): Promise<void> {
    const links = records.flatMap(({ line, id, links: given, keys }) =>
      [...given.keys()].flatMap((relation) => [
        ...[...new Set(given.get(relation))].map((target) => ({ line, id, relation, target, key: undefined })),
        ...[...new Set(keys.get(relation))].map((key) => ({ line, id, relation, target: null, key })),
      ]),
    );
    if (links.length === 0) return;
    await this.#insert(LINKS, [
      [raw('line'), 'int8[]', links.map(({ line }) => line)],
      [raw('relation'), 'text[]', links.map(({ relation }) => relation)],
      [raw('source'), 'text[]', links.map(({ id }) => id)],
      [raw('target'), 'text[]', links.map(({ target }) => target)],
      ...this.#references.linkValuesOf(links),
    ]);
  }

  async #insert(table: Sql, columns: readonly StagedValues[]): Promise<void> {
    const names = comma(columns.map(([column]) => column));
    const cells = columns.map(([column, , , castTo]) =>
      castTo === undefined ? column : sql`${column}::${raw(castTo)}`,
    );
    await this.#tx.run(sql`
      INSERT INTO ${table} (${names})
      SELECT ${comma(cells)}
        FROM unnest(${comma(columns.map(([, type, values]) => sql`${param(type, values)}`))}) AS given (${names})`);
  }

  /** Finds the records that are there already, then everything that the database would refuse. */
  async check(): Promise<readonly ImportError[]> {
    await this.#tx.run(sql`ANALYZE ${STAGE}`);
    await this.#references.resolveStored(this.#tx);
    const unmatched = await this.#match();
    await this.#references.resolveStaged(this.#tx);
    const checks = [
      ...this.#references.checks,
      ...this.#tenantChecks(),
      ...uniqueChecks({ schema: this.#schema, collection: this.#collection, members: this.#members }),
      ...this.#referenceChecks(),
      ...this.#linkChecks(),
      ...(await this.#constraintChecks()),
    ];
    return [...unmatched, ...(await findErrors(this.#tx, checks))];
  }

  /** Removes the records with an error, and those that refer to them in the file. */
  async leaveOut(errors: readonly ImportError[]): Promise<void> {
    let left = errors;
    while (left.length > 0) {
      const lines = param(
        'int8[]',
        left.map(({ line }) => line ?? null),
      );
      await this.#tx.run(sql`DELETE FROM ${LINKS} WHERE line = ANY(${lines})`);
      await this.#tx.run(sql`DELETE FROM ${STAGE} WHERE _line = ANY(${lines})`);
      left = await findErrors(this.#tx, [...this.#referenceChecks(), ...this.#linkChecks()]);
    }
  }

  async #match(): Promise<readonly ImportError[]> {
    const upsert = this.#upsert;
    if (upsert === undefined) return [];
    const column = ident(upsert.column);
    const absent = sql`SELECT s._line, NULL FROM ${STAGE} AS s WHERE s.${column} IS NULL`;
    const isSame = sql`t.${column} = s.${column}`;
    const [stored, staged] = [this.#key.of('t'), this.#key.of('s')];
    const isOther = sql`${stored} <> ${staged} AND ${isGiven('id')}`;
    const others = this.#stored.beside(sql`${STAGE} AS s`).where(isSame, isOther);
    const errors = await findErrors(this.#tx, [
      [absent, () => `\`${upsert.name}\` must have a value: records are found by it`],
      [
        sql`SELECT s._line, ${stored}::text FROM ${others}`,
        (id) => `another record, ${id}, has this \`${upsert.name}\``,
      ],
    ]);
    await this.#tx.run(sql`
      UPDATE ${LINKS} AS l
         SET source = ${stored}::text
        FROM ${this.#stored.beside(sql`${STAGE} AS s`).where(isSame, sql`l.source = ${staged}::text`)}`);
    const kept = this.#members
      .filter(({ name }) => name !== 'id')
      .map(({ name, column }) => {
        const value = ident(column);
        return sql`${value} = CASE WHEN ${isGiven(name)} THEN s.${value} ELSE t.${value} END`;
      });
    await this.#tx.run(sql`
      UPDATE ${STAGE} AS s
         SET ${comma([sql`${ident(this.#key.column)} = ${stored}, _is_stored = true`, ...kept])}
        FROM ${this.#stored.where(isSame)}`);
    return errors;
  }

  #tenantChecks(): readonly ImportCheck[] {
    const tenant = tenantKeyOf(this.#collection);
    if (tenant === undefined) return [];
    const column = ident(tenant.column);
    const isChanged = sql`${this.#isSame} AND s._is_stored AND ${isGiven(tenant.by)} AND t.${column} <> s.${column}`;
    const changed = this.#stored.beside(sql`${STAGE} AS s`).where(isChanged);
    const message = (id: string): string => `\`${tenant.by}\` never changes; the record is of ${id}`;
    return [[sql`SELECT s._line, t.${column}::text FROM ${changed}`, message]];
  }

  #referenceChecks(): readonly ImportCheck[] {
    return this.#members.flatMap(({ name, column, references }): readonly ImportCheck[] => {
      if (references === undefined) return [];
      const value = sql`s.${ident(column)}`;
      const unknown = sql`
        SELECT s._line, ${value}::text
          FROM ${STAGE} AS s
         WHERE ${value} IS NOT NULL AND NOT ${this.#exists(references, value)}`;
      return [[unknown, (id) => `\`${name}\`: ${this.#missing(references, id)}`]];
    });
  }

  #linkChecks(): readonly ImportCheck[] {
    return manyToManyOf(this.#collection).map(({ name, collection }) => {
      const unknown = sql`
        SELECT l.line, l.target::text
          FROM ${LINKS} AS l
          JOIN ${STAGE} AS s ON s._line = l.line
         WHERE l.relation = ${text(name)} AND l.target IS NOT NULL AND NOT ${this.#exists(collection, this.#linked('target', collection))}`;
      return [unknown, (id) => `\`${name}\`: ${this.#missing(collection, id)}`];
    });
  }

  /** The CHECK constraints of an adopted table; the service makes none. */
  async #constraintChecks(): Promise<readonly ImportCheck[]> {
    const columns = this.#members.map(({ column }) => column);
    const constraints = await this.#tx.rows(sql`
      SELECT k.conname, pg_get_expr(k.conbin, k.conrelid)
        FROM pg_constraint k
       WHERE k.conrelid = ${regclassOf(this.#collection.table)}
         AND k.contype = 'c'
         AND NOT EXISTS (
               SELECT 1
                 FROM pg_attribute a
                WHERE a.attrelid = k.conrelid AND a.attnum = ANY(k.conkey) AND a.attname <> ALL(${param('text[]', columns)}))
       ORDER BY k.conname`);
    return constraints.map(([name, condition]) => [
      // The catalogue's own text, which names columns.
      sql`SELECT _line, NULL FROM ${STAGE} WHERE NOT (${raw(condition!)})`,
      () => `expected what the constraint \`${name}\` of the database allows`,
    ]);
  }

  /** The record exists in the database or in the file, in the tenant of the record `s` where both have one. */
  #exists(collection: string, id: Sql): Sql {
    const target = this.#schema.collections.get(collection)!;
    const isReferenced = sql`${recordKeyOf(target).of('r')} = ${id}`;
    const stored = sql`EXISTS (SELECT 1 FROM ${this.#staged.from(collection, 'r').where(isReferenced)})`;
    if (target !== this.#collection) return stored;
    const conditions = [isReferenced, ...this.#staged.isOfTenant(collection, 'r')];
    return sql`(${stored} OR EXISTS (SELECT 1 FROM ${STAGE} AS r WHERE ${join(conditions, ' AND ')}))`;
  }

  #missing(collection: string, id: string): string {
    const tenant = tenantKeyOf(this.#collection);
    const hasTenant = tenant !== undefined && this.#staged.isOfTenant(collection, 'r').length > 0;
    return `there is no record ${id} in \`${collection}\`${hasTenant ? ` of the same \`${tenant.by}\`` : ''}`;
  }

  /** The value of the staged record `s` in the column of its table. */
  #storedValue({ column, columnCast, references, referencesBy }: StoredMember): Sql {
    const value = sql`s.${ident(column)}`;
    if (columnCast !== undefined) return sql`${value}::${raw(columnCast)}`;
    if (referencesBy === undefined) return value;
    const stored = valueReferringTo(value, { references: referencesBy });
    if (references !== this.#collection.name) return stored;
    // The statement does not see the rows that it inserts.
    const { column: referenced, key } = referencesBy;
    return sql`coalesce(${stored}, (SELECT ${ident('r', referenced)} FROM ${STAGE} AS r WHERE ${ident('r', key)} = ${value}))`;
  }

  /** → how many records were created and updated. Call it when `check` found nothing. */
  async write(now: string): Promise<{ readonly created: number; readonly updated: number }> {
    const copies = this.#copies.map(({ copy }) => ident(copy));
    const members = await this.#inserted();
    const columns = [...members.map(({ column }) => ident(column)), ...copies];
    const staged = [...members.map((member) => this.#storedValue(member)), ...copies.map((copy) => sql`s.${copy}`)];
    const roles = this.#collection.kind === 'users' ? [raw('roles')] : [];
    const stagedRoles = roles.map(() => raw("coalesce(string_to_array(s._roles, ','), '{}')"));
    const swapped = new SwappedValues(this.#tx, this.#schema, this.#collection);
    await logAsBulk(this.#tx, this.#schema, this.#collection);
    if (this.#upsert !== undefined) await swapped.free(this.#members);
    const history = await this.#historyBefore();
    const created = await this.#tx.run(sql`
      INSERT INTO ${this.#staged.into(this.#collection.name, 't')} (${comma([...columns, ...roles])})${overridingIds(this.#collection)}
      SELECT ${comma([...staged, ...stagedRoles])}
        FROM ${STAGE} AS s
       WHERE NOT s._is_stored
       ORDER BY s._line`);
    const updated = this.#upsert === undefined ? 0 : await this.#update(now);
    await swapped.clear();
    if (history !== undefined)
      await history.rows.add(history.before, await history.rows.read(this.#written(raw('TRUE'))));
    for (const relation of manyToManyOf(this.#collection)) await this.#writeLinks(relation);
    return { created, updated };
  }

  /** A column that no record gives a value has the DEFAULT of its owner. */
  async #inserted(): Promise<readonly StoredMember[]> {
    const stored = this.#members.filter(({ isComputed }) => !isComputed);
    if (this.#collection.managed) return stored;
    const isSet = stored.map(
      (member) => sql`bool_or(${isKeyGiven(member)} OR ${ident('s', member.column)} IS NOT NULL)`,
    );
    const [row] = await this.#tx.rows(sql`SELECT ${comma(isSet)} FROM ${STAGE} AS s WHERE NOT s._is_stored`);
    return stored.filter((_, i) => row?.[i] !== 'f');
  }

  /** The stored records `t` of the staged ones, with the text that follows FROM. */
  #written(condition: Sql): Sql {
    const both = this.#staged.stored(this.#collection.name, 't').beside(sql`${STAGE} AS s`);
    return both.where(this.#isSame, condition);
  }

  /** Undefined: a trigger writes the history, or the collection has none. */
  async #historyBefore() {
    if (this.#collection.history?.table === undefined) return undefined;
    const rows = new RowHistory({ store: { schema: this.#schema }, q: this.#tx }, this.#collection);
    return { rows, before: await rows.read(this.#written(raw('s._is_stored'))) };
  }

  /** The records that fail the checks, after `write`. */
  failed(asked: readonly AskedCheck[]): Promise<readonly ImportError[]> {
    const rows = this.#staged.from(this.#collection.name, 't');
    const both = rows.beside(sql`${STAGE} AS s`);
    const stored = { schema: this.#schema, collection: this.#collection, rows };
    const checks = asked.map(({ check: { name, message }, violation }): ImportCheck => {
      const failing = both.where(this.#isSame, failsStored(stored, violation));
      return [sql`SELECT s._line, NULL FROM ${failing}`, () => `${message} (check \`${name}\`)`];
    });
    return findErrors(this.#tx, checks);
  }

  /**
   * Members that the file leaves out keep their value; those that may have been freed are written. The
   * tenant never changes, and a cluster rejects an UPDATE that sets it.
   */
  #update(now: string): Promise<number> {
    const tenant = tenantKeyOf(this.#collection);
    const set = this.#members
      .filter(({ name, isComputed }) => name !== 'id' && name !== tenant?.by && !isComputed)
      .map((member) => {
        const column = ident(member.column);
        const otherwise = member.name === 'updated_at' ? sql`${param('timestamptz', now)}` : sql`t.${column}`;
        return sql`${column} = CASE WHEN ${isKeyGiven(member)} THEN ${this.#storedValue(member)} ELSE ${otherwise} END`;
      });
    const copies = this.#copies.map(({ name, copy }) => {
      const column = ident(copy);
      return sql`${column} = CASE WHEN ${isGiven(name)} THEN s.${column} ELSE t.${column} END`;
    });
    const version = this.#collection.countsChanges
      ? [sql`${ident(VERSION_COLUMN)} = t.${ident(VERSION_COLUMN)} + 1`]
      : [];
    const rows = this.#staged.stored(this.#collection.name, 't').beside(sql`${STAGE} AS s`);
    return this.#tx.run(
      sql`UPDATE ${rows.set([...set, ...copies, ...version], sql`s._is_stored AND ${this.#isSame}`)}`,
    );
  }

  /** A link's id, of the type that the collection's ids have. */
  #linked(side: 'source' | 'target', collection: string): Sql {
    const { type } = recordKeyIn(this.#schema, collection);
    return sql`${ident('l', side)}::${raw(type)}`;
  }

  async #writeLinks(relation: ManyToMany): Promise<void> {
    const source = this.#linked('source', this.#collection.name);
    const target = this.#linked('target', relation.collection);
    const name = text(relation.name);
    const links = this.#staged.links(relation, this.#collection.name, 'l').beside(sql`${STAGE} AS s`);
    const isReplaced = sql`${name} = ANY(string_to_array(s._given, ','))`;
    const isOfRecord = sql`l.${ident(relation.sourceColumn)} = ${this.#key.of('s')}`;
    await this.#tx.run(sql`DELETE FROM ${links.using(raw('s._is_stored'), isOfRecord, isReplaced)}`);
    await this.#tx.run(sql`
      INSERT INTO ${this.#staged.linkInto(relation, this.#collection.name, source, target)}
        FROM ${LINKS} AS l
        JOIN ${STAGE} AS s ON s._line = l.line
       WHERE l.relation = ${name}
      ON CONFLICT DO NOTHING`);
  }

  /** Empties the tables for the next chunk. */
  async clear(): Promise<void> {
    await this.#tx.run(sql`TRUNCATE ${STAGE}, ${LINKS}`);
  }
}
