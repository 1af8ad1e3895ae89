/** Text → tree. Total: any text gives a tree or issues, and never throws. */
import { EmbeddedActionsParser, EOF, type IToken, type ParserMethod, type TokenType } from 'chevrotain';
import { overLength, overLimit } from './limits.ts';
import type { PolicyIssue } from './policy-error.ts';
import {
  MOST_ISSUES,
  readArgument,
  readNow,
  readNumeral,
  readParam,
  readPath,
  readRelationName,
  readStart,
  readStringToken,
  readVariable,
  readVariableName,
  type Shift,
  type TokenReport,
} from './read-tokens.ts';
import { isStandIn, repairs } from './repairs.ts';
import { checkSpelling, checkStray, checkWrong } from './spelling.ts';
import type {
  AncestorsCall,
  CompareOp,
  Dialect,
  Elements,
  Expr,
  List,
  Operand,
  Path,
  QuantifierWord,
  Span,
} from './syntax.ts';
import { syntaxIssue } from './syntax-issue.ts';
import * as t from './tokens.ts';
import { readWithin } from './within.ts';

type ListItem = List['items'][number];
type Tail =
  | { readonly op: CompareOp; readonly right: Operand; readonly span: Span }
  | { readonly op: 'is null' | 'is not null'; readonly span: Span };

const spanning = (from: Span, to: Span): Span => ({ start: from.start, end: to.end });

function joined(kind: 'and' | 'or', items: readonly Expr[]): Expr {
  const [first, ...others] = items;
  if (first === undefined) throw new RangeError(`\`${kind}\` of nothing`);
  const last = others.at(-1);
  return last === undefined ? first : { kind, items, span: spanning(first.span, last.span) };
}

function compared(left: Operand, tail: Tail | undefined): Expr {
  if (tail === undefined) return { kind: 'truth', operand: left, span: left.span };
  if ('right' in tail) {
    const { op, right } = tail;
    return { kind: 'compare', op, opSpan: tail.span, left, right, span: spanning(left.span, right.span) };
  }
  return { kind: 'is null', negated: tail.op === 'is not null', operand: left, span: spanning(left.span, tail.span) };
}

// Inside `ACTION`: what uses the result of a subrule, which is a placeholder while chevrotain
// records the grammar.
class PolicyParser extends EmbeddedActionsParser {
  report: TokenReport = { dialect: 'policy', issues: [], broken: new Set() };

  constructor() {
    super([...t.TOKENS], { recoveryEnabled: false, maxLookahead: 1, skipValidations: true });
    this.performSelfAnalysis();
  }

  readonly policy: ParserMethod<[], Expr> = this.RULE('policy', () => {
    const items = [this.SUBRULE(this.conjunction)];
    this.MANY(() => {
      this.CONSUME(t.Or);
      items.push(this.SUBRULE2(this.conjunction));
    });
    return this.ACTION(() => joined('or', items));
  });

  readonly conjunction: ParserMethod<[], Expr> = this.RULE('conjunction', () => {
    const items = [this.SUBRULE(this.condition)];
    this.MANY(() => {
      this.CONSUME(t.And);
      items.push(this.SUBRULE2(this.condition));
    });
    return this.ACTION(() => joined('and', items));
  });

  readonly condition: ParserMethod<[], Expr> = this.RULE('condition', () =>
    this.OR([
      { ALT: () => this.SUBRULE(this.comparison) },
      { ALT: () => this.SUBRULE(this.quantified) },
      { ALT: () => this.SUBRULE(this.call) },
      { ALT: () => this.SUBRULE(this.negation) },
      { ALT: () => this.SUBRULE(this.group) },
    ]),
  );

  readonly negation: ParserMethod<[], Expr> = this.RULE('negation', (): Expr => {
    const span = t.spanOf(this.CONSUME(t.Not));
    const item = this.SUBRULE(this.condition);
    return this.ACTION(() => ({ kind: 'not', item, span: spanning(span, item.span) }));
  });

