/**
 * PostgreSQL's statistics of tables: how many rows, and how often the values of indexed columns occur. They are
 * read in the background while lists use them; until they arrive, lists use the former ones.
 */
import { readTextArray } from '../../database/cells.ts';
import { type Cells, type Database, inLane } from '../../database/contract.ts';
import { asCaller, SERVICE } from '../../queued-caller.ts';
import { param, raw, type Sql, sql, tableIdent } from '../../sql.ts';

export interface ColumnStatistics {
  /** Different values. */
  readonly distinct: number;
  readonly nullShare: number;
  /** The most frequent values, as PostgreSQL prints them, and the share of the rows that have each. */
  readonly common: ReadonlyMap<string, number>;
  readonly commonShare: number;
  /** The other values in their order: between two of these lie as many rows as between the next two. Undefined: not known. */
  readonly bounds?: readonly string[] | undefined;
  /** The share of the rows that have the value of a random row. */
  readonly repeated: number;
  /** 0: the rows of a value are spread over the table; 1: they lie together. */
  readonly clustering: number;
}
export interface TableStatistics {
  readonly rows: number;
  /** The pages that hold the rows; undefined: the table has parts, which have them. */
  readonly pages?: number | undefined;
  /** Former versions of rows, as PostgreSQL counts them until a VACUUM; undefined: it does not know. */
  readonly dead?: number | undefined;
  readonly columns: ReadonlyMap<string, ColumnStatistics>;
}
/** Undefined: PostgreSQL has not looked at the table yet, or has not been asked. */
export type StatisticsOf = (table: string) => TableStatistics | undefined;

/** Milliseconds after which what is known is read anew. */
const FRESH_MS = 30_000;
/** The growth of a table that triggers our own ANALYZE. */
const GROWTH = 1.2;
const FEW_PAGES = 8;
const FEW_ROWS = 100;
const PAGE_BYTES = 8_192;
/** The bytes of a date, or of a name: many longer values take their time to read. */
const NARROW = 32;

type Analysed = Pick<Database, 'kind' | 'isCluster' | 'rows' | 'run' | 'transaction'>;

export class BackgroundStatistics {
  readonly #db: Analysed;
  /** The names of the tables, and the same in quotes. */
  readonly #tables: Sql;
  /** The bytes of tables at their last ANALYZE, which the database may refuse. */
  readonly #analysedSizes = new Map<string, number>();
  #known: ReadonlyMap<string, TableStatistics> = new Map();
  #readAt = Number.NEGATIVE_INFINITY;
  #reading: Promise<void> | undefined;

  constructor(db: Analysed, tables: readonly string[]) {
    this.#db = db;
    const quoted = tables.map((table) => tableIdent(table).text);
    this.#tables = sql`unnest(${param('text[]', tables)}, ${param('text[]', quoted)})`;
  }

