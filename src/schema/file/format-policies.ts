/** Rewrites the policies of a schema file in canonical form; every other byte stays. */
import { Scalar } from 'yaml';
import { withComments } from '../../../grammar/comments.ts';
import { parse } from '../../../grammar/parser.ts';
import { print } from '../../../grammar/printer.ts';
import { invariant } from '../../invariant.ts';
import { cutByComment, type DocumentPath, pathText, type SchemaIssue } from './issue.ts';
import { singleQuoted } from './scalar.ts';
import { MEMBER_RULE_KEYS, RULE_KEYS } from './shape.ts';
import { SourceText } from './source.ts';
import { valueAt } from './validate.ts';

export interface Formatted {
  /** The text of the file; unchanged if an issue is an error. */
  readonly text: string;
  /** Paths of the policies that were not canonical. */
  readonly changed: readonly string[];
  /** Why the file, or a policy, cannot be read. */
  readonly issues: readonly SchemaIssue[];
}

interface Edit {
  readonly path: string;
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
}

export function formatPolicies(text: string, file = 'bylaw.yaml'): Formatted {
  const source = new SourceText(text, file);
  const raw = source.value();
  if (source.issues.length > 0) return { text, changed: [], issues: source.issues };
  const edits = new Map<number, Edit>();
  for (const path of policyPaths(raw)) {
    const edit = editOf(path, source);
    // Keyed by place: an alias refers to the same text again.
    if (edit !== undefined) edits.set(edit.start, edit);
  }
  if (source.issues.length > 0) return { text, changed: [], issues: source.issues };
  const ordered = [...edits.values()].sort((a, b) => a.start - b.start);
  return { text: applied(text, ordered), changed: ordered.map(({ path }) => path), issues: [] };
}

function applied(text: string, edits: readonly Edit[]): string {
  let result = '';
  let at = 0;
  for (const { start, end, replacement } of edits) {
    result += text.slice(at, start) + replacement;
    at = end;
  }
  return result + text.slice(at);
}

/** The paths of all policies, even if other parts of the file are wrong. */
export function policyPaths(raw: unknown): readonly DocumentPath[] {
  const conditions = objectKeys(valueAt(raw, ['conditions'])).flatMap((key) => textsBelow(raw, ['conditions', key]));
  const rules = objectKeys(valueAt(raw, ['collections'])).flatMap((name) =>
    [...accessPaths(raw, ['collections', name]), ...checkPaths(raw, ['collections', name])].flatMap((path) =>
      textsBelow(raw, path),
    ),
  );
  return [...conditions, ...rules];
}

/** The paths of a collection's rules, and of its members' rules and keys. */
function accessPaths(raw: unknown, collection: DocumentPath): readonly DocumentPath[] {
  const members = (['fields', 'relations'] as const).flatMap((part) =>
    objectKeys(valueAt(raw, [...collection, part])).map((name) => [...collection, part, name, 'access']),
  );
  const keys = members.map((path) => [...path.slice(0, -1), 'unique', 'where']);
  return [
    ...keys,
    ...pathsIn(valueAt(raw, [...collection, 'no_overlap'])).map((key) => [
      ...collection,
      'no_overlap',
      ...key,
      'where',
    ]),
    ...RULE_KEYS.map((key) => [...collection, 'access', key]),
    ...members.flatMap((path) => MEMBER_RULE_KEYS.map((key) => [...path, key])),
  ];
}

const checkPaths = (raw: unknown, collection: DocumentPath): readonly DocumentPath[] =>
  objectKeys(valueAt(raw, [...collection, 'checks'])).map((name) => [...collection, 'checks', name, 'when']);

/** The paths of the keys in `no_overlap`, a mapping or a list of them. */
const pathsIn = (value: unknown): readonly DocumentPath[] => (Array.isArray(value) ? value.map((_, i) => [i]) : [[]]);

const objectKeys = (value: unknown): readonly string[] =>
  typeof value === 'object' && value !== null ? Object.keys(value) : [];

function textsBelow(raw: unknown, path: DocumentPath): readonly DocumentPath[] {
  const rules = valueAt(raw, path);
  if (typeof rules === 'string') return [path];
  if (Array.isArray(rules)) return rules.flatMap((_, i) => textsBelow(raw, [...path, i]));
  return typeof valueAt(rules, ['when']) === 'string' ? [[...path, 'when']] : [];
}

function editOf(path: DocumentPath, source: SourceText): Edit | undefined {
  const scalar = source.scalarAt(path)!;
  const value = String(scalar.value);
  // YAML dropped a part of the policy: the rest must not be made to look right.
  if (source.cutByComment(path)) {
    return source.reportCut(cutByComment(path));
  }
  const { expr, issues } = parse(value);
  for (const { code, severity, message, span, fix } of issues)
    source.reportWithin({ code, severity, message, path }, span, fix);
  const canonical = expr && withComments(value, print(expr));
  if (canonical === undefined) return undefined;
  const isBlock = scalar.style === Scalar.BLOCK_LITERAL || scalar.style === Scalar.BLOCK_FOLDED;
  if (value === canonical || (isBlock && unfolded(value) === canonical)) return undefined;
  invariant(parse(canonical).expr !== undefined, 'the canonical text of a policy is a policy');
  const replacement = isBlock
    ? blockOf(source.text.slice(scalar.start, scalar.end), canonical)
    : singleQuoted(canonical);
  return { path: pathText(path), start: scalar.start, end: scalar.end, replacement };
}

const TEXT_OR_WHITE = /"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\s+/gs;

/** Line ends in a block are the author's layout. */
const unfolded = (value: string): string =>
  value.replaceAll(TEXT_OR_WHITE, (match) => (/^\s/.test(match) ? ' ' : match)).trim();

/** The block keeps the header, the indentation and the line end of the original. */
function blockOf(written: string, canonical: string): string {
  const header = written.slice(0, written.indexOf('\n') + 1);
  const indentation = /^[ \t]*(?=\S)/m.exec(written.slice(header.length))?.[0] ?? '';
  return `${header}${indentation}${canonical}${/\s*$/.exec(written)![0]}`;
}