  readonly group: ParserMethod<[], Expr> = this.RULE('group', (): Expr => {
    const open = t.spanOf(this.CONSUME(t.Open));
    const inner = this.SUBRULE(this.policy);
    return { ...inner, span: spanning(open, t.spanOf(this.CONSUME(t.Close))) };
  });

  readonly quantified: ParserMethod<[], Expr> = this.RULE('quantified', (): Expr => {
    const word = this.CONSUME(t.Quantifier);
    this.CONSUME(t.Open);
    const path = this.SUBRULE(this.elements);
    this.CONSUME(t.As);
    const name = this.CONSUME(t.Word);
    this.CONSUME(t.Comma);
    const condition = this.SUBRULE(this.policy);
    const close = t.spanOf(this.CONSUME(t.Close));
    const variable = readVariableName(name, this.report);
    const quantifier = word.image.toLowerCase() as QuantifierWord;
    return { kind: 'quantified', quantifier, path, variable, condition, span: spanning(t.spanOf(word), close) };
  });

  readonly call: ParserMethod<[], Expr> = this.RULE('call', (): Expr => {
    const name = this.CONSUME(t.CallName);
    this.CONSUME(t.Open);
    const args: Operand[] = [];
    let distance: IToken | undefined;
    this.OPTION(() => {
      args.push(this.SUBRULE(this.operand));
      this.MANY(() => {
        this.CONSUME(t.Comma);
        this.OR([
          { ALT: () => args.push(this.SUBRULE2(this.operand)) },
          {
            ALT: () => {
              distance = this.CONSUME(t.Duration);
            },
          },
        ]);
      });
    });
    const span = spanning(t.spanOf(name), t.spanOf(this.CONSUME(t.Close)));
    return this.ACTION((): Expr => {
      const called = { name: name.image, span: t.spanOf(name) };
      if (name.image === t.WITHIN || distance !== undefined)
        return readWithin({ name: called, args, distance, span }, this.report);
      const own = t.isChangeCall(name.image) ? args : args.map((each) => readArgument(each, this.report));
      return { kind: 'call', name: called, args: own, span };
    });
  });

  readonly comparison: ParserMethod<[], Expr> = this.RULE('comparison', () => {
    const left = this.SUBRULE(this.operand);
    const tail = this.OPTION(() => this.SUBRULE(this.test));
    return this.ACTION(() => compared(left, tail));
  });

  readonly test: ParserMethod<[], Tail> = this.RULE('test', () =>
    this.OR([
      {
        ALT: () => {
          const op = this.CONSUME(t.Comparison);
          const right = this.SUBRULE(this.operand);
          return { op: t.comparisonOf(op.image), right, span: t.spanOf(op) };
        },
      },
      { ALT: (): Tail => ({ op: 'is null', span: t.spanOf(this.CONSUME(t.IsNull)) }) },
      { ALT: (): Tail => ({ op: 'is not null', span: t.spanOf(this.CONSUME(t.IsNotNull)) }) },
    ]),
  );

  readonly operand: ParserMethod<[], Operand> = this.RULE('operand', () =>
    this.OR([
      { ALT: () => this.SUBRULE(this.path) },
      { ALT: () => readParam(this.CONSUME(t.ParamName), this.report) },
      { ALT: () => this.SUBRULE(this.literal) },
      { ALT: () => this.SUBRULE(this.list) },
      { ALT: () => this.SUBRULE(this.instant) },
      { ALT: () => this.SUBRULE(this.count) },
      { ALT: () => this.SUBRULE(this.ancestors) },
    ]),
  );

  readonly elements: ParserMethod<[], Elements> = this.RULE('elements', () =>
    this.OR([{ ALT: () => this.SUBRULE(this.path) }, { ALT: () => this.SUBRULE(this.ancestors) }]),
  );

