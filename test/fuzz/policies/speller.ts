/** A hostile speller: a tree in any of the spellings that the grammar allows. */
import type { Expr, List, NowReference, Operand, Path } from '../../../grammar/syntax.ts';
import { WITHIN } from '../../../grammar/tokens.ts';
import type { Random } from '../random.ts';

/** Kinds of conditions from loose to tight. */
const TIGHTNESS: Readonly<Partial<Record<Expr['kind'], number>>> = { or: 0, and: 1, not: 2 };
const SPACES = [' ', ' ', ' ', '  ', '\t', '\n', '\r\n', ' \n '];
const COMMENTS = [
  '/**/',
  '/***/',
  '/* and */',
  '/* " */',
  "/* it's ) or ( */",
  '/*\n// */',
  '/* * / ** */',
  '/*)*/',
  '/* \u{1F600} */',
];
const ESCAPES: Readonly<Record<string, string>> = {
  '"': '\\"',
  "'": "\\'",
  '\\': '\\\\',
  '/': '\\/',
  '\b': '\\b',
  '\f': '\\f',
  '\n': '\\n',
  '\r': '\\r',
  '\t': '\\t',
};
const isWordy = (character: string): boolean => /[A-Za-z0-9_.]/.test(character);

/** Sober: words, double quotes and single spaces, for what would be too long otherwise. */
export function spell(expr: Expr, random: Random, isSober = false): string {
  return new Speller(random, isSober).whole(expr);
}

class Speller {
  readonly #random: Random;
  readonly #isSober: boolean;
  readonly #comments: boolean;

  constructor(random: Random, isSober: boolean) {
    this.#random = random;
    this.#isSober = isSober;
    this.#comments = random.chance(0.3);
  }

  whole(expr: Expr): string {
    return this.#joined(['', ...this.#expr(expr, 0), '']);
  }

  // -------------------------------------------------------------- between tokens

