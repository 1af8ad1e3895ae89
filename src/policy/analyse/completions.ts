/**
 * Completions at a place of a policy. The checker supplies the names, the grammar and the
 * table of operators supply the words; each is tried in its clause, so only texts that the checker
 * accepts are offered.
 */

import { ME } from '../../../grammar/filter-roots.ts';
import { LIMITS } from '../../../grammar/limits.ts';
import { FACT_PATHS, PATH_ROOTS, SECONDS } from '../../../grammar/read-tokens.ts';
import type { Span } from '../../../grammar/syntax.ts';
import { type Cursor, cursorsAt } from '../../../grammar/text-cursor.ts';
import { CHANGE_CALLS, COMPARE_OPS, NOW_WORDS, QUANTIFIERS } from '../../../grammar/tokens.ts';
import { examineOnce } from '../check/checker.ts';
import { HOLDS } from '../operators.ts';
import type { CatalogCollection, CheckContext, Checked, CheckedCompare, KnownName, KnownNames } from '../types.ts';
import { isList, partsOf } from '../visit.ts';
import { docOf } from '../words.ts';
import { chainOf, parentsIn, type Start, shortestPath, toManyOf } from './relation-paths.ts';

export type CompletionKind =
  | KnownName['kind']
  | 'root'
  | 'operator'
  | 'word'
  | 'function'
  | 'condition'
  | 'key'
  | 'value';

export interface Completion {
  /** Ends in `.` or `(` where something has to follow. */
  readonly text: string;
  readonly kind: CompletionKind;
  /** The replaced offsets in UTF-16 units, `end` exclusive. */
  readonly span: Span;
  /** In words: `string or null`, `many of \`tags\``. */
  readonly type?: string;
  /** Given for a root, an operator, a word or a function. */
  readonly doc?: string;
}

export interface CompletionPlace extends Omit<CheckContext, 'text' | 'onUnknown'> {
  /** Query parameters that requests can have, beside the ones that the text names. */
  readonly queryKeys?: Iterable<string>;
}

/**
 * `offset`: in UTF-16 units; only the text before it counts. Total: where the text is wrong, there
 * are fewer completions.
 */
export function completions(text: string, offset: number, place: CompletionPlace): readonly Completion[] {
  const { queryKeys = [], ...context } = place;
  const keys = new Set([...queryKeys, ...keysIn(text.slice(0, offset))]);
  return cursorsAt(text, offset).flatMap((cursor) => new Completer(cursor, context, keys).all());
}

/** Leaves out a key at the end, which is not finished. */
const keysIn = (text: string): readonly string[] =>
  [...text.matchAll(/@request\.query\.([A-Za-z_][A-Za-z0-9_]*)/g)].flatMap(({ 0: path, 1: key, index }) =>
    key === undefined || index + path.length === text.length ? [] : [key],
  );

/** Longer than any name of a schema, and than any name that gets a suggestion. */
const PLACEHOLDER = '_'.repeat(65);
/** The names that a probe binds and gives; a text may use the same name. */
const PROBE = 'probe_';
const QUERY = '@request.query.';
const NONE: KnownNames = new Map();

interface Tried {
  readonly isAccepted: boolean;
  readonly checked?: Checked | undefined;
}

/** The completions at one cursor. */
class Completer {
  readonly #cursor: Cursor;
  readonly #context: Omit<CheckContext, 'text' | 'onUnknown'>;
  readonly #keys: ReadonlySet<string>;
  /** The clause before the token at the cursor, and before the names of its path. */
  readonly #clause: string;
  /** A value of the request, which takes the type of the other side. */
  readonly #value: string;

  constructor(
    cursor: Cursor,
    { params, ...context }: Omit<CheckContext, 'text' | 'onUnknown'>,
    keys: ReadonlySet<string>,
  ) {
    this.#cursor = cursor;
    this.#context = { ...context, ...(params && { params: { ...params, [PROBE]: null } }) };
    this.#keys = keys;
    this.#clause = cursor.clause.slice(0, cursor.clause.length - cursor.walked.length);
    this.#value = params === undefined ? QUERY + PROBE : `$${PROBE}`;
  }