  readonly ancestors: ParserMethod<[], AncestorsCall> = this.RULE('ancestors', (): AncestorsCall => {
    const word = t.spanOf(this.CONSUME(t.Ancestors));
    this.CONSUME(t.Open);
    const path = this.SUBRULE(this.path);
    this.CONSUME(t.By);
    const by = readRelationName(this.CONSUME(t.Word), this.report);
    this.ACTION(() => readStart(path, by, this.report));
    return { kind: 'ancestors', path, by, span: spanning(word, t.spanOf(this.CONSUME(t.Close))) };
  });

  readonly count: ParserMethod<[], Operand> = this.RULE('count', (): Operand => {
    const word = t.spanOf(this.CONSUME(t.Count));
    this.CONSUME(t.Open);
    const path = this.SUBRULE(this.elements);
    const chosen = this.OPTION(() => {
      this.CONSUME(t.As);
      const name = this.CONSUME(t.Word);
      this.CONSUME(t.Comma);
      const condition = this.SUBRULE(this.policy);
      return { variable: readVariableName(name, this.report), condition };
    });
    return { kind: 'count', path, ...chosen, span: spanning(word, t.spanOf(this.CONSUME(t.Close))) };
  });

  readonly path: ParserMethod<[], Path> = this.RULE('path', () =>
    this.OR([
      { ALT: () => readPath(this.CONSUME(t.AtPath), this.report) },
      { ALT: () => readVariable(this.CONSUME(t.Word), this.report) },
    ]),
  );

  readonly literal: ParserMethod<[], ListItem> = this.RULE('literal', () =>
    this.OR([
      { ALT: () => readStringToken(this.CONSUME(t.Text), this.report) },
      { ALT: () => readNumeral(this.CONSUME(t.Numeral), this.report) },
      {
        ALT: (): ListItem => {
          const token = this.CONSUME(t.Truth);
          const truth: ListItem = { kind: 'bool', value: token.image.toLowerCase() === 'true', span: t.spanOf(token) };
          if (isStandIn(token)) this.report.broken.add(truth);
          return truth;
        },
      },
      { ALT: (): ListItem => ({ kind: 'null', span: t.spanOf(this.CONSUME(t.Null)) }) },
    ]),
  );

  readonly list: ParserMethod<[], Operand> = this.RULE('list', (): Operand => {
    const open = t.spanOf(this.CONSUME(t.OpenList));
    const items: ListItem[] = [];
    this.OPTION(() => {
      items.push(this.SUBRULE(this.literal));
      this.MANY(() => {
        this.CONSUME(t.Comma);
        items.push(this.SUBRULE2(this.literal));
      });
    });
    return { kind: 'list', items, span: spanning(open, t.spanOf(this.CONSUME(t.CloseList))) };
  });

  readonly instant: ParserMethod<[], Operand> = this.RULE('instant', () => {
    const now = this.CONSUME(t.Now);
    const shift = this.OPTION(() => this.SUBRULE(this.shift));
    return this.ACTION(() => readNow(now, shift, this.report));
  });

  readonly shift: ParserMethod<[], Shift> = this.RULE('shift', () => {
    const sign = this.OR([
      { ALT: () => this.CONSUME(t.Plus) && ('+' as const) },
      { ALT: () => this.CONSUME(t.Minus) && ('-' as const) },
    ]);
    return { sign, duration: this.CONSUME(t.Duration) };
  });

  /** `undefined` if the tokens are not a policy; `errors` then holds the first syntax error. */
  read(tokens: readonly IToken[], report: TokenReport): Expr | undefined {
    this.report = report;
    this.input = [...tokens];
    const expr = this.policy();
    return this.errors.length === 0 ? expr : undefined;
  }
}

// The parser has one instance: making it takes milliseconds, and nothing survives between two inputs.
const parser = new PolicyParser();
/** The source of `policy.ebnf` and `railroad.html`. */
export const serializedGrammar = () => parser.getSerializedGastProductions();

