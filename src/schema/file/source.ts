/** A schema file: its text, its tree, and the place of every value in the text. YAML 1.2; JSON is YAML. */
import {
  type Document,
  isAlias,
  isMap,
  isScalar,
  isSeq,
  type Node,
  type Pair,
  parseDocument,
  Scalar,
  visit,
  type YAMLMap,
} from 'yaml';
import type { Span } from '../../../grammar/syntax.ts';
import { present } from '../../invariant.ts';
import type { DocumentPath, Region, SchemaIssue } from './issue.ts';
import { type Finding, pathText } from './issue.ts';
import { offsetsOf, singleQuoted, writtenIn } from './scalar.ts';

type SourceRange = readonly [start: number, end: number];

/** YAML errors after which the tree is still what the author meant. */
const HARMLESS = new Set(['BAD_SCALAR_START', 'DUPLICATE_KEY']);

/** Messages in place of those of the parser, by the code of the error. */
const REASONS: ReadonlyMap<string, string> = new Map([
  ['TAB_AS_INDENT', 'tabs are not allowed as indentation; use spaces'],
  ['MULTIPLE_DOCS', 'expected one document, found another one after it; `---` may only begin the file'],
]);

interface YamlError {
  readonly code: string;
  readonly message: string;
  readonly pos: readonly [number, number];
}

/** After the first error that breaks the tree, the parser reports what only follows from it. */
function reported(errors: readonly YamlError[]): readonly YamlError[] {
  const first = errors.find(({ code }) => !HARMLESS.has(code));
  return errors.filter((error) => error === first || HARMLESS.has(error.code));
}

export interface PlacedScalar {
  readonly start: number;
  readonly end: number;
  readonly style: Scalar['type'];
  readonly value: unknown;
}
interface LineAndColumn {
  readonly line: number;
  readonly column: number;
}
interface RangeFix {
  readonly range: SourceRange;
  readonly replacement: string;
}
/** A finding about a part of the string at its path. */
interface PlacedFinding {
  readonly finding: Finding;
  readonly span: Span;
}
interface SpanFix {
  readonly span: Span;
  readonly replacement: string;
}

interface PathStep {
  readonly pair?: Pair;
  readonly value: unknown;
}

interface SourceOptions {
  /** The key `<<` merges the mappings of its value. */
  readonly merge?: boolean;
}

export class SourceText {
  readonly file: string;
  readonly text: string;
  readonly issues: SchemaIssue[] = [];
  readonly #document: Document.Parsed;
  /** Offsets of the first characters of the lines. */
  readonly #lineStarts: readonly number[];
  /** The rules with marks, each with the warning that its mark is unneeded unless it has silenced another. */
  readonly #marks = new Map<string, PlacedFinding | undefined>();
  /** Places that YAML reads otherwise than the author meant: errors that follow are not reported. */
  readonly #misread: SourceRange[] = [];

