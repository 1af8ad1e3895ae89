/** Every place of a schema file that names a field or relation: declarations, policies, and other keys. */
import { withoutConditionCalls } from '../../policy/analyse/expanded-calls.ts';
import { examineOnce } from '../../policy/check/checker.ts';
import { livingName } from '../../policy/deleted-names.ts';
import type { Catalog, Checked, ColumnOperand, Row, RowScope, ToManyPath, ToOneStep } from '../../policy/types.ts';
import { operandsOf, partsOf } from '../../policy/visit.ts';
import { isObject } from '../../records/write/input.ts';
import type { DocumentPath, Region } from '../../schema/file/issue.ts';
import { valueAt } from '../../schema/file/validate.ts';
import { placesInStatement } from '../../schema/rules/prove-statements.ts';
import type { PolicyText, SchemaText } from './schema-text.ts';

/** A name in the file. */
export interface MemberUse {
  readonly collection: string;
  /** As the schema declares it. */
  readonly member: string;
  /** As it is written here: also `owner_id`. */
  readonly written: string;
  readonly region: Region;
  readonly isDeclaration?: true;
}

export function memberUses(file: SchemaText): readonly MemberUse[] {
  if (file.catalog === undefined) return [];
  return [
    ...declaredMembers(file),
    ...provenMembers(file),
    ...file.policies().flatMap((policy) => membersUsed(policy, file)),
  ];
}

// ---------------------------------------------------------------- keys of the file

function declaredMembers(file: SchemaText): readonly MemberUse[] {
  const { raw, source } = file;
  const found: MemberUse[] = [];
  const collections = isObject(raw) && isObject(raw.collections) ? raw.collections : {};
  const add = (collection: string, member: string, path: DocumentPath, at: 'key' | 'value'): void => {
    const region = source.placeOf(path, at);
    found.push({ collection, member, written: member, region, ...(at === 'key' && { isDeclaration: true as const }) });
  };
  for (const [collection, shape] of Object.entries(collections)) {
    if (!isObject(shape)) continue;
    for (const part of ['fields', 'relations'] as const) {
      const members = isObject(shape[part]) ? shape[part] : {};
      for (const [member, declared] of Object.entries(members)) {
        const path = ['collections', collection, part, member];
        add(collection, member, path, 'key');
        if (!isObject(declared)) continue;
        const { via, references, collection: target } = declared;
        found.push(...namedInStrings(file, { collection, path, declared }));
        if (typeof target !== 'string') continue;
        if (typeof via === 'string') add(target, via, [...path, 'via'], 'value');
        if (typeof references === 'string') add(target, references, [...path, 'references'], 'value');
      }
    }
    for (const path of MEMBER_KEYS.flatMap((keys) => pathsOf(shape, keys))) {
      const value = valueAt(shape, path);
      if (typeof value === 'string') add(collection, value, ['collections', collection, ...path], 'value');
    }
  }
  return found;
}

/** The keys of a collection whose values name its members. `*`: each key; `#`: each place of a list. */
const MEMBER_KEYS: readonly (readonly string[])[] = [
  ['title'],
  ['id', '#'],
  ['distribute', 'by'],
  ['checks', '*', 'fields', '#'],
  ['relations', '*', 'fields', '#'],
  ...['fields', 'relations'].flatMap((part) => [
    [part, '*', 'unique', 'within'],
    [part, '*', 'unique', 'within', '#'],
  ]),
  ...[['no_overlap'], ['no_overlap', '#']].flatMap((key) => [
    [...key, 'on', '#'],
    [...key, 'from'],
    [...key, 'to'],
  ]),
];

/** The paths that a value has of those that the keys mean. */
function pathsOf(value: unknown, [key, ...rest]: readonly string[]): readonly DocumentPath[] {
  if (key === undefined) return [[]];
  const own = key === '#' ? (Array.isArray(value) ? [...value.keys()] : []) : isObject(value) ? Object.keys(value) : [];
  const met: DocumentPath = own.filter((each) => key === '*' || key === '#' || each === key);
  return met.flatMap((each) => pathsOf(valueAt(value, [each]), rest).map((path) => [each, ...path]));
}

/** Strings of a declaration that name a member: `within_team`, `@request.auth.team`. */
const NAMING_KEYS: readonly (readonly [key: string, pattern: RegExp, ofUsers: boolean])[] = [
  ['unique', /^within_(\w+)$/d, false],
  ['default', /^@request\.auth\.(\w+)$/d, true],
];

function namedInStrings(
  { source }: SchemaText,
  { collection, path, declared }: { readonly collection: string; readonly path: DocumentPath; readonly declared: Row },
): readonly MemberUse[] {
  return NAMING_KEYS.flatMap(([key, pattern, ofUsers]) => {
    const match = pattern.exec(String(declared[key]));
    const [start, end] = match?.indices?.[1] ?? [];
    if (match === null || start === undefined || end === undefined) return [];
    const region = source.placeWithin([...path, key], { start, end });
    const member = match[1]!;
    return region === undefined
      ? []
      : [{ collection: ofUsers ? 'users' : collection, member, written: member, region }];
  });
}

/** The fields that statements name: `read documents.salary`. */
const provenMembers = (file: SchemaText): readonly MemberUse[] =>
  file.statements().flatMap(({ path, text }) => {
    const { collection = '', member } = placesInStatement(text) ?? {};
    const region = member && file.source.placeWithin(path, member);
    if (member === undefined || region === undefined) return [];
    const written = text.slice(member.start, member.end);
    return [{ collection, member: written, written, region }];
  });

