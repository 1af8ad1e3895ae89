/** Definitions, references and renames of fields, relations, conditions, roles and collections. */
import { isObject } from '../../records/write/input.ts';
import { formatPolicies } from '../../schema/file/format-policies.ts';
import type { DocumentPath, Region } from '../../schema/file/issue.ts';
import { writtenIn } from '../../schema/file/scalar.ts';
import { SourceText } from '../../schema/file/source.ts';
import { memberNameIssue } from '../../schema/model/names.ts';
import { usesOfName } from './find-names.ts';
import { conditionKey } from './hover-text.ts';
import { type MemberUse, memberUses } from './member-uses.ts';
import type { SchemaText } from './schema-text.ts';
import {
  offsetAt,
  rangeOfRegion,
  type TextEdit,
  type TextPosition,
  type TextRange,
  wholeRange,
} from './text-positions.ts';

const isAtPosition = (region: Region, position: TextPosition): boolean => {
  const { start, end } = rangeOfRegion(region);
  const at = (place: TextPosition): number => place.line * 1_000_000 + place.character;
  return at(start) <= at(position) && at(position) <= at(end);
};

const memberAt = (file: SchemaText, position: TextPosition): MemberUse | undefined =>
  memberUses(file).find(({ region }) => isAtPosition(region, position));

const isSameMember = (a: MemberUse, b: MemberUse): boolean => a.collection === b.collection && a.member === b.member;

export function definitionAt(file: SchemaText, position: TextPosition): TextRange | undefined {
  const path = pathOfMember(file, position) ?? namedPath(file, position);
  return path === undefined || !file.source.has(path) ? undefined : rangeOfRegion(file.source.placeOf(path, 'key'));
}

function pathOfMember(file: SchemaText, position: TextPosition): DocumentPath | undefined {
  const found = memberAt(file, position);
  if (found === undefined) return undefined;
  const part = ['fields', 'relations'].find((each) =>
    file.source.has(['collections', found.collection, each, found.member]),
  );
  return part === undefined ? ['collections', found.collection] : ['collections', found.collection, part, found.member];
}

/** The path of a condition, role or collection that is named at the position. */
function namedPath(file: SchemaText, position: TextPosition): DocumentPath | undefined {
  const offset = offsetAt(file.text, position);
  const policy = file.policyAt(offset);
  if (policy !== undefined) {
    const { text } = policy.policy;
    const word = wordAround(text, policy.index);
    if (text.startsWith(`${word}(`, text.lastIndexOf(word, policy.index)) && file.catalog?.conditions?.has(word))
      return ['conditions', conditionKey(file, word)];
    return file.catalog?.roles.has(word) ? rolePath(file, word) : undefined;
  }
  const path = file.source.pathAt(offset);
  const value = file.valueAt(path);
  if (typeof value !== 'string') return undefined;
  if (path.at(-1) === 'collection') return ['collections', value];
  const isOfRoles = ['roles', 'includes', 'assigns'].includes(String(path.at(-2)));
  return isOfRoles && path.length > 2 ? rolePath(file, value) : undefined;
}

function rolePath({ raw }: SchemaText, role: string): DocumentPath {
  const roles = isObject(raw) ? raw.roles : undefined;
  return Array.isArray(roles) ? ['roles', roles.indexOf(role)] : ['roles', role];
}

function wordAround(text: string, index: number): string {
  const [before = ''] = /\w*$/.exec(text.slice(0, index)) ?? [];
  const [after = ''] = /^\w*/.exec(text.slice(index)) ?? [];
  return before + after;
}

/** Every place with the name at the position, its declaration included. */
export function referencesAt(file: SchemaText, position: TextPosition): readonly TextRange[] {
  const all = memberUses(file);
  const found = all.find(({ region }) => isAtPosition(region, position));
  const regions =
    found === undefined ? namedAt(file, position) : all.filter((each) => isSameMember(each, found)).map(regionOfUse);
  return regions.map(rangeOfRegion);
}

const regionOfUse = ({ region }: MemberUse): Region => region;