  all(): readonly Completion[] {
    const { walked, naming, takes } = this.#cursor;
    if (naming === 'variable') return takes.has('Word') ? [this.#item(this.#freeName(), 'variable')] : [];
    if (naming === 'relation') return [...this.#members('', this.#endings())];
    if (walked !== '')
      return takes.has('AtPath') || takes.has('Word') ? [...this.#roots(), ...this.#membersAt(walked)] : [];
    return [...this.#values(), ...this.#paths(), ...this.#calls(), ...this.#words()];
  }

  // -------------------------------------------------------------- trying

  #try(clause: string, onUnknown?: CheckContext['onUnknown']): Tried {
    const { outer, closing } = this.#cursor;
    const { checked, issues } = examineOnce(outer + clause + closing, {
      ...this.#context,
      ...(onUnknown && { onUnknown }),
    });
    // An error around the clause does not concern the clause.
    const isAccepted = issues.every(({ severity, span }) => severity !== 'error' || span.end <= outer.length);
    return { isAccepted, checked };
  }

  #accepts(text: string, tails: readonly string[]): boolean {
    return tails.some((tail) => this.#try(this.#clause + text + tail).isAccepted);
  }

  /** The names that exist where `text` ends in an unknown one. */
  #known(text: string, tails: readonly string[]): KnownNames {
    let found = NONE;
    for (const tail of tails) {
      this.#try(this.#clause + text + tail, (name, known) => {
        // A path into json is one name.
        const typed = name.length - PLACEHOLDER.length;
        if (name.endsWith(PLACEHOLDER)) found = new Map([...known].map(([key, each]) => [key.slice(typed), each]));
      });
      if (found.size > 0) break;
    }
    return found;
  }

  #item(text: string, kind: CompletionKind, rest: Pick<Completion, 'type' | 'doc'> = {}): Completion {
    return { text, kind, span: this.#cursor.span, ...rest };
  }

