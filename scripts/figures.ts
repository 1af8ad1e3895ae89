/**
 * `npm run figures [-- FOLDER]`: the size and shape of the code, as a table, beside the figures of
 * the reviews. The same script measures another checkout, so that two states can be compared. Source
 * is src/ and grammar/; a function is counted when it has a body and more than one line, or a name.
 * `-- --walks` lists the functions that run in a warm request; `-- --prose [ROOM]` lists the places
 * whose English breaks the rules, such as `-- --prose src/auth`; `-- --names` lists the names that
 * several files declare, and the names that several files have.
 */
import { execFileSync } from 'node:child_process';
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import type { Program } from 'oxc-parser';
import { KINDS, LIMITS, listOfPlaces, type Place, readProse } from './figures/prose.ts';
import {
  declaredNames,
  exactDuplicates,
  fileNamesUsedTwice,
  inDatabase,
  LIMITS_OF_SHAPE,
  longFunctions,
  namesDeclaredTwice,
  type Repeated,
  shapeOf,
  totalLines,
} from './figures/shape.ts';
import { readSource, type SourceFile } from './figures/source.ts';
import { countOf, listOf, measureWalks, type Walk } from './figures/walks.ts';

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: { walks: { type: 'boolean' }, prose: { type: 'boolean' }, names: { type: 'boolean' } },
});
const ROOT = resolve(flags.prose ? '.' : (positionals[0] ?? join(import.meta.dirname, '..')));

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

function quantiles(values: readonly number[]): string {
  const sorted = values.toSorted((a, b) => a - b);
  const at = (share: number): number => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0;
  return `${values.length}; ${at(0.5)} / ${at(0.9)} / ${sorted.at(-1) ?? 0}`;
}

const countBy = (values: readonly string[]): ReadonlyMap<string, number> =>
  values.reduce((counts, value) => counts.set(value, (counts.get(value) ?? 0) + 1), new Map<string, number>());

/** Values that `src` exports: how many no file imports, and how many only tests, benches and scripts do. */
function idleExports(source: readonly SourceFile[], others: readonly SourceFile[]): string {
  const counted = source.filter(({ path }) => !/^src\/(?:exports|main|client)/.test(path));
  const imported = importedNames(source);
  const importedElsewhere = importedNames(others);
  const idle = counted.flatMap(({ path, program }) =>
    program.body
      .flatMap((statement) => (isExportedValue(statement) ? declaredNames(statement) : []))
      .filter((name) => !imported.has(`${path} ${name}`) && !isLoaded(path, source))
      .map((name) => importedElsewhere.has(`${path} ${name}`)),
  );
  return `${idle.filter((elsewhere) => !elsewhere).length}; ${idle.filter(Boolean).length}`;
}

const isExportedValue = (statement: Program['body'][number]): boolean =>
  statement.type === 'ExportNamedDeclaration' && !/^TS/.test(statement.declaration?.type ?? '');

/**
 * Returns true for a file that is loaded by `import()` or as a namespace, whose names are not in
 * the text of the import.
 */
const isLoaded = (path: string, files: readonly SourceFile[]): boolean =>
  files.some((file) =>
    [...file.text.matchAll(/(?:\bimport\(|import \* as \w+ from )'(\.[^']+)'/g)].some(
      ([, to]) => resolved(file, to!) === path,
    ),
  );

const resolved = ({ path }: SourceFile, to: string): string => join(dirname(path), to);

function importedNames(files: readonly SourceFile[]): ReadonlySet<string> {
  const found = new Set<string>();
  for (const file of files)
    for (const statement of file.program.body) {
      const from = 'source' in statement ? statement.source?.value : undefined;
      if (typeof from !== 'string' || !from.startsWith('.') || !('specifiers' in statement)) continue;
      for (const specifier of statement.specifiers) {
        const name = 'imported' in specifier ? specifier.imported : 'local' in specifier ? specifier.local : undefined;
        if (name && 'name' in name) found.add(`${resolved(file, from)} ${name.name}`);
      }
    }
  return found;
}

/** `switch` over the nodes of a tree, recognised by a kind that only that tree has. */
function switches(files: readonly SourceFile[], kind: string): string {
  const counts = files.map(({ text }) => text.match(new RegExp(`case '${kind}'`, 'g'))?.length ?? 0);
  return `${counts.reduce((sum, count) => sum + count, 0)} in ${counts.filter(Boolean).length} files`;
}

/** Lines outside the table of operators, and of its SQL, that name an operator. */
function operatorsByName(files: readonly SourceFile[]): string {
  const named = /'(?:=|!=|<|<=|>|>=|in|not in|contains|starts with|ends with)'(?!.* null)/;
  const found = files.filter(({ path }) => /^src\/policy\/(?!operators\.ts|emit\/operator-sql\.ts)/.test(path));
  const counts = found.map(({ lines }) => lines.filter((line) => named.test(line)).length);
  return `${counts.reduce((sum, count) => sum + count, 0)} in ${counts.filter(Boolean).length} files`;
}

