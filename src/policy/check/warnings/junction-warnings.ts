/**
 * Warnings about the items of one `and` or `or`: items that exclude each other, leave nothing out, or
 * add nothing, and two `any` that different elements may meet.
 */
import type { Fix } from '../../../../grammar/policy-error.ts';
import type { Span } from '../../../../grammar/syntax.ts';
import { lexer, Word } from '../../../../grammar/tokens.ts';
import { canonical, canonicalKey } from '../../analyse/canonical.ts';
import { ImplicationProof } from '../../analyse/subsumes.ts';
import { equalityOf, isMember, OPERATORS } from '../../operators.ts';
import type { Checked, CheckedCompare, CheckedOperand, CheckedQuantified, LiteralOperand } from '../../types.ts';
import { partsOf } from '../../visit.ts';
import { identity } from '../outcomes.ts';
import { textAt } from '../sides.ts';
import { excludingBounds } from './bounds.ts';
import type { Warning } from './warning-list.ts';

export type CheckedJunction = Extract<Checked, { kind: 'and' | 'or' }>;

/** Junctions with more conditions are not compared pair by pair: a check takes milliseconds. */
const MOST_COMPARED = 40;
const MOST_WARNING_STEPS = 2_000;

export class JunctionReview {
  readonly #text: string;
  readonly #slice = (span: Span): string => textAt({ text: this.#text }, span);
  readonly #proof = new ImplicationProof(MOST_WARNING_STEPS);
  #left = MOST_COMPARED;

  constructor(text: string) {
    this.#text = text;
  }

  /** `negated`: under an odd number of negations, where a clause that adds no truth may still add a falsehood. */
  warnings(junction: CheckedJunction, negated: boolean): readonly Warning[] {
    const { kind, items } = junction;
    const settled = kind === 'and' ? this.#exclusion(items) : this.#coverage(items);
    const size = countLeaves(junction, this.#left + 1);
    if (size > this.#left) return settled;
    this.#left -= size;
    const forms = items.map((item) => canonical(item));
    const opposites = settled.length > 0 ? [] : this.#opposites(junction, forms);
    const idle = negated ? [] : this.#redundant(junction, forms);
    const pairs = kind === 'and' && idle.length === 0 ? this.#separateElements(junction, forms) : [];
    return [...settled, ...opposites, ...idle, ...pairs];
  }

  /** A clause of a named condition is reported at the junction. */
  #place(item: Checked, junction: CheckedJunction): Span {
    return item.span.source === junction.span.source ? item.span : junction.span;
  }

  /** `a = 1 and a = 2`, `a > 5 and a < 3` */
  #exclusion(items: readonly Checked[]): readonly Warning[] {
    const pair = clash(items, true);
    if (pair !== undefined) {
      return [{ code: 'never_true', message: 'one value cannot equal both, so this is never true', span: pair.span }];
    }
    const bounds = excludingBounds(items);
    if (bounds === undefined) return [];
    const [lower, upper] = bounds.map(({ span }) => this.#slice(span));
    const message = `no value meets both \`${lower}\` and \`${upper}\`, so this is never true`;
    return [{ code: 'never_true', message, span: bounds[1].span }];
  }

  /** `a != 1 or a != 2` */
  #coverage(items: readonly Checked[]): readonly Warning[] {
    const pair = clash(items, false);
    if (pair === undefined) return [];
    const message =
      'every value differs from one of the two, so this is true whenever it is present; did you mean `and`?';
    return [{ code: 'always_true', message, span: pair.span }];
  }