  /** Nothing of the clause is written yet. */
  get #isStart(): boolean {
    return this.#clause === '';
  }

  // -------------------------------------------------------------- the ends of a clause

  /** The texts that may follow an operand. */
  get #operandTails(): readonly string[] {
    const { frame } = this.#cursor;
    if (frame === 'range') return this.#rangeTails;
    if (frame === 'ancestors') return this.#parentTails(' by ');
    if (frame === 'condition' && this.#isStart) return [` = ${this.#value}`, ` ${HOLDS} ${this.#value}`];
    return this.#endings();
  }

  /** The texts that may follow a complete clause, or the argument at the cursor. */
  #endings(): readonly string[] {
    switch (this.#cursor.frame) {
      case 'condition':
        return [''];
      case 'list':
        return [']'];
      case 'call':
        return [this.#argumentsAfter()];
      case 'range':
        return this.#cursor.isCount ? [COUNTED] : [];
      case 'ancestors':
        return this.#rangeTails.map((tail) => `)${tail}`);
    }
  }

  get #closingRange(): string {
    return this.#cursor.isCount ? COUNTED : ')';
  }

  /** The texts that may follow the range of a quantifier or `count`. */
  get #rangeTails(): readonly string[] {
    const bound = ` as ${PROBE}, true${this.#closingRange}`;
    return this.#cursor.isCount ? [COUNTED, bound] : [bound];
  }

  /** The texts that may follow the first ancestor: every relation that leads back to its own collection. */
  #parentTails(by: string): readonly string[] {
    if (this.#cursor.frame !== 'ancestors') return [];
    const names = [...parentsIn(this.#context.catalog.collections.values())];
    return names.flatMap((name) => this.#endings().map((end) => by + name + end));
  }

  /** The rest of a call whose argument is at the cursor. */
  #argumentsAfter(): string {
    const { name, args } = this.#cursor.call!;
    const parameters = this.#context.catalog.conditions?.get(name)?.parameters.length ?? 0;
    return `${`, ${this.#value}`.repeat(Math.max(0, parameters - args - 1))})`;
  }

  // -------------------------------------------------------------- paths

  #paths(): readonly Completion[] {
    const { takes } = this.#cursor;
    const isFilter = this.#context.params !== undefined;
    const names = takes.has('Word') ? [...this.#members('', this.#operandTails)] : [];
    const params = takes.has('Param') && isFilter ? this.#params() : [];
    if (!takes.has('AtPath')) return [...names, ...params];
    if (isFilter)
      return [...names, ...params, ...(this.#accepts(ME, this.#operandTails) ? [this.#item(ME, 'root')] : [])];
    return [...names, ...this.#roots()];
  }

  #params(): readonly Completion[] {
    const names = Object.keys(this.#context.params ?? {}).filter((name) => name !== PROBE);
    return names
      .map((name) => `$${name}`)
      .filter((name) => this.#accepts(name, this.#operandTails))
      .map((name) => this.#item(name, 'parameter'));
  }

  /** The relations with a member that is valid here. */
  #roots(): readonly Completion[] {
    const { walked } = this.#cursor;
    if (this.#context.params !== undefined) return [];
    const roots = PATH_ROOTS.filter((root) => root.startsWith(walked) && root.length > walked.length);
    const open = roots.filter((root) =>
      `${root}.` === QUERY
        ? this.#accepts(QUERY + PROBE, this.#operandTails)
        : !this.#membersAt(`${root}.`).next().done,
    );
    const facts = FACT_PATHS.filter(
      (path) => path.startsWith(walked) && this.#accepts(path, [...this.#operandTails, ' is null']),
    );
    return [
      ...open.map((root) => this.#item(`${root.slice(walked.length)}.`, 'root', docOf(root))),
      ...facts.map((path) => this.#item(path.slice(walked.length), 'root', docOf(path))),
    ];
  }

  *#membersAt(path: string): Generator<Completion> {
    const tails = this.#operandTails;
    if (path === QUERY) {
      for (const key of this.#keys) if (this.#accepts(path + key, tails)) yield this.#item(key, 'key');
    } else yield* this.#members(path, tails);
  }

  *#members(path: string, tails: readonly string[]): Generator<Completion> {
    const known = this.#known(path + PLACEHOLDER, tails);
    const mayContinue =
      !path.startsWith('@request.') && path.split('.').length - (path.startsWith('@') ? 1 : 0) < LIMITS.names;
    for (const [name, { kind, type, walksTo }] of known) {
      if (this.#accepts(path + name, tails)) yield this.#item(name, kind, { type });
      else if (walksTo !== undefined && mayContinue && this.#cursor.naming === 'path')
        yield this.#item(`${name}.`, kind, { type });
    }
  }

  // -------------------------------------------------------------- values

  #values(): readonly Completion[] {
    const { takes } = this.#cursor;
    const durations = takes.has('Duration') ? Object.keys(SECONDS).map((unit) => `1${unit}`) : [];
    const values = (takes.has('Text') ? this.#valuesBeside() : []).map((value) => JSON.stringify(value));
    return [...durations, ...values.filter((value) => this.#accepts(value, this.#endings()))].map((text) =>
      this.#item(text, 'value'),
    );
  }

  /** The values of the enum on the other side, or the roles. */
  #valuesBeside(): readonly (string | number)[] {
    const { frame, outer, holder } = this.#cursor;
    const before = frame === 'list' ? holder! : this.#clause;
    if (before === '' || (frame !== 'list' && frame !== 'condition')) return [];
    const { checked } = this.#try(before + this.#value);
    const end = outer.length + before.length + this.#value.length;
    const compare = checked && compareThat(checked, ({ right }) => right.span.end === end);
    const other = compare?.left;
    if (other === undefined) return [];
    if (isList(other)) return [...this.#context.catalog.roles.keys()];
    return (other.kind === 'column' && other.column.kind === 'field' && other.column.field.enum) || [];
  }

  // -------------------------------------------------------------- calls

  #calls(): readonly Completion[] {
    if (!this.#cursor.takes.has('CallName')) return [];
    const conditions = [...(this.#context.catalog.conditions?.values() ?? [])].flatMap(({ name, parameters }) => {
      const args = parameters.map(() => this.#value).join(', ');
      if (!this.#accepts(`${name}(${args})`, [''])) return [];
      const list = parameters.map(
        (each) => `${each.name}: ${typeof each.type === 'object' ? each.type.id : each.type}`,
      );
      return [this.#item(`${name}(`, 'condition', { type: `(${list.join(', ')})` })];
    });
    const changes = CHANGE_CALLS.filter((name) => this.#known(`${name}(@record.${PLACEHOLDER})`, ['']).size > 0);
    return [...conditions, ...changes.map((name) => this.#item(`${name}(`, 'function', docOf(name)))];
  }

  /** Shown by a relation that is within reach. */
  #function(word: string): readonly Completion[] {
    const { frame } = this.#cursor;
    const isRange = frame === 'range';
    const example =
      word === 'ancestors' ? isRange && this.#reach(chainOf(this.#context.catalog)) : this.#reach(toManyOf);
    if (typeof example !== 'string') return [];
    const isQuantifier = QUANTIFIERS.some((each) => each === word);
    if (!isQuantifier && !this.#accepts(`${word}(${example})`, this.#operandTails)) return [];
    return [this.#item(`${word}(`, 'function', { ...docOf(word), ...(word === 'count' && { type: 'int' }) })];
  }

  /** The shortest path to what `found` looks for. */
  #reach(found: (collection: CatalogCollection) => string | undefined): string | undefined {
    const { catalog, collection, parameters, params } = this.#context;
    const known = [...this.#known(PLACEHOLDER, this.#operandTails)];
    const starts = known.flatMap(([name, { walksTo }]): Start[] => (walksTo ? [[`${name}.`, walksTo]] : []));
    if (params !== undefined) starts.push(['', collection]);
    else if (parameters === undefined) starts.push(['@record.', collection]);
    const users = catalog.collections.get('users');
    const own = params === undefined && found === toManyOf && users !== undefined ? toManyOf(users) : undefined;
    return shortestPath(starts, found, catalog) ?? (own && `@request.auth.${own}`);
  }

  // -------------------------------------------------------------- words

  #words(): readonly Completion[] {
    return this.#cursor.words.flatMap((word) => this.#word(word));
  }

  /** Returns the first letter of the range, or another letter that no variable has. */
  #freeName(): string {
    const { outer, clause } = this.#cursor;
    const names = wordsOf(clause);
    const range = names.at(-3) === 'by' ? names.at(-4) : names.at(-2);
    const taken = new Set(wordsOf(outer).filter((_, i, words) => words[i - 1] === 'as'));
    for (const { name } of this.#context.parameters ?? []) taken.add(name);
    return [range?.slice(0, 1), 'x', 'y', 'z'].find((name) => name && !taken.has(name)) ?? PROBE;
  }

  #word(word: string): readonly Completion[] {
    if (RANGING.has(word)) return this.#function(word);
    const tails = ENDS.has(word) ? this.#tailsBefore(word) : this.#tailsAfter(word);
    const isAccepted = tails === undefined || this.#accepts(ENDS.has(word) ? '' : ` ${word}`, tails);
    if (!isAccepted) return [];
    const kind = COMPARE_OPS.some((op) => op === word) ? 'operator' : VALUE_WORDS.has(word) ? 'value' : 'word';
    return [this.#item(word, kind, docOf(word))];
  }

  /** `undefined`: the grammar alone decides. */
  #tailsAfter(word: string): readonly string[] | undefined {
    switch (word) {
      case 'not':
      case '(':
      case '+':
      case '-':
        return undefined;
      case 'and':
      case 'or':
        return [' true'];
      case 'is null':
      case 'is not null':
        return [''];
      case 'true':
      case 'false':
        return this.#endings();
      case '@now':
      case '@today':
        return this.#operandTails;
      case '[':
        return this.#isStart ? [`] ${HOLDS} ${this.#value}`] : [']'];
      case 'as':
        return [` ${PROBE}, true${this.#closingRange}`];
      case 'by':
        return this.#parentTails(' ');
      default:
        // An address is compared with literals alone.
        return [` ${this.#value}`, ...ADDRESS_LITERALS];
    }
  }

  /** The end of a clause, or of an element, is accepted where the clause can end. */
  #tailsBefore(word: string): readonly string[] | undefined {
    const { frame, call } = this.#cursor;
    if (frame !== 'call') return word === ',' && frame === 'range' ? undefined : this.#endings();
    if (word === ')') return [')'];
    const rest = this.#argumentsAfter();
    return CHANGE_CALLS.some((name) => name === call!.name) || rest !== ')' ? [rest] : [];
  }
}

const ADDRESS_LITERALS: readonly string[] = [' "::1"', ' ["::1"]'];
/** Words that are values and not names. */
const VALUE_WORDS: ReadonlySet<string> = new Set(['true', 'false', ...NOW_WORDS]);
const ENDS: ReadonlySet<string> = new Set([')', ']', ',']);
const RANGING: ReadonlySet<string> = new Set([...QUANTIFIERS, 'count', 'ancestors']);
/** The end of a count that is compared, so that it is a condition. */
const COUNTED = ') = 1';

/** The last comparison that passes. */
function compareThat(checked: Checked, test: (compare: CheckedCompare) => boolean): CheckedCompare | undefined {
  const inner = partsOf(checked).map((part) => compareThat(part, test));
  return (
    inner.findLast((found) => found !== undefined) ??
    (checked.kind === 'compare' && test(checked) ? checked : undefined)
  );
}

const wordsOf = (text: string): readonly string[] => text.split(/[^A-Za-z0-9_]+/).filter((word) => word !== '');