const SEEN_BY_REVIEW = 170;
/** Counts the commits since the first review, which saw the first 170. */
function commits(): string {
  const log = execFileSync('git', ['log', '--format=%s%x00%b%x01'], { cwd: ROOT, encoding: 'utf8' });
  const entries = log
    .split('\u0001')
    .map((entry) => entry.trim().split('\0'))
    .filter(([subject]) => subject)
    .slice(0, -SEEN_BY_REVIEW);
  const subjects = entries.map(([subject]) => subject!);
  const withBody = entries.filter(([, body = '']) => body.trim() !== '').length;
  const twice = [...countBy(subjects).values()].filter((count) => count > 1).length;
  return `${withBody} of ${subjects.length} / ${subjects.filter(({ length }) => length > 72).length} / ${twice}`;
}

const linesOf = (path: string): readonly string[] =>
  readFileSync(join(ROOT, path), 'utf8').replace(/\n$/, '').split('\n');
const isCode = (line: string): boolean => !/^\s*(?:\/\/|\/?\*|#|$)/.test(line);

/** Tests as code, then with the cases that are data; the second pair leaves out comments and blank lines. */
function testShare(source: readonly SourceFile[], tests: readonly SourceFile[]): string {
  const cases = globSync('test/**/*.yaml', { cwd: ROOT }).flatMap(linesOf);
  const share = (isCounted: (line: string) => boolean): string => {
    const count = (lines: readonly string[]): number => lines.filter(isCounted).length;
    const [own, code] = [source, tests].map((files) => count(files.flatMap(({ lines }) => lines)));
    return `${(code! / own!).toFixed(2)}, with cases ${((code! + count(cases)) / own!).toFixed(2)}`;
  };
  return `${share(() => true)}; without comments ${share(isCode)}`;
}

/** The three folders with most files of their own. */
function fullestFolders(paths: readonly string[]): string {
  const folders = [...countBy(paths.map((path) => dirname(path)))].sort(([, a], [, b]) => b - a);
  return folders
    .slice(0, 3)
    .map(([folder, count]) => `${count} ${folder}`)
    .join(', ');
}

const fullestOfAll = (): string =>
  fullestFolders(globSync(['{src,grammar,test,bench}/**/*.*'], { cwd: ROOT }).filter((path) => !/\/data\//.test(path)));

/** Numbers that are declared by a name in capitals, and those of them that are durations. */
function constants(files: readonly SourceFile[]): string {
  const declared = files.flatMap(({ lines }) =>
    lines.filter((line) => /^(?:export )?const [A-Z][A-Z\d_]* =.*\d/.test(line)),
  );
  const numeric = declared.filter((line) => /= *[-\d_.*+/ ()A-Z]+;/.test(line));
  return `${numeric.length}; ${numeric.filter((line) => /_(?:MS|SECONDS|MINUTES|DAYS) =/.test(line)).length}`;
}

/** Returns none for a checkout whose service this script cannot start. */
async function walksOrNone(): Promise<readonly Walk[]> {
  return existsSync(join(ROOT, 'src/exports/service.ts')) ? measureWalks(ROOT) : [];
}

type Row = readonly [name: string, now: string | number, first: string, second: string, limit?: string];

const read = (...patterns: readonly string[]): readonly SourceFile[] => readSource(ROOT, ...patterns);

const readOwn = (): readonly SourceFile[] => read('src/**/*.{ts,tsx}', 'grammar/**/*.ts');

async function figures(): Promise<readonly Row[]> {
  const source = readOwn();
  const tests = read('test/**/*.ts');
  const benches = read('bench/**/*.ts', 'scripts/**/*.ts');
  const prose = readProse(source, tests);
  const [list, patch] = await walksOrNone();
  const walk = (found: Walk | undefined): string => (found === undefined ? 'not measured' : countOf(found));
  const policy = source.filter(({ path }) => /^src\/policy\/(?!visit\.ts)/.test(path));
  const shape = shapeOf(source);
  const lines = source.flatMap(({ lines: own }) => own);
  const commentLines = lines.filter((line) => /^\s*(?:\/\*\*|\*|\/\/)/.test(line));
  const longerThan = (limit: number): number => lines.filter(({ length }) => length > limit).length;
  const longest = Math.max(...lines.map(({ length }) => length));
  const { any, as, asUnknownAs, nonNull, nestedConditionals } = shape;
  return [
    [
      'files; median / p90 / max lines',
      quantiles(source.map(({ lines: own }) => own.length)),
      '233; 76 / 255 / 400',
      '499; 74 / 233 / 399',
    ],
    ['lines of src + grammar', totalLines(source), '23409', '51170', '49670'],
    [
      'functions; median / p90 / max lines',
      quantiles(shape.functions.map(({ lines: own }) => own)),
      '1873; 6 / 18 / 160',
      '3793; 6 / 16 / 55',
    ],
    ['functions of 60 lines or more', longFunctions(shape).length, '', '0', String(LIMITS_OF_SHAPE.longFunctions)],
    ['functions with 3 parameters; with 4 or more', countParameters(shape.parameters), '164; 6', ''],
    ['anonymous parameter types', shape.anonymousParameterTypes, '67', ''],
    ['comment share', commentShare(source), '7.4 %', '11.0 %'],
    ['comment lines over 120 columns', commentLines.filter(({ length }) => length > 120).length, '227', ''],
    [
      'lines over 160; over 200; longest',
      `${longerThan(160)}; ${longerThan(200)}; ${longest}`,
      '; 26; 460',
      '',
      '0; 0',
    ],
    [
      'import cycles, with tests, benches, scripts',
      cycles([...source, ...tests, ...benches]),
      '0 and 1 of types',
      '',
      '0',
    ],
    [
      'any / as / ! / nested conditionals',
      `${any} / ${as} / ${nonNull} / ${nestedConditionals}`,
      '0 / 202 / 260 / 29',
      '',
    ],
    ['as / ! / nested, in 1,000 lines', perThousand([as, nonNull, nestedConditionals], source), '8.6 / 11.1 / 1.2', ''],
    ['as unknown as', asUnknownAs, '6', ''],
    ['exported values imported nowhere; by tests', idleExports(source, [...tests, ...benches]), '37; 23', ''],
    ['tests : source', testShare(source, tests), '0.79', '1.06'],
    [
      'fullest folders of the source',
      fullestFolders(source.map(({ path }) => path)),
      '38 store',
      '40 store/database',
      '22',
    ],
    ['fullest folders with tests and benches, all files', fullestOfAll(), '', '', '22'],
    [
      'top-level names declared in 2 or more files',
      namesDeclaredTwice(source).size,
      '183',
      '198',
      String(LIMITS_OF_SHAPE.names),
    ],
    ['file names used twice', fileNamesUsedTwice(source).size, '26', '18', String(LIMITS_OF_SHAPE.fileNames)],
    ['exact duplicates of 6 lines', exactDuplicates(source).length, '0', '0', String(LIMITS_OF_SHAPE.duplicates)],
    ['switches over Checked, outside visit.ts', switches(policy, 'quantified'), '16 in 15 files', ''],
    ['switches over Condition, outside visit.ts', switches(policy, 'exists'), '8 in 4 files', ''],
    ['operators by name outside the table', operatorsByName(source), '115 in 14 files', '', '0'],
    ['warm GET list: files / functions', walk(list), '', '73 / 268', '50 / 190'],
    ['warm PATCH of an int: files / functions', walk(patch), '', '90 / 350', '62 / 240'],
    ['lines of src/database', totalLines(source.filter(inDatabase)), '', '4404', String(LIMITS_OF_SHAPE.databaseLines)],
    ['numeric constants in it; durations', constants(source.filter(inDatabase)), '', '69'],
    [
      'lines with told, stands, whoever…; with "is no"',
      `${prose.oddWords.length}; ${prose.isNo.length}`,
      '104+; 73',
      '139; 53',
      `${LIMITS.oddWords}; ${LIMITS.isNo}`,
    ],
    [
      'comment sentences that begin with Is, Of, What…',
      prose.commentSentences.length,
      '',
      '',
      String(LIMITS.commentSentences),
    ],
    ['test titles that begin with Is, Of, What…', prose.titles.length, '', '298', String(LIMITS.titles)],
    ['commits since: with a body / subject > 72 / twice', commits(), '0 of 170 / 31 / 3', ''],
  ];
}

const perThousand = (counts: readonly number[], files: readonly SourceFile[]): string =>
  counts.map((count) => ((1_000 * count) / totalLines(files)).toFixed(1)).join(' / ');

const countParameters = (parameters: readonly number[]): string =>
  `${parameters.filter((count) => count === 3).length}; ${parameters.filter((count) => count > 3).length}`;

/** Lists the places of benches and scripts too, which no figure counts. */
function reportProse(room = ''): void {
  const prose = readProse(read('{src,grammar,bench,scripts}/**/*.{ts,tsx}'), read('test/**/*.ts'));
  const inRoom = (places: readonly Place[]): readonly Place[] => places.filter(({ path }) => path.startsWith(room));
  for (const kind of KINDS) process.stdout.write(listOfPlaces(kind, inRoom(prose[kind])));
}

function reportNames(): void {
  const source = readOwn();
  const listed = (repeated: Repeated): string =>
    [...repeated].map(([name, paths]) => `${name}: ${paths.join(', ')}\n`).join('');
  process.stdout.write(`${listed(namesDeclaredTwice(source))}\n${listed(fileNamesUsedTwice(source))}`);
}

async function reportFigures(): Promise<void> {
  const rows: readonly Row[] = [['', 'now', 'first review', 'second review', 'limit'], ...(await figures())];
  const width = (column: number): number => Math.max(...rows.map((row) => String(row[column] ?? '').length));
  for (const row of rows)
    process.stdout.write(
      `${row
        .map((cell, column) => String(cell).padEnd(width(column)))
        .join('  ')
        .trimEnd()}\n`,
    );
}

if (flags.prose) reportProse(positionals[0]);
else if (flags.names) reportNames();
else if (flags.walks) process.stdout.write((await walksOrNone()).map(listOf).join(''));
else await reportFigures();