  constructor(text: string, file: string, { merge = false }: SourceOptions = {}) {
    this.file = file;
    this.text = text;
    this.#lineStarts = [0, ...[...text.matchAll(/\n/g)].map(({ index }) => index + 1)];
    this.#document = parseDocument(text, { prettyErrors: false, uniqueKeys: true, merge });
    for (const error of reported(this.#document.errors)) this.#reportYaml(error);
    visit(this.#document, {
      Node: (_key, node) => this.#reportTag(node as Node),
      Pair: (_key, { key }) => {
        if (isMap(key) || isSeq(key)) {
          const message = 'expected a string as the key, found a mapping or a list';
          this.#add(firstLine(text, nodeRange(key)), { code: 'yaml_key', message, path: [] });
        }
        return this.#isPrototype(key) ? visit.REMOVE : undefined;
      },
      Alias: (_key, node) => {
        if (node.resolve(this.#document) === undefined) {
          const message = `unknown alias \`*${node.source}\`; no anchor \`&${node.source}\` precedes it`;
          this.#add(nodeRange(node), { code: 'yaml_alias', message, path: [] });
        }
      },
    });
  }

  /** `undefined` if the file is not YAML: `issues` has the reasons. */
  value(): unknown {
    const broken = this.#document.errors.some((error) => !HARMLESS.has(error.code));
    if (broken || this.issues.some(({ code }) => code === 'yaml_alias' || code === 'yaml_key')) return undefined;
    try {
      return this.#document.toJS({ maxAliasCount: 100 }) ?? {};
    } catch (error) {
      const isMerge = error instanceof Error && error.message.startsWith('Merge');
      const message = isMerge
        ? 'expected a mapping, or a list of mappings, after `<<`'
        : 'the aliases of this file expand to too many values';
      this.#add([0, 0], { code: 'yaml_alias', message, path: [] });
      return undefined;
    }
  }

  get hasErrors(): boolean {
    return this.issues.some(({ severity }) => severity === 'error');
  }

  report(finding: Finding): undefined {
    if (finding.severity === 'warning' && this.#isMarked(finding.path)) return;
    const range = this.#rangeOf(finding.path, finding.at ?? 'value');
    const fix = finding.replacement === undefined ? undefined : { range, replacement: finding.replacement };
    this.#add(range, finding, fix);
  }

  /**
   * The text of the rule at `path` begins with a mark (`intended: …`), which silences advice about the rule.
   * `unneeded`: the warning of a mark that has silenced nothing so far.
   */
  markRule(path: DocumentPath, unneeded: PlacedFinding | undefined): void {
    this.#marks.set(rulePathText(path), unneeded);
  }

  reportUnneededMarks(): void {
    for (const unneeded of this.#marks.values())
      if (unneeded !== undefined) this.reportWithin(unneeded.finding, unneeded.span);
  }

  #isMarked(path: DocumentPath): boolean {
    const rule = rulePathText(path);
    if (!this.#marks.has(rule)) return false;
    this.#marks.set(rule, undefined);
    return true;
  }

  /** An error in a part of the string at `path`. `fix` replaces a part of that string too. */
  reportWithin(finding: Finding, span: Span, fix?: SpanFix): void {
    const node = this.#scalarAt(finding.path);
    if (node === undefined) {
      this.report(finding);
      return;
    }
    const offsets = offsetsOf(this.text, node);
    const range = spanIn(offsets, span);
    this.#add(range, finding, fix && this.#fixOf(node, offsets, fix));
  }

  /** The plain scalar at `path` was cut short by a comment on its line. */
  cutByComment(path: DocumentPath): boolean {
    const node = this.#scalarAt(path);
    if (node?.type !== Scalar.PLAIN || typeof node.value !== 'string') return false;
    const [, end] = nodeRange(node);
    return /^[ \t]+#/.test(this.text.slice(end, end + 64));
  }

  /** Reports the rest of the value's line; the fix puts all of it in quotes. */
  reportCut(finding: Finding): undefined {
    const [start] = this.#rangeOf(finding.path, 'value');
    const lineEnd = this.text.indexOf('\n', start);
    const end = lineEnd === -1 ? this.text.length : lineEnd;
    const line = this.text.slice(start, end).trimEnd();
    const range: SourceRange = [start, start + line.length];
    this.#add(range, finding, { range, replacement: singleQuoted(line) });
  }

  has(path: DocumentPath): boolean {
    return this.#pairAt(path) !== undefined || this.#nodeAt(path) !== undefined;
  }

  /** The path of the rule's condition where it is written by itself, else of the rule. */
  conditionPath(rule: DocumentPath): DocumentPath {
    const condition = [...rule, 'when'];
    return this.has(condition) ? condition : rule;
  }

  /** The scalar's place and style, for a rewrite. */
  scalarAt(path: DocumentPath): PlacedScalar | undefined {
    const node = this.#scalarAt(path);
    if (node === undefined) return undefined;
    const [start, end] = nodeRange(node);
    return { start, end, style: node.type, value: node.value };
  }

  /** The place of the longest part of the path that is in the file. */
  placeOf(path: DocumentPath, at: 'key' | 'value' = 'value'): Region {
    return this.region(this.#rangeOf(path, at));
  }

  /** The place of the whole value at the path, with all its lines. */
  extentOf(path: DocumentPath): Region {
    const node = this.#nodeAt(path) as Node | null | undefined;
    const [start, end] = node?.range ? nodeRange(node) : this.#rangeOf(path, 'value');
    return this.region([start, start + this.text.slice(start, end).trimEnd().length]);
  }

  /** The place of a part of the string at the path; undefined: the file has no string there. */
  placeWithin(path: DocumentPath, span: Pick<Span, 'start' | 'end'>): Region | undefined {
    const node = this.#scalarAt(path);
    return node && this.region(spanIn(offsetsOf(this.text, node), span));
  }

  /** The index in the string at the path that an offset of the file has; undefined: the offset is elsewhere. */
  indexWithin(path: DocumentPath, offset: number): number | undefined {
    const node = this.#scalarAt(path);
    if (typeof node?.value !== 'string') return undefined;
    const offsets = offsetsOf(this.text, node);
    if (offset < present(offsets[0], 'the start of the string') || offset > present(offsets.at(-1), 'its end'))
      return undefined;
    return offsets.findLastIndex((at) => at <= offset);
  }

  /** The path of the value at an offset of the file. */
  pathAt(offset: number): DocumentPath {
    return this.#pathAt(offset);
  }

  region([start, end]: SourceRange): Region {
    const first = this.#placeOf(start);
    const last = this.#placeOf(Math.max(start, end));
    return { line: first.line, column: first.column, end_line: last.line, end_column: last.column };
  }

  #placeOf(offset: number): LineAndColumn {
    const at = Math.min(offset, this.text.length);
    let low = 0;
    let high = this.#lineStarts.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.#startOf(middle) <= at) low = middle;
      else high = middle - 1;
    }
    return { line: low + 1, column: at - this.#startOf(low) + 1 };
  }

  #startOf(line: number): number {
    return present(this.#lineStarts[line], 'the line');
  }

  #add(range: SourceRange, finding: Finding, fix?: RangeFix): void {
    if (this.#misread.some(([start, end]) => range[0] >= start && range[0] < end)) return;
    const { code, message, severity = 'error', path } = finding;
    const issue = { code, severity, message, file: this.file, ...this.region(range), path: pathText(path) };
    this.issues.push(
      fix === undefined ? issue : { ...issue, fix: { ...this.region(fix.range), replacement: fix.replacement } },
    );
  }

  #fixOf(node: Scalar, offsets: readonly number[], fix: SpanFix): RangeFix {
    const written = writtenIn(node.type, fix.replacement);
    if (written !== undefined) return { range: spanIn(offsets, fix.span), replacement: written };
    const value = String(node.value);
    const whole = value.slice(0, fix.span.start) + fix.replacement + value.slice(fix.span.end);
    return { range: nodeRange(node), replacement: singleQuoted(whole.trim()) };
  }

  #reportYaml(error: YamlError): void {
    const path = this.#pathAt(error.pos[0]);
    const start = this.text[error.pos[0]];
    if (error.code === 'BAD_SCALAR_START' && start === '@') {
      const message = 'YAML does not allow `@` at the start of a value; put the whole value in quotes';
      this.#quoteLine(error.pos[0], { code: 'yaml_unquoted', message, path });
      return;
    }
    const condition = unquotedCondition(this.text, error.pos[0]);
    if (condition !== undefined) {
      const message = 'YAML splits a key with `:` in it; put the name and the parameters of the condition in quotes';
      const finding = { code: 'yaml_unquoted', message, path: ['conditions'] };
      this.#add(condition, finding, { range: condition, replacement: singleQuoted(this.text.slice(...condition)) });
      return;
    }
    if (error.code === 'DUPLICATE_KEY') {
      const key = /^[^\s:]*/.exec(this.text.slice(error.pos[0], error.pos[0] + 200))?.[0] ?? '';
      const range: SourceRange = [error.pos[0], error.pos[0] + Math.max(1, key.length)];
      const message = `${key === '' ? 'a key' : `\`${key}\``} is given twice; remove one of them`;
      this.#add(range, { code: 'duplicate_key', message, path });
      return;
    }
    const [first = ''] = error.message.split('\n');
    const reason = REASONS.get(error.code) ?? `${first.charAt(0).toLowerCase()}${first.slice(1)}`;
    this.#add(error.pos, { code: 'yaml_syntax', message: `not valid YAML: ${reason}`, path });
  }

  #reportTag(node: Node): void {
    if (isAlias(node) || node.tag === undefined || !('srcToken' in node || node.range)) return;
    const [start] = nodeRange(node);
    const before = this.text.slice(0, start).search(/![^\s]*[ \t]*$/);
    const at = this.text[start] === '!' ? start : before;
    if (at === -1 || node.tag.startsWith('tag:yaml.org') || this.text[at] !== '!') return;
    const message = 'YAML reads `!` at the start of a value as a tag, and would drop it; put the whole value in quotes';
    this.#misread.push(this.#quoteLine(at, { code: 'yaml_unquoted', message, path: this.#pathAt(at) }));
  }

  /** Reports a key that names the prototype: zod would drop it with its value, which may be a rule. */
  #isPrototype(key: unknown): boolean {
    const named = this.#resolve(key);
    if (!isScalar(named) || named.value !== '__proto__') return false;
    const range = nodeRange(key as Node);
    const message = '`__proto__` is not a valid name; choose another one';
    this.#add(range, { code: 'invalid_name', message, path: this.#pathAt(range[0]) });
    return true;
  }

  /**
   * The range reaches from `start` to the end of the value as the author meant it: the line, or up to
   * the brace of a flow mapping.
   */
  #quoteLine(start: number, finding: Finding): SourceRange {
    const lineEnd = this.text.indexOf('\n', start);
    const line = this.text.slice(start, lineEnd === -1 ? undefined : lineEnd).trimEnd();
    const flow = /\{[^{}\n]*$/.test(this.text.slice(this.text.lastIndexOf('\n', start) + 1, start));
    const text = (flow ? firstPart(line, '}') : line).trimEnd();
    const range: SourceRange = [start, start + Math.max(1, text.length)];
    this.#add(range, finding, { range, replacement: singleQuoted(text) });
    return range;
  }

  #resolve(node: unknown): unknown {
    return isAlias(node) ? node.resolve(this.#document) : node;
  }

  #step(node: unknown, key: string | number): PathStep | undefined {
    const held = this.#resolve(node);
    if (isSeq(held)) return typeof key === 'number' ? { value: held.items[key] } : undefined;
    if (!isMap(held)) return undefined;
    // `value()` has the last of two equal keys.
    const pair = held.items.findLast(
      (item) => String(isScalar(item.key) ? (item.key.value ?? '') : item.key) === String(key),
    );
    return pair === undefined ? this.#merged(held, key) : { pair, value: pair.value };
  }

  /** The pair of a mapping that `<<` merges into this one. */
  #merged(held: YAMLMap, key: string | number): PathStep | undefined {
    for (const { key: name, value } of held.items) {
      if (!isMergeKey(name)) continue;
      const from = this.#resolve(value);
      for (const each of isSeq(from) ? from.items : [from]) {
        const step = isMap(this.#resolve(each)) ? this.#step(each, key) : undefined;
        if (step !== undefined) return step;
      }
    }
    return undefined;
  }

  #nodeAt(path: DocumentPath): unknown {
    let node: unknown = this.#document.contents;
    for (const key of path) {
      const step = this.#step(node, key);
      if (step === undefined) return undefined;
      node = step.value;
    }
    return node;
  }

  #pairAt(path: DocumentPath): Pair | undefined {
    const key = path.at(-1);
    return key === undefined ? undefined : this.#step(this.#nodeAt(path.slice(0, -1)), key)?.pair;
  }

  #scalarAt(path: DocumentPath): Scalar | undefined {
    const node = this.#resolve(this.#nodeAt(path));
    return isScalar(node) && node.range ? node : undefined;
  }

  /** The place of the longest part of `path` that is in the file. */
  #rangeOf(path: DocumentPath, at: 'key' | 'value'): SourceRange {
    const pair = this.#pairAt(path);
    const node = this.#nodeAt(path) as Node | null | undefined;
    if (at === 'key' && isScalar(pair?.key)) return nodeRange(pair.key);
    if (node?.range && (isScalar(node) || isAlias(node)) && node.range[1] > node.range[0]) return nodeRange(node);
    if (isScalar(pair?.key)) return nodeRange(pair.key);
    if (node?.range && path.length > 0) return firstLine(this.text, nodeRange(node));
    return path.length === 0 ? [0, 0] : this.#rangeOf(path.slice(0, -1), 'key');
  }

  #pathAt(offset: number): DocumentPath {
    const path: (string | number)[] = [];
    let node: unknown = this.#document.contents;
    for (;;) {
      if (isMap(node)) {
        const pair = node.items.findLast((item) => isScalar(item.key) && item.key.range && item.key.range[0] <= offset);
        if (pair === undefined) return path;
        path.push(String((pair.key as Scalar).value));
        node = pair.value;
      } else if (isSeq(node)) {
        const index = node.items.findLastIndex(
          (item) => ((item as Node | null)?.range?.[0] ?? Number.POSITIVE_INFINITY) <= offset,
        );
        if (index === -1) return path;
        path.push(index);
        node = node.items[index];
      } else return path;
    }
  }
}

const rulePathText = (path: DocumentPath): string => pathText(path.at(-1) === 'when' ? path.slice(0, -1) : path);

const nodeRange = (node: Pick<Node, 'range'>): SourceRange => (node.range ? [node.range[0], node.range[1]] : [0, 0]);

/** The parser makes a symbol of a `<<` that merges. */
const isMergeKey = (key: unknown): boolean => isScalar(key) && typeof key.value === 'symbol';

function firstPart(text: string, separator: string): string {
  const end = text.indexOf(separator);
  return end === -1 ? text : text.slice(0, end);
}

function firstLine(text: string, [start, end]: SourceRange): SourceRange {
  const lineEnd = text.indexOf('\n', start);
  return [start, lineEnd === -1 ? end : Math.min(end, lineEnd)];
}

/** The span reaches from the first character meant to the end of the last one. */
function spanIn(offsets: readonly number[], { start, end }: Span): SourceRange {
  const last = offsets.length - 1;
  const offsetAt = (i: number): number => present(offsets[Math.min(i, last)], 'the offset');
  const from = offsetAt(start);
  if (end <= start) return [from, from];
  const to = offsetAt(end);
  // After a fold the next character is on another line: end right after the last one that is meant.
  const before = offsetAt(Math.min(end, last) - 1);
  return [from, end >= last ? Math.max(to, before + 1) : Math.min(to, Math.max(before + 1, to))];
}

/** `is_member(team: teams):` as a key without quotes, with the error in it. */
function unquotedCondition(text: string, offset: number): SourceRange | undefined {
  const start = text.lastIndexOf('\n', offset - 1) + 1;
  const line = firstPart(text.slice(start, start + 400), '\n');
  const keys = line.matchAll(/(?<=^[ \t]*|[{,][ \t]*)[A-Za-z_][A-Za-z0-9_]*[ \t]?\([^()'":]*:[^()'"]*\)(?=[ \t]*:)/g);
  for (const { 0: name, index } of keys) {
    const at = start + index;
    if (at <= offset && offset < at + name.length) return [at, at + name.length];
  }
  return undefined;
}
