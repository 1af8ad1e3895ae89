/** The tables of a world, with a row of bits for each row: `_bit` identifies the rows in a result. */
import { heldColumn } from '../../../src/policy/condition.ts';
import { foldedColumn } from '../../../src/policy/fold.ts';
import type { Catalog, CatalogCollection, Row, ScalarType } from '../../../src/policy/types.ts';
import type { Data } from '../../oracle/database.ts';
import { folded } from '../../oracle/interpret.ts';

export interface Database {
  query(text: string, values?: readonly unknown[]): Promise<{ rows: Record<string, unknown>[] }>;
}

const COLUMN_TYPES: Readonly<Record<ScalarType, string>> = {
  string: 'text',
  int: 'bigint',
  float: 'float8',
  bool: 'boolean',
  datetime: 'timestamptz',
  date: 'date',
  decimal: 'numeric(38,19)',
  uuid: 'uuid',
  bytes: 'bytea',
  bigint: 'bigint',
  time: 'time',
  json: 'jsonb',
  point: 'point',
  'string[]': 'text[]',
  'int[]': 'bigint[]',
  'float[]': 'float8[]',
  'bool[]': 'boolean[]',
  'date[]': 'date[]',
  'datetime[]': 'timestamptz[]',
};
/** Another unique column of each table than its key, for references by it. */
const CODE = '_code';
const quoted = (name: string): string => `"${name}"`;

interface Column {
  readonly column: string;
  readonly type: string;
  readonly declared: string;
  readonly key: string;
  readonly isReference?: true;
  /** The column has the code of the related row. */
  readonly isCode?: boolean;
  /** True for the folded copy of a search field. */
  readonly isFolded?: true;
}

function cellOf(row: Row, { key, isFolded, isCode }: Pick<Column, 'key' | 'isFolded' | 'isCode'>): unknown {
  const value = row[key] ?? null;
  if (isCode && value !== null) return `code of ${String(value)}`;
  return isFolded && typeof value === 'string' ? folded(value) : value;
}

const KEY_TYPES = { uuid: 'uuid', int: 'int8', string: 'text' } as const;

function keyOf({ collections }: Catalog, name: string) {
  const { kind, column } = collections.get(name)!.key ?? { kind: 'uuid', column: 'id' };
  return { column, type: KEY_TYPES[kind] };
}

interface Declaring {
  readonly catalog: Catalog;
  readonly collate: string;
  /** The columns of rows as rules see them: references are ids. */
  readonly isWritten?: boolean;
}

function columnsOf(
  { name: own, fields, relations }: CatalogCollection,
  { catalog, collate, isWritten = false }: Declaring,
): readonly Column[] {
  const id = keyOf(catalog, own);
  const declaredAs = (type: string): string => `${type}${type === 'text' ? collate : ''}`;
  const columns: Column[] = [{ ...id, declared: `${declaredAs(id.type)} PRIMARY KEY`, key: 'id' }];
  for (const { name, column, type, required, search } of fields.values()) {
    const sqlType = COLUMN_TYPES[type];
    const declared = `${sqlType}${type === 'string' ? collate : ''}${required ? ' NOT NULL' : ''}`;
    columns.push({ column, type: sqlType, declared, key: name });
    if (search)
      columns.push({
        column: foldedColumn(column),
        type: 'text',
        declared: `text${collate}`,
        key: name,
        isFolded: true,
      });
  }
  for (const relation of relations.values()) {
    if (relation.kind !== 'belongs_to') continue;
    const isCode = !isWritten && relation.references !== undefined;
    const type = isCode ? 'text' : keyOf(catalog, relation.collection).type;
    const declared = `${declaredAs(type)}${relation.required ? ' NOT NULL' : ''}`;
    columns.push({ column: relation.column, type, declared, key: relation.name, isReference: true, isCode });
  }
  if (!isWritten) columns.push({ column: CODE, type: 'text', declared: 'text UNIQUE', key: 'id', isCode: true });
  return columns;
}

