/**
 * Turns the raw value of a schema file into a value of the shape. It reports every error, and leaves
 * wrong parts out, so that the rest can be checked too.
 */
import { nearest } from '../../../grammar/suggest.ts';
import { present } from '../../invariant.ts';
import { foreignType } from '../fields/foreign-types.ts';
import { nameIssue } from '../model/names.ts';
import { inYaml, policyFor } from '../model/policy-words.ts';
import type { DocumentPath, Report } from './issue.ts';
import { NAME, type SchemaFile, schemaOfFormat, schemaShape } from './shape.ts';

export interface ShapeResult {
  readonly file: SchemaFile;
  /** Names whose declaration is wrong: references to them are not reported again. */
  readonly broken: Set<string>;
}

interface ZodIssue {
  readonly code: string;
  readonly path: DocumentPath;
  readonly expected?: string;
  readonly errors?: readonly (readonly ZodIssue[])[];
  readonly keys?: readonly string[];
  readonly values?: readonly unknown[];
  readonly options?: readonly unknown[];
  readonly pattern?: string;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly origin?: string;
  readonly message: string;
}
interface Flat {
  readonly code: string;
  readonly message: string;
  readonly path: DocumentPath;
  readonly at: 'key' | 'value';
  readonly replacement?: string | undefined;
  /** The path to remove from the raw value. */
  readonly prune: DocumentPath;
}
interface JsonShape {
  readonly properties?: Readonly<Record<string, JsonShape>>;
  readonly additionalProperties?: boolean | JsonShape;
  readonly items?: JsonShape;
  readonly anyOf?: readonly JsonShape[];
  readonly oneOf?: readonly JsonShape[];
}

const ROUNDS = 16;

export function readShape(raw: unknown, report: Report): ShapeResult {
  const value = structuredClone(raw);
  const broken = new Set<string>();
  for (let round = 0; round < ROUNDS; round++) {
    const result = schemaShape.safeParse(value);
    if (result.success) return { file: result.data, broken };
    const flats = (result.error.issues as unknown as ZodIssue[]).flatMap((error) => flatten(error, value));
    if (round === 0) for (const { prune: _, ...finding } of flats) report(finding);
    if (flats.some(({ prune }) => prune.length === 0)) break;
    for (const { prune } of flats) {
      remember(prune, broken);
      take(value, prune);
    }
  }
  return { file: {}, broken };
}

export function valueAt(value: unknown, path: DocumentPath): unknown {
  let at = value;
  for (const key of path) {
    if (typeof at !== 'object' || at === null || !Object.hasOwn(at, key)) return undefined;
    at = (at as Record<string | number, unknown>)[key];
  }
  return at;
}

function remember(path: DocumentPath, broken: Set<string>): void {
  const [room, collection, part, name] = path;
  if (room !== 'collections' || typeof collection !== 'string') return;
  if (part === undefined || ((part === 'fields' || part === 'relations') && name === undefined)) broken.add(collection);
  if ((part === 'fields' || part === 'relations') && typeof name === 'string' && !Number.isFinite(accessAt(path))) {
    broken.add(name);
    broken.add(`${name}_id`);
  }
}

function take(value: unknown, path: DocumentPath): void {
  const key = path.at(-1);
  if (key === undefined) return;
  const parentPath = path.slice(0, -1);
  const parent = valueAt(value, parentPath);
  if (Array.isArray(parent) && typeof key === 'number') {
    // The positions of the other elements must stay: a rule becomes one that is always valid, a
    // name an empty one.
    if (parentPath.includes('access')) parent[key] = parentPath.at(-1) === 'roles' ? '' : { when: true };
    else if (parent.every((item, i) => i === key || typeof item === 'string') && parentPath.at(-1) !== 'enum')
      parent[key] = '';
    else take(value, parentPath);
  } else if (typeof parent === 'object' && parent !== null) {
    delete (parent as Record<string, unknown>)[key];
    if (isRule(parentPath) && Object.keys(parent).length === 0) Object.assign(parent, { when: true });
  }
}

/** `collections.<name>.access.<action>`, or of a member (`….fields.<name>.access.read`), or an element of it. */
const isRule = (path: DocumentPath): boolean => [0, 1].includes(path.length - 2 - accessAt(path));

/** The index of `access` in the path of a rule; far beyond its end in other paths. */
function accessAt(path: DocumentPath): number {
  const isAccess = (index: number): boolean => path[0] === 'collections' && path[index] === 'access';
  return [2, 4].find(isAccess) ?? Number.POSITIVE_INFINITY;
}

function flatten(error: ZodIssue, raw: unknown, base: DocumentPath = []): Flat[] {
  const path = [...base, ...error.path];
  if (error.code === 'invalid_union' && error.errors !== undefined && error.errors.length > 0) {
    const fitting = error.errors.find((errors) => !errors.some((error) => wrongKind(error, valueAt(raw, path))));
    if (fitting !== undefined) return fitting.flatMap((error) => flatten(error, raw, path));
    const wanted = [...new Set(error.errors.flatMap((errors) => errors.flatMap(labels)))];
    return [wrongType(path, wanted, valueAt(raw, path))];
  }
  return flattenLeaf({ ...error, path }, raw);
}

