/**
 * What becomes slow as a collection grows: fields that its lists may be filtered and sorted by, and
 * that no index serves. `index: false` says that nobody does.
 */
import { builtInFields } from './built-in.ts';
import { indexesOf, isIndexable } from './indexes.ts';
import type { SchemaIssue } from './issue.ts';
import type { Collection, Field, Schema } from './model.ts';
import { SchemaSource } from './source.ts';

/** In the order of the file. `text` is what the schema was read from. */
export function growthNotes(schema: Schema, text: string): readonly SchemaIssue[] {
  const source = new SchemaSource(text, schema.file);
  for (const collection of schema.collections.values()) {
    for (const name of unindexedFields(collection, schema)) {
      const what = `a list of \`${collection.name}\` that is filtered or sorted by \`${name}\` reads the whole table`;
      source.report({
        code: 'no_index',
        severity: 'note',
        message: `${what}; add \`index: true\`, or \`index: false\` if it stays small or nobody does`,
        path: ['collections', collection.name, 'fields', name],
        at: 'key',
      });
    }
  }
  return source.issues.filter(({ code }) => code === 'no_index').sort((a, b) => a.line - b.line || a.column - b.column);
}

function unindexedFields(collection: Collection, schema: Schema): readonly string[] {
  if (collection.access.list.length === 0) return [];
  const indexed = new Set(indexesOf(collection, schema).map(({ serves }) => serves));
  const builtIn = new Set(builtInFields(collection.kind).map(({ name }) => name));
  const isServed = ({ name, column, search, noIndex }: Field): boolean =>
    indexed.has(column) || search === true || noIndex === true || builtIn.has(name);
  return [...collection.fields.values()]
    .filter((field) => !isServed(field) && isIndexable(field))
    .map(({ name }) => name);
}
