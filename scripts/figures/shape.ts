/** The shape of source files, by their syntax: figures that a test holds within LIMITS_OF_SHAPE. */
import { basename } from 'node:path';
import { type Node, type Program, Visitor } from 'oxc-parser';
import type { SourceFile } from './source.ts';

export const LIMITS_OF_SHAPE = { longFunctions: 0, names: 20, fileNames: 16, duplicates: 0, databaseLines: 3_000 };
/** Lines from which a function is long. */
const LONG = 60;

interface SizedFunction {
  /** The path and the line. */
  readonly place: string;
  readonly lines: number;
}

export interface Shape {
  readonly functions: SizedFunction[];
  readonly parameters: number[];
  anonymousParameterTypes: number;
  any: number;
  as: number;
  asUnknownAs: number;
  nonNull: number;
  nestedConditionals: number;
}

export function shapeOf(files: readonly SourceFile[]): Shape {
  const shape: Shape = {
    functions: [],
    parameters: [],
    anonymousParameterTypes: 0,
    any: 0,
    as: 0,
    asUnknownAs: 0,
    nonNull: 0,
    nestedConditionals: 0,
  };
  for (const file of files) visit(file, shape);
  return shape;
}

type Callable = Node & { readonly params: readonly unknown[]; readonly body?: unknown };

function visit({ path, text, program }: SourceFile, shape: Shape): void {
  const countFunction = (node: Callable): void => {
    if (node.body === null || node.body === undefined) return;
    const lines = text.slice(node.start, node.end).split('\n').length;
    if (lines === 1 && node.type === 'ArrowFunctionExpression') return;
    shape.functions.push({ place: `${path}:${text.slice(0, node.start).split('\n').length}`, lines });
    shape.parameters.push(node.params.length);
    shape.anonymousParameterTypes += node.params.filter(hasAnonymousType).length;
  };
  new Visitor({
    FunctionDeclaration: (node) => countFunction(node as unknown as Callable),
    FunctionExpression: (node) => countFunction(node as unknown as Callable),
    ArrowFunctionExpression: (node) => countFunction(node as unknown as Callable),
    TSAnyKeyword: () => void shape.any++,
    TSNonNullExpression: () => void shape.nonNull++,
    TSAsExpression: ({ typeAnnotation, expression }) => {
      const isConst = text.slice(typeAnnotation.start, typeAnnotation.end) === 'const';
      if (!isConst) shape.as++;
      if (expression.type === 'TSAsExpression' && expression.typeAnnotation.type === 'TSUnknownKeyword')
        shape.asUnknownAs++;
    },
    ConditionalExpression: ({ consequent, alternate }) => {
      if ([consequent, alternate].some(({ type }) => type === 'ConditionalExpression')) shape.nestedConditionals++;
    },
  }).visit(program);
}

/** `{ a, b }: { readonly a: X; readonly b: Y }`. */
function hasAnonymousType(parameter: unknown): boolean {
  const { type, typeAnnotation, left } = parameter as {
    readonly type: string;
    readonly typeAnnotation?: { readonly typeAnnotation: { readonly type: string } };
    readonly left?: unknown;
  };
  if (type === 'AssignmentPattern') return hasAnonymousType(left);
  return typeAnnotation?.typeAnnotation.type === 'TSTypeLiteral';
}

export const longFunctions = ({ functions }: Shape): readonly SizedFunction[] =>
  functions.filter(({ lines }) => lines >= LONG);

/** Paths by the name that they share. */
export const inDatabase = ({ path }: SourceFile): boolean => /^src\/(?:store\/)?database\//.test(path);
export const totalLines = (files: readonly SourceFile[]): number =>
  files.reduce((sum, { lines }) => sum + lines.length, 0);

export type Repeated = ReadonlyMap<string, readonly string[]>;

const repeatedOf = (places: ReadonlyMap<string, ReadonlySet<string>>): Repeated =>
  new Map([...places].filter(([, { size }]) => size > 1).map(([name, paths]) => [name, [...paths]]));

/** Names declared at the top level of more than one file, with the paths of these. */
export function namesDeclaredTwice(files: readonly SourceFile[]): Repeated {
  const places = new Map<string, Set<string>>();
  for (const { path, program } of files)
    for (const name of program.body.flatMap(declaredNames)) places.set(name, (places.get(name) ?? new Set()).add(path));
  return repeatedOf(places);
}

export function declaredNames(statement: Program['body'][number]): readonly string[] {
  const declared = statement.type === 'ExportNamedDeclaration' ? statement.declaration : statement;
  if (declared === null) return [];
  if (declared.type === 'VariableDeclaration')
    return declared.declarations.flatMap(({ id }) => (id.type === 'Identifier' ? [id.name] : []));
  const id = 'id' in declared ? declared.id : undefined;
  return id && 'name' in id ? [id.name] : [];
}

/** Every folder may have an index.ts. */
export function fileNamesUsedTwice(files: readonly SourceFile[]): Repeated {
  const places = new Map<string, Set<string>>();
  for (const { path } of files) {
    const name = basename(path);
    if (name !== 'index.ts') places.set(name, (places.get(name) ?? new Set()).add(path));
  }
  return repeatedOf(places);
}

/** Runs of six lines that two places share; blank lines, comments, imports and lone punctuation do not count. Each group of files is listed once. */
export function exactDuplicates(files: readonly SourceFile[]): readonly string[] {
  const places = new Map<string, Set<string>>();
  for (const { path, text, lines, program } of files) {
    const imports = program.body.filter(({ type }) => type === 'ImportDeclaration').at(-1)?.end ?? 0;
    const code = lines
      .slice(text.slice(0, imports).split('\n').length)
      .map((line) => line.trim())
      .filter((line) => !/^(?:$|\/\/|\/?\*|import\b|export \{|[^\w]*$)/.test(line));
    for (let i = 0; i + 6 <= code.length; i++) {
      const run = code.slice(i, i + 6).join('\n');
      places.set(run, (places.get(run) ?? new Set()).add(path));
    }
  }
  return [
    ...new Set(
      repeatedOf(places)
        .values()
        .map((paths) => paths.join(', ')),
    ),
  ];
}
