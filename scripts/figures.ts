/**
 * `npm run figures [-- FOLDER]`: the size and shape of the code, as a table. The same script measures another checkout, so that two states can be compared.
 * Source is src/ and grammar/; a function is counted when it has a body and more than one line, or a name.
 */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { type Node, type Program, parseSync, Visitor } from 'oxc-parser';

const ROOT = resolve(process.argv[2] ?? join(import.meta.dirname, '..'));

interface SourceFile {
  readonly path: string;
  readonly text: string;
  readonly lines: readonly string[];
  readonly program: Program;
  readonly comments: readonly { readonly start: number; readonly end: number }[];
}

function read(...patterns: readonly string[]): readonly SourceFile[] {
  return globSync([...patterns], { cwd: ROOT })
    .sort()
    .map((path) => {
      const text = readFileSync(join(ROOT, path), 'utf8');
      const { program, comments } = parseSync(path, text);
      return { path, text, lines: text.replace(/\n$/, '').split('\n'), program, comments };
    });
}

interface Shape {
  readonly functionLines: number[];
  readonly parameters: number[];
  anonymousParameterTypes: number;
  any: number;
  as: number;
  asUnknownAs: number;
  nonNull: number;
  nestedConditionals: number;
}

function shapeOf(files: readonly SourceFile[]): Shape {
  const shape: Shape = {
    functionLines: [],
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

function visit({ text, program }: SourceFile, shape: Shape): void {
  const countFunction = (node: Callable): void => {
    if (node.body === null || node.body === undefined) return;
    const lines = text.slice(node.start, node.end).split('\n').length;
    if (lines === 1 && node.type === 'ArrowFunctionExpression') return;
    shape.functionLines.push(lines);
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

/** Names declared at the top level of more than one file. */
function namesDeclaredTwice(files: readonly SourceFile[]): number {
  const places = new Map<string, Set<string>>();
  for (const { path, program } of files)
    for (const name of program.body.flatMap(declaredNames)) places.set(name, (places.get(name) ?? new Set()).add(path));
  return [...places.values()].filter(({ size }) => size > 1).length;
}

function declaredNames(statement: Program['body'][number]): readonly string[] {
  const declared = statement.type === 'ExportNamedDeclaration' ? statement.declaration : statement;
  if (declared === null) return [];
  if (declared.type === 'VariableDeclaration')
    return declared.declarations.flatMap(({ id }) => (id.type === 'Identifier' ? [id.name] : []));
  const id = 'id' in declared ? declared.id : undefined;
  return id && 'name' in id ? [id.name] : [];
}

/** Rings of imports, type imports included; each is counted where it closes. */
function cycles(files: readonly SourceFile[]): number {
  const targets = new Map(files.map((file) => [file.path, importsOf(file)] as const));
  const done = new Set<string>();
  let found = 0;
  const walk = (path: string, trail: readonly string[]): void => {
    if (trail.includes(path)) found++;
    if (done.has(path) || trail.includes(path)) return;
    for (const target of targets.get(path) ?? []) walk(target, [...trail, path]);
    done.add(path);
  };
  for (const { path } of files) walk(path, []);
  return found;
}

const importsOf = ({ path, text }: SourceFile): readonly string[] =>
  [...text.matchAll(/\b(?:from|import)\s*\(?\s*'(\.[^']+)'/g)].map(([, to]) => join(dirname(path), to!));

function commentShare(files: readonly SourceFile[]): string {
  const count = (texts: readonly string[]): number => texts.reduce((sum, text) => sum + text.split('\n').length, 0);
  const comments = files.reduce(
    (sum, { comments: own, text }) => sum + count(own.map((c) => text.slice(c.start, c.end))),
    0,
  );
  return `${((100 * comments) / totalLines(files)).toFixed(1)} %`;
}

const totalLines = (files: readonly SourceFile[]): number => files.reduce((sum, { lines }) => sum + lines.length, 0);

function quantiles(values: readonly number[]): string {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number): number => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
  return `${values.length}; ${at(0.5)} / ${at(0.9)} / ${sorted.at(-1) ?? 0}`;
}

const countBy = (values: readonly string[]): ReadonlyMap<string, number> =>
  values.reduce((counts, value) => counts.set(value, (counts.get(value) ?? 0) + 1), new Map<string, number>());

function figures(): readonly (readonly [string, string | number])[] {
  const source = read('src/**/*.ts', 'grammar/**/*.ts');
  const tests = read('test/**/*.ts');
  const everything = [...source, ...tests, ...read('bench/**/*.ts', 'scripts/**/*.ts')];
  const shape = shapeOf(source);
  const lines = source.flatMap(({ lines: own }) => own);
  const commentLines = lines.filter((line) => /^\s*(?:\/\*\*|\*|\/\/)/.test(line));
  const longerThan = (limit: number): number => lines.filter(({ length }) => length > limit).length;
  const flat = [...countBy(source.map(({ path }) => dirname(path)))].sort(([, a], [, b]) => b - a)[0]!;
  const fileNames = [...countBy(source.map(({ path }) => basename(path))).entries()];
  const repeated = fileNames.filter(([name, count]) => count > 1 && name !== 'index.ts').length;
  const cases = globSync('test/cases/*.yaml', { cwd: ROOT }).filter((path) => existsSync(join(ROOT, path)));
  return [
    ['files; median / p90 / max lines', quantiles(source.map(({ lines: own }) => own.length))],
    ['lines of source', totalLines(source)],
    ['functions; median / p90 / max lines', quantiles(shape.functionLines)],
    ['functions of 60 lines or more', shape.functionLines.filter((count) => count >= 60).length],
    ['functions with 3 parameters; with 4 or more', countParameters(shape.parameters)],
    ['anonymous parameter types', shape.anonymousParameterTypes],
    ['comment share', commentShare(source)],
    ['comment lines over 120 columns', commentLines.filter(({ length }) => length > 120).length],
    [
      'lines over 160 columns; over 200; longest',
      `${longerThan(160)}; ${longerThan(200)}; ${Math.max(...lines.map((l) => l.length))}`,
    ],
    ['import cycles, with tests, benches and scripts', cycles(everything)],
    [
      'any / as / as unknown as / ! / nested conditionals',
      `${shape.any} / ${shape.as} / ${shape.asUnknownAs} / ${shape.nonNull} / ${shape.nestedConditionals}`,
    ],
    ['most files in one folder', `${flat[1]} (${flat[0]})`],
    ['top-level names declared in 2 or more files', namesDeclaredTwice(source)],
    ['file names used twice', repeated],
    [
      'tests : source',
      `${(totalLines(tests) / totalLines(source)).toFixed(2)} (${totalLines(tests)} lines, ${cases.length} files of cases beside)`,
    ],
  ];
}

const countParameters = (parameters: readonly number[]): string =>
  `${parameters.filter((count) => count === 3).length}; ${parameters.filter((count) => count > 3).length}`;

const rows = figures();
const width = Math.max(...rows.map(([name]) => name.length));
for (const [name, value] of rows) process.stdout.write(`${name.padEnd(width)}  ${value}\n`);
