/**
 * A key of several columns as one value: their texts apart by `~`, such as `8812~3`. In a string, `!` comes before each `~`
 * and each `!` of its own, so that no two keys have one text.
 */
import { hintOf, nearest } from '../../../grammar/suggest.ts';
import { readAsField } from '../../policy/stored-rows.ts';
import { keyOf } from '../../policy/types.ts';
import type { Scalar } from '../../policy/values.ts';
import { ident, join, raw, type Sql, sql } from '../../sql.ts';
import { FIELD_KINDS, keyKindIn } from '../fields/index.ts';
import type { DocumentPath, Report } from '../file/issue.ts';
import type { CollectionShape } from '../file/shape.ts';
import type { BelongsTo, Collection, Field, Key, KeyPart, Relation } from './model.ts';

/** Names the key where it is read. */
export const COMPOSITE_KEY_COLUMN = '~id';

const SEPARATOR = '~';
const VALUES = /(?:[^!~]|![!~])*/gy;
const escaped = (text: string): string => text.replaceAll(/[!~]/g, '!$&');
const unescaped = (text: string): string => text.replaceAll(/!([!~])/g, '$1');

/** The value of each column; undefined: no record has the id. */
export function valuesOfKey(parts: readonly KeyPart[], id: string): readonly Scalar[] | undefined {
  const texts = keyTexts(id);
  if (texts.length !== parts.length) return undefined;
  const values = parts.map(({ kind }, i) => kind.fromQuery(unescaped(texts[i]!)));
  // The database compares values, and everything else the text: an id has one text.
  if (values.includes(undefined)) return undefined;
  const found = values as readonly Scalar[];
  return idOfValues(found) === id ? found : undefined;
}

/** The id that the values make. */
export const idOfValues = (values: readonly Scalar[]): string =>
  values.map((value) => escaped(String(value))).join(SEPARATOR);

function keyTexts(id: string): readonly string[] {
  const texts: string[] = [];
  for (let at = 0; at <= id.length; ) {
    VALUES.lastIndex = at;
    const [text = ''] = VALUES.exec(id) ?? [];
    texts.push(text);
    at += text.length;
    if (at < id.length && id[at] !== SEPARATOR) return [];
    at++;
  }
  return texts;
}

/** The values as rows of a link hold them: the text of an id, of which each part is found without its `!`. */
export const valuesInId = (parts: readonly KeyPart[], id: Sql): readonly Sql[] =>
  parts.map(({ kind }, i) => {
    const found = sql`(regexp_match(${id}, '^${raw(parts.map(() => VALUE_IN_SQL).join(SEPARATOR))}$'))[${raw(String(i + 1))}]`;
    return sql`regexp_replace(${found}, '!([!~])', '\\1', 'g')::${raw(kind.sqlType)}`;
  });
const VALUE_IN_SQL = '((?:[^!~]|![!~])*)';

/** The columns of the table that tell its rows apart. */
export const keyColumnsOf = ({ key }: Pick<Collection, 'key'>): readonly string[] =>
  key?.parts?.map(({ column }) => column) ?? [keyOf({ key }).column];

interface Keyed extends Pick<Collection, 'name' | 'fields' | 'relations' | 'managed'> {
  readonly key: Key;
  readonly shape: CollectionShape;
  readonly path: DocumentPath;
}
interface DeclaringKey {
  readonly catalog: { readonly collections: ReadonlyMap<string, Pick<Collection, 'key'>> };
  readonly report: Report;
}

/** The key with its columns, where it has several. Its records are read, not written. */
export function withKeyParts(keyed: Keyed, declaring: DeclaringKey): Pick<Collection, 'key' | 'writes' | 'relations'> {
  const { key, shape, relations } = keyed;
  reportLinks(keyed, declaring);
  if (!Array.isArray(shape.id)) return { key, relations };
  const members = shape.id.flatMap((name, i) => keyMember(keyed, declaring, { name, i }) ?? []);
  reportWrites(keyed, declaring);
  const parts = members.map((member) => ({
    column: member.column,
    kind: kindOfMember(member, declaring)!,
    ...('readAs' in member && { readAs: member.readAs }),
  }));
  const isPart = (relation: Relation): boolean => members.some((member) => member === relation);
  return {
    key: { ...key, parts, made: madeKey(parts, 's') },
    writes: { create: false, update: false, delete: false },
    // A column of a key is never null.
    relations: new Map([...relations].map(([name, each]) => [name, isPart(each) ? restricting(each) : each])),
  };
}

