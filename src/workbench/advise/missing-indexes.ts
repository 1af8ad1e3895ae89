/** The indexes that a schema lacks: for its list rules, and for the filters and sorts of lists. */
import { unindexedFields } from '../../schema/advice/growth-notes.ts';
import { builtInFields } from '../../schema/model/built-in.ts';
import { keyColumnsOf } from '../../schema/model/composite-key.ts';
import { indexesOf, missingIndexes } from '../../schema/model/indexes.ts';
import type { Collection, Field, Schema } from '../../schema/model/model.ts';
import { constraintName } from '../../schema/model/stored-names.ts';
import { ident, join, sql, tableIdent } from '../../sql.ts';

export interface MissingIndex {
  readonly collection: Collection;
  readonly field: Field;
  /** `policy`: a list rule compares the field; `filter`: a list can be filtered and sorted by it. */
  readonly because: 'policy' | 'filter';
  /** The indexes of the list rules, from 0. */
  readonly rules: readonly number[];
  /** The columns of the index. */
  readonly columns: readonly string[];
  /** A line of bylaw.yaml; undefined: another program owns the table. */
  readonly line: string | undefined;
  readonly statement: string;
}

export function indexesMissing(schema: Schema): readonly MissingIndex[] {
  return [...schema.collections.values()].flatMap((collection) => {
    const ofRules = wantedByRules(collection, schema);
    // Few lists are filtered or sorted by the fields that every record has, and no key declares that none is.
    const filtered = unindexedFields(collection, schema).filter(
      (field) => !ofRules.has(field.name) && !isBuiltIn(collection, field),
    );
    return [
      ...[...ofRules].map(([name, rules]) => missingIndex(collection, collection.fields.get(name)!, rules)),
      ...filtered.map((field) => missingIndex(collection, field, [])),
    ];
  });
}

const isBuiltIn = ({ kind }: Collection, { name }: Field): boolean =>
  builtInFields(kind).some((own) => own.name === name);

/** The fields that list rules compare without an index, with the rules. */
function wantedByRules(collection: Collection, schema: Schema): ReadonlyMap<string, readonly number[]> {
  const wanted = new Map<string, number[]>();
  const { name, fields, access, managed } = collection;
  access.list.forEach((rule, i) => {
    for (const field of missingIndexes(rule, { catalog: schema, collection: name, fields }))
      wanted.set(field, [...(wanted.get(field) ?? []), i]);
  });
  // No migration makes the indexes that the rules of this collection want.
  const own = managed ? [] : indexesOf(collection, schema).filter(({ because }) => because === 'policy');
  for (const { serves } of own) {
    const field = [...fields.values()].find(({ column }) => column === serves);
    if (field !== undefined && !wanted.has(field.name)) wanted.set(field.name, [...access.list.keys()]);
  }
  return wanted;
}

function missingIndex(collection: Collection, field: Field, rules: readonly number[]): MissingIndex {
  const { name, table, managed, tenantLayout } = collection;
  const tenant = tenantLayout?.kind === 'by' ? [tenantLayout.column] : [];
  const columns = [...new Set([...tenant, field.column, ...keyColumnsOf(collection)])];
  const path = `collections.${name}`;
  const line = isBuiltIn(collection, field)
    ? `${path}.index: [${field.name}]`
    : `${path}.fields.${field.name}.index: true`;
  return {
    collection,
    field,
    because: rules.length > 0 ? 'policy' : 'filter',
    rules,
    columns,
    line: managed ? line : undefined,
    statement: `${indexStatement(constraintName(table, columns, 'idx'), table, columns)};`,
  };
}

function indexStatement(name: string, table: string, columns: readonly string[]): string {
  const list = join(
    columns.map((column) => ident(column)),
    ', ',
  );
  return sql`CREATE INDEX CONCURRENTLY IF NOT EXISTS ${ident(name)} ON ${tableIdent(table)} (${list})`.text;
}
