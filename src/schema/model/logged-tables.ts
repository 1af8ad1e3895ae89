/** The feeds of changes: which collections have one, and the tables whose changes the log holds for them. */
import { policyNeedsOf } from '../../policy/analyse/policy-needs.ts';
import { keyOf, type Need, type Policy } from '../../policy/types.ts';
import { columnTypeOfField, keyKindIn, keyKindOf } from '../fields/index.ts';
import type { Path, Report } from '../file/issue.ts';
import type { CollectionShape } from '../file/shape.ts';
import { secondsOf } from '../file/units.ts';
import type { ChangeFeed, Collection, Schema } from './model.ts';
import { DEFAULT_RETENTION } from './settings/defaults.ts';

const LONGEST_RETENTION = '30d';

interface FeedDeclaration {
  readonly shape: CollectionShape;
  readonly path: Path;
}

export function feedOf({ shape, path }: FeedDeclaration, report: Report): { readonly feed?: ChangeFeed } {
  const { changes = false } = shape;
  if (changes === false) return {};
  const { retention = DEFAULT_RETENTION } = changes === true ? {} : changes;
  const seconds = secondsOf(retention);
  if (seconds > secondsOf(LONGEST_RETENTION)) {
    const message = `the change log keeps changes for ${LONGEST_RETENTION} at most; found ${retention}`;
    report({
      code: 'invalid_retention',
      message,
      path: [...path, 'changes', 'retention'],
      replacement: LONGEST_RETENTION,
    });
  }
  return { feed: { retention: seconds } };
}

/** The change log holds each change of a row of this table. */
export interface LoggedTable {
  readonly table: string;
  /** The name of the collection; of a table of links, its own. */
  readonly source: string;
  /** The first one identifies the row. */
  readonly columns: readonly LoggedColumn[];
}

interface LoggedColumn {
  readonly name: string;
  /** As the migration declares it. */
  readonly type: string;
}

type FeedSchema = Pick<Schema, 'collections'>;

/** The columns of a record, in the order in which the records room reads its cells. */
function recordColumns({ key, kind, fields, relations }: Collection, schema: FeedSchema): readonly LoggedColumn[] {
  const references = [...relations.values()].filter((relation) => relation.kind === 'belongs_to');
  return [
    { name: keyOf({ key }).column, type: keyKindOf({ key }).column },
    ...(kind === 'users' ? [{ name: 'roles', type: 'text[]' }] : []),
    ...[...fields.values()].map((field) => ({ name: field.column, type: columnTypeOfField(field) })),
    ...references.map(({ column, collection }) => ({ name: column, type: keyKindIn(schema, collection).column })),
  ];
}

/**
 * The tables that the log covers: of the collections with a feed, and of all rows that decide what their subscribers see.
 *
 * @returns by the names of the tables
 */
export function loggedTablesOf(schema: FeedSchema): ReadonlyMap<string, LoggedTable> {
  const tables = new Map<string, LoggedTable>();
  for (const collection of schema.collections.values())
    if (collection.feed !== undefined)
      for (const each of tablesBehind(collection, schema)) tables.set(each.table, each);
  return tables;
}

/** The tables whose changes can change what a list of the collection shows. */
function tablesBehind(collection: Collection, schema: FeedSchema): readonly LoggedTable[] {
  const reached = new ReachedTables(schema);
  reached.addRecords(collection.name);
  for (const rule of collection.access.list) reached.addRule(rule, collection.name);
  for (const { read = [] } of collection.memberAccess.values())
    for (const rule of read) reached.addRule(rule, collection.name);
  for (const relation of collection.relations.values()) {
    if (relation.kind !== 'has_one') continue;
    const partner = schema.collections.get(relation.collection)!;
    reached.addRecords(partner.name);
    const { read = [] } = partner.memberAccess.get(relation.via) ?? {};
    for (const rule of [...partner.access.read, ...read]) reached.addRule(rule, partner.name);
  }
  return reached.tables;
}

export class ReachedTables {
  readonly #schema: FeedSchema;
  readonly #tables = new Map<string, LoggedTable>();

  constructor(schema: FeedSchema) {
    this.#schema = schema;
  }

  get tables(): readonly LoggedTable[] {
    return [...this.#tables.values()];
  }

  addRecords(name: string): void {
    const collection = this.#schema.collections.get(name)!;
    const { table } = collection;
    this.#tables.set(table, { table, source: name, columns: recordColumns(collection, this.#schema) });
  }

  addRule({ checked }: Policy, collection: string): void {
    const { record, requested } = policyNeedsOf(checked);
    this.addNeeds(record, collection);
    for (const { operand, needs } of requested) {
      if (typeof operand.type !== 'object') continue;
      this.addRecords(operand.type.id);
      this.addNeeds(needs, operand.type.id);
    }
  }

  addNeeds(needs: readonly Need[], owner: string): void {
    for (const { relation: name, needs: inner } of needs) {
      const relation = this.#schema.collections.get(owner)!.relations.get(name)!;
      if (relation.kind === 'many_to_many') {
        const { linkTable: table, sourceColumn, targetColumn } = relation;
        const columns = [
          { name: sourceColumn, type: keyKindIn(this.#schema, owner).column },
          { name: targetColumn, type: keyKindIn(this.#schema, relation.collection).column },
        ];
        this.#tables.set(table, { table, source: table, columns });
      }
      this.addRecords(relation.collection);
      this.addNeeds(inner, relation.collection);
    }
  }
}

/** Reports feeds that depend on a table which the log cannot cover. */
export function checkFeeds(schema: FeedSchema, report: Report): void {
  const byName = schema.collections;
  for (const collection of byName.values()) {
    if (collection.feed === undefined) continue;
    const path = ['collections', collection.name, 'changes'];
    for (const { source } of tablesBehind(collection, schema)) {
      if (byName.get(source)?.managed !== false) continue;
      const message =
        source === collection.name
          ? 'the table is not managed, so the service adds no trigger that would write the change log; remove it'
          : `the rules of the feed read \`${source}\`, whose table is not managed, so that nothing reports its changes; remove it`;
      report({ code: 'not_logged', message, path, at: 'key' });
    }
  }
}
