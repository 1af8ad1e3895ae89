/** The tables of a foreign database, as introspection sees them. */

export interface ExistingColumn {
  readonly name: string;
  /** In the format of `format_type`: `character varying(80)`. */
  readonly type: string;
  /** The type under a domain. */
  readonly base?: string;
  /** Never null; false for the columns of a view, of which PostgreSQL does not know. */
  readonly required: boolean;
  /** The default as SQL. */
  readonly default?: string;
  /** The database computes its value: `GENERATED …`, an identity, or a sequence. */
  readonly generated: boolean;
  /** No statement may set it. */
  readonly computed: boolean;
  /** Values of an enum type. */
  readonly values?: readonly string[];
  readonly collation: 'code points' | 'other' | 'nondeterministic';
}
export interface ExistingConstraint {
  readonly kind: 'p' | 'u' | 'f' | 'c' | 'x';
  readonly columns: readonly string[];
  /** In PostgreSQL's format. */
  readonly definition: string;
  /** The table that a foreign key references, by its name in a schema file. */
  readonly table?: string;
  readonly foreignColumns?: readonly string[];
  /** `pg_constraint.confdeltype`. */
  readonly onDelete?: string;
}
interface ExistingIndex {
  readonly unique: boolean;
  /** Plain columns only. */
  readonly columns: readonly string[];
}
/** A policy of PostgreSQL's row security. */
export interface RowPolicy {
  readonly name: string;
  /** `SELECT`, `INSERT`, `UPDATE`, `DELETE` or `ALL`. */
  readonly command: string;
  readonly using?: string;
  readonly check?: string;
}
type TableKind = 'table' | 'view' | 'partition' | 'foreign table';
export interface ExistingTable {
  readonly schema: string;
  readonly name: string;
  /** The name in a schema file: `orders` of the current schema, `shop.orders` of another one. */
  readonly table: string;
  readonly kind: TableKind;
  /** The table whose partition, or child, it is. */
  readonly partOf?: string;
  /** The extension that made it. */
  readonly extension?: string;
  /** The statements that PostgreSQL takes for it, of INSERT, UPDATE and DELETE. */
  readonly writes: readonly string[];
  /** Row security is enabled; `active`: it holds for the user of this connection. */
  readonly rowSecurity?: { readonly active: boolean; readonly policies: readonly RowPolicy[] };
  readonly columns: readonly ExistingColumn[];
  readonly constraints: readonly ExistingConstraint[];
  /** The indexes that no constraint owns. */
  readonly indexes: readonly ExistingIndex[];
}

type Constrained = Pick<ExistingTable, 'constraints'>;
type Indexed = Pick<ExistingTable, 'constraints' | 'indexes'>;

export const isUniqueColumn = ({ constraints, indexes }: Indexed, column: string): boolean =>
  constraints.some(({ kind, columns }) => kind === 'u' && columns.length === 1 && columns[0] === column) ||
  indexes.some(({ unique, columns }) => unique && columns.length === 1 && columns[0] === column);

/** No two rows have the same values in all the columns, of which each row may have none. */
export function areUnique({ constraints, indexes }: Indexed, columns: readonly string[]): boolean {
  const wanted = columns.toSorted().join('\0');
  const keys = [
    ...constraints.filter(({ kind }) => kind === 'u' || kind === 'p'),
    ...indexes.filter(({ unique }) => unique),
  ];
  return keys.some((key) => key.columns.toSorted().join('\0') === wanted);
}

/** The columns of the primary key. */
export const primaryKeyOf = ({ constraints }: Constrained): readonly string[] =>
  constraints.find(({ kind }) => kind === 'p')?.columns ?? [];