export interface Parsed {
  /** The tree of a text without errors. */
  readonly expr?: Expr;
  /** The tree as far as it could be parsed, to find errors after the first; never evaluated. */
  readonly tree?: Expr;
  /** Operands of `tree` that already have an issue. */
  readonly broken: ReadonlySet<Operand>;
  readonly issues: readonly PolicyIssue[];
}

const byPlace = (a: PolicyIssue, b: PolicyIssue): number => a.span.start - b.span.start;

export function parse(text: string, dialect: Dialect = 'policy'): Parsed {
  const report: TokenReport = { dialect, issues: [], broken: new Set() };
  const { issues, broken } = report;
  const tooLong = overLength(text, dialect);
  if (tooLong !== undefined) return { issues: [tooLong], broken };
  const { tokens, groups, errors } = t.lexer.tokenize(text);
  const excess = overLimit(tokens);
  if (excess !== undefined) return { issues: [excess], broken };
  checkSpelling(tokens, report);
  const wrong = groups.wrong ?? [];
  if (wrong.length > 0) checkWrong(wrong, report);
  const stray = (groups.stray ?? []).map(t.spanOf);
  checkStray(
    [...errors.map(({ offset, length }) => ({ start: offset, end: offset + length })), ...stray],
    text,
    report,
  );
  let tree = parser.read(tokens, report);
  // An unterminated string or comment has swallowed the rest; that is not a second error.
  if (tree === undefined && !swallowed(wrong)) tree = readOn(tokens, text, report);
  if (tree === undefined || issues.length > 0)
    return { ...(tree && { tree }), issues: issues.sort(byPlace).slice(0, MOST_ISSUES).filter(isFirst), broken };
  return { expr: tree, tree, issues, broken };
}

/** True if a token of the type may follow the tokens, which may be the beginning of a policy. */
export function fitsAfter(tokens: readonly IToken[], tokenType: TokenType): boolean {
  const next = { tokenType, tokenTypeIdx: tokenType.tokenTypeIdx!, image: 'x', startOffset: 0 } as IToken;
  parser.read([...tokens, next], { dialect: 'policy', issues: [], broken: new Set() });
  const stopped = parser.errors[0]?.token;
  return stopped === undefined || stopped.tokenType === EOF;
}

/** After this many syntax errors the search stops. */
const MOST_SYNTAX_ERRORS = 5;

/**
 * Reports the place where the parser stopped, and later ones; returns the tree with a placeholder
 * for each unreadable clause.
 */
function readOn(tokens: readonly IToken[], text: string, report: TokenReport): Expr | undefined {
  let given = tokens;
  for (let found = 0; found < MOST_SYNTAX_ERRORS; found++) {
    const error = parser.errors[0]!;
    report.issues.push(syntaxIssue(error, given, { text, dialect: report.dialect }));
    const attempts = repairs(given, indexOfToken(error.token, given), text);
    const stopped = offsetOf(error.token, text);
    let tree: Expr | undefined;
    const isFarther = (repaired: readonly IToken[]): boolean => {
      const again: TokenReport = { ...report, issues: [] };
      tree = parser.read(repaired, again);
      if (tree === undefined && offsetOf(parser.errors[0]!.token, text) <= stopped) return false;
      report.issues.push(...again.issues);
      return true;
    };
    const next = attempts.find(isFarther);
    if (next === undefined) return undefined;
    if (tree !== undefined) return tree;
    given = next;
  }
  return undefined;
}

const indexOfToken = (token: IToken, tokens: readonly IToken[]): number =>
  token.tokenType === EOF ? tokens.length : tokens.indexOf(token);
const offsetOf = (token: IToken, text: string): number => (token.tokenType === EOF ? text.length : token.startOffset);

/** Each parse after a repair reports again what it has read before. */
const isFirst = ({ code, span }: PolicyIssue, i: number, all: readonly PolicyIssue[]): boolean =>
  all.findIndex((other) => other.code === code && other.span.start === span.start) === i;

const swallowed = (wrong: readonly IToken[]): boolean =>
  wrong.some((token) => token.tokenType === t.OpenText || token.tokenType === t.OpenComment);