  /** White space and comments at places that allow or require them. */
  #joined(tokens: readonly string[]): string {
    let text = '';
    for (const token of tokens) text += this.#gap(text.at(-1) ?? '', token[0] ?? '') + token;
    return text;
  }

  #gap(before: string, after: string): string {
    const isNeeded = isWordy(before) && isWordy(after);
    if (this.#isSober)
      return isNeeded || (before !== '' && after !== '' && !'([,)]'.includes(after) && !'(['.includes(before))
        ? ' '
        : '';
    const roll = this.#random.next();
    if (roll < 0.35 && !isNeeded) return '';
    if (roll < 0.8) return ' ';
    if (roll < 0.93 || !this.#comments) return this.#random.pick(SPACES);
    return this.#random.pick(COMMENTS) + (this.#random.chance(0.5) ? this.#random.pick(SPACES) : '');
  }

  /** The words of one operator. */
  #words(op: string): readonly string[] {
    return op.split(' ');
  }

  #odd(probability: number): boolean {
    return !this.#isSober && this.#random.chance(probability);
  }

  // -------------------------------------------------------------- conditions

  #expr(expr: Expr, tightness: number): readonly string[] {
    const isLoose = (TIGHTNESS[expr.kind] ?? 3) < tightness;
    const tokens = this.#bare(expr);
    const isWrapped = isLoose || this.#odd(0.12);
    const wrapped = isWrapped ? ['(', ...tokens, ')'] : tokens;
    return this.#odd(0.02) ? ['(', ...wrapped, ')'] : wrapped;
  }

  #bare(expr: Expr): readonly string[] {
    switch (expr.kind) {
      case 'and':
      case 'or':
        return this.#chain(expr.kind, expr.items);
      case 'not':
        return [this.#odd(0.4) ? '!' : 'not', ...this.#expr(expr.item, 2)];
      case 'compare':
        if (expr.op === WITHIN && expr.right.kind === 'text') {
          const [lat = '', lng = '', distance = ''] = expr.right.value.split(', ');
          return [WITHIN, '(', ...this.#operand(expr.left), ',', lat, ',', lng, ',', distance, ')'];
        }
        return [...this.#operand(expr.left), ...this.#words(expr.op), ...this.#operand(expr.right)];
      case 'is null':
        return [...this.#operand(expr.operand), 'is', ...(expr.negated ? ['not'] : []), 'null'];
      case 'quantified': {
        const { quantifier, path, variable, condition } = expr;
        return [quantifier, '(', ...this.#operand(path), 'as', variable.name, ',', ...this.#expr(condition, 0), ')'];
      }
      case 'call':
        return [expr.name.name, '(', ...this.#list(expr.args), ')'];
      case 'truth':
        return this.#operand(expr.operand);
    }
  }

  /** Two or more neighbours may have parentheses of their own. */
  #chain(kind: 'and' | 'or', items: readonly Expr[]): readonly string[] {
    if (items.length > 2 && this.#odd(0.2)) {
      const start = this.#random.below(items.length - 1);
      const end = start + 2 + this.#random.below(items.length - start - 1);
      const run = ['(', ...this.#chain(kind, items.slice(start, end)), ')'];
      const before = items.slice(0, start).flatMap((item) => [...this.#item(kind, item), this.#conjunction(kind)]);
      const after = items.slice(end).flatMap((item) => [this.#conjunction(kind), ...this.#item(kind, item)]);
      return [...before, ...run, ...after];
    }
    return items.flatMap((item, i) => [...(i > 0 ? [this.#conjunction(kind)] : []), ...this.#item(kind, item)]);
  }

  #item(kind: 'and' | 'or', item: Expr): readonly string[] {
    return this.#expr(item, kind === 'and' ? 2 : 1);
  }

  #conjunction(kind: 'and' | 'or'): string {
    return this.#odd(0.4) ? (kind === 'and' ? '&&' : '||') : kind;
  }

  // -------------------------------------------------------------- operands

  #operand(operand: Operand): readonly string[] {
    switch (operand.kind) {
      case 'path':
        return [this.#path(operand)];
      case 'text':
        return [this.#text(operand.value)];
      case 'number':
        return [this.#numeral(operand.source)];
      case 'bool':
        return [String(operand.value)];
      case 'null':
        return ['null'];
      case 'list':
        return ['[', ...this.#list(operand.items), ']'];
      case 'now':
        return this.#now(operand);
      case 'param':
        return [`$${operand.name}`];
      case 'count': {
        const { path, variable, condition } = operand;
        const chosen = variable && condition ? ['as', variable.name, ',', ...this.#expr(condition, 0)] : [];
        return ['count', '(', ...this.#operand(path), ...chosen, ')'];
      }
      case 'ancestors':
        return ['ancestors', '(', this.#path(operand.path), 'by', operand.by.name, ')'];
    }
  }

  #list(items: readonly (List['items'][number] | Operand)[]): readonly string[] {
    return items.flatMap((item, i) => [...(i > 0 ? [','] : []), ...this.#operand(item)]);
  }

  #now({ isDay, offset }: NowReference): readonly string[] {
    const word = isDay ? '@today' : '@now';
    return offset === undefined ? [word] : [word, offset.sign, `${offset.amount}${offset.unit}`];
  }

  #path({ root, variable, steps }: Path): string {
    const isOfRecord = root === 'record' || root === 'next';
    const isOfRequest = root === 'request' || root === 'now';
    const start = root === 'variable' ? variable!.name : isOfRecord || isOfRequest ? `@${root}` : `@request.${root}`;
    return [start, ...steps.map(({ name }) => name)].join('.');
  }

  #text(value: string): string {
    const quote = this.#odd(0.5) ? "'" : '"';
    const escapes = this.#odd(0.3) ? 0.5 : 0;
    return quote + Array.from(value, (character) => this.#character(character, quote, escapes)).join('') + quote;
  }

  #character(character: string, quote: string, escapes: number): string {
    const mustEscape = character === quote || character === '\\' || character < ' ';
    const isEscaped = mustEscape || this.#random.chance(escapes);
    if (!isEscaped) return character;
    const short = ESCAPES[character];
    if (short !== undefined && this.#random.chance(0.7)) return short;
    return Array.from({ length: character.length }, (_, i) => this.#unit(character.charCodeAt(i))).join('');
  }

  /** A unit of UTF-16. */
  #unit(unit: number): string {
    const hex = unit.toString(16).padStart(4, '0');
    return `\\u${this.#random.chance(0.5) ? hex.toUpperCase() : hex}`;
  }

  /** The same decimal, with another exponent or more zeros. */
  #numeral(source: string): string {
    if (!this.#odd(0.25)) return source;
    if (!/^-?[0-9.]+$/.test(source)) return source.replace('e', this.#random.pick(['e', 'E']));
    const [whole = '', decimals = ''] = source.split('.');
    const fraction = decimals === '' ? '' : `.${decimals}`;
    return this.#random.pick([
      `${whole}.${decimals}0`,
      `${source}e0`,
      `${source}E+0`,
      `${source}e-00`,
      ...(whole.replace('-', '') === '0' ? [] : [`${whole}${decimals}e-${decimals.length}`]),
      `${whole}${fraction || '.0'}00`,
    ]);
  }
}