  /** `n in [1, 2] and n = 3`, `owner is null and owner = x`, `x = "a" or x != "a"` */
  #opposites(junction: CheckedJunction, forms: readonly Checked[]): readonly Warning[] {
    const { kind, items } = junction;
    const contraries = items.map((item) => canonical({ kind: 'not', item, span: item.span }));
    const excludes = (a: number, b: number): boolean => {
      const [from, to] = kind === 'and' ? [forms[a]!, contraries[b]!] : [contraries[a]!, forms[b]!];
      return this.#proof.implies(from, to);
    };
    for (const [later, item] of items.entries()) {
      for (const [earlier, other] of items.slice(0, later).entries()) {
        if (isConstant(item) || isConstant(other) || !(excludes(earlier, later) || excludes(later, earlier))) continue;
        const [first, second] = [this.#slice(other.span), this.#slice(item.span)];
        const span = this.#place(item, junction);
        if (kind === 'and') {
          const message = `\`${first}\` and \`${second}\` exclude each other, so this is never true`;
          return [{ code: 'never_true', message, span }];
        }
        const message =
          `either \`${first}\` or \`${second}\` is true of every present value, so this excludes only what is absent; ` +
          'write `is not null`, or `true` to allow everything';
        return [{ code: 'always_true', message, span }];
      }
    }
    return [];
  }

  #redundant(junction: CheckedJunction, forms: readonly Checked[]): readonly Warning[] {
    const { kind, items } = junction;
    const idle = items.flatMap((item, i): Warning[] => {
      if (isConstant(item) || (kind === 'and' && isPresenceTest(item))) return [];
      const by = items.findIndex((other, j) => {
        if (j === i || isConstant(other)) return false;
        const [own, others] = [forms[i]!, forms[j]!];
        const isIdle = (a: Checked, b: Checked): boolean =>
          kind === 'and' ? this.#proof.implies(b, a) : this.#proof.implies(a, b);
        // The later of two equivalent clauses is idle.
        return isIdle(own, others) && (j < i || !isIdle(others, own));
      });
      const other = items[by];
      if (other === undefined) return [];
      const [own, wider] = [this.#slice(item.span), this.#slice(other.span)];
      const effect = kind === 'and' ? 'is true wherever' : 'is true only where';
      const message =
        own === wider
          ? `\`${own}\` is there already; remove one of them`
          : `\`${own}\` ${effect} \`${wider}\` is, so it changes nothing; remove it`;
      const fix = this.#without(junction, i);
      return [{ code: 'redundant', message, span: this.#place(item, junction), ...(fix && { fix }) }];
    });
    return idle.slice(0, 1);
  }

  #without({ items, span }: CheckedJunction, i: number): Fix | undefined {
    const [item, neighbour] = [items[i]!, items[i === 0 ? 1 : i - 1]!];
    if ([item, neighbour].some((each) => each.span.source !== undefined) || span.source !== undefined) return undefined;
    const cut =
      i === 0
        ? { start: item.span.start, end: neighbour.span.start }
        : { start: neighbour.span.end, end: item.span.end };
    return this.#slice(cut).includes('/*') ? undefined : { span: cut, replacement: '' };
  }

  // ---------------------------------------------------------------- two `any` of one relation

  #separateElements(junction: CheckedJunction, forms: readonly Checked[]): readonly Warning[] {
    const anys = junction.items.flatMap((item, i) => {
      const form = forms[i]!;
      const isAny = item.kind === 'quantified' && item.quantifier === 'any' && form.kind === 'quantified';
      return isAny && item.condition.kind !== 'const' ? [{ item, form, i }] : [];
    });
    for (const [n, second] of anys.entries()) {
      const first = anys.slice(0, n).find(({ form }) => mayBeOneElement(form, second.form));
      if (first === undefined) continue;
      const relation = this.#slice(first.item.path.span);
      const message =
        `two different elements of \`${relation}\` may meet these two conditions; ` +
        'write one `any` with both to ask for a single element';
      const fix = second.i === first.i + 1 ? this.#merged(first.item, second.item) : undefined;
      const span = this.#place(second.item, junction);
      return [{ code: 'separate_elements', message, span, ...(fix && { fix }) }];
    }
    return [];
  }

