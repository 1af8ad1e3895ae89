/**
 * Byte-level fuzzing of the front end (parse + check): no throw, every span inside the text, every fix an improvement, and an answer in time.
 * The time is the best of three runs of one input: a pause of the garbage collector or of the machine hits one run, a slow input hits all.
 */
import { parse } from '../../../grammar/parser.ts';
import { underline } from '../../../grammar/policy-error.ts';
import { checkExpr, examine } from '../../../src/policy/check/checker.ts';
import type { Action } from '../../../src/policy/types.ts';
import { SAMPLE } from '../../policy/sample-catalog.ts';

const SEEDS: readonly string[] = [
  '@record.status = "published" or @record.owner = @request.auth.id',
  'any(@record.team.memberships as m, m.user = @request.auth.id and m.role in ["owner", "editor"])',
  "none(@record.tags as t, t.label starts with 'x\\u0041') && !(@record.score >= 1.5)",
  '@record.due_at > @now - 24h /* soon */ and @next.owner_id = @record.owner_id',
  'all(@record.team.memberships as m, any(m.user.memberships as n, n.team = m.team and not n.note is null))',
  '@request.auth.roles contains "admin" or @request.data.title ends with @request.query.q',
  '@record.cover.caption is not null and @record.rating not in [1, -2.5e3, 9007199254740993]',
  '((((@record.pinned))))',
];
const PIECES = [
  '(',
  ')',
  '[',
  ']',
  ',',
  '"',
  "'",
  '/*',
  '*/',
  '//',
  '@',
  '.',
  '@record',
  '@record.',
  ' and ',
  ' or ',
  ' not ',
  'any(',
  ' as x, ',
  '\\',
  '\\u',
  'null',
  '=',
  '==',
  '<>',
  '!',
  '&',
  '|',
  '@now',
  ' - ',
  '24h',
  '1e999',
  '-0',
  '1_000',
  '.5',
  '\0',
  '\ud800',
  '😀',
  '“',
  '\u2028',
  'AND',
  ' in ',
  '__proto__',
  'constructor',
  '{',
  '$',
  ';',
]; // prettier-ignore

/** mulberry32: small, seeded, good enough to vary inputs. */
export function random(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

type Random = () => number;
const below = (next: Random, bound: number): number => Math.floor(next() * bound);
const pick = <T>(next: Random, items: readonly T[]): T => items[below(next, items.length)]!;

export function misspelt(text: string, next: Random): string {
  const at = below(next, text.length + 1);
  const end = Math.min(text.length, at + below(next, 8));
  switch (below(next, 5)) {
    case 0:
      return text.slice(0, at) + pick(next, PIECES) + text.slice(at);
    case 1:
      return text.slice(0, at) + text.slice(end);
    case 2:
      return text.slice(0, at) + String.fromCharCode(below(next, next() < 0.9 ? 128 : 65536)) + text.slice(end);
    case 3:
      return text.slice(0, at) + text.slice(at, end).repeat(2) + text.slice(end);
    default:
      return text.slice(0, at) + pick(next, SEEDS).slice(below(next, 60)) + text.slice(end);
  }
}

function repeated(next: Random): string {
  const unit = next() < 0.5 ? pick(next, PIECES) : pick(next, SEEDS) + pick(next, [' and ', ' or ', '\n']);
  const most = next() < 0.5 ? 4096 : 65536;
  return unit.repeat(Math.ceil(below(next, most) / unit.length) + 1).slice(0, most);
}

function input(next: Random): string {
  const kind = next();
  if (kind < 0.02) return repeated(next);
  if (kind < 0.1) return Array.from({ length: below(next, 400) }, () => String.fromCharCode(below(next, 256))).join('');
  let text = pick(next, SEEDS);
  for (let i = below(next, next() < 0.5 ? 2 : 6); i > 0; i--) text = misspelt(text, next);
  return text;
}

/**
 * Milliseconds; the best of some runs where the first took long, so that a collection does not
 * count against the text. The lesser of wall time and the thread's processor time: a busy machine
 * stretches the first, and the kernel counts the second in steps of some milliseconds.
 */
function bestOf(runs: number, run: () => void): number {
  let best = Number.POSITIVE_INFINITY;
  for (let i = 0; i < runs && best > LIMIT_MS / 2; i++) {
    const [start, used] = [performance.now(), process.threadCpuUsage()];
    run();
    const { user, system } = process.threadCpuUsage(used);
    best = Math.min(best, performance.now() - start, (user + system) / 1000);
  }
  return best;
}

const LIMIT_MS = 5;
const ACTIONS: readonly Action[] = ['list', 'create', 'update', 'delete'];

export interface FrontEndReport {
  readonly inputs: number;
  readonly accepted: number;
  readonly slowestMs: number;
  /** The seed of one input and what was wrong with it; empty when all is well. */
  readonly failures: readonly string[];
}

/** Runs for `count` inputs, or for `seconds`. Every input has its own seed, `seed + i`, so that a failure can be run again alone. */
export function fuzzFrontEnd({
  seed,
  count,
  seconds,
}: {
  seed: number;
  count?: number;
  seconds?: number;
}): FrontEndReport {
  const failures: string[] = [];
  const until = seconds === undefined ? Number.POSITIVE_INFINITY : performance.now() + seconds * 1000;
  let [inputs, accepted, slowestMs] = [0, 0, 0];
  for (const text of SEEDS) examine(text, { catalog: SAMPLE, collection: 'documents', action: 'update' });
  for (; inputs < (count ?? Number.POSITIVE_INFINITY) && performance.now() < until; inputs++) {
    const next = random(seed + inputs);
    const text = input(next);
    const context = { catalog: SAMPLE, collection: 'documents', action: pick(next, ACTIONS) };
    try {
      const took = bestOf(10, () => void examine(text, context));
      slowestMs = Math.max(slowestMs, took);
      const wrong = faultOf(text, context) ?? (took > LIMIT_MS ? `took ${took.toFixed(1)} ms` : undefined);
      if (wrong !== undefined) failures.push(`seed ${seed + inputs}: ${wrong}: ${JSON.stringify(text.slice(0, 200))}`);
      if (examine(text, context).checked !== undefined) accepted++;
    } catch (error) {
      failures.push(`seed ${seed + inputs}: threw ${(error as Error).stack}: ${JSON.stringify(text.slice(0, 200))}`);
    }
  }
  return { inputs, accepted, slowestMs, failures };
}

function faultOf(text: string, context: Parameters<typeof examine>[1]): string | undefined {
  const { checked, issues } = examine(text, context);
  const errors = issues.filter((issue) => issue.severity === 'error');
  if ((checked === undefined) !== errors.length > 0) return 'neither a checked tree nor an error, or both';
  const { expr } = parse(text);
  if (expr !== undefined && checkExpr(expr, { ...context, text }).issues.length !== issues.length)
    return 'check and examine differ';
  for (const issue of issues) {
    const { start, end } = issue.span;
    if (start < 0 || end < start || end > text.length) return `${issue.code} has a span outside the text`;
    if (!/^[a-z][a-z0-9_]*$/.test(issue.code) || /\.$/.test(issue.message))
      return `${issue.code} is ill worded: ${issue.message}`;
    underline(text, issue);
    if (issue.fix === undefined || issue.severity === 'warning') continue;
    const { span, replacement } = issue.fix;
    const fixed = examine(text.slice(0, span.start) + replacement + text.slice(span.end), context);
    const left = fixed.issues.filter(({ severity }) => severity === 'error').length;
    if (left >= errors.length) return `the fix of ${issue.code} is none`;
  }
  return undefined;
}
