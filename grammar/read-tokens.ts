/**
 * Reads tokens as operands: paths, strings, numbers, durations. Reports an error and continues with
 * what was probably meant.
 */
import type { IToken } from 'chevrotain';
import { filterIssue, ME } from './filter-roots.ts';
import { overNames } from './limits.ts';
import { type PolicyIssue, replacing } from './policy-error.ts';
import { nearest } from './suggest.ts';
import type {
  Dialect,
  Name,
  NowReference,
  NumeralLiteral,
  Operand,
  ParamOperand,
  Path,
  Root,
  Span,
  TextLiteral,
} from './syntax.ts';
import { JSON_NUMBER, NOW_WORDS, RESERVED, spanOf } from './tokens.ts';

export interface TokenReport {
  readonly dialect: Dialect;
  readonly issues: PolicyIssue[];
  /** Operands that have an error already, so that the checker skips them. */
  readonly broken: Set<Operand>;
}

type TokenIssue = Omit<PolicyIssue, 'severity'>;

/** More errors than this do not help, and a suggestion for each takes time. */
export const MOST_ISSUES = 32;

export function reportIssue(report: TokenReport, given: TokenIssue): undefined {
  if (report.issues.length >= MOST_ISSUES) return;
  report.issues.push({ severity: 'error', ...given });
}

interface Respelling {
  readonly right: string;
  readonly code: string;
  readonly message: string;
}

/** Misspelt operators: the fix replaces one word by another, and is correct by construction. */
export function respell(report: TokenReport, found: IToken, { right, code, message }: Respelling): void {
  const span = spanOf(found);
  reportIssue(report, { code, message, span, ...replacing(span, right) });
}

// ---------------------------------------------------------------- paths

const ROOTS: ReadonlyMap<string, Root> = new Map([
  ['@record', 'record'],
  ['@next', 'next'],
]);
const SOURCES: ReadonlyMap<string, Root> = new Map([
  ['auth', 'auth'],
  ['query', 'query'],
  ['data', 'data'],
]);
/** Facts of the request, which are whole paths. */
const FACTS: ReadonlyMap<string, { readonly root: Root; readonly names: readonly string[] }> = new Map([
  ['@request', { root: 'request', names: ['ip', 'method', 'origin', 'kind'] }],
  ['@now', { root: 'now', names: ['hour', 'weekday'] }],
] as const);
export const FACT_PATHS: readonly string[] = [...FACTS].flatMap(([root, { names }]) =>
  names.map((name) => `${root}.${name}`),
);
/** The names that other systems use. */
const FOREIGN_ROOTS: ReadonlyMap<string, string> = new Map([
  ['@user', '@request.auth'],
  ['@me', '@request.auth'],
  ['@auth', '@request.auth'],
  ['@currentuser', '@request.auth'],
  ['@current_user', '@request.auth'],
  ['@principal', '@request.auth'],
  ['@query', '@request.query'],
  ['@params', '@request.query'],
  ['@data', '@request.data'],
  ['@body', '@request.data'],
  ['@ip', '@request.ip'],
  ['@request.address', '@request.ip'],
  ['@request.remote_addr', '@request.ip'],
  ['@input', '@request.data'],
  ['@resource', '@record'],
  ['@row', '@record'],
  ['@old', '@record'],
  ['@new', '@next'],
  ['@request.user', '@request.auth'],
  ['@request.token', '@request.auth'],
  ['@request.params', '@request.query'],
  ['@request.body', '@request.data'],
  ['@request.input', '@request.data'],
]);

function namesInPath(text: string, offset: number): Name[] {
  const names: Name[] = [];
  let start = 0;
  while (start <= text.length) {
    const dot = text.indexOf('.', start);
    const end = dot === -1 ? text.length : dot;
    names.push({ name: text.slice(start, end), span: { start: offset + start, end: offset + end } });
    start = end + 1;
  }
  return names;
}

function broken(report: TokenReport, path: Path): Path {
  report.broken.add(path);
  return path;
}

/** `@record…`, `@next…`, `@request.auth…`, … */
export function readPath(token: IToken, report: TokenReport): Path {
  const names = namesInPath(token.image, token.startOffset);
  const span = spanOf(token);
  if (report.dialect === 'filter') return readFilterPath(names, span, report);
  const [first = '', second = ''] = names.map(({ name }) => name);
  const root = ROOTS.get(first);
  if (root !== undefined) return finishPath({ kind: 'path', root, steps: names.slice(1), span }, report);
  const source = first === '@request' ? SOURCES.get(second) : undefined;
  if (source !== undefined) return finishPath({ kind: 'path', root: source, steps: names.slice(2), span }, report);
  const fact = FACTS.get(first);
  if (fact?.names.includes(second))
    return finishPath({ kind: 'path', root: fact.root, steps: names.slice(1), span }, report);
  unknownRoot(names, report);
  return broken(report, { kind: 'path', root: 'record', steps: names.slice(1), span });
}