  /** Never waits. */
  of(table: string): TableStatistics | undefined {
    if (performance.now() - this.#readAt > FRESH_MS) void this.refresh();
    return this.#known.get(table);
  }

  /** Does not fail: without statistics, pages are found all the same. */
  refresh(): Promise<void> {
    // The request that finds them old neither waits for them nor has to stay.
    this.#reading ??= asCaller(SERVICE, () => this.#read())
      .catch(() => undefined)
      .finally(() => {
        this.#readAt = performance.now();
        this.#reading = undefined;
      });
    return this.#reading;
  }

  async #read(): Promise<void> {
    await this.#analyse();
    // The tables of a coordinator are empty where other machines have the rows.
    const least = sql`${param('float8', this.#db.isCluster ? 1 : 0)}`;
    const rows = await inLane(this.#db, 'slow').rows(sql`
      SELECT known.name, c.reltuples, c.relpages, s.attname, s.n_distinct, s.null_frac, s.most_common_vals::text,
             s.most_common_freqs::text,
             s.correlation, CASE WHEN s.avg_width <= ${param('int8', NARROW)} THEN s.histogram_bounds::text END,
             pg_stat_get_dead_tuples(c.oid)
        FROM ${this.#tables} AS known (name, quoted)
        JOIN pg_class AS c ON c.oid = to_regclass(known.quoted)
        JOIN pg_namespace AS n ON n.oid = c.relnamespace
        LEFT JOIN pg_stats AS s ON s.schemaname = n.nspname AND s.tablename = c.relname
       WHERE c.reltuples >= ${least}
         AND c.relkind <> 'v'`);
    this.#known = tablesIn(rows);
  }

  /**
   * Analyses tables that have grown since the last look: every table in the embedded database, which
   * has no autovacuum; on PostgreSQL the partitioned tables, because autovacuum analyses partitions alone.
   */
  async #analyse(): Promise<void> {
    const isEmbedded = this.#db.kind === 'embedded';
    const hasGrown = isEmbedded ? HAS_MORE_PAGES : HAS_MORE_ROWS;
    const grown = await inLane(this.#db, 'slow').rows(sql`
      SELECT known.name, size.bytes
        FROM ${this.#tables} AS known (name, quoted)
        JOIN pg_class AS c ON c.oid = to_regclass(known.quoted)
       CROSS JOIN LATERAL (SELECT sum(pg_relation_size(p.oid)) AS bytes,
                                  sum(greatest(p.relpages, 0)) AS pages,
                                  sum(greatest(p.reltuples, 0)) FILTER (WHERE p.relkind = 'r') AS rows
                             FROM (SELECT c.oid UNION SELECT relid FROM pg_partition_tree(c.oid)) AS part (oid)
                             JOIN pg_class AS p ON p.oid = part.oid) AS size
       WHERE ${hasGrown}`);
    // Tables are analysed one after the other: requests have their turn between them.
    for (const [table, bytes] of grown) {
      const size = Number(bytes);
      if (!isEmbedded && size <= GROWTH * (this.#analysedSizes.get(table!) ?? -1)) continue;
      this.#analysedSizes.set(table!, size);
      const analyse = sql`${raw('ANALYZE')} ${tableIdent(table!)}`;
      if (isEmbedded) await this.#db.run(analyse);
      // The statistics of other tables are read all the same.
      else
        await this.#db
          .transaction((tx) => tx.run(analyse), { unlimited: true })
          .catch(() => this.#analysedSizes.delete(table!));
    }
  }
}

const HAS_MORE_PAGES = sql`c.relkind IN ('r', 'p')
         AND size.bytes > ${param('float8', PAGE_BYTES)} * (size.pages * ${param('float8', GROWTH)} + ${param('float8', FEW_PAGES)})`;
/** A negative number: no ANALYZE has run yet. Autovacuum keeps the numbers of the partitions. */
const HAS_MORE_ROWS = sql`c.relkind = 'p'
         AND (c.reltuples < 0 AND size.bytes > ${param('float8', PAGE_BYTES * FEW_PAGES)}
              OR size.rows > greatest(c.reltuples, 0) * ${param('float8', GROWTH)} + ${param('float8', FEW_ROWS)})`;

function tablesIn(rows: readonly Cells[]): ReadonlyMap<string, TableStatistics> {
  const tables = new Map<string, TableStatistics & { readonly columns: Map<string, ColumnStatistics> }>();
  for (const [name, count, held, column, ...cells] of rows) {
    const pages = Number(held) > 0 ? Number(held) : undefined;
    const dead = Number(cells.at(-1));
    const table = tables.get(name!) ?? {
      rows: Number(count),
      pages,
      dead,
      columns: new Map<string, ColumnStatistics>(),
    };
    tables.set(name!, table);
    if (column != null) table.columns.set(column, columnStatistics(cells, table.rows));
  }
  return tables;
}

function columnStatistics(
  [distinct, nulls, values, shares, correlation, bounds]: Cells,
  rows: number,
): ColumnStatistics {
  const common = new Map<string, number>();
  const frequencies = shares == null ? [] : readTextArray(shares).map(Number);
  for (const [i, value] of (values == null ? [] : readTextArray(values)).entries())
    common.set(value, frequencies[i] ?? 0);
  // Negative: a share of the rows.
  const given = Number(distinct);
  return {
    distinct: Math.max(1, given < 0 ? -given * rows : given),
    nullShare: Number(nulls),
    common,
    commonShare: sumOf(frequencies),
    bounds: bounds == null ? undefined : readTextArray(bounds),
    repeated: repeatedOf(frequencies),
    clustering: clusteringOf(correlation == null ? 0 : Number(correlation), repeatedOf(frequencies)),
  };
}

const repeatedOf = (shares: readonly number[]): number => sumOf(shares.map((share) => share * share));

/**
 * Equal values count as ordered, so that the correlation of values that are spread evenly is the
 * sum of the squares of their shares.
 */
function clusteringOf(correlation: number, even: number): number {
  return even >= 1 ? 0 : Math.max(0, (Math.abs(correlation) - even) / (1 - even));
}

const sumOf = (numbers: readonly number[]): number => numbers.reduce((sum, each) => sum + each, 0);
