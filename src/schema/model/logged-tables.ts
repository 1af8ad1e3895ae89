/** The feeds of changes: which collections have one, and the tables whose changes the log holds for them. */
import { memoizedBy } from '../../memoized.ts';
import { policyNeedsOf } from '../../policy/analyse/policy-needs.ts';
import { type CatalogManyToMany, keyOf, type Need, type Policy } from '../../policy/types.ts';
import { columnTypeOfField, keyKindIn, keyKindOf } from '../fields/index.ts';
import type { DocumentPath, Report } from '../file/issue.ts';
import type { CollectionShape } from '../file/shape.ts';
import { secondsOf } from '../file/units.ts';
import type { ChangeFeed, Collection, Schema } from './model.ts';
import { DEFAULT_RETENTION } from './settings/defaults.ts';

const LONGEST_RETENTION = '30d';

interface FeedDeclaration {
  readonly shape: CollectionShape;
  readonly path: DocumentPath;
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
  /** The collection, or the one that has the links. */
  readonly owner: string;
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
export const loggedTablesOf = memoizedBy((schema: FeedSchema): ReadonlyMap<string, LoggedTable> => {
  const tables = new Map<string, LoggedTable>();
  for (const collection of schema.collections.values())
    if (collection.feed !== undefined)
      for (const each of tablesBehind(collection, schema)) tables.set(each.table, each);
  return tables;
});

/** The tables whose changes can change what a list of the collection shows. */
function tablesBehind(collection: Collection, schema: FeedSchema): readonly LoggedTable[] {
  const reached = new ReachedTables(schema);
  reached.addRecords(collection.name);
  for (const relation of collection.relations.values()) {
    if (relation.kind === 'has_one') reached.addRecords(relation.collection);
    if (relation.kind === 'many_to_many') reached.addLinks(relation, collection.name);
  }
  for (const { rule, owner } of rulesBehind(collection, schema)) reached.addRule(rule, owner);
  return reached.tables;
}

type CheckedRule = Pick<Policy, 'checked'>;

/** A rule about the records of `owner`. */
interface OwnedRule {
  readonly rule: CheckedRule;
  readonly owner: string;
}

const ownedBy = (owner: string, rules: readonly CheckedRule[]): readonly OwnedRule[] =>
  rules.map((rule) => ({ rule, owner }));

const readRulesOfMembers = ({ memberAccess }: Collection): readonly CheckedRule[] =>
  [...memberAccess.values()].flatMap(({ read = [] }) => read);

/** The rules that decide what a list of the collection shows. */
export function rulesBehind(collection: Collection, { collections }: FeedSchema): readonly OwnedRule[] {
  const { name, access, relations } = collection;
  const hasOnes = [...relations.values()].filter((relation) => relation.kind === 'has_one');
  const partners = hasOnes.flatMap(({ collection: partner, via }) => {
    const { access: own, memberAccess } = collections.get(partner)!;
    return ownedBy(partner, [...own.read, ...(memberAccess.get(via)?.read ?? [])]);
  });
  return [...ownedBy(name, [...access.list, ...readRulesOfMembers(collection)]), ...partners];
}

/** The filter, and the rules that decide which related records and members it sees. */
export function rulesBehindFilter(filter: CheckedRule, collection: string, schema: FeedSchema): readonly OwnedRule[] {
  const walked = new ReachedTables(schema);
  walked.addRule(filter, collection);
  const collections = walked.tables.flatMap(({ source }) => schema.collections.get(source) ?? []);
  const rules = collections.flatMap((each) => ownedBy(each.name, [...each.access.read, ...readRulesOfMembers(each)]));
  return [{ rule: filter, owner: collection }, ...rules];
}

/** The rules and rows that decide about the events of a feed. */
interface FeedGrounds {
  /** The collections whose rules do. */
  readonly owners: ReadonlySet<string>;
  readonly tables: readonly LoggedTable[];
}

/** @param filters of the subscriber */
export function feedGrounds(collection: Collection, filters: readonly CheckedRule[], schema: FeedSchema): FeedGrounds {
  const ofFilters = filters.flatMap((filter) => rulesBehindFilter(filter, collection.name, schema));
  const reached = new ReachedTables(schema);
  for (const { rule, owner } of ofFilters) reached.addRule(rule, owner);
  const owners = [...rulesBehind(collection, schema), ...ofFilters].map(({ owner }) => owner);
  return {
    owners: new Set([collection.name, ...owners]),
    tables: [...tablesBehind(collection, schema), ...reached.tables],
  };
}

/** A collection that the filter depends on, and whose changes the log does not hold. */
export function unloggedBehindFilter(filter: CheckedRule, collection: string, schema: FeedSchema): string | undefined {
  const reached = new ReachedTables(schema);
  for (const { rule, owner } of rulesBehindFilter(filter, collection, schema)) reached.addRule(rule, owner);
  const logged = loggedTablesOf(schema);
  return reached.tables.find(({ table }) => !logged.has(table))?.owner;
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
    this.#tables.set(table, { table, source: name, owner: name, columns: recordColumns(collection, this.#schema) });
  }

  addLinks({ linkTable: table, sourceColumn, targetColumn, collection }: CatalogManyToMany, owner: string): void {
    const columns = [
      { name: sourceColumn, type: keyKindIn(this.#schema, owner).column },
      { name: targetColumn, type: keyKindIn(this.#schema, collection).column },
    ];
    this.#tables.set(table, { table, source: table, owner, columns });
  }

  addRule({ checked }: CheckedRule, collection: string): void {
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
      if (relation.kind === 'many_to_many') this.addLinks(relation, owner);
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
      const of = byName.get(source);
      if (of?.managed === true && !of.countsChanges) {
        const message = `the rules of the feed read \`${source}\`, whose rows have other values of related records than their ids (\`references\`); remove it`;
        report({ code: 'not_logged', message, path, at: 'key' });
      }
      if (of?.managed !== false) continue;
      const message =
        source === collection.name
          ? 'the table is not managed, so the service adds no trigger that would write the change log; remove it'
          : `the rules of the feed read \`${source}\`, whose table is not managed, so that nothing reports its changes; remove it`;
      report({ code: 'not_logged', message, path, at: 'key' });
    }
  }
}