/** `@me` is the only root that a filter has. */
function readFilterPath(names: readonly Name[], span: Span, report: TokenReport): Path {
  const [first, ...others] = names;
  if (first?.name === ME && others.length === 0)
    return { kind: 'path', root: 'auth', steps: [{ name: 'id', span }], span };
  reportIssue(report, filterIssue(names, span));
  return broken(report, { kind: 'path', root: 'auth', steps: [{ name: 'id', span }], span });
}

const CALLER_ID = '@request.auth.id';

/** `$name`. The checker decides if the query has it. */
export function readParam(token: IToken, report: TokenReport): ParamOperand {
  const param: ParamOperand = { kind: 'param', name: token.image.slice(1), span: spanOf(token) };
  if (report.dialect === 'filter') return param;
  const message = `\`${token.image}\` in a policy; only the filters of queries have parameters`;
  const isCaller = /^(?:auth|(?:current_?|auth_?)?user(?:_?id)?|uid|me)$/i.test(param.name);
  reportIssue(
    report,
    isCaller
      ? {
          code: 'param_misplaced',
          message: `${message}; the caller is \`${CALLER_ID}\``,
          span: param.span,
          ...replacing(param.span, CALLER_ID),
        }
      : { code: 'param_misplaced', message, span: param.span },
  );
  report.broken.add(param);
  return param;
}

/** `m`, `m.user`. The checker decides whether `m` is bound. */
export function readVariable(token: IToken, report: TokenReport): Path {
  const [variable, ...steps] = namesInPath(token.image, token.startOffset);
  return finishPath({ kind: 'path', root: 'variable', variable: variable!, steps, span: spanOf(token) }, report);
}

/** The name that a quantifier binds. */
export function readVariableName(token: IToken, report: TokenReport): Name {
  const span = spanOf(token);
  const name = token.image;
  if (name.includes('.'))
    reportIssue(report, { code: 'variable_malformed', message: 'a variable is one name, without dots', span });
  else if (RESERVED.has(name)) {
    const message = `\`${name}\` is a word of the language; expected another name`;
    reportIssue(report, { code: 'word_reserved', message, span });
  }
  return { name, span };
}

const RECORDS: ReadonlySet<Root> = new Set(['record', 'next', 'auth']);

/** `member_of(@record)`: a record as the argument of a named condition is its id. */
export function readArgument(operand: Operand, { issues, broken: skipped }: TokenReport): Operand {
  if (operand.kind !== 'path' || !RECORDS.has(operand.root) || operand.steps.length > 0) return operand;
  const { span } = operand;
  const at = issues.findIndex((issue) => issue.code === 'path_incomplete' && issue.span === span);
  if (at < 0) return operand;
  issues.splice(at, 1);
  skipped.delete(operand);
  return { ...operand, steps: [{ name: 'id', span }] };
}

/** The name of a belongs_to after `by`. */
export function readRelationName(token: IToken, report: TokenReport): Name {
  const name = { name: token.image, span: spanOf(token) };
  if (name.name.includes('.'))
    reportIssue(report, { code: 'ancestors_malformed', message: '`by` takes one name, without dots', span: name.span });
  return name;
}

/** `ancestors(@record by parent)`: the record that is judged is not one of its own ancestors. */
export function readStart(path: Path, by: Name, { issues }: TokenReport): void {
  const at = issues.findIndex(({ code, span }) => code === 'path_incomplete' && span === path.span);
  if (at < 0 || (path.root !== 'record' && path.root !== 'next')) return;
  issues[at] = { severity: 'error', ...ancestorsOfRecord(`@${path.root}.${by.name}`, path.span) };
}

/** On create the record is not stored yet. */
export function ancestorsOfRecord(right: string, span: Span): TokenIssue {
  const message = `\`ancestors\` begins at a related record, not at the record itself; expected \`${right}\``;
  return { code: 'ancestors_of_record', message, span, ...replacing(span, right) };
}

function finishPath(path: Path, report: TokenReport): Path {
  const empty = path.steps.find((step) => step.name === '');
  if (empty !== undefined) {
    const span = { start: empty.span.start - 1, end: empty.span.end };
    reportIssue(report, { code: 'name_expected', message: 'a dot without a name; expected a name after it', span });
    return broken(report, path);
  }
  if (path.steps.length === 0 && path.root !== 'variable') {
    reportIssue(report, incomplete(path));
    return broken(report, path);
  }
  const walked = path.root === 'record' || path.root === 'next' || path.root === 'variable';
  const excess = walked ? overNames(path.steps.length, path.span) : undefined;
  if (excess !== undefined) {
    report.issues.push(excess);
    return broken(report, path);
  }
  return path;
}

