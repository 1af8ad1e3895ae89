/**
 * Hostile inputs for a regular expression, made from the expression itself: a beginning that reaches a repetition, many
 * times what the repetition takes, and an end that makes the match fail.
 */

type Part =
  | { readonly kind: 'character'; readonly source: string }
  | { readonly kind: 'sequence'; readonly parts: readonly Part[] }
  | { readonly kind: 'choice'; readonly options: readonly Part[] }
  | { readonly kind: 'repeat'; readonly part: Part; readonly min: number; readonly max: number }
  /** `^`, `$`, `\b`, a look-around, or a reference back: takes no character, or none that counts here. */
  | { readonly kind: 'nothing'; readonly inside?: Part };

const ESCAPE = /\\(?:u\{[0-9a-fA-F]+\}|u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|[pP]\{[^}]*\}|c[A-Za-z]|[\s\S])/y;
const QUANTIFIER = /(?:[*+?]|\{\d+(?:,\d*)?\})\??/y;
const GROUP = /\((?:\?(?::|=|!|<=|<!|<[A-Za-z]\w*>))?/y;

class Reader {
  readonly #source: string;
  #at = 0;

  constructor(source: string) {
    this.#source = source;
  }

  choice(): Part {
    const options = [this.#sequence()];
    while (this.#take('|')) options.push(this.#sequence());
    return options.length === 1 ? options[0]! : { kind: 'choice', options };
  }

  #sequence(): Part {
    const parts: Part[] = [];
    while (this.#at < this.#source.length && !'|)'.includes(this.#source[this.#at]!)) {
      parts.push(this.#quantified(this.#one()));
    }
    return { kind: 'sequence', parts };
  }

  #one(): Part {
    const group = this.#match(GROUP);
    if (group !== undefined) {
      const inside = this.choice();
      if (!this.#take(')')) throw new Error(`a group is not closed in ${this.#source}`);
      return /^\(\?<?[=!]/.test(group) ? { kind: 'nothing', inside } : inside;
    }
    if (this.#take('^') || this.#take('$')) return { kind: 'nothing' };
    const escaped = this.#match(ESCAPE);
    if (escaped !== undefined) {
      return /^\\[bB1-9]/.test(escaped) ? { kind: 'nothing' } : { kind: 'character', source: escaped };
    }
    if (this.#source[this.#at] === '[') return { kind: 'character', source: this.#class() };
    const character = String.fromCodePoint(this.#source.codePointAt(this.#at)!);
    this.#at += character.length;
    return { kind: 'character', source: character === '/' ? '\\/' : character };
  }

  #class(): string {
    const start = this.#at++;
    while (this.#source[this.#at] !== ']') this.#at += this.#source[this.#at] === '\\' ? 2 : 1;
    return this.#source.slice(start, ++this.#at);
  }

  #quantified(part: Part): Part {
    const quantifier = this.#match(QUANTIFIER);
    if (quantifier === undefined) return part;
    const [min = '0', max = min] = /\d+(?:,\d*)?/.exec(quantifier)?.[0].split(',') ?? BOUNDS[quantifier[0]!]!;
    return { kind: 'repeat', part, min: Number(min), max: max === '' ? Number.POSITIVE_INFINITY : Number(max) };
  }

  #match(expression: RegExp): string | undefined {
    expression.lastIndex = this.#at;
    const found = expression.exec(this.#source)?.[0];
    this.#at += found?.length ?? 0;
    return found;
  }

  #take(character: string): boolean {
    if (this.#source[this.#at] !== character) return false;
    this.#at++;
    return true;
  }
}

const BOUNDS: Readonly<Record<string, readonly string[]>> = { '*': ['0', ''], '+': ['1', ''], '?': ['0', '1'] };

/** Every character of ASCII, and some that only Unicode classes take. */
const PROBES = [...Array.from({ length: 128 }, (_, code) => String.fromCharCode(code)), 'é', '日', '\u2028', '“', '‘'];

/** A hostile text of any length. */
export interface Attack {
  readonly begin: string;
  readonly pump: string;
  readonly end: string;
}

/** The attacks of a beginning and a pump follow each other, so the last repetition is kept. */
let lastRepetition = { pump: '', length: 0, text: '' };

export function textOf({ begin, pump, end }: Attack, length: number): string {
  if (lastRepetition.pump !== pump || lastRepetition.length !== length) {
    // `repeat` makes a rope, which each match of each attack would flatten.
    const text = new Array(Math.ceil(length / pump.length)).fill(pump).join('');
    lastRepetition = { pump, length, text };
  }
  return begin + lastRepetition.text + end;
}

export function attacksOn({ source, flags }: RegExp): readonly Attack[] {
  const tree = new Reader(source).choice();
  const sets = characterSets(tree, flags.replace(/[gy]/g, ''));
  const alphabet = alphabetOf(sets);
  const first = (part: string): string => sets.get(part)?.[0] ?? '';
  const begins = new Set(['']);
  const pumps = new Set(alphabet);
  const reach = (part: Part, before: readonly string[]): readonly string[] => {
    switch (part.kind) {
      case 'character':
        return before.map((text) => text + first(part.source));
      case 'nothing':
        if (part.inside !== undefined) reach(part.inside, before);
        return before;
      case 'sequence':
        return part.parts.reduce<readonly string[]>((texts, next) => reach(next, texts), before);
      case 'choice':
        return unique(part.options.flatMap((option) => reach(option, before)));
      case 'repeat': {
        for (const text of before) begins.add(text);
        const once = reach(part.part, before);
        for (const text of reach(part.part, [''])) if (text !== '') pumps.add(text);
        return part.min === 0 ? unique([...before, ...once]) : once;
      }
    }
  };
  reach(tree, ['']);
  for (const begin of begins) if (begin !== '') pumps.add(begin);
  for (const a of alphabet) for (const b of alphabet) pumps.add(a + b);
  return [
    ...combine(begins, pumps, ['', ...alphabet]),
    // Ends that the expression takes a part of, and then fails.
    ...combine(
      begins,
      alphabet,
      halfwayEnds(tree, first).flatMap((taken) => alphabet.map((killer) => taken + killer)),
    ),
    // A character in front keeps `^` from taking the whole text.
    ...combine(alphabet, alphabet, alphabet),
  ];
}

/** The beginnings of what may follow a repetition, with all that is optional. */
function halfwayEnds(tree: Part, first: (source: string) => string): readonly string[] {
  const ends = new Set<string>();
  /** Returns what the part takes and then `after`. */
  const walk = (part: Part, after: string): string => {
    switch (part.kind) {
      case 'character':
        return first(part.source) + after;
      case 'nothing':
        return after;
      case 'sequence':
        return part.parts.reduceRight((rest, each) => walk(each, rest), after);
      case 'choice':
        return part.options.map((option) => walk(option, after))[0]!;
      case 'repeat': {
        for (let length = 1; length <= Math.min(3, after.length); length++) ends.add(after.slice(0, length));
        const taken = walk(part.part, after);
        return part.min > 0 || part.max === 1 ? taken : after;
      }
    }
  };
  walk(tree, '');
  return [...ends];
}

function* combine(begins: Iterable<string>, pumps: Iterable<string>, ends: Iterable<string>): Iterable<Attack> {
  for (const begin of begins) for (const pump of pumps) for (const end of ends) yield { begin, pump, end };
}

/** At most this many, so that nested choices stay finite. */
const unique = (texts: readonly string[]): readonly string[] => [...new Set(texts)].slice(0, 6);

/** The probes that each character or class of the expression takes, by its source. */
function characterSets(tree: Part, flags: string): ReadonlyMap<string, readonly string[]> {
  const sets = new Map<string, readonly string[]>();
  const visit = (part: Part): void => {
    if (part.kind === 'character') {
      const taker = new RegExp(`^(?:${part.source})$`, flags);
      if (!sets.has(part.source)) sets.set(part.source, PROBES.filter((probe) => taker.test(probe)).sort(byVisibility));
    } else if (part.kind === 'sequence') part.parts.forEach(visit);
    else if (part.kind === 'choice') part.options.forEach(visit);
    else if (part.kind === 'repeat') visit(part.part);
    else if (part.inside !== undefined) visit(part.inside);
  };
  visit(tree);
  return sets;
}

const byVisibility = (a: string, b: string): number => Number(b >= '!' && b <= '~') - Number(a >= '!' && a <= '~');

/** A character of every class that the expression distinguishes, and one that no part of it matches. */
function alphabetOf(sets: ReadonlyMap<string, readonly string[]>): readonly string[] {
  const takers = [...sets.values()].map((set) => new Set(set));
  const kinds = new Map<string, string>();
  for (const probe of [...PROBES].sort(byVisibility)) {
    const kind = takers.map((taker) => (taker.has(probe) ? 1 : 0)).join('');
    if (!kinds.has(kind)) kinds.set(kind, probe);
  }
  const alphabet = [...kinds.values()];
  // Long enumerations (`heic|heif`) have a kind for each letter; a letter that nothing repeats is of no use to an attack.
  return alphabet.length <= MAX_ALPHABET
    ? alphabet
    : [...new Set([...repeated(takers), ...alphabet])].slice(0, MAX_ALPHABET);
}

const MAX_ALPHABET = 11;

/** A member of each set with several: repetitions are made of them. */
const repeated = (takers: readonly ReadonlySet<string>[]): readonly string[] =>
  takers.filter(({ size }) => size > 1).map((taker) => [...taker][0]!);