// ---------------------------------------------------------------- policies

/** A name in the text of a policy. */
interface NameInText {
  readonly collection: string;
  readonly member: string;
  readonly start: number;
  readonly end: number;
}

function membersUsed(policy: PolicyText, file: SchemaText): readonly MemberUse[] {
  const { catalog } = policy;
  const { text, originOf } = withoutConditionCalls(policy.text);
  const { checked } = examineOnce(text, { ...policy, errorsOnly: true });
  if (checked === undefined) return [];
  return namesIn(checked, { catalog, text, collection: policy.collection }).flatMap(
    ({ collection, member, start, end }) => {
      const from = originOf(start);
      const region = from === undefined ? undefined : file.regionOf(policy, { start: from, end: from + end - start });
      return region === undefined
        ? []
        : [{ collection: livingName(collection), member, written: text.slice(start, end), region }];
    },
  );
}

interface UsePlace {
  readonly catalog: Catalog;
  readonly text: string;
  readonly collection: string;
}

function namesIn(checked: Checked, place: UsePlace): readonly NameInText[] {
  // The body of a named condition has its own place.
  const own = checked.span.source === undefined ? ownNames(checked, place) : [];
  return [...own, ...partsOf(checked).flatMap((part) => namesIn(part, place))];
}

function ownNames(checked: Checked, place: UsePlace): readonly NameInText[] {
  if (checked.kind === 'changed') return changedNames(checked, place);
  const ofOperands = operandsOf(checked).flatMap((operand) => {
    if (operand.span.source !== undefined) return [];
    if (operand.kind === 'column') return columnNames(operand, place);
    if (operand.kind === 'count') return pathNames(operand.path, place);
    if (operand.kind !== 'request' || (operand.source !== 'auth' && operand.source !== 'data')) return [];
    const collection = operand.source === 'auth' ? 'users' : place.collection;
    return alongPath(place.text, operand.span, [undefined, undefined, { collection, member: operand.name }]);
  });
  const ofPath = checked.kind === 'quantified' ? pathNames(checked.path, place) : [];
  return [...ofOperands, ...ofPath];
}

type NamedStep = Pick<NameInText, 'collection' | 'member'> | undefined;

/** The steps of a path before those that walk: `@record`, a variable, or `@request.auth.team`. */
function stepsOfScope(scope: RowScope, { collection }: UsePlace): readonly NamedStep[] {
  if (scope.kind !== 'request') return [undefined];
  const { source, name } = scope.operand;
  const of = source === 'auth' ? 'users' : collection;
  return source === 'auth' && name === 'id'
    ? [undefined, undefined]
    : [undefined, undefined, { collection: of, member: name }];
}

const stepsWalked = (steps: readonly ToOneStep[]): readonly NamedStep[] =>
  steps.map(({ from, relation }) => ({ collection: from, member: relation.name }));

function columnNames(
  { scope, steps, column, collection, span }: ColumnOperand,
  place: UsePlace,
): readonly NameInText[] {
  const end = steps.at(-1)?.relation.collection ?? collection;
  // A part of a json field has the path as its name.
  const last =
    column.kind === 'field'
      ? column.field.name.split('.')[0]
      : column.kind === 'belongs_to'
        ? column.relation.name
        : undefined;
  const named = last === undefined ? undefined : { collection: end, member: last };
  return alongPath(place.text, span, [...stepsOfScope(scope, place), ...stepsWalked(steps), named]);
}

function pathNames({ scope, steps, from, relation, span }: ToManyPath, place: UsePlace): readonly NameInText[] {
  if (relation.kind === 'ancestors' || span.source !== undefined) return [];
  return alongPath(place.text, span, [
    ...stepsOfScope(scope, place),
    ...stepsWalked(steps),
    { collection: from, member: relation.name },
  ]);
}

/** Each name of a path with its place; the path may be the first part of the span. */
function alongPath(
  text: string,
  { start, end }: { readonly start: number; readonly end: number },
  steps: readonly NamedStep[],
): readonly NameInText[] {
  const [path = ''] = /^@?[A-Za-z_]\w*(?:\.\w+)*/.exec(text.slice(start, end)) ?? [];
  let at = start;
  return path.split('.').flatMap((name, i) => {
    const place = { start: at, end: at + name.length };
    at += name.length + 1;
    const step = steps[i];
    const isNamed = step !== undefined && (name === step.member || name === `${step.member}_id`);
    return isNamed ? [{ ...step, ...place }] : [];
  });
}

const PATH_OF_CHANGE = /@(?:record|next)\.(\w+)/g;

function changedNames({ span, collection }: Extract<Checked, { kind: 'changed' }>, { text, catalog }: UsePlace) {
  const known = catalog.collections.get(collection);
  const names = [...(known?.fields.keys() ?? []), ...(known?.relations.keys() ?? [])];
  return [...text.slice(span.start, span.end).matchAll(PATH_OF_CHANGE)].flatMap(({ 0: path, 1: name = '', index }) => {
    const named = names.find((member) => name === member || name === `${member}_id`);
    const end = span.start + index + path.length;
    return named === undefined ? [] : [{ collection, member: named, start: end - name.length, end }];
  });
}