function incomplete({ root, span }: Path): TokenIssue {
  const text = root === 'record' || root === 'next' ? `@${root}` : `@request.${root}`;
  const message = `\`${text}\` alone is not a value; expected a name after it`;
  if (root === 'query' || root === 'data') return { code: 'path_incomplete', message, span };
  const right = `${text}.id`;
  const fix = { span, replacement: right };
  return { code: 'path_incomplete', message: `${message}, such as \`${right}\``, span, suggestion: right, fix };
}

/** The roots of a policy's paths. */
export const PATH_ROOTS: readonly string[] = [...ROOTS.keys(), ...[...SOURCES.keys()].map((key) => `@request.${key}`)];
const ROOT_TEXTS: readonly string[] = PATH_ROOTS.toSpliced(ROOTS.size, 0, ...NOW_WORDS);
const PARTS_OF_NOW = FACTS.get('@now')!.names;

function unknownRoot(names: readonly Name[], report: TokenReport): undefined {
  const [first, second] = names as readonly [Name, Name?];
  const nested = first.name === '@request' && second !== undefined;
  const found = nested ? `@request.${second.name}` : first.name;
  const span = { start: first.span.start, end: nested ? second.span.end : first.span.end };
  const expected = ROOT_TEXTS.map((text) => `\`${text}\``).join(', ');
  if (found === '@request') {
    const message =
      '`@request` alone is not a value; expected `@request.auth`, `@request.query` or `@request.data` and a name';
    return reportIssue(report, { code: 'path_incomplete', message, span });
  }
  if (found === '@now' || found === '@today') {
    const parts = PARTS_OF_NOW.map((name) => `\`@now.${name}\``).join(' and ');
    const message =
      found === '@now' ? `\`@now\` is a datetime; its parts are ${parts}` : '`@today` is a date and has no parts';
    return reportIssue(report, { code: 'path_unknown', message, span });
  }
  const near =
    FOREIGN_ROOTS.get(found.toLowerCase()) ??
    (nested ? nearSource(second.name) : nearest(found, ROOT_TEXTS)) ??
    rejoined(first, second);
  if (near === undefined) {
    const message = `unknown path \`${found}\`; expected ${expected}`;
    return reportIssue(report, { code: 'path_unknown', message, span });
  }
  // Other systems compare the caller itself.
  const right = names.length < 2 && near === '@request.auth' ? CALLER_ID : near;
  const message = `unknown path \`${found}\`; did you mean \`${right}\`?`;
  return reportIssue(report, { code: 'path_unknown', message, span, ...replacing(span, right) });
}

/**
 * Decided by what follows `@request.` alone: a header that policies cannot read must not become a
 * parameter that the caller chooses.
 */
function nearSource(name: string): string | undefined {
  const near = nearest(name, [...SOURCES.keys(), ...FACTS.get('@request')!.names]);
  return near === undefined ? undefined : `@request.${near}`;
}

/** `@requst.auth`: the first name is misspelt, the second is not. */
function rejoined(first: Name, second: Name | undefined): string | undefined {
  if (second === undefined || !SOURCES.has(second.name)) return undefined;
  return nearest(first.name, ['@request']);
}

// ---------------------------------------------------------------- literals

const ESCAPES: ReadonlyMap<string, string> = new Map(
  Object.entries({ '"': '"', "'": "'", '\\': '\\', '/': '/', b: '\b', f: '\f', n: '\n', r: '\r', t: '\t' }),
);

export function readStringToken(token: IToken, report: TokenReport): TextLiteral {
  const { image } = token;
  const quote = image[0];
  const inner = image.slice(1, -1);
  if (quote !== '"' && quote !== "'") {
    const message = 'strings take straight quotes, `"…"` or `\'…\'`';
    respell(report, token, { right: JSON.stringify(inner), code: 'curly_quotes', message });
    return { kind: 'text', value: inner, span: spanOf(token) };
  }
  const value = /[\\\u0000-\u001f]/.test(inner) ? unescapedString(inner, token.startOffset + 1, report) : inner;
  if (!value.isWellFormed() || value.includes('\0')) {
    const message = 'a string with a NUL or a lone surrogate cannot be stored, so nothing equals it';
    reportIssue(report, { code: 'text_unstorable', message, span: spanOf(token) });
  }
  return { kind: 'text', value, span: spanOf(token) };
}

