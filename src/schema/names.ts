/** Names of tables, columns and indexes. */
import { RESERVED_NAMES } from './model.ts';
import { NAME } from './shape.ts';

/** Columns that every PostgreSQL table has already. */
const SYSTEM_COLUMNS: readonly string[] = ['tableoid', 'xmin', 'cmin', 'xmax', 'cmax', 'ctid'];
/** PostgreSQL cuts longer names, and two that are cut can be one. */
const NAME_BYTES = 63;

/** FNV-1a, 32 bits. Source: draft-eastlake-fnv-17, 2. Stable for ever: names in databases hang on it. */
function hashOf(text: string): string {
  let hash = 0x811c9dc5;
  for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193) >>> 0;
  return hash.toString(16).padStart(8, '0');
}

/** INVARIANT: names are ASCII, so a unit is a byte. */
export const shortened = (name: string): string =>
  name.length <= NAME_BYTES ? name : `${name.slice(0, NAME_BYTES - 9)}_${hashOf(name)}`;

export const linkTableOf = (collection: string, relation: string): string => shortened(`${collection}__${relation}`);

/** Why `name` cannot be the name of a field or relation. */
export function memberNameFault(name: string): { readonly code: string; readonly message: string } | undefined {
  if (RESERVED_NAMES.includes(name)) {
    return {
      code: 'reserved_name',
      message: `\`${name}\` is the name of something that every record or list has; choose another`,
    };
  }
  if (SYSTEM_COLUMNS.includes(name)) {
    return {
      code: 'reserved_name',
      message: `\`${name}\` is a column that PostgreSQL gives every table; choose another`,
    };
  }
  return nameFault(name);
}

export function collectionNameFault(name: string): { readonly code: string; readonly message: string } | undefined {
  if (name === 'auth')
    return {
      code: 'reserved_name',
      message: '`auth` is a route of the service; choose another name for the collection',
    };
  if (name.toLowerCase().startsWith('bylaw_')) {
    return {
      code: 'reserved_name',
      message: `names that begin with \`bylaw_\` are the service's own; choose another than \`${name}\``,
    };
  }
  return nameFault(name);
}

export function nameFault(name: string): { readonly code: string; readonly message: string } | undefined {
  if (NAME.test(name) && !name.includes('__')) return undefined;
  const wanted = 'expected a letter, then letters, digits and single underscores, at most 48 in all';
  return { code: 'invalid_name', message: `\`${name}\` cannot be a name; ${wanted}` };
}
