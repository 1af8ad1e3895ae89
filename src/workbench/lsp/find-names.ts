/** The places of a schema file that name a condition, role or collection, and the names of a test file. */
import { isObject } from '../../records/write/input.ts';
import { policyPaths } from '../../schema/file/format-policies.ts';
import type { DocumentPath, Region } from '../../schema/file/issue.ts';
import { SourceText } from '../../schema/file/source.ts';
import type { SchemaText } from './schema-text.ts';
import { offsetAt, rangeOfRegion, type TextPosition, type TextRange } from './text-positions.ts';

/** A name that a key declares: `conditions.is_member`, `roles.editor`, `collections.teams`. */
export interface DeclaredName {
  readonly kind: 'conditions' | 'roles' | 'collections';
  readonly name: string;
}

const LISTS_OF_ROLES: readonly unknown[] = ['roles', 'includes', 'assigns'];

/** Every place that names it but its declaration. */
export function usesOfName(file: SchemaText, { kind, name }: DeclaredName): readonly Region[] {
  if (kind === 'collections') return placesOf(file, (path, value) => path.at(-1) === 'collection' && value === name);
  const quote = kind === 'conditions' ? '' : '"';
  const inPolicies = policyPaths(file.raw).flatMap((path) => {
    const text = file.source.scalarAt(path)?.value;
    if (typeof text !== 'string') return [];
    const places = placesIn(text, kind === 'conditions' ? `${name}(` : `"${name}"`);
    return places.flatMap((at) => {
      const start = at + quote.length;
      return file.source.placeWithin(path, { start, end: start + name.length }) ?? [];
    });
  });
  if (kind === 'conditions') return inPolicies;
  const inLists = placesOf(
    file,
    (path, value) => value === name && path.length > 2 && LISTS_OF_ROLES.includes(path.at(-2)),
  );
  return [...inLists, ...inPolicies];
}

/** The places of a text within another, but those within a longer word. */
function placesIn(text: string, wanted: string): readonly number[] {
  const found: number[] = [];
  for (let at = text.indexOf(wanted); at !== -1; at = text.indexOf(wanted, at + 1))
    if (!/\w/.test(text[at - 1] ?? '')) found.push(at);
  return found;
}

/** The values of the file that meet a test. */
function placesOf(file: SchemaText, isWanted: (path: DocumentPath, value: unknown) => boolean): readonly Region[] {
  const walk = (value: unknown, path: DocumentPath): readonly Region[] => {
    if (isWanted(path, value)) return [file.source.placeOf(path)];
    if (Array.isArray(value)) return value.flatMap((each, i) => walk(each, [...path, i]));
    return isObject(value) ? Object.entries(value).flatMap(([key, each]) => walk(each, [...path, key])) : [];
  };
  return walk(file.raw, []);
}

// ---------------------------------------------------------------- test files

/** A caller of `as`, or a row of `rows`. */
interface TestName {
  readonly collection: string;
  readonly name: string;
}
export interface TestUse extends TestName {
  readonly range: TextRange;
  readonly isDeclaration: boolean;
}

/** The declarations and uses of the caller or row at a position of a test file. */
export function testNameUses(
  text: string,
  position: TextPosition,
  { schema }: Pick<SchemaText, 'schema'>,
): readonly TestUse[] {
  const source = new SourceText(text, '');
  const uses = schema === undefined ? [] : new TestNames(source, schema.collections).all();
  const offset = offsetAt(text, position);
  const found = uses.find(({ range }) => offsetAt(text, range.start) <= offset && offset <= offsetAt(text, range.end));
  return uses.filter(({ collection, name }) => collection === found?.collection && name === found.name);
}

type ServedCollections = NonNullable<SchemaText['schema']>['collections'];

class TestNames {
  readonly #source: SourceText;
  readonly #collections: ServedCollections;
  readonly #uses: TestUse[] = [];

  constructor(source: SourceText, collections: ServedCollections) {
    this.#source = source;
    this.#collections = collections;
  }

  all(): readonly TestUse[] {
    const raw = this.#source.value();
    if (!isObject(raw)) return [];
    this.#declared('users', raw.as, ['as']);
    for (const [collection, rows] of objectEntries(raw.rows)) this.#declared(collection, rows, ['rows', collection]);
    const tests = Array.isArray(raw.tests) ? raw.tests : [];
    tests.forEach((test, i) => {
      if (isObject(test)) this.#test(test, ['tests', i]);
    });
    return this.#uses;
  }

  #add(name: TestName, path: DocumentPath, at: 'key' | 'value', isDeclaration = false): void {
    this.#uses.push({ ...name, range: rangeOfRegion(this.#source.placeOf(path, at)), isDeclaration });
  }

  #declared(collection: string, rows: unknown, path: DocumentPath): void {
    for (const [name, row] of objectEntries(rows)) {
      this.#add({ collection, name }, [...path, name], 'key', true);
      this.#members(collection, row, [...path, name]);
    }
  }

  /** Relations name rows. */
  #members(collection: string, row: unknown, path: DocumentPath): void {
    for (const [key, value] of objectEntries(row)) {
      const target = this.#collections.get(collection)?.relations.get(key)?.collection;
      if (target !== undefined) this.#values(target, value, [...path, key]);
    }
  }

  #values(collection: string, value: unknown, path: DocumentPath): void {
    if (typeof value === 'string') this.#add({ collection, name: value }, path, 'value');
    const parts = Array.isArray(value) ? [...value.entries()] : objectEntries(value);
    for (const [key, each] of parts) this.#values(collection, each, [...path, key]);
  }

  #test(test: Readonly<Record<string, unknown>>, path: DocumentPath): void {
    const named = Object.keys(test).find((key) => this.#collections.has(key));
    const collection = named ?? String(test.create ?? test.list);
    for (const [key, value] of Object.entries(test)) {
      const at = [...path, key];
      if (key === named) this.#values(collection, value, at);
      else if (key === 'as') this.#values('users', value, at);
      else if (key === 'data' || key === 'update') this.#members(collection, value, at);
      else if (key === 'expect' && Array.isArray(value)) this.#values(collection, value, at);
      else if (isObject(value) || value === 'none') this.#add({ collection: 'users', name: key }, at, 'key');
    }
  }
}

const objectEntries = (value: unknown): readonly (readonly [string, unknown])[] =>
  isObject(value) ? Object.entries(value) : [];