/** The value is of another kind altogether, so this branch of the union was not meant. */
function wrongKind({ code, path, errors }: ZodIssue, value: unknown): boolean {
  if (path.length > 0) return false;
  if (code === 'invalid_type') return true;
  if (code === 'invalid_value') return typeof value !== 'string';
  return (
    code === 'invalid_union' &&
    errors !== undefined &&
    errors.every((branch) => branch.some((error) => wrongKind(error, value)))
  );
}

const LABELS: Readonly<Record<string, string>> = {
  string: 'a string',
  number: 'a number',
  int: 'an int',
  boolean: '`true` or `false`',
  array: 'a list',
  object: 'a mapping',
  record: 'a mapping',
};

function labels({ code, expected, values, errors }: ZodIssue): readonly string[] {
  if (code === 'invalid_union') return (errors ?? []).flatMap((branch) => branch.flatMap(labels));
  if (values !== undefined) return values.map((value) => `\`${value}\``);
  return [LABELS[expected ?? ''] ?? expected ?? 'another value'];
}

/** A value of the file, in messages. */
export function found(value: unknown): string {
  if (value === null || value === undefined) return 'nothing';
  if (Array.isArray(value)) return 'a list';
  if (typeof value === 'object') return 'a mapping';
  return typeof value === 'string' ? `the string \`${excerpt(value)}\`` : `\`${value}\``;
}

const excerpt = (text: string): string => (text.length > 40 ? `${text.slice(0, 40)}…` : text);

const inWords = (words: readonly string[]): string =>
  words.length < 2 ? words.join('') : `${words.slice(0, -1).join(', ')} or ${words.at(-1)}`;

function wrongType(path: DocumentPath, wanted: readonly string[], value: unknown): Flat {
  const rule = ruleFor(path, value);
  const isPair = Array.isArray(value) && path.at(-1) === 'unique';
  const within = isPair ? '; a value that is unique beside a belongs_to is `within_<relation>`' : '';
  const hint = rule === undefined ? within : `; write \`${rule}\``;
  const message = `expected ${inWords(wanted)}, found ${found(value)}${hint}`;
  return { code: 'wrong_type', message, path, at: 'value', prune: path, replacement: rule };
}

/** The probable rule for a word, or a policy, in a list of rules. */
function ruleFor(path: DocumentPath, value: unknown): string | undefined {
  if (path.length !== accessAt(path) + 3) return undefined;
  if (typeof value === 'boolean') return `{ when: ${value} }`;
  if (typeof value !== 'string' || !NAME.test(value)) return undefined;
  const decided = policyFor(value);
  return decided === undefined ? `{ roles: [${value}] }` : `{ when: ${inYaml(decided)} }`;
}

const PATTERNS: readonly (readonly [RegExp, string, string])[] = [
  // The pattern of a rate contains that of a duration, so it comes first.
  [/ in /, 'invalid_rate', 'a number of attempts in a time, such as `10 in 15m`'],
  [/s\|m\|h\|d\|w/, 'invalid_duration', 'a duration such as `90s`, `15m`, `24h` or `30d`'],
  [/KiB/, 'invalid_size', 'a size such as `1048576`, `512KiB` or `100MiB`'],
  [/within_/, 'invalid_unique', '`true`, `false` or `within_<relation>`, such as `within_team`'],
  [/A-Za-z/, 'invalid_name', 'a name: a letter, then letters, digits and single underscores, at most 48'],
];

function flattenLeaf(error: ZodIssue, raw: unknown): Flat[] {
  const { path } = error;
  const value = valueAt(raw, path);
  if (error.code === 'invalid_key') return invalidName(path);
  if (error.code === 'unrecognized_keys') return (error.keys ?? []).map((key) => unknownProperty(path, key, raw));
  if (value === undefined && path.length > 0) return [missingKey(path, error, raw)];
  if (error.code === 'invalid_value' || (error.code === 'invalid_union' && error.options !== undefined)) {
    return [notOneOf(path, (error.values ?? error.options ?? []).map(String), value)];
  }
  if (error.code === 'invalid_format') {
    const [, code, wanted] = PATTERNS.find(([mark]) => mark.test(error.pattern ?? '')) ?? PATTERNS.at(-1)!;
    return [{ code, message: `expected ${wanted}, found ${found(value)}`, path, at: 'value', prune: path }];
  }
  if (error.code === 'too_small' || error.code === 'too_big') {
    const edge = error.code === 'too_small' ? `at least ${error.minimum}` : `at most ${error.maximum}`;
    const actual = Array.isArray(value) ? `a list of ${value.length}` : found(value);
    const message = `expected ${edge}${error.origin === 'array' ? ' in the list' : ''}, found ${actual}`;
    return [{ code: 'out_of_range', message, path, at: 'value', prune: path }];
  }
  return [wrongType(path, labels(error), value)];
}

/** INVARIANT: the keys that the shape restricts are names. */
function invalidName(path: DocumentPath): Flat[] {
  const issue = present(nameIssue(String(path.at(-1))), 'the reason');
  return [{ ...issue, path, at: 'key', prune: path }];
}

