/** Names of tables, columns and indexes. */
import { parse } from '../../../grammar/parser.ts';
import { NAME } from '../file/shape.ts';
import { RESERVED_COLLECTIONS, RESERVED_NAMES } from './model.ts';

/** The system columns of every PostgreSQL table. */
export const SYSTEM_COLUMNS: readonly string[] = ['tableoid', 'xmin', 'cmin', 'xmax', 'cmax', 'ctid'];
/** PostgreSQL truncates longer names, which can make two names equal. */
const NAME_BYTES = 63;

/** FNV-1a, 32 bits (draft-eastlake-fnv-17, 2). It never changes: names in databases depend on it. */
function nameHash(text: string): string {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193) >>> 0;
  return hash.toString(16).padStart(8, '0');
}

/** INVARIANT: names are ASCII, so a UTF-16 unit is a byte. */
const shortened = (name: string): string =>
  name.length <= NAME_BYTES ? name : `${name.slice(0, NAME_BYTES - 9)}_${nameHash(name)}`;

export const linkTableOf = (collection: string, relation: string): string => shortened(`${collection}__${relation}`);

export interface NameIssue {
  readonly code: string;
  readonly message: string;
}

/** Why `name` cannot be the name of a field or relation. */
export function memberNameIssue(name: string): NameIssue | undefined {
  if (RESERVED_NAMES.includes(name)) {
    const message = `\`${name}\` is reserved for records and lists; choose another name, and keep a column of this name with \`column: ${name}\``;
    return { code: 'reserved_name', message };
  }
  if (SYSTEM_COLUMNS.includes(name)) {
    const message = `\`${name}\` is reserved: PostgreSQL gives every table that column; choose another name`;
    return { code: 'reserved_name', message };
  }
  return nameIssue(name);
}

/** True if the filter of a query can name it bare: a word of the language is read as that word. */
export const isWord = (name: string): boolean => parse(`${name} is null`, 'filter').expr === undefined;

export function collectionNameIssue(name: string): NameIssue | undefined {
  if (RESERVED_COLLECTIONS.includes(name)) {
    const message = `\`${name}\` is reserved: \`/api/${name}\` is a route of the service; choose another name`;
    return { code: 'reserved_name', message };
  }
  if (name.toLowerCase().startsWith('bylaw_')) {
    return {
      code: 'reserved_name',
      message: `\`${name}\` is reserved: names that begin with \`bylaw_\` belong to the service; choose another name`,
    };
  }
  return nameIssue(name);
}

export function nameIssue(name: string): NameIssue | undefined {
  if (NAME.test(name) && !name.includes('__')) return undefined;
  const wanted = 'expected a letter, then letters, digits and single underscores, at most 48 in all';
  return { code: 'invalid_name', message: `\`${name}\` is not a valid name; ${wanted}` };
}