/** `collation`: how text columns are declared. The service declares them "C"; a policy must not depend on that. */
export async function createTables(
  database: Database,
  { catalog, data, collation }: { catalog: Catalog; data: Data; collation: 'declared' | 'default' },
): Promise<void> {
  const collate = collation === 'declared' ? ' COLLATE "C"' : '';
  for (const [name, collection] of catalog.collections) {
    const columns = columnsOf(collection, { catalog, collate });
    const rows = data.rows.get(name) ?? [];
    const declared = columns.map(({ column, declared }) => `${quoted(column)} ${declared}`);
    const bits = `bit(${Math.max(1, rows.length)})`;
    await database.query(`CREATE TABLE ${quoted(collection.table)} (${declared.join(', ')}, _bit ${bits})`);
    const values: unknown[] = [];
    const tuples = rows.map((row: Row, i) => {
      const cells = columns.map((column) => `$${values.push(cellOf(row, column))}::${column.type}`);
      return `(${[...cells, `B'${bitsOf(rows.length, i)}'`].join(', ')})`;
    });
    if (rows.length > 0)
      await database.query(`INSERT INTO ${quoted(collection.table)} VALUES ${tuples.join(', ')}`, values);
    const keys = columns.filter(({ isReference }) => isReference);
    for (const { column } of new Set([...columns.slice(1, 3), ...keys])) {
      await database.query(`CREATE INDEX ON ${quoted(collection.table)} (${quoted(column)})`);
    }
    for (const relation of collection.relations.values()) {
      if (relation.kind !== 'many_to_many') continue;
      const { linkTable, sourceColumn, targetColumn } = relation;
      const [source, target] = [keyOf(catalog, name).type, keyOf(catalog, relation.collection).type];
      await database.query(
        `CREATE TABLE ${quoted(linkTable)} (${quoted(sourceColumn)} ${source} NOT NULL, ${quoted(targetColumn)} ${target} NOT NULL)`,
      );
      const pairs = data.links.get(linkTable) ?? [];
      const sources = pairs.map(([source]) => source);
      const targets = pairs.map(([, target]) => target);
      await database.query(`INSERT INTO ${quoted(linkTable)} SELECT * FROM unnest($1::${source}[], $2::${target}[])`, [
        sources,
        targets,
      ]);
      for (const column of [sourceColumn, targetColumn])
        await database.query(`CREATE INDEX ON ${quoted(linkTable)} (${quoted(column)})`);
    }
  }
}

interface WrittenTable {
  readonly catalog: Catalog;
  readonly name: string;
  readonly collection: CatalogCollection;
  readonly rows: readonly Row[];
}

/** Rows that writes would make, which no path reaches: a statement names them beside the stored ones. */
export async function createWrittenTable(
  database: Database,
  { catalog, name, collection, rows }: WrittenTable,
): Promise<void> {
  const columns = [
    ...columnsOf(collection, { catalog, collate: '', isWritten: true }),
    ...heldColumnsOf(collection, catalog),
  ];
  const declared = columns.map(({ column, type }) => `${quoted(column)} ${type}`);
  await database.query(`CREATE TABLE ${quoted(name)} (${declared.join(', ')}, _bit bit(${rows.length}))`);
  const values: unknown[] = [];
  const tuples = rows.map((row, i) => {
    const cells = columns.map((column) => `$${values.push(cellOf(row, column))}::${column.type}`);
    return `(${[...cells, `B'${bitsOf(rows.length, i)}'`].join(', ')})`;
  });
  await database.query(`INSERT INTO ${quoted(name)} VALUES ${tuples.join(', ')}`, values);
  await database.query(`CREATE INDEX ON ${quoted(name)} (${quoted(columns[0]!.column)})`);
}

function heldColumnsOf({ relations }: CatalogCollection, catalog: Catalog): readonly Omit<Column, 'declared'>[] {
  return [...relations.values()].flatMap((relation) => {
    const { type } = keyOf(catalog, relation.collection);
    if (relation.kind === 'has_one') return [{ column: heldColumn(relation), type, key: relation.name }];
    if (relation.kind === 'many_to_many')
      return [{ column: heldColumn(relation), type: `${type}[]`, key: relation.name }];
    return [];
  });
}

const bitsOf = (length: number, set: number): string => `${'0'.repeat(set)}1${'0'.repeat(length - set - 1)}`;
