/**
 * The statements that change the actual tables into the wanted ones, in order. Some lose data or
 * may fail on it.
 */

import type { TenantStorage } from '../database/citus.ts';
import type { Queryable } from '../database/contract.ts';
import type { ActualTable } from './catalog.ts';
import { type ChangeOptions, ChangingTable, quotedName } from './changing-table.ts';
import { ColumnChanges } from './column-changes.ts';
import { ConstraintChanges } from './constraint-changes.ts';
import { addForeignKey, createIndex, createTable } from './ddl.ts';
import { type Divided, divided, replicate } from './division.ts';
import { lostByCopy } from './lost-by-copy.ts';
import { bare, dropKey, isMoved, keysInTheWay, ownColumns, redivide } from './redivision.ts';
import { type Renamed, renamedTables } from './renamed-tables.ts';
import { ADD_TRIGRAMS, createTrigramIndex, findTrigrams, type Trigrams } from './search-columns.ts';
import type { Step } from './step.ts';
import type { Table } from './tables.ts';

interface PlanInput extends ChangeOptions {
  readonly db: Queryable;
  readonly wanted: ReadonlyMap<string, Table>;
  readonly actual: ReadonlyMap<string, ActualTable>;
  /** Tables that an earlier schema created. Other tables are never dropped. */
  readonly owned: readonly string[];
  /** How tables are divided. */
  readonly layout: TenantStorage;
  /** Whether what the schema does not know is kept where that harms nobody. */
  readonly keepsExtra?: boolean;
}

export async function planSteps(input: PlanInput): Promise<readonly Step[]> {
  const { db, wanted, owned, keepsExtra = false } = input;
  const renamed = renamedTables(wanted, input.actual);
  const plan = new TablePlan(input, renamed, new SearchIndexes(await findTrigrams(db)));
  for (const table of wanted.values()) {
    const existing = plan.actual.get(table.name);
    if (existing === undefined) plan.create(table);
    else if (isMoved(existing, table)) await plan.move(table, existing);
    else await plan.change(table, existing);
  }
  const all = [
    ...plan.steps,
    ...dropTables({ owned, wanted, actual: plan.actual }),
    ...plan.after,
    ...plan.search.steps,
  ];
  return keepsExtra ? all.filter(({ isExtra }) => isExtra !== true) : all;
}

class TablePlan {
  readonly steps: Step[];
  /** When all tables are there. */
  readonly after: Step[] = [];
  readonly search: SearchIndexes;
  /** By their new names, without the foreign keys that stand in the way. */
  readonly actual: ReadonlyMap<string, ActualTable>;
  readonly #input: PlanInput;
  readonly #formerNames: ReadonlyMap<string, string>;
  /** By the table of the tenants: a table that is divided by them. */
  readonly #divided = new Map<string, string>();

  constructor(input: PlanInput, { actual, formerNames, steps }: Renamed, search: SearchIndexes) {
    this.#input = input;
    this.#formerNames = formerNames;
    this.search = search;
    const { wanted } = input;
    const moved = new Set([...wanted.values()].filter((table) => isMovedNow(actual, table)).map(({ name }) => name));
    const known = [...actual.values()].filter(({ name }) => this.#isKnown(name));
    const inTheWay = moved.size === 0 ? [] : keysInTheWay(known, moved);
    const gone = new Set(inTheWay.map(({ constraint }) => constraint));
    this.steps = [...steps, ...inTheWay.map((key) => dropKey(key, wanted.get(key.table)))];
    this.actual =
      gone.size === 0
        ? actual
        : new Map(
            [...actual].map(([name, table]) => [
              name,
              { ...table, constraints: table.constraints.filter((constraint) => !gone.has(constraint)) },
            ]),
          );
    for (const { name, division } of wanted.values())
      if (division?.kind === 'by' && actual.get(name)?.division?.kind === 'by' && !moved.has(name))
        this.#divided.set(division.target, name);
  }

  create(table: Table): void {
    this.steps.push(...createTable(table, this.#division(table)).map((sql) => ({ sql })));
    this.after.push(...table.foreignKeys.map((key) => ({ sql: addForeignKey(table.name, key) })));
    this.after.push(...table.indexes.map((columns) => ({ sql: createIndex(table.name, columns) })));
    this.search.addNew(table);
  }

  async change(table: Table, existing: ActualTable): Promise<void> {
    const changing = this.#changing(table, existing);
    const columns = new ColumnChanges(changing);
    const constraints = new ConstraintChanges(changing);
    const { steps } = this;
    steps.push(...columns.renames(), ...(await constraints.stepsBefore()), ...(await columns.steps()));
    if (this.#input.keepsExtra === true) steps.push(...columns.relaxations());
    if (this.#input.layout === 'citus') steps.push(...replicate(table, existing));
    this.after.push(...(await constraints.stepsAfter()));
    await this.search.addTo(constraints);
  }

  /** To other machines or partitions. */
  async move(table: Table, existing: ActualTable): Promise<void> {
    const columns = new ColumnChanges(this.#changing(ownColumns(table), bare(existing), false));
    const constraints = new ConstraintChanges(this.#changing(table, bare(existing), false));
    const changing = this.#changing(table, existing);
    const hasRows = await changing.exists('true');
    const isKnown = (name: string): boolean => this.#isKnown(this.#newName(name));
    const found = await lostByCopy(this.#input.db, { actual: changing.actual, wanted: table, isKnown });
    this.steps.push(...columns.renames(), ...(await columns.steps()));
    const divided = this.#division(table);
    this.steps.push(...redivide({ actual: existing, wanted: table, divided, hasRows, found }));
    this.after.push(...(await constraints.stepsAfter()));
    await this.search.addTo(constraints);
  }

  /** Of the schema, or of an earlier one, and dropped. */
  #isKnown(table: string): boolean {
    const { wanted, owned, keepsExtra } = this.#input;
    return wanted.has(table) || (keepsExtra !== true && owned.includes(table));
  }

  #newName(former: string): string {
    return [...this.#formerNames].find(([, name]) => name === former)?.[0] ?? former;
  }

  #division(table: Table): Divided {
    const { division, name } = table;
    if (division?.kind !== 'by') return divided(table, this.#input.layout, undefined);
    const beside = this.#divided.get(division.target);
    if (beside === undefined) this.#divided.set(division.target, name);
    return divided(table, this.#input.layout, beside);
  }

  #changing(table: Table, existing: ActualTable, canRunApart = this.#input.canRunApart): ChangingTable {
    const storedTable = (name: string): string | undefined =>
      this.actual.has(name) ? (this.#formerNames.get(name) ?? name) : undefined;
    const hasStored = (name: string, column: string): boolean => this.actual.get(name)?.columns.has(column) === true;
    const actual = { ...existing, name: storedTable(table.name) ?? table.name };
    const options = { ...this.#input, canRunApart };
    return new ChangingTable({ db: this.#input.db, table, actual, storedTable, hasStored, options });
  }
}

const isMovedNow = (actual: ReadonlyMap<string, ActualTable>, table: Table): boolean => {
  const existing = actual.get(table.name);
  return existing !== undefined && isMoved(existing, table);
};

/** Those that are missing, where the database can have them. */
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
      sql: `DROP TABLE ${quotedName(table.name)} CASCADE`,
      destructive: `the schema no longer has the table "${table.name}"; its rows would be lost${hint}`,
      values: { table: table.name },
      // Kept beside its new name, it could not become that any more.
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
  // Every link table has the same columns: only one of the same collection is meant.
  if (collection !== former) return '';
  return `; if \`${relation}\` of \`${collection}\` is its new name, give that \`was: ${formerRelation}\``;
}