function unescapedString(inner: string, offset: number, report: TokenReport): string {
  return inner.replaceAll(
    /\\(u[0-9a-fA-F]{4}|[\s\S])|[\u0000-\u001f]/g,
    (whole, code: string | undefined, at: number) => {
      const span = { start: offset + at, end: offset + at + whole.length };
      if (code === undefined) {
        const replacement = JSON.stringify(whole).slice(1, -1);
        const message = `a control character in a string; expected \`${replacement}\``;
        reportIssue(report, { code: 'control_character', message, span, ...replacing(span, replacement) });
        return whole;
      }
      if (code.length === 5) return String.fromCharCode(Number.parseInt(code.slice(1), 16));
      const meant = ESCAPES.get(code);
      if (meant !== undefined) return meant;
      const replacement = `\\${whole}`;
      const message = `\`${whole}\` is not an escape sequence; expected one of JSON's, or \`\\\\\` for a backslash`;
      reportIssue(report, { code: 'escape_unknown', message, span, ...replacing(span, replacement) });
      return code;
    },
  );
}

export function readNumeral(token: IToken, report: TokenReport): NumeralLiteral {
  const source = token.image;
  const span = spanOf(token);
  if (JSON_NUMBER.test(source)) return { kind: 'number', source, span };
  const plain = source.replaceAll('_', '');
  const value = /^-?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)$/.test(plain)
    ? String(Number(plain))
    : String(Number(plain || 'x'));
  const right = JSON_NUMBER.test(value) && Number.isSafeInteger(Math.trunc(Number(value))) ? value : undefined;
  const message = `\`${source.slice(0, 40)}\` is not a JSON number`;
  if (right === undefined) reportIssue(report, { code: 'number_malformed', message, span });
  else respell(report, token, { right, code: 'number_malformed', message: `${message}; did you mean \`${right}\`?` });
  const numeral: NumeralLiteral = { kind: 'number', source: right ?? '0', span };
  if (right === undefined) report.broken.add(numeral);
  return numeral;
}

// ---------------------------------------------------------------- instants

export const SECONDS = { s: 1, m: 60, h: 3600, d: 86400, w: 604800 } as const;
type Unit = keyof typeof SECONDS;
/** A thousand years: adding it to a current datetime stays within the supported years. */
const LONGEST = 365_250 * SECONDS.d;
const UNIT_WORDS: ReadonlyMap<string, Unit> = new Map([
  ['sec', 's'],
  ['secs', 's'],
  ['second', 's'],
  ['seconds', 's'],
  ['min', 'm'],
  ['mins', 'm'],
  ['minute', 'm'],
  ['minutes', 'm'],
  ['hr', 'h'],
  ['hrs', 'h'],
  ['hour', 'h'],
  ['hours', 'h'],
  ['day', 'd'],
  ['days', 'd'],
  ['wk', 'w'],
  ['week', 'w'],
  ['weeks', 'w'],
  ['S', 's'],
  ['H', 'h'],
  ['D', 'd'],
  ['W', 'w'],
]); // prettier-ignore

export interface Shift {
  readonly sign: '+' | '-';
  readonly duration: IToken;
}

export function readNow(token: IToken, shift: Shift | undefined, report: TokenReport): NowReference {
  const span = spanOf(token);
  const day = token.image === '@today' ? { isDay: true as const } : {};
  if (shift === undefined) return { kind: 'now', ...day, seconds: 0, span };
  const { amount, unit } = readDuration(shift.duration, report);
  if (day.isDay && SECONDS[unit] % SECONDS.d !== 0 && amount !== 0) {
    const message = `\`@today\` moves by whole days, found ${shift.duration.image}; expected d or w`;
    reportIssue(report, { code: 'duration_malformed', message, span: spanOf(shift.duration) });
  }
  const seconds = amount * SECONDS[unit] * (shift.sign === '-' ? -1 : 1) + 0;
  if (Math.abs(seconds) > LONGEST) {
    const message = 'a duration of more than a thousand years; expected a shorter one';
    reportIssue(report, { code: 'duration_too_long', message, span: spanOf(shift.duration) });
  }
  const whole = { start: span.start, end: spanOf(shift.duration).end };
  return { kind: 'now', ...day, seconds, offset: { sign: shift.sign, amount, unit }, span: whole };
}

function readDuration(token: IToken, report: TokenReport): { readonly amount: number; readonly unit: Unit } {
  const digits = /^[0-9]*/.exec(token.image)?.[0] ?? '';
  const word = token.image.slice(digits.length);
  if (Object.hasOwn(SECONDS, word)) return { amount: Number(digits), unit: word as Unit };
  const unit = UNIT_WORDS.get(word);
  const message = `\`${word}\` is not a unit of time; expected s, m, h, d or w`;
  if (unit === undefined) reportIssue(report, { code: 'duration_malformed', message, span: spanOf(token) });
  else respell(report, token, { right: `${digits}${unit}`, code: 'duration_malformed', message });
  return { amount: 0, unit: unit ?? 's' };
}
