/**
 * The statements that change the actual tables into the wanted ones, in order. Some lose data or
 * may fail on it.
 */
import type { Queryable } from '../database/contract.ts';
import { ident, param, raw, type Sql, schemasOfTables, sql, tableIdent } from '../sql.ts';
import { type ActualTable, tenantColumnOf } from './catalog.ts';
import { ColumnChanges } from './column-changes.ts';
import { ConstraintChanges } from './constraint-changes.ts';
import { addForeignKey, createIndex } from './ddl.ts';
import { addExclusions, exclusionSteps, exclusionTypeSteps } from './keys/no-overlap.ts';
import { createUniqueIndexes, foldingError, uniqueIndexSteps } from './keys/unique-indexes.ts';
import { type Renamed, renamedTables } from './renamed-tables.ts';
import { ADD_TRIGRAMS, createTrigramIndex, findTrigrams, type Trigrams } from './search-columns.ts';
import type { Step } from './step.ts';
import { TableDiff, type TableDiffOptions } from './table-diff.ts';
import type { Table } from './tables.ts';
import {
  dropForeignKey,
  foreignKeysOfMoved,
  moveRows,
  needsMove,
  withoutConstraints,
  withoutLinkTenant,
} from './tenant-move.ts';
import { createStoredTable, needsFreedKeys, replicate } from './tenant-tables.ts';
import { undeclaredObjects } from './undeclared-objects.ts';

interface PlanInput extends TableDiffOptions {
  readonly db: Queryable;
  readonly wanted: ReadonlyMap<string, Table>;
  readonly actual: ReadonlyMap<string, ActualTable>;
  /** Tables that an earlier schema created. Other tables are never dropped. */
  readonly owned: readonly string[];
  readonly isCluster: boolean;
  /** Keeps tables and columns that the schema does not have, unless they hinder it. */
  readonly keepsExtra?: boolean;
}

export async function planSteps(input: PlanInput): Promise<readonly Step[]> {
  const { db, wanted, keepsExtra = false } = input;
  const renamed = renamedTables(wanted, input.actual);
  const hasSearch = [...wanted.values()].some(({ searched }) => searched.length > 0);
  // PostgreSQL lists the extensions that it could add by reading the files of all.
  const trigrams = hasSearch ? await findTrigrams(db) : 'none';
  const plan = new TablePlan(input, renamed, new SearchIndexes(trigrams));
  for (const table of wanted.values()) {
    const existing = plan.actual.get(table.name);
    if (existing === undefined) plan.create(table);
    else if (needsMove(existing, table)) await plan.move(table, existing);
    else await plan.change(table, existing);
  }
  const unfoldable = await foldingError(db, wanted.values());
  if (unfoldable !== undefined) return [unfoldable];
  const schemas = [
    ...(await missingSchemas(db, wanted)),
    ...(await exclusionTypeSteps(db, wanted.values(), input.isCluster)),
  ];
  const all = [
    ...schemas,
    ...plan.steps,
    ...dropTables({ ...input, actual: plan.actual }),
    ...plan.uniques,
    ...plan.after,
    ...plan.search.steps,
  ];
  return keepsExtra ? all.filter(({ isExtra }) => isExtra !== true) : all;
}

/** The schemas of tables that have one of their own. */
async function missingSchemas(db: Queryable, wanted: PlanInput['wanted']): Promise<readonly Step[]> {
  const names = schemasOfTables(wanted.keys());
  if (names.length === 0) return [];
  const missing = await db.rows(sql`
    SELECT name
      FROM unnest(${param('text[]', names)}) AS name
     WHERE NOT EXISTS (SELECT 1 FROM pg_namespace WHERE nspname = name)`);
  return missing.map(([name]) => ({ sql: sql`CREATE SCHEMA ${ident(name!)}` }));
}

const createExclusion = (table: Table, isCluster: boolean): readonly Step[] =>
  addExclusions(table, isCluster).map((statement) => ({ sql: statement }));

class TablePlan {
  readonly steps: Step[];
  /** The steps that follow when all tables exist: first the unique columns, which foreign keys may need. */
  readonly uniques: Step[] = [];
  readonly after: Step[] = [];
  readonly search: SearchIndexes;
  /** The tables by their new names, without the foreign keys that are dropped for a move. */
  readonly actual: ReadonlyMap<string, ActualTable>;
  readonly #input: PlanInput;
  readonly #formerNames: ReadonlyMap<string, string>;
  /** The table of the tenants → a table that is stored by them. */
  readonly #tablesByTenant = new Map<string, string>();