/** The declaration and the uses of a condition, role or collection. */
function namedAt(file: SchemaText, position: TextPosition): readonly Region[] {
  const path = namedPath(file, position) ?? file.source.pathAt(offsetAt(file.text, position)).slice(0, 2);
  const [kind, key] = path;
  if ((kind !== 'conditions' && kind !== 'roles' && kind !== 'collections') || key === undefined) return [];
  const listed = typeof key === 'number' ? file.valueAt(path) : key;
  const name = kind === 'conditions' ? String(listed).trim().replace(/\(.*$/s, '') : String(listed);
  return [file.source.placeOf(path, typeof key === 'number' ? 'value' : 'key'), ...usesOfName(file, { kind, name })];
}

// ---------------------------------------------------------------- renames

export function renameable(
  file: SchemaText,
  position: TextPosition,
): { readonly range: TextRange; readonly placeholder: string } | undefined {
  const found = memberAt(file, position);
  return found && { range: rangeOfRegion(found.region), placeholder: found.member };
}

/** The edits of a rename in the schema file, `was:` included. Throws RangeError for a name that no member may have. */
export function renameMember(
  file: SchemaText,
  position: TextPosition,
  name: string,
): { readonly edits: readonly TextEdit[]; readonly renamed: MemberUse } | undefined {
  const all = memberUses(file);
  const renamed = all.find(({ region }) => isAtPosition(region, position));
  if (renamed === undefined) return undefined;
  const issue = memberNameIssue(name);
  const known = file.catalog?.collections.get(renamed.collection);
  if (issue !== undefined) throw new RangeError(issue.message);
  if (known?.fields.has(name) || known?.relations.has(name))
    throw new RangeError(`\`${renamed.collection}\` has a \`${name}\` already`);
  const uses = all.filter((each) => isSameMember(each, renamed));
  if (!uses.some(({ isDeclaration }) => isDeclaration))
    throw new RangeError(`\`${renamed.member}\` belongs to bylaw, and keeps its name`);
  const edits = uses.map(({ region, written }) => ({
    range: rangeOfRegion(region),
    newText: written === renamed.member ? name : `${name}_id`,
  }));
  return { edits: [...edits, ...wasEdits(file, renamed)], renamed };
}

/** `was:` with the name that the table has, from which the migration renames the column. */
function wasEdits(file: SchemaText, { collection, member }: MemberUse): readonly TextEdit[] {
  const part = file.source.has(['collections', collection, 'fields', member]) ? 'fields' : 'relations';
  const path = ['collections', collection, part, member];
  const declared = file.valueAt(path);
  const kind = isObject(declared) ? declared.kind : 'field';
  // Only a column, or the table of links, has a name to keep.
  if (kind === 'has_one' || kind === 'has_many') return [];
  if (isObject(declared) && (declared.was !== undefined || declared.column !== undefined)) return [];
  const place = file.source.placeOf(path, 'value');
  if (typeof declared === 'string') {
    const range = rangeOfRegion(place);
    return [{ range, newText: `{ type: ${declared}, was: ${member} }` }];
  }
  const first = isObject(declared) ? Object.keys(declared)[0] : undefined;
  if (first === undefined) return [];
  const { start } = rangeOfRegion(file.source.placeOf([...path, first], 'key'));
  const isFlow = file.text.slice(0, offsetAt(file.text, start)).trimEnd().endsWith('{');
  const newText = isFlow ? `was: ${member}, ` : `was: ${member}\n${' '.repeat(start.character)}`;
  return [{ range: { start, end: start }, newText }];
}

/** The edits of a rename in a test file: members of rows, bodies, queries and field rules. */
export function renameInTests(text: string, { collection, member }: MemberUse, name: string): readonly TextEdit[] {
  const source = new SourceText(text, '');
  const raw = source.value();
  if (!isObject(raw)) return [];
  const paths: DocumentPath[] = [];
  const rows = isObject(raw.rows) && isObject(raw.rows[collection]) ? raw.rows[collection] : {};
  for (const row of Object.keys(rows)) paths.push(['rows', collection, row]);
  if (collection === 'users')
    for (const caller of Object.keys(isObject(raw.as) ? raw.as : {})) paths.push(['as', caller]);
  (Array.isArray(raw.tests) ? raw.tests : []).forEach((test, i) => {
    if (!isObject(test) || !(collection in test || test.create === collection || test.list === collection)) return;
    for (const [key, value] of Object.entries(test)) {
      if (['data', 'update', 'query'].includes(key)) paths.push(['tests', i, key]);
      if (isObject(value) && isObject(value.read)) paths.push(['tests', i, key, 'read']);
    }
  });
  return paths.flatMap((path) => {
    const at = [...path, member];
    return source.has(at)
      ? [{ range: rangeOfRegion(source.placeOf(at, 'key')), newText: writtenIn(undefined, name) ?? name }]
      : [];
  });
}

// ---------------------------------------------------------------- the whole file

export function formatEdits(text: string, file: string): readonly TextEdit[] {
  const formatted = formatPolicies(text, file);
  return formatted.changed.length === 0 ? [] : [{ range: wholeRange(text), newText: formatted.text }];
}
