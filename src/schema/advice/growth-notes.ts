/**
 * Notes on what becomes slow as a collection grows: fields to filter or sort by without an index
 * (`index: false` declares that no client does that), and strings without a greatest length. Required
 * strings without a least length are noted, too.
 */
import { isOpaque, isText } from '../../policy/scalar-types.ts';
import type { SchemaIssue } from '../file/issue.ts';
import { SourceText } from '../file/source.ts';
import { builtInFields } from '../model/built-in.ts';
import { indexesOf, isIndexable } from '../model/indexes.ts';
import type { Collection, Field, Schema } from '../model/model.ts';

/**
 * Returns the notes in the order of the file, of which `text` is the content. A collection has a
 * single note about its own fields, at its name; `users` and `files` only if the file names them.
 */
export function growthNotes(schema: Schema, text: string): readonly SchemaIssue[] {
  const source = new SourceText(text, schema.file);
  const note = (message: string, path: readonly string[], code: GrowthCode = 'no_index'): void =>
    source.report({ code, severity: 'note', message, path, at: 'key' });
  for (const collection of schema.collections.values()) {
    const path = ['collections', collection.name];
    const builtIn = new Set(builtInFields(collection.kind).map(({ name }) => name));
    const unindexed = unindexedFields(collection, schema);
    const own = unindexed.filter(({ name }) => builtIn.has(name)).map(({ name }) => name);
    if (own.length > 0 && source.has(path)) {
      const advice = `if somebody does that, add \`index: [${own.join(', ')}]\` to the collection`;
      note(`${slowList(collection, own)}; ${advice}`, path);
    }
    for (const { name, search } of unindexed.filter((field) => !builtIn.has(field.name))) {
      const what = `${search ? '`search: true` serves only `matches`: ' : ''}${slowList(collection, [name])}`;
      note(`${what}; add \`index: true\`, or \`index: false\` if it stays small or nobody does`, [
        ...path,
        'fields',
        name,
      ]);
    }
    const strings = freeStrings(collection);
    for (const { name } of strings.filter(({ required, min }) => required && min === undefined)) {
      const message = `\`${name}\` is required and has no \`min\`, so \`""\` is a value; add \`min: 1\`, or \`min: 0\` if it may be empty`;
      note(message, [...path, 'fields', name], 'no_min');
    }
    for (const { name } of strings.filter(({ max }) => max === undefined)) {
      const message = `\`${name}\` has no \`max\`: a value is as long as a request can be, and each list and expansion repeats it; add \`max\``;
      note(message, [...path, 'fields', name], 'no_max');
    }
  }
  return source.issues
    .filter(({ severity }) => severity === 'note')
    .sort((a, b) => a.line - b.line || a.column - b.column);
}

export type GrowthCode = 'no_index' | 'no_max' | 'no_min';

/** The strings of any content that callers may set. */
function freeStrings({ kind, fields, access }: Collection): readonly Field[] {
  if (access.create.length + access.update.length === 0 || kind === 'files') return [];
  return [...fields.values()].filter((field) => isText(field.type) && field.enum === undefined && !field.readOnly);
}

function slowList({ name }: Collection, fields: readonly string[]): string {
  const named = fields.map((field) => `\`${field}\``).join(' or ');
  return `a list of \`${name}\` that is filtered or sorted by ${named} reads the whole table`;
}

/** The fields by which a list can be filtered and sorted without an index. */
export function unindexedFields(collection: Collection, schema: Schema): readonly Field[] {
  if (collection.access.list.length === 0) return [];
  const indexed = new Set(indexesOf(collection, schema).map(({ serves }) => serves));
  // No list is filtered or sorted by these as a whole.
  const isServed = ({ column, noIndex, type }: Field): boolean =>
    indexed.has(column) || noIndex === true || isOpaque(type);
  return [...collection.fields.values()].filter((field) => !isServed(field) && isIndexable(field));
}
