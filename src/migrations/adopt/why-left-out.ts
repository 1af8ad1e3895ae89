/** Why a table or view of the database is not in a draft. */
import { draftKey } from './draft-key.ts';
import { type ExistingTable, primaryKeyOf } from './existing-tables.ts';

/** Undefined: it may become a collection. */
export function whyLeftOut(table: ExistingTable): string | undefined {
  const { name, schema, kind, extension, partOf } = table;
  if (extension !== undefined) return `it belongs to the extension ${extension}`;
  if (kind === 'partition') return `it is a part of ${partOf}, whose collection has its records`;
  if (/^bylaw_/i.test(name)) return 'names that begin with `bylaw_` belong to the service';
  if (`${schema}${name}`.includes('.')) return 'a schema file cannot name it, because a dot separates schema and table';
  if (draftKey(table) !== undefined) return undefined;
  const primary = primaryKeyOf(table);
  if (primary.length > 0) return `no key has the type of its primary key (${primary.join(', ')})`;
  if (kind === 'table') return 'it has no primary key, and no unique column that is never null';
  return 'PostgreSQL knows no key of it; declare a collection whose `id` has the column that differs in all rows';
}