/** The id whose values are in the columns of the row that has the name. */
export const madeKey = (parts: readonly KeyPart[], row: string): Sql =>
  join(
    parts.map((part) => part.kind.inKey!(readAsField(ident(row, part.column), part))),
    ` || '${SEPARATOR}' || `,
  );

const restricting = (relation: Relation): Relation =>
  relation.kind === 'belongs_to' && relation.onDelete === 'set_null' ? { ...relation, onDelete: 'restrict' } : relation;

const kindOfMember = (member: Field | BelongsTo, { catalog }: DeclaringKey) =>
  'type' in member ? FIELD_KINDS[member.type] : keyKindIn(catalog, member.collection);

interface NamedPart {
  readonly name: string;
  readonly i: number;
}

function keyMember(keyed: Keyed, declaring: DeclaringKey, { name, i }: NamedPart): Field | BelongsTo | undefined {
  const { fields, relations, shape, path } = keyed;
  const invalid = (message: string, replacement?: string): undefined =>
    declaring.report({ code: 'invalid_key', message, path: [...path, 'id', i], replacement });
  const found = fields.get(name) ?? relations.get(name);
  if (found === undefined || !('column' in found)) {
    const stored = [...fields.values(), ...relations.values()].filter((member) => 'column' in member);
    const near = nearest(
      name,
      stored.map((member) => member.name),
    );
    return invalid(`expected a field or a belongs_to of \`${keyed.name}\`, found \`${name}\`${hintOf(near)}`, near);
  }
  if ((shape.id as readonly string[]).indexOf(name) < i) return invalid(`\`${name}\` is in the key already`);
  if (kindOfMember(found, declaring).inKey === undefined) {
    const able = Object.values(FIELD_KINDS).flatMap((kind) => (kind.inKey === undefined ? [] : [kind.name]));
    return invalid(`\`${name}\` has a type that no key has; expected a belongs_to, or ${able.join(', ')}`);
  }
  if ('references' in found && found.references !== undefined)
    return invalid(`\`${name}\` has values of another field; name the column as a field instead`);
  const declared = shape.fields?.[name] ?? shape.relations?.[name];
  if (typeof declared === 'object' && 'fields' in declared)
    return invalid(`\`${name}\` has several columns; name each member instead`);
  const rules = typeof declared === 'object' && 'access' in declared ? declared.access : undefined;
  if (rules?.read !== undefined)
    return invalid(`\`${name}\` has rules for reading, and every id would show its value; remove them`);
  return found;
}

function reportWrites({ managed, shape: { access = {} }, path }: Keyed, { report }: DeclaringKey): void {
  const invalid = (message: string, at: DocumentPath): void =>
    report({ code: 'invalid_key', message, path: [...path, ...at] });
  if (managed) invalid('only a table of another program, with `managed: false`, has a key of several columns', ['id']);
  for (const action of ['create', 'update', 'delete'] as const)
    if (access[action] !== undefined)
      invalid('records with a key of several columns are read, and not written; remove the rules', ['access', action]);
}

export const hasCompositeKey = ({ key }: Pick<Collection, 'key'>): boolean => key?.column === COMPOSITE_KEY_COLUMN;

/** A request links records by a write of the collection that has the relation. */
function reportLinks({ name, key, relations, path }: Keyed, { report }: DeclaringKey): void {
  if (!hasCompositeKey({ key })) return;
  for (const relation of relations.values()) {
    if (relation.kind !== 'many_to_many') continue;
    const message = `no request writes records of \`${name}\`, so none could link them; declare the many_to_many in \`${relation.collection}\``;
    report({ code: 'invalid_key', message, path: [...path, 'relations', relation.name, 'kind'] });
  }
}