  #merged(first: CheckedQuantified, second: CheckedQuantified): Fix | undefined {
    const spans = [first, second].flatMap(({ span, condition }) => [span, condition.span]);
    if (spans.some(({ source }) => source !== undefined)) return undefined;
    const [name, other] = [variableName(first, this.#text), variableName(second, this.#text)];
    const [one, two] = [first, second].map(({ condition }) => {
      const text = this.#slice(condition.span);
      return condition.kind === 'or' && !text.startsWith('(') ? `(${text})` : text;
    });
    const renamed = name === undefined || other === undefined ? undefined : renameVariable(two!, other, name);
    if (renamed === undefined) return undefined;
    const head = this.#text.slice(first.span.start, first.condition.span.start);
    const span = { start: first.span.start, end: second.span.end };
    return { span, replacement: `${head}${one} and ${renamed})` };
  }
}

/** The name that a quantifier binds, as its author wrote it. */
export function variableName({ path }: Pick<CheckedQuantified, 'path'>, text: string): string | undefined {
  const { end, source = text } = path.span;
  return /^\s*as\s+([A-Za-z_][A-Za-z0-9_]*)/.exec(source.slice(end))?.[1];
}

function renameVariable(text: string, from: string, to: string): string | undefined {
  if (from === to) return text;
  const { tokens } = lexer.tokenize(text);
  const isOf = (image: string, name: string): boolean => image === name || image.startsWith(`${name}.`);
  const words = tokens.filter(({ tokenType }) => tokenType === Word);
  if (words.some(({ image }) => isOf(image, to))) return undefined;
  return words
    .filter(({ image }) => isOf(image, from))
    .reduceRight(
      (result, { startOffset }) => result.slice(0, startOffset) + to + result.slice(startOffset + from.length),
      text,
    );
}

/** They range over the same elements, and do not ask for two values of one column. */
function mayBeOneElement(a: CheckedQuantified, b: CheckedQuantified): boolean {
  if (canonicalKey(a.path) !== canonicalKey(b.path)) return false;
  const [some, others] = [equalitiesIn(a), equalitiesIn(b)];
  return ![...some].some(([column, value]) => others.has(column) && others.get(column) !== value);
}

/** The values that the condition asks of columns of the element. */
function equalitiesIn({ variable, condition }: CheckedQuantified): ReadonlyMap<string, string> {
  const items = condition.kind === 'and' ? condition.items : [condition];
  const isOfElement = (side: CheckedOperand): boolean =>
    side.kind === 'column' && side.scope.kind === 'variable' && side.scope.name === variable;
  return new Map(
    items.flatMap((item) => {
      if (item.kind !== 'compare' || !isMember(OPERATORS[item.op])) return [];
      const [own, other] = isOfElement(item.left) ? [item.left, item.right] : [item.right, item.left];
      return isOfElement(own) ? [[canonicalKey(own), canonicalKey(other)] as const] : [];
    }),
  );
}

const isConstant = ({ kind }: Checked): boolean => kind === 'const';

/** Authors spell out the presence of a value, and `bylaw check` proposes it. */
const isPresenceTest = (item: Checked): boolean => item.kind === 'is null' && item.negated;

/** The number of conditions inside that have no parts; `enough` if there are more. */
function countLeaves(checked: Checked, enough: number): number {
  let count = 0;
  const queue: Checked[] = [checked];
  for (let node = queue.pop(); node !== undefined && count < enough; node = queue.pop()) {
    const parts = partsOf(node);
    if (parts.length === 0) count += 1;
    queue.push(...parts);
  }
  return count;
}

/** Two comparisons of one operand with different literals. */
function clash(items: readonly Checked[], member: boolean): CheckedCompare | undefined {
  const seen = new Map<string, LiteralOperand['value']>();
  const candidates = items.filter(
    (item): item is CheckedCompare => item.kind === 'compare' && item.op === equalityOf(member),
  );
  if (candidates.length < 2) return undefined;
  for (const item of candidates) {
    if (item.right.kind !== 'literal' || item.right.exact !== undefined) continue;
    const key = identity(item.left);
    const before = seen.get(key);
    if (before !== undefined && before !== item.right.value) return item;
    seen.set(key, item.right.value);
  }
  return undefined;
}