function notOneOf(path: DocumentPath, options: readonly string[], value: unknown): Flat {
  const [, , part, , key] = path;
  const isType = part === 'fields' && (key === undefined || key === 'type');
  const choice = path.at(-1) === 'kind' ? 'kind of relation' : isType ? 'field type' : 'choice here';
  const advice = isType && typeof value === 'string' ? foreignType(value) : undefined;
  const near =
    advice?.type ?? (typeof value === 'string' && advice === undefined ? nearest(value, options) : undefined);
  const hint =
    advice?.hint ??
    (near === undefined ? `expected ${inWords(options.map(inBackticks))}` : `did you mean \`${near}\`?`);
  const message = `${found(value)} is not a ${choice}; ${hint}`;
  return { code: 'not_one_of', message, path, at: 'value', prune: path, replacement: near };
}

const inBackticks = (word: string): string => `\`${word}\``;

function missingKey(path: DocumentPath, error: ZodIssue, raw: unknown): Flat {
  const wanted = error.options ?? error.values ?? viaNames(path, raw);
  const expected = wanted === undefined ? '' : `; expected ${inWords(wanted.map(String).map(inBackticks))}`;
  const parent = path.slice(0, -1);
  const message = `\`${path.at(-1)}\` is missing${expected}`;
  return { code: 'missing_key', message, path: parent, at: 'key', prune: parent };
}

/** The belongs_to of the other collection that lead back to this one: a has_many goes along one of them. */
function viaNames(path: DocumentPath, raw: unknown): readonly string[] | undefined {
  if (path.at(-1) !== 'via') return undefined;
  const other = valueAt(raw, [...path.slice(0, -1), 'collection']);
  const relations = typeof other === 'string' ? valueAt(raw, ['collections', other, 'relations']) : undefined;
  const names = Object.entries(relations ?? {}).flatMap(([name, relation]) =>
    relation?.kind === 'belongs_to' && relation.collection === path[1] ? [name] : [],
  );
  return names.length === 0 ? undefined : names;
}

/** Keys of a collection in other systems. */
const FOREIGN_KEYS: ReadonlyMap<string, string> = new Map([
  [
    'unique',
    'a field says `unique: true`, or `unique: { within: other }` for values that are unique beside another field',
  ],
  ...['permissions', 'policies', 'rules'].map((key) => [key, 'expected them under `access`'] as const),
  ...['constraints', 'validate', 'validations'].map((key) => [key, 'expected conditions under `checks`'] as const),
]);

function unknownProperty(parent: DocumentPath, key: string, raw: unknown): Flat {
  const known = keysAt(parent, raw);
  const foreign = parent[0] === 'collections' && parent.length === 2 ? FOREIGN_KEYS.get(key) : undefined;
  if (foreign !== undefined) {
    const path = [...parent, key];
    return { code: 'unknown_key', message: `unknown key \`${key}\`; ${foreign}`, path, at: 'key', prune: path };
  }
  const near = nearest(key, known);
  const expected = known.length === 0 ? '' : `; expected ${inWords(known.map(inBackticks))}`;
  const hint = near === undefined ? expected : `; did you mean \`${near}\`?`;
  const path = [...parent, key];
  const message = `unknown key \`${key}\`${hint}`;
  return { code: 'unknown_key', message, path, at: 'key', prune: path, replacement: near };
}

/** Process-wide: the format is a constant, built at the first use. */
let fileFormat: JsonShape | undefined;

/** The keys that the mapping at `path` may have. */
function keysAt(path: DocumentPath, raw: unknown): readonly string[] {
  fileFormat ??= schemaOfFormat();
  let shapes: readonly JsonShape[] = [fileFormat];
  path.forEach((key, i) => {
    shapes = alternatives(shapes, valueAt(raw, path.slice(0, i))).flatMap((shape) => stepInto(shape, key));
  });
  return [
    ...new Set(alternatives(shapes, valueAt(raw, path)).flatMap(({ properties }) => Object.keys(properties ?? {}))),
  ];
}

function stepInto({ properties, additionalProperties, items }: JsonShape, key: string | number): readonly JsonShape[] {
  if (typeof key === 'number') return items === undefined ? [] : [items];
  const property = properties !== undefined && Object.hasOwn(properties, key) ? properties[key] : undefined;
  if (property !== undefined) return [property];
  return typeof additionalProperties === 'object' && additionalProperties !== null ? [additionalProperties] : [];
}

/** The members of unions; of relations, the one of the kind that was given. */
function alternatives(shapes: readonly JsonShape[], value: unknown): readonly JsonShape[] {
  const kind = valueAt(value, ['kind']);
  return shapes.flatMap((shape): readonly JsonShape[] => {
    const branches = shape.anyOf ?? shape.oneOf;
    if (branches === undefined) return [shape];
    const ofKind = branches.filter((branch) => valueAt(branch, ['properties', 'kind', 'const']) === kind);
    return alternatives(kind !== undefined && ofKind.length > 0 ? ofKind : branches, value);
  });
}
