/**
 * The statements that change the actual tables into the wanted ones, in order. Some lose data or
 * may fail on it.
 */
import type { Queryable } from '../database/contract.ts';
import type { ActualTable } from './catalog.ts';
import { type ChangeOptions, ChangingTable, quotedName } from './changing-table.ts';
import { ColumnChanges } from './column-changes.ts';
import { ConstraintChanges } from './constraint-changes.ts';
import { addForeignKey, createIndex, createTable } from './ddl.ts';
import { renamedTables } from './renamed-tables.ts';
import { ADD_TRIGRAMS, createTrigramIndex, findTrigrams, type Trigrams } from './search-columns.ts';
import type { Step } from './step.ts';
import type { Table } from './tables.ts';

interface PlanInput extends ChangeOptions {
  readonly db: Queryable;
  readonly wanted: ReadonlyMap<string, Table>;
  readonly actual: ReadonlyMap<string, ActualTable>;
  /** Tables that an earlier schema created. Other tables are never dropped. */
  readonly owned: readonly string[];
  /** Whether what the schema does not know is kept where that harms nobody. */
  readonly keepsExtra?: boolean;
}

export async function planSteps(input: PlanInput): Promise<readonly Step[]> {
  const { db, wanted, owned, keepsExtra = false } = input;
  const { actual, formerNames, steps: renames } = renamedTables(wanted, input.actual);
  const storedTable = (name: string): string | undefined =>
    actual.has(name) ? (formerNames.get(name) ?? name) : undefined;
  const steps: Step[] = [...renames];
  const after: Step[] = [];
  const search = new SearchIndexes(await findTrigrams(db));
  for (const table of wanted.values()) {
    const existing = actual.get(table.name);
    if (!existing) {
      steps.push(...createTable(table).map((sql) => ({ sql })));
      after.push(...table.foreignKeys.map((key) => ({ sql: addForeignKey(table.name, key) })));
      after.push(...table.indexes.map((columns) => ({ sql: createIndex(table.name, columns) })));
      search.addNew(table);
      continue;
    }
    const named = { ...existing, name: storedTable(table.name) ?? table.name };
    const changing = new ChangingTable({ db, table, actual: named, storedTable, options: input });
    const columns = new ColumnChanges(changing);
    const constraints = new ConstraintChanges(changing);
    steps.push(...columns.renames(), ...(await constraints.stepsBefore()), ...(await columns.steps()));
    if (keepsExtra) steps.push(...columns.relaxations());
    after.push(...(await constraints.stepsAfter()));
    await search.addTo(constraints);
  }
  const all = [...steps, ...dropTables({ owned, wanted, actual }), ...after, ...search.steps];
  return keepsExtra ? all.filter(({ isExtra }) => isExtra !== true) : all;
}

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
