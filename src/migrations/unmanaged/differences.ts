/**
 * Compares the expectations of a schema with tables that other programs own: a difference that prevents their records
 * from being served is an error, any other one a note with the statement that the owner may run.
 */
import { elementOf } from '../../policy/scalar-types.ts';
import { keyOf, STAMPS } from '../../policy/types.ts';
import { columnTypeOfField, FIELD_KINDS } from '../../schema/fields/index.ts';
import { type StoredAs, withoutLength } from '../../schema/fields/kind.ts';
import { keyColumnsOf } from '../../schema/model/composite-key.ts';
import { indexesOf, uniqueColumns } from '../../schema/model/indexes.ts';
import { type BelongsTo, type Collection, type Field, madeByDatabase, type Schema } from '../../schema/model/model.ts';
import { ident, raw, type Sql, sql, tableIdent } from '../../sql.ts';
import { createUniqueIndex } from '../keys/unique-indexes.ts';
import { columnList, columnTypeOf, uniqueIndexesOf } from '../tables.ts';
import { columnsText, type OwnersColumn, type OwnersTable } from './owners-tables.ts';

export interface OwnersNote {
  readonly text: string;
  /** The statement that the owner may run. */
  readonly sql?: string;
}

export interface Differences {
  readonly errors: readonly string[];
  readonly notes: readonly OwnersNote[];
}

/** Tables of other owners lack what the schema expects of them. */
export class UnservableTables extends Error {
  constructor(errors: readonly string[]) {
    super(
      `the schema describes tables that other programs own, and the database has others:\n${errors
        .map((error) => `- ${error}`)
        .join('\n')}`,
    );
    this.name = 'UnservableTables';
  }
}

export function findDifferences(schema: Schema, owners: ReadonlyMap<string, OwnersTable>): Differences {
  const all = [...schema.collections.values()]
    .filter(({ managed }) => !managed)
    .map((collection) => new OwnersDifferences(collection, schema, owners.get(collection.table)));
  return { errors: all.flatMap(({ errors }) => errors), notes: all.flatMap(({ notes }) => notes) };
}

/** A column of the record, as the schema declares it. */
interface WantedColumn {
  readonly member: string;
  readonly column: string;
  readonly type: string;
  readonly accepted: readonly string[];
  readonly needed: boolean;
  readonly enum?: readonly unknown[] | undefined;
  /** Other types of columns, by the names of `stored_as`. */
  readonly others?: Readonly<Record<string, StoredAs>>;
}

class OwnersDifferences {
  readonly errors: string[] = [];
  readonly notes: OwnersNote[] = [];
  readonly #collection: Collection;
  readonly #table: OwnersTable;
  readonly #alter: string;

  constructor(collection: Collection, schema: Schema, table: OwnersTable | undefined) {
    this.#collection = collection;
    this.#alter = `ALTER TABLE ${tableIdent(collection.table).text}`;
    this.#table = table ?? NO_TABLE;
    if (table === undefined) {
      this.errors.push(
        `\`${collection.name}\`: the table or view "${collection.table}" does not exist; correct \`table\``,
      );
      return;
    }
    for (const wanted of wantedColumnsOf(collection, schema)) this.#compareColumn(wanted);
    this.#compareKeys(schema);
    if (!table.isView) this.#compareIndexes(schema);
    this.#noteTable(schema);
  }

  #compareColumn(wanted: WantedColumn): void {
    const { member, column, type, accepted, needed } = wanted;
    const actual = this.#table.columns.get(column);
    const name = `"${this.#collection.table}"."${column}" (\`${this.#collection.name}.${member}\`)`;
    if (actual === undefined) {
      const add = `${this.#alter} ADD COLUMN ${ident(column).text} ${columnTypeOf({ name: column, type, required: false })}`;
      const remedy = this.#table.isView
        ? 'name another column by `column`'
        : `name another column by \`column\`, or: ${add}`;
      this.errors.push(`${name} does not exist; ${remedy}`);
    } else if (actual.labels !== undefined) this.#compareLabels(name, wanted, actual.labels);
    else if (!accepted.includes(comparedType(actual.type)))
      this.errors.push(
        `${name} is ${actual.type}; expected ${accepted.join(' or ')}${storedAsHint(wanted, actual.type)}`,
      );
    else if (needed && !actual.required && !this.#table.isView)
      this.notes.push({
        text: `${name} may be null, and the schema says \`required\`: records without a value show null`,
        sql: `${this.#alter} ALTER COLUMN ${ident(column).text} SET NOT NULL`,
      });
  }

