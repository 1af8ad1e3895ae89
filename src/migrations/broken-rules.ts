/** Rows that were stored under other rules than a field has now: a plan counts them, and no migration changes them. */

import { type Database, StoreError } from '../database/contract.ts';
import { isNumeric } from '../policy/scalar-types.ts';
import { keyOf } from '../policy/types.ts';
import { FIELD_KINDS, type FieldKind, SCALAR_TYPES } from '../schema/fields/index.ts';
import type { Collection, Field, Schema } from '../schema/model/model.ts';
import { storedTables } from '../schema/model/stored-names.ts';
import { ident, join, raw, type Sql, sql, tableIdent } from '../sql.ts';
import { type ActualTable, readCatalog } from './catalog.ts';
import { renamedTables } from './renamed-tables.ts';
import { tablesOf } from './tables.ts';

export interface BrokenRule {
  readonly collection: string;
  readonly field: string;
  /** `max 5`. */
  readonly rule: string;
  /** Undefined: the count would take too long. */
  readonly count: number | undefined;
  /** The query that finds the rows; it has the names of the database. */
  readonly query: string;
}

interface Rule {
  readonly field: string;
  readonly rule: string;
  readonly isBroken: Sql;
}

const ENUM = 'enum';
const COUNT_LIMIT_MS = 10_000;

/** The rules that some row breaks. With `former`, only those that it did not have. */
export async function brokenRules(db: Database, schema: Schema, former?: Schema): Promise<readonly BrokenRule[]> {
  const broken: BrokenRule[] = [];
  const known = new Set(former === undefined ? [] : declaredRules(former));
  if (former !== undefined && declaredRules(schema).every((rule) => known.has(rule))) return [];
  const { actual, formerNames } = renamedTables(tablesOf(schema), await readCatalog(db, storedTables(schema)));
  for (const collection of schema.collections.values()) {
    const existing = actual.get(collection.table);
    if (existing === undefined) continue;
    const table = formerNames.get(collection.table) ?? collection.table;
    const rules = fieldRules(collection, existing).filter(
      ({ field, rule }) => !known.has(fieldDeclaration(collection.fields.get(field)!, collection.name, rule)),
    );
    const { column: key } = keyOf(collection);
    if (rules.length > 0) broken.push(...(await countIn(db, { collection: collection.name, table, key, rules })));
  }
  return broken;
}

/** Equal for a rule of two schemas that has not changed. */
const fieldDeclaration = ({ name, type, enum: allowed }: Field, collection: string, rule: string): string =>
  JSON.stringify([collection, name, type, rule, rule === ENUM && allowed]);

const declaredRules = ({ collections }: Schema): readonly string[] =>
  [...collections.values()].flatMap(({ name, fields }) =>
    [...fields.values()].flatMap((field) =>
      boundRules(field, ident(field.column)).map(([rule]) => fieldDeclaration(field, name, rule)),
    ),
  );

interface RuleCount {
  readonly collection: string;
  readonly table: string;
  /** The column of the ids. */
  readonly key: string;
  readonly rules: readonly Rule[];
}

/** `3 records of …; … finds them` */
export function brokenRuleText({ collection, field, rule, count, query }: BrokenRule): string {
  const what = `break \`${rule}\` of \`${field}\``;
  const who =
    count === undefined
      ? `records of \`${collection}\` may ${what} (counting them takes too long)`
      : `${count} ${count === 1 ? 'record' : 'records'} of \`${collection}\` ${count === 1 ? what.replace('break', 'breaks') : what}`;
  return `${who}; nothing changes them, and their next update has to; ${query} finds them`;
}

async function countIn(db: Database, { collection, table, key, rules }: RuleCount): Promise<readonly BrokenRule[]> {
  const counts = rules.map(({ isBroken }) => sql`count(*) FILTER (WHERE ${isBroken})`);
  const statement = sql`SELECT ${join(counts, ', ')} FROM ${tableIdent(table)}`;
  const cells = await db.rows(statement, { lane: 'slow', limitMs: COUNT_LIMIT_MS }).then(
    ([row]) => row?.map(Number),
    (error: unknown) => {
      if (error instanceof StoreError && error.kind === 'time_limit') return undefined;
      throw error;
    },
  );
  return rules.flatMap(({ field, rule, isBroken }, i) => {
    const count = cells?.[i];
    const query = `SELECT ${ident(key).text} FROM ${tableIdent(table).text} WHERE ${isBroken.text}`;
    return count === 0 ? [] : [{ collection, field, rule, count, query }];
  });
}

function fieldRules({ fields }: Collection, { columns }: ActualTable): readonly Rule[] {
  return [...fields.values()].flatMap((field) => {
    const stored = columns.has(field.column) ? field.column : (field.was ?? field.name);
    const type = columns.get(stored)?.type.split('(', 1)[0] ?? '';
    if (field.readOnly || !comparableTypes(field).includes(type)) return [];
    return boundRules(field, ident(stored)).map(([rule, isBroken]) => ({ field: field.name, rule, isBroken }));
  });
}

/** The types of columns whose values can be compared with the rules of a field. */
function comparableTypes(field: Field): readonly string[] {
  const kind = FIELD_KINDS[field.type];
  const kinds = isNumeric(field.type) ? SCALAR_TYPES.filter(isNumeric).map((type) => FIELD_KINDS[type]) : [kind];
  return kind.bounds === 'none' && !kind.hasEnum ? [] : kinds.map(({ column }) => column);
}

const SIZE_FUNCTIONS: Readonly<Partial<Record<FieldKind['bounds'], string>>> = {
  length: 'char_length',
  elements: 'cardinality',
};

function boundRules(field: Field, column: Sql): readonly (readonly [rule: string, isBroken: Sql])[] {
  const { min, max, enum: allowed } = field;
  const { bounds, literal, column: columnType, isBeyond, doc } = FIELD_KINDS[field.type];
  const measure = SIZE_FUNCTIONS[bounds];
  const measured = measure === undefined ? column : sql`${raw(measure)}(${column})`;
  const boundOf = (bound: number | string) => raw(measure === undefined ? literal(bound) : String(bound));
  const rules: [string, Sql][] = [];
  if (isBeyond !== undefined) rules.push([doc, isBeyond(column)]);
  if (min !== undefined) rules.push([`min ${min}`, sql`${measured} < ${boundOf(min)}`]);
  if (max !== undefined) rules.push([`max ${max}`, sql`${measured} > ${boundOf(max)}`]);
  if (allowed !== undefined) {
    const values = raw(`ARRAY[${allowed.map(literal).join(', ')}]::${columnType}[]`);
    rules.push([ENUM, sql`${column} <> ALL (${values})`]);
  }
  return rules;
}