  constructor(input: PlanInput, { actual, formerNames, steps }: Renamed, search: SearchIndexes) {
    this.#input = input;
    this.#formerNames = formerNames;
    this.search = search;
    const { wanted } = input;
    const moved = new Set([...actual.values()].flatMap((existing) => movedName(existing, input)));
    const known = [...actual.values()].filter(({ name }) => this.#isKnown(name));
    const dropped = foreignKeysOfMoved(known, moved);
    const gone = new Set(dropped.map(({ constraint }) => constraint));
    this.steps = [...steps, ...dropped.map((key) => dropForeignKey(key, wanted.get(key.table)))];
    this.actual = new Map(
      [...actual].map(([name, table]) => [
        name,
        { ...table, constraints: table.constraints.filter((constraint) => !gone.has(constraint)) },
      ]),
    );
    for (const { name, tenantLayout } of wanted.values())
      if (tenantLayout?.kind === 'by' && actual.get(name)?.tenantLayout?.kind === 'by' && !moved.has(name))
        this.#tablesByTenant.set(tenantLayout.target, name);
  }

  create(table: Table): void {
    this.steps.push(...this.#statementsOf(table).map((statement) => ({ sql: statement })));
    this.after.push(...table.foreignKeys.map((key) => ({ sql: addForeignKey(table.name, key) })));
    this.after.push(...table.indexes.map((columns) => ({ sql: createIndex(table, columns) })));
    this.after.push(...createUniqueIndexes(table), ...createExclusion(table, this.#input.isCluster));
    this.search.addNew(table);
  }

  async change(table: Table, existing: ActualTable): Promise<void> {
    const diff = this.#diff(table, existing);
    const columns = new ColumnChanges(diff);
    const constraints = new ConstraintChanges(diff);
    const { steps } = this;
    steps.push(...columns.renames(), ...(await constraints.stepsBefore()), ...(await columns.steps()));
    if (this.#input.keepsExtra === true) steps.push(...columns.relaxations());
    if (this.#input.isCluster) steps.push(...replicate(table, existing));
    this.uniques.push(...(await constraints.uniqueSteps()));
    this.after.push(...(await constraints.stepsAfter()), ...(await uniqueIndexSteps(diff)));
    this.after.push(...(await exclusionSteps(this.#input.db, diff, this.#input.isCluster)));
    await this.search.addTo(constraints);
  }

  /** Moves the rows to other machines or partitions. */
  async move(table: Table, existing: ActualTable): Promise<void> {
    const target = withoutConstraints(existing);
    const columns = new ColumnChanges(this.#diff(withoutLinkTenant(table), target, false));
    const moved = this.#diff(table, target, false);
    const constraints = new ConstraintChanges(moved);
    const diff = this.#diff(table, existing);
    const hasRows = await diff.exists(raw('true'));
    const isKnown = (name: string): boolean => this.#isKnown(this.#newName(name));
    const undeclared = await undeclaredObjects(this.#input.db, { actual: diff.actual, wanted: table, isKnown });
    this.steps.push(...columns.renames(), ...(await columns.steps()));
    const create = this.#statementsOf({ ...table, uniques: [] });
    this.steps.push(...moveRows({ actual: existing, wanted: table, create, hasRows, undeclared }));
    this.uniques.push(...(await constraints.uniqueSteps()));
    this.after.push(...(await constraints.stepsAfter()), ...(await uniqueIndexSteps(moved)));
    this.after.push(...createExclusion(table, this.#input.isCluster));
    await this.search.addTo(constraints);
  }

  /** The plan manages foreign keys of the schema's tables, and of tables of an earlier schema that it drops. */
  #isKnown(table: string): boolean {
    const { wanted, owned, keepsExtra } = this.#input;
    return wanted.has(table) || (keepsExtra !== true && owned.includes(table));
  }

  #newName(former: string): string {
    return [...this.#formerNames].find(([, name]) => name === former)?.[0] ?? former;
  }

  #statementsOf(table: Table): readonly Sql[] {
    const { tenantLayout, name } = table;
    const { isCluster } = this.#input;
    if (tenantLayout?.kind !== 'by') return createStoredTable(table, isCluster, undefined);
    const neighbour = this.#tablesByTenant.get(tenantLayout.target);
    if (neighbour === undefined) this.#tablesByTenant.set(tenantLayout.target, name);
    return createStoredTable(table, isCluster, neighbour);
  }

  #diff(table: Table, existing: ActualTable, canRunApart = this.#input.canRunApart): TableDiff {
    const storedTable = (name: string): string | undefined =>
      this.actual.has(name) ? (this.#formerNames.get(name) ?? name) : undefined;
    const hasStored = (name: string, column: string): boolean => this.actual.get(name)?.columns.has(column) === true;
    const storedColumn = (name: string, column: string): string => {
      const was = this.#input.wanted.get(name)?.columns.find((each) => each.name === column)?.was;
      return !hasStored(name, column) && was !== undefined && hasStored(name, was) ? was : column;
    };
    const isStoredKey = (name: string, column: string): boolean =>
      this.actual.get(name)?.constraints.some(({ kind, columns }) => kind !== 'f' && columns.join() === column) ===
      true;
    const storedTenant = (name: string): string | undefined => tenantColumnOf(this.actual.get(name));
    const actual = { ...existing, name: storedTable(table.name) ?? table.name };
    const options = { ...this.#input, canRunApart };
    const known = { storedTable, hasStored, storedColumn, isStoredKey, storedTenant };
    return new TableDiff({ db: this.#input.db, table, actual, ...known, options });
  }
}

/** The name of a table whose foreign keys are dropped before it is stored in another way. */
function movedName(existing: ActualTable, { wanted, isCluster }: PlanInput): readonly string[] {
  const table = wanted.get(existing.name);
  const isMoved = table !== undefined && (needsMove(existing, table) || (isCluster && needsFreedKeys(existing, table)));
  return isMoved ? [table.name] : [];
}

/** Collects the missing trigram indexes, if the database can have them. */
class SearchIndexes {
  readonly #trigrams: Trigrams;
  readonly #steps: Step[] = [];

  constructor(trigrams: Trigrams) {
    this.#trigrams = trigrams;
  }

  addNew({ name, searched }: Table): void {
    if (this.#trigrams === 'none') return;
    const how = { schema: this.#schema, isOnline: false };
    this.#steps.push(...searched.map((column) => ({ sql: createTrigramIndex(name, column, how) })));
  }

  async addTo(table: ConstraintChanges): Promise<void> {
    if (this.#trigrams !== 'none') this.#steps.push(...(await table.searchSteps(this.#schema)));
  }

  get steps(): readonly Step[] {
    const isAdded = this.#trigrams === 'addable' && this.#steps.length > 0;
    return [...(isAdded ? [{ sql: ADD_TRIGRAMS }] : []), ...this.#steps];
  }

  get #schema(): string | undefined {
    return typeof this.#trigrams === 'string' ? undefined : this.#trigrams.schema;
  }
}

function dropTables({ owned, wanted, actual }: Pick<PlanInput, 'owned' | 'wanted' | 'actual'>): Step[] {
  const gone = owned.flatMap((name) => (wanted.has(name) ? [] : (actual.get(name) ?? [])));
  return gone.map((table) => {
    const hint = hintOfRename(table, wanted, actual);
    return {
      sql: sql`DROP TABLE ${tableIdent(table.name)} CASCADE`,
      destructive: `the schema no longer has the table "${table.name}"; its rows would be lost${hint}`,
      values: { table: table.name },
      // If it were kept, it could not be renamed once the new table exists.
      isExtra: hint === '',
    };
  });
}

/** A new table with the same columns may be this one. */
function hintOfRename(gone: ActualTable, wanted: PlanInput['wanted'], actual: PlanInput['actual']): string {
  const columnsOf = (names: Iterable<string>): string => [...names].sort().join('\0');
  const come = [...wanted.values()].find(
    ({ name, columns }) =>
      !actual.has(name) && columnsOf(columns.map((column) => column.name)) === columnsOf(gone.columns.keys()),
  );
  if (come === undefined) return '';
  const [collection, relation] = come.name.split('__');
  const [former, formerRelation] = gone.name.split('__');
  if (relation === undefined) return `; if \`${collection}\` is its new name, give that \`was: ${former}\``;
  // All link tables have the same columns, so the hint is only for a link table of the same collection.
  if (collection !== former) return '';
  return `; if \`${relation}\` of \`${collection}\` is its new name, give that \`was: ${formerRelation}\``;
}
