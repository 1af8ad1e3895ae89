/**
 * The only way to make SQL: fragments of the `sql` tag. A value becomes a typed parameter, or a
 * literal if the program, the schema or a policy states it; a name goes through `ident`. Input of a
 * request reaches the database only as parameters, the literals of its filters included. `text`
 * numbers the parameters; equal shapes have equal text, so the text identifies a statement.
 */
export type ElementType =
  | 'text'
  | 'uuid'
  | 'int8'
  | 'float8'
  | 'numeric'
  | 'bool'
  | 'date'
  | 'time'
  | 'timestamptz'
  | 'jsonb'
  | 'bytea'
  | 'point';
export type SqlType = ElementType | `${ElementType}[]`;

export class Param {
  readonly type: SqlType;
  readonly value: unknown;
  /** The statement needs a plan for this very value. */
  readonly isPlannedFor: boolean;

  constructor(type: SqlType, value: unknown, isPlannedFor = false) {
    this.type = type;
    this.value = value;
    this.isPlannedFor = isPlannedFor;
  }
}

/** Precedes the name of a table in the chunks of a shape. SQL has no such character. */
const TABLE_MARK = '\0';
const MARKED_TABLE = /\0((?:"(?:[^"]|"")*"\.)?"(?:[^"]|"")*")/g;

/** A fragment without its values. Fragments that are made alike share one, so its text is made once. */
class SqlShape {
  /** Always one longer than `types`. */
  readonly chunks: readonly string[];
  readonly types: readonly SqlType[];
  #text: string | undefined;

  constructor(chunks: readonly string[], types: readonly SqlType[]) {
    this.chunks = chunks;
    this.types = types;
  }

  /** The text has `$1::uuid`-style placeholders. */
  get text(): string {
    if (this.#text === undefined) {
      const [first = '', ...others] = this.chunks;
      let text = first;
      for (const [i, type] of this.types.entries()) text += `$${i + 1}::${type}${others[i]}`;
      this.#text = text.replaceAll(TABLE_MARK, '');
    }
    return this.#text;
  }
}

/** The bytes of a statement's rows, as the database sends them. */
export interface RowBytes {
  /** The parser drops the rows of a longer answer as they arrive. */
  readonly most: number;
  /** The bytes that have arrived in the last attempt. */
  read: number;
}

export class Sql {
  readonly shape: SqlShape;
  /** The params have the number and the types that the shape names. */
  readonly params: readonly Param[];
  /** Undefined: the rows have no limit. */
  readonly rowBytes: RowBytes | undefined;

  constructor(shape: SqlShape, params: readonly Param[], rowBytes?: RowBytes) {
    this.shape = shape;
    this.params = params;
    this.rowBytes = rowBytes;
  }

  get text(): string {
    return this.shape.text;
  }

  get values(): unknown[] {
    return this.params.map((param) => param.value);
  }

  /** The statement needs a custom plan. */
  get isPlannedAnew(): boolean {
    return this.params.some(({ isPlannedFor }) => isPlannedFor);
  }
}

/** The value of a parameter that each request gives, in a form. */
export class Place<Request> {
  readonly read: (request: Request) => unknown;

  constructor(read: (request: Request) => unknown) {
    this.read = read;
  }
}

/** The tenant of records, or its place in a form. */
export type TenantValue = string | Place<never>;

/**
 * A statement for all requests of one shape: its text is made once, of fragments in which parameters have places
 * instead of values, and each request fills the places. Its other parameters keep their values.
 */
export class SqlForm<Request> {
  readonly #made: Sql;

  constructor(made: Sql) {
    this.#made = made;
  }

  get text(): string {
    return this.#made.text;
  }

  fill(request: Request): Sql {
    return withValues(this.#made, (value) => (value instanceof Place ? value.read(request) : value));
  }
}

/** The same text with other values. */
export function withValues({ shape, params }: Sql, read: (value: unknown) => unknown): Sql {
  const filled = params.map((each) => {
    const value = read(each.value);
    return value === each.value ? each : new Param(each.type, value, each.isPlannedFor);
  });
  return new Sql(shape, filled);
}

/** The same about other tables. `nameOf` gets and gives quoted names. */
export function withTables({ shape, params, rowBytes }: Sql, nameOf: (table: string) => string): Sql {
  const chunks = shape.chunks.map((chunk) => chunk.replace(MARKED_TABLE, (_, table: string) => nameOf(table)));
  return new Sql(new SqlShape(chunks, shape.types), params, rowBytes);
}

/** The same statement with a plan for its very values. */
export const plannedFor = ({ shape, params }: Sql): Sql =>
  new Sql(
    shape,
    params.map(({ type, value }) => plannedParam(type, value)),
  );

type FragmentPart = Sql | Param;

/** A place in the cache: what begins with the same parts in the same order. */
class CacheNode {
  /** The shape of the parts that end here. */
  shape: SqlShape | undefined;
  next: Map<SqlShape | SqlType, CacheNode> | undefined;
}

/** The limit of the whole cache. A statement has some 5 to 140 nodes that others do not share. */
const MOST_SQL_BYTES = 16 * 1024 * 1024;
const NODE_BYTES = 400;

/**
 * The shapes of fragments, by what they are made of. Nothing in it is text of a request. Requests choose
 * what is combined, so its size is limited: a full cache drops everything, and shapes in use are soon back.
 */
class FragmentCache {
  /** Nodes by the template, or by the separator of a join. */
  readonly #roots = new Map<TemplateStringsArray | string, CacheNode>();
  readonly #texts = new Map<string, Sql>();
  readonly #names = new Map<string, Sql>();
  /** An estimate. */
  #bytes = 0;

  nodeOf(root: TemplateStringsArray | string, parts: readonly FragmentPart[]): CacheNode {
    let node = this.#roots.get(root) ?? this.#added(this.#roots, root, new CacheNode());
    for (const part of parts) {
      const key = part instanceof Param ? part.type : part.shape;
      node.next ??= new Map();
      node = node.next.get(key) ?? this.#added(node.next, key, new CacheNode());
    }
    return node;
  }

  kept(node: CacheNode, shape: SqlShape): SqlShape {
    node.shape = shape;
    this.#grow(shape.chunks.reduce((sum, { length }) => sum + length, 0));
    return shape;
  }

  text(text: string): Sql {
    const known = this.#texts.get(text);
    if (known !== undefined) return known;
    this.#grow(text.length);
    return this.#added(this.#texts, text, new Sql(new SqlShape([text], []), []));
  }

  name(name: string): Sql {
    const known = this.#names.get(name);
    return known ?? this.#added(this.#names, name, this.text(`"${name.replaceAll('"', '""')}"`));
  }

  #added<K, V>(map: Map<K, V>, key: K, value: V): V {
    this.#grow(NODE_BYTES);
    map.set(key, value);
    return value;
  }

  #grow(bytes: number): void {
    this.#bytes += bytes;
    if (this.#bytes <= MOST_SQL_BYTES) return;
    this.#roots.clear();
    this.#texts.clear();
    this.#names.clear();
    this.#bytes = 0;
  }
}

/** Process-wide: a memo of pure functions. */
const cache = new FragmentCache();

export function sql(strings: TemplateStringsArray, ...parts: readonly FragmentPart[]): Sql {
  const node = cache.nodeOf(strings, parts);
  const shape = node.shape ?? cache.kept(node, combinedShape(strings, parts));
  return new Sql(shape, paramsOf(parts));
}

/** The fragments, with the separator between them. */
export function join(parts: readonly Sql[], separator: string): Sql {
  const node = cache.nodeOf(separator, parts);
  const strings = (): string[] => [...parts.map((_, i) => (i === 0 ? '' : separator)), ''];
  const shape = node.shape ?? cache.kept(node, combinedShape(strings(), parts));
  return new Sql(shape, paramsOf(parts));
}

/** @param strings around and between the parts, one more than these */
function combinedShape(strings: readonly string[], parts: readonly FragmentPart[]): SqlShape {
  const chunks: string[] = [strings[0]!];
  const types: SqlType[] = [];
  parts.forEach((part, i) => {
    if (part instanceof Param) {
      types.push(part.type);
      chunks.push('');
    } else {
      const { shape } = part;
      chunks[chunks.length - 1] += shape.chunks[0]!;
      chunks.push(...shape.chunks.slice(1));
      types.push(...shape.types);
    }
    chunks[chunks.length - 1] += strings[i + 1]!;
  });
  return new SqlShape(chunks, types);
}

function paramsOf(parts: readonly FragmentPart[]): readonly Param[] {
  const params: Param[] = [];
  for (const part of parts) {
    if (part instanceof Param) params.push(part);
    else for (const each of part.params) params.push(each);
  }
  return params;
}

export const param = (type: SqlType, value: unknown): Param => new Param(type, value);
/** Forces a custom plan: PostgreSQL estimates the rows for this value, whichever values the same text had before. */
export const plannedParam = (type: SqlType, value: unknown): Param => new Param(type, value, true);
export const uuid = (value: string | Place<never> | null): Param => param('uuid', value);
export const text = (value: string | null): Param => param('text', value);
/** An interval. */
/** A column of type timestamptz, printed as answers have it. */
export const apiTime = (column: Sql): Sql =>
  sql`to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`;

export const seconds = (value: number): Sql => sql`${param('float8', value)} * interval '1 second'`;

/** A value that is part of the text, so that every plan knows it: the program, the schema or a policy states it. */
export const typedLiteral = (type: SqlType, value: unknown): Sql => raw(typedText(type, value));

function typedText(type: SqlType, value: unknown): string {
  return Array.isArray(value) ? `ARRAY[${value.map(literal).join(', ')}]::${type}` : `${literal(value)}::${type}`;
}

/**
 * Quoted unless it is a plain int; its type follows. E'' reads the same under every
 * standard_conforming_strings.
 */
function literal(value: unknown): string {
  const text = String(value).replaceAll("'", "''");
  if (typeof value === 'number' && /^[0-9]+$/.test(text)) return text;
  return text.includes('\\') ? `E'${text.replaceAll('\\', '\\\\')}'` : `'${text}'`;
}

/** A string as a literal, where the column that it meets decides its type. */
export const quotedText = (text: string): string => `'${text.replaceAll("'", "''")}'`;
/** `'it''s'` → `it's`. */
export const unquotedText = (literal: string): string => literal.slice(1, -1).replaceAll("''", "'");

/** A quoted name, or that of a table or an alias and its column. Names come from the schema, never from a request. */
export const ident = (name: string, column?: string): Sql =>
  column === undefined ? cache.name(name) : sql`${cache.name(name)}.${cache.name(column)}`;

/** The quoted name of a table: `orders` of the current schema, or `shop.orders` of another one. */
export function tableIdent(table: string): Sql {
  const dot = table.indexOf('.');
  return sql`${tableMark}${dot < 0 ? ident(table) : ident(table.slice(0, dot), table.slice(dot + 1))}`;
}

/** The other schemas in which some of the tables lie. */
export function schemasOfTables(tables: Iterable<string>): readonly string[] {
  const qualified = [...tables].filter((table) => table.includes('.'));
  return [...new Set(qualified.map((table) => table.slice(0, table.indexOf('.'))))];
}

/** The oid of a table; NULL if there is none. */
export const regclassOf = (table: string): Sql => sql`to_regclass(${text(tableIdent(table).text)})`;

/** The quoted name of an object that is in the schema of the table, such as an index. */
export const identBeside = (table: string, name: string): Sql =>
  table.includes('.') ? ident(table.slice(0, table.indexOf('.')), name) : ident(name);

/** SQL text of this program. Never call it with input of any kind. */
export const raw = (text: string): Sql => cache.text(text);

export const empty: Sql = raw('');
const tableMark = raw(TABLE_MARK);

/** The source of an INSERT: one row, or none where the part `from` of its statement has none. */
export const rowFrom = (row: Sql, from: Sql | undefined): Sql =>
  from === undefined ? sql`VALUES (${row})` : sql`SELECT ${row} FROM ${from}`;

/** The same condition, which no index finds and no join: each row that another one finds is tested by itself. */
export const tested = (condition: Sql): Sql => sql`(${condition}) IS TRUE`;