  /** The values of an enum type compare with strings that are its labels, and with nothing else. */
  #compareLabels(name: string, wanted: WantedColumn, labels: readonly string[]): void {
    const list = `[${labels.map((label) => JSON.stringify(label)).join(', ')}]`;
    if (wanted.type !== FIELD_KINDS.string.column || wanted.enum === undefined)
      this.errors.push(`${name} is of an enum type; expected a string with \`enum: ${list}\``);
    else if (!wanted.enum.every((value) => labels.includes(String(value))))
      this.errors.push(`${name} has a value in \`enum\` that its type does not have; expected of ${list}`);
  }

  #compareKeys(schema: Schema): void {
    const { name, table } = this.#collection;
    if (!this.#table.isView) this.#compareKey(keyColumnsOf(this.#collection));
    for (const columns of uniqueColumns(this.#collection)) {
      if (this.#isUnique(columns)) continue;
      const isOne = hasOneColumns(schema, this.#collection).has(columnsText(columns));
      const text = `"${table}"."${columns.join('", "')}" (\`${name}\`) is not unique, and the schema says so`;
      if (isOne) this.errors.push(`${text} by a has_one; declare a has_many`);
      else
        this.notes.push({
          text,
          ...(!this.#table.isView && { sql: `${this.#alter} ADD UNIQUE (${columnList(columns).text})` }),
        });
    }
    this.#compareUniqueIndexes();
  }

  /** A condition, or an expression, is not compared: PostgreSQL prints both in a form of its own. */
  #compareUniqueIndexes(): void {
    const { name, table } = this.#collection;
    for (const index of uniqueIndexesOf(this.#collection)) {
      const columns = columnsText([...new Set([...index.columns, ...index.whereColumns])]);
      if (this.#table.partialKeys.has(columns) || (!index.ignoresCase && this.#isUnique(index.columns))) continue;
      const text = `"${table}"."${index.columns.join('", "')}" (\`${name}\`) is not unique as the schema says`;
      this.notes.push({ text, ...(!this.#table.isView && { sql: createUniqueIndex(table, index).text }) });
    }
  }

  #compareKey(key: readonly string[]): void {
    const { name, table } = this.#collection;
    const wrong = (columns: readonly string[], what: string, remedy: string): void => {
      const place = `"${table}"."${columns.join('", "')}" (\`${name}\`)`;
      this.errors.push(`${place} ${what}; its owner may run: ${this.#alter} ${remedy}`);
    };
    if (!this.#isUnique(key)) wrong(key, 'is not unique', `ADD UNIQUE (${columnList(key).text})`);
    if (key.length === 1) return;
    for (const column of key)
      if (this.#table.columns.get(column)?.required === false)
        wrong([column], 'is in the key and may be null', `ALTER COLUMN ${ident(column).text} SET NOT NULL`);
  }

  #isUnique(columns: readonly string[]): boolean {
    const wanted = columnsText(columns);
    return this.#table.keys.some((key) => key.isUnique && columnsText(key.columns) === wanted);
  }

  #compareIndexes(schema: Schema): void {
    const { name, table, relations, fields } = this.#collection;
    for (const { columns, unique } of indexesOf(this.#collection, schema)) {
      const [first = ''] = columns;
      if (unique || this.#table.keys.some((key) => key.columns[0] === first)) continue;
      const isList = elementOf([...fields.values()].find(({ column }) => column === first)?.type ?? 'string');
      const method = raw(isList ? 'USING gin ' : '');
      const statement: Sql = sql`CREATE INDEX ON ${tableIdent(table)} ${method}(${columnList(columns)})`;
      this.notes.push({ text: `no index serves "${table}"."${first}" (\`${name}\`)`, sql: statement.text });
    }
    for (const relation of relations.values()) {
      const target = schema.collections.get(relation.collection);
      if (relation.kind !== 'belongs_to' || target === undefined) continue;
      const { columns = [relation.column], references } = relation;
      if (this.#table.references.has(columnsText(columns))) continue;
      const referenced = references === undefined ? keyColumnsOf(target) : [references.column];
      const refers = sql`FOREIGN KEY (${columnList(columns)}) REFERENCES ${tableIdent(target.table)} (${columnList(referenced)})`;
      this.notes.push({
        text: `"${table}"."${columns.join('", "')}" (\`${name}.${relation.name}\`) has no foreign key, so the record that it names may be missing`,
        sql: `${this.#alter} ADD ${refers.text}`,
      });
    }
  }

  #noteTable(schema: Schema): void {
    const { name, table, access } = this.#collection;
    const { writes, columns, hasRowSecurity } = this.#table;
    if (hasRowSecurity)
      this.notes.push({
        text: `row security of "${table}" (\`${name}\`) hides rows from the service before any policy does`,
      });
    const denied = (['create', 'update', 'delete'] as const).filter(
      (action) => access[action].length > 0 && !writes[action],
    );
    if (denied.length > 0)
      this.notes.push({
        text: `the database takes no ${denied.join(', ')} of "${table}" (\`${name}\`) from the service`,
      });
    this.#noteKeptReferences(schema);
    const key = keyOf(this.#collection).column;
    if (access.create.length > 0 && madeByDatabase(this.#collection) && columns.get(key)?.hasDefault === false)
      this.notes.push({
        text: `"${table}"."${key}" (\`${name}\`) has no default that makes ids, and no record is created without; callers may send them (\`made_by: caller\`)`,
      });
    const known = new Set(wantedColumnsOf(this.#collection, schema).map(({ column }) => column));
    const missing = [...columns]
      .filter(([column, each]) => !known.has(column) && isLacked(each))
      .map(([column]) => column);
    if (missing.length > 0 && access.create.length > 0 && writes.create)
      this.notes.push({
        text: `"${table}" (\`${name}\`) needs values of "${missing.join('", "')}", which the schema does not have: no record can be created`,
      });
  }

  /** A foreign key would clear the reference, or hold its record back. */
  #noteKeptReferences({ collections }: Schema): void {
    const { name, table, relations } = this.#collection;
    for (const relation of relations.values()) {
      if (relation.kind !== 'belongs_to' || relation.onDelete !== 'set_null') continue;
      const { column } = relation;
      const isKept = this.#table.columns.get(column)?.takesUpdates === false;
      const isDeleted = collections.get(relation.collection)!.access.delete.length > 0;
      if (!isKept || !isDeleted || this.#table.references.has(column)) continue;
      const place = `"${table}"."${column}" (\`${name}.${relation.name}\`)`;
      const text = `the database takes no update of ${place} from the service: the value stays when its record is deleted`;
      this.notes.push({ text });
    }
  }
}

const NO_TABLE: OwnersTable = {
  isView: false,
  columns: new Map(),
  keys: [],
  partialKeys: new Set(),
  references: new Set(),
  writes: { create: false, update: false, delete: false },
  hasRowLocks: false,
  hasRowSecurity: false,
};

const isLacked = ({ required, hasDefault, isWritable }: OwnersColumn): boolean => required && !hasDefault && isWritable;

/** The digits of a decimal count. */
const comparedType = (type: string): string => (type.startsWith('numeric') ? type : withoutLength(type));

const KEY_COLUMNS = {
  uuid: ['uuid'],
  int: ['bigint', 'integer', 'smallint'],
  string: ['text', 'character varying', 'character'],
};

function wantedColumnsOf(collection: Collection, { collections }: Schema): readonly WantedColumn[] {
  const { fields, relations } = collection;
  const idOf = (of: Collection): Pick<WantedColumn, 'type' | 'accepted'> => {
    const accepted = KEY_COLUMNS[keyOf(of).kind];
    return { type: accepted[0]!, accepted };
  };
  /** An enum type, and a type of `stored_as`, are compared by PostgreSQL alone: the types of both columns match there. */
  const referredTo = (
    { references }: BelongsTo,
    of: Collection,
  ): Omit<WantedColumn, 'member' | 'column' | 'needed'> => {
    const field = references && of.fields.get(references.field);
    return field === undefined ? idOf(of) : wantedColumn(field);
  };
  const { column, made } = keyOf(collection);
  const id: readonly WantedColumn[] =
    made === undefined ? [{ member: 'id', column, ...idOf(collection), needed: false }] : [];
  const references = [...relations.values()].flatMap((relation) =>
    relation.kind === 'belongs_to' && relation.columns === undefined
      ? [
          {
            ...referredTo(relation, collections.get(relation.collection)!),
            member: relation.name,
            column: relation.column,
            needed: relation.needed,
          },
        ]
      : [],
  );
  return [...id, ...[...fields.values()].map(wantedColumn), ...references];
}

function wantedColumn(field: Field): WantedColumn {
  const type = columnTypeOfField(field);
  const { asItIs = [], storedAs = {} } = FIELD_KINDS[field.type].adoption;
  const other = field.storedAs === undefined ? undefined : storedAs[field.storedAs]?.column;
  return {
    member: field.name,
    column: field.column,
    type,
    accepted: other === undefined ? [type, ...asItIs] : [other],
    // The service sets the times of records; a file says nothing of them but their columns.
    needed: field.needed && !STAMPS.includes(field.name),
    enum: field.enum,
    others: storedAs,
  };
}

/** The key that lets the field have the column as it is. */
function storedAsHint({ others }: WantedColumn, type: string): string {
  const name = Object.entries(others ?? {}).find(([, { column }]) => column === comparedType(type))?.[0];
  return name === undefined ? '' : `; or write \`stored_as: ${name}\``;
}

/** The columns of each reference that a has_one makes unique, by `columnsText`. */
function hasOneColumns({ collections }: Schema, { name, relations: own }: Collection): ReadonlySet<string> {
  const all = [...collections.values()].flatMap(({ relations }) => [...relations.values()]);
  return new Set(
    all.flatMap((relation) => {
      if (relation.kind !== 'has_one' || relation.collection !== name) return [];
      const { columns = [relation.viaColumn] } = own.get(relation.via) as BelongsTo;
      return [columnsText(columns)];
    }),
  );
}
