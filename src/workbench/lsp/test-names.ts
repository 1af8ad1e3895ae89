/** Hovers and renames in test files: callers, rows, and the members that rows and bodies name. */

import { describeType } from '../../policy/scalar-types.ts';
import { isObject } from '../../records/write/input.ts';
import { writtenIn } from '../../schema/file/scalar.ts';
import { SourceText } from '../../schema/file/source.ts';
import { valueAt } from '../../schema/file/validate.ts';
import type { Schema } from '../../schema/model/model.ts';
import { isCallerName } from '../test/test-rows.ts';
import { type TestUse, testNameUses } from './find-names.ts';
import type { Hover } from './hover-text.ts';
import type { SchemaText } from './schema-text.ts';
import { offsetAt, rangeOfRegion, type TextEdit, type TextPosition, type TextRange } from './text-positions.ts';

type OpenSchema = Pick<SchemaText, 'schema'>;

const coversPosition = (text: string, { start, end }: TextRange, position: TextPosition): boolean => {
  const offset = offsetAt(text, position);
  return offsetAt(text, start) <= offset && offset <= offsetAt(text, end);
};

const useAt = (text: string, position: TextPosition, uses: readonly TestUse[]): TestUse | undefined =>
  uses.find(({ range }) => coversPosition(text, range, position));

/** The values of a caller or row, or the type of a member. */
export function hoverInTests(text: string, position: TextPosition, file: OpenSchema): Hover | undefined {
  const uses = testNameUses(text, position, file);
  const found = useAt(text, position, uses);
  if (found === undefined) return hoverOfMember(text, position, file.schema);
  const source = new SourceText(text, '');
  const isCaller = found.collection === 'users' && source.has(['as', found.name]);
  const path = isCaller ? ['as', found.name] : ['rows', found.collection, found.name];
  if (!source.has(path)) return undefined;
  const values = JSON.stringify(valueAt(source.value(), path));
  const title = isCaller ? `caller \`${found.name}\`` : `row \`${found.name}\` of \`${found.collection}\``;
  return { contents: inMarkdown([title, `\`\`\`yaml\n${values.trim()}\n\`\`\``]), range: found.range };
}

const inMarkdown = (lines: readonly string[]): Hover['contents'] => ({ kind: 'markdown', value: lines.join('\n\n') });

function hoverOfMember(text: string, position: TextPosition, schema: Schema | undefined): Hover | undefined {
  const source = new SourceText(text, '');
  const raw = source.value();
  const path = source.pathAt(offsetAt(text, position)).map(String);
  const name = path.at(-1) ?? '';
  const collection = schema?.collections.get(testedCollection(path, raw) ?? '');
  const [field, relation] = [collection?.fields.get(name), collection?.relations.get(name)];
  if (collection === undefined || (field === undefined && relation === undefined)) return undefined;
  const range = rangeOfRegion(source.placeOf(typedPath(path), 'key'));
  if (!coversPosition(text, range, position)) return undefined;
  const type = field === undefined ? `${relation!.kind} of \`${relation!.collection}\`` : describeType(field.type);
  const isRequired = (field ?? (relation as { readonly required?: boolean })).required === true;
  return { contents: inMarkdown([`\`${collection.name}.${name}\`: ${type}${isRequired ? '' : ', or null'}`]), range };
}

/** The index of a test is a number. */
const typedPath = (path: readonly string[]): readonly (string | number)[] =>
  path.map((part, i) => (i === 1 && path[0] === 'tests' ? Number(part) : part));

/** The collection whose members the mapping at the path has. */
function testedCollection([part, first, key]: readonly string[], raw: unknown): string | undefined {
  if (part === 'as') return 'users';
  if (part === 'rows') return first;
  const tests: unknown = isObject(raw) ? raw.tests : undefined;
  const test: unknown = Array.isArray(tests) ? tests[Number(first)] : undefined;
  if (part !== 'tests' || !isObject(test) || key === undefined) return undefined;
  const listed = test.create ?? test.list;
  return typeof listed === 'string' ? listed : Object.keys(test)[0];
}

/** Undefined: no caller or row of the file, such as `guest`. */
export function renameableInTests(text: string, position: TextPosition, file: OpenSchema) {
  const uses = testNameUses(text, position, file);
  const found = useAt(text, position, uses);
  if (found === undefined || !uses.some(({ isDeclaration }) => isDeclaration)) return undefined;
  return { range: found.range, placeholder: found.name };
}

interface NewTestName {
  readonly position: TextPosition;
  readonly newName: string;
}

/** The edits that give a caller or row another name. Throws RangeError for a name that it cannot have. */
export function renameTestName(
  text: string,
  { position, newName }: NewTestName,
  file: OpenSchema,
): readonly TextEdit[] | undefined {
  const found = renameableInTests(text, position, file);
  if (found === undefined) return undefined;
  const uses = testNameUses(text, position, file);
  const { collection } = uses[0]!;
  const source = new SourceText(text, '');
  if (newName.trim() === '') throw new RangeError('a caller or row needs a name');
  if (collection === 'users' && !isCallerName(newName)) throw new RangeError(`no caller can be named \`${newName}\``);
  if (source.has(['rows', collection, newName]) || (collection === 'users' && source.has(['as', newName])))
    throw new RangeError(`\`${collection}\` has a \`${newName}\` already`);
  return uses.map(({ range }) => ({ range, newText: writtenIn(undefined, newName) ?? newName }));
}
