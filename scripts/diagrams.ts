/** The grammar on paper, made from the parser: `policy.ebnf` in the notation of the W3C's XML recommendation, `railroad.html` as drawings. */
import type { ISerializedGast } from 'chevrotain';
import { serializedGrammar } from '../grammar/parser.ts';
import { FACT_PATHS } from '../grammar/read-tokens.ts';
import { COMPARE_OPS } from '../grammar/tokens.ts';

/** Words are what may be written; `ebnf` is the notation of a token that is not a fixed word, and `pattern` the same for the test. */
export type Terminal = { readonly words: readonly string[] } | { readonly ebnf: string; readonly pattern: RegExp };

const STEP = '[A-Za-z_][A-Za-z0-9_]*';
const CHARACTER = String.raw`(?:[^\\QUOTE\u0000-\u001f\ud800-\udfff]|\\(?:["'\\/bfnrt]|u00[4-7][0-9a-f]))*`;
const quoted = (quote: string): string => quote + CHARACTER.replace('QUOTE', quote) + quote;

export const TERMINALS: ReadonlyMap<string, Terminal> = new Map<string, Terminal>([
  ['Comparison', { words: COMPARE_OPS }],
  ['IsNull', { words: ['is null'] }],
  ['IsNotNull', { words: ['is not null'] }],
  ['And', { words: ['and', '&&'] }],
  ['Or', { words: ['or', '||'] }],
  ['Not', { words: ['not', '!'] }],
  ['Quantifier', { words: ['any', 'all', 'none'] }],
  ['As', { words: ['as'] }],
  ['By', { words: ['by'] }],
  ['Count', { words: ['count'] }],
  ['Ancestors', { words: ['ancestors'] }],
  ['CallName', { ebnf: '[A-Za-z_] [A-Za-z0-9_]*   /* before "(" */', pattern: new RegExp(`^q${STEP}$`) }],
  ['Truth', { words: ['true', 'false'] }],
  ['Null', { words: ['null'] }],
  ['Now', { words: ['@now', '@today'] }],
  ['Open', { words: ['('] }],
  ['Close', { words: [')'] }],
  ['OpenList', { words: ['['] }],
  ['CloseList', { words: [']'] }],
  ['Comma', { words: [','] }],
  ['Plus', { words: ['+'] }],
  ['Minus', { words: ['-'] }],
  [
    'AtPath',
    {
      ebnf:
        `( "@record" | "@next" | "@request.auth" | "@request.query" | "@request.data" ) ( "." [A-Za-z_] [A-Za-z0-9_]* )+` +
        ` | ${FACT_PATHS.map((path) => JSON.stringify(path)).join(' | ')}` +
        '   /* in filters of queries: "@me" */',
      pattern: new RegExp(
        `^(?:${FACT_PATHS.map((path) => path.replaceAll('.', '\\.')).join('|')}|@(?:record|next|request\\.(?:auth|query|data))(?:\\.${STEP}){1,6})$`,
      ),
    },
  ],
  [
    'Word',
    {
      ebnf: `[A-Za-z_] [A-Za-z0-9_]* ( "." [A-Za-z_] [A-Za-z0-9_]* )*`,
      pattern: new RegExp(`^q${STEP}(?:\\.${STEP}){0,3}$`),
    },
  ],
  ['Param', { ebnf: '"$" [A-Za-z_] [A-Za-z0-9_]*   /* in filters of queries */', pattern: new RegExp(`^\\$${STEP}$`) }],
  [
    'Text',
    {
      ebnf: String.raw`'"' ( [^"\#x0-#x1F] | Escape )* '"' | "'" ( [^'\#x0-#x1F] | Escape )* "'"`,
      pattern: new RegExp(`^(?:${quoted('"')}|${quoted("'")})$`),
    },
  ],
  [
    'Numeral',
    {
      ebnf: `"-"? ( "0" | [1-9] [0-9]* ) ( "." [0-9]+ )? ( [eE] [+-]? [0-9]+ )?`,
      pattern: /^-?(?:0|[1-9][0-9]{0,9})(?:\.[0-9]{1,9})?(?:[eE][+-]?[0-9]{1,2})?$/,
    },
  ],
  ['Duration', { ebnf: `[0-9]+ ( "s" | "m" | "h" | "d" | "w" )`, pattern: /^[0-9]{1,4}[smhdw]$/ }],
]);

const LEXICAL = String.raw`Escape      ::= "\" ( ["'\/bfnrt] | "u" [0-9a-fA-F] [0-9a-fA-F] [0-9a-fA-F] [0-9a-fA-F] )
Gap         ::= ( #x20 | #x9 | #xD | #xA | "/*" ( [^*] | "*"+ [^*/] )* "*"+ "/" )+   /* between tokens; at least one between the words of an operator */`;

const literal = (word: string): string => (word.includes('"') ? `'${word}'` : `"${word}"`);

// ---------------------------------------------------------------- EBNF

const terminalName = (name: string): string => {
  const terminal = TERMINALS.get(name);
  return terminal !== undefined && 'words' in terminal && terminal.words.length === 1
    ? literal(terminal.words[0]!)
    : name;
};

function inSequence(nodes: readonly ISerializedGast[]): string {
  return nodes
    .map((node) => (node.type === 'Alternation' && nodes.length > 1 ? `( ${ebnfOf(node)} )` : ebnfOf(node)))
    .join(' ');
}

type Holder = { readonly definition: readonly ISerializedGast[] };
const partsOf = (node: ISerializedGast): readonly ISerializedGast[] => (node as unknown as Holder).definition;
const nameOf = (node: ISerializedGast): string => (node as unknown as { readonly name: string }).name;

function ebnfOf(node: ISerializedGast): string {
  switch (node.type) {
    case 'Terminal':
      return terminalName(nameOf(node));
    case 'NonTerminal':
      return nameOf(node);
    case 'Alternation':
      return partsOf(node)
        .map((each) => inSequence(partsOf(each)))
        .join(' | ');
    case 'Option':
      return `( ${inSequence(partsOf(node))} )?`;
    case 'Repetition':
      return `( ${inSequence(partsOf(node))} )*`;
    default:
      throw new Error(`the grammar uses ${node.type}, which the diagrams do not know`);
  }
}

export function ebnf(): string {
  const rules = serializedGrammar().map((rule) => `${nameOf(rule).padEnd(11)} ::= ${inSequence(partsOf(rule))}`);
  const terminals = [...TERMINALS].flatMap(([name, terminal]) => {
    if ('ebnf' in terminal) return [`${name.padEnd(11)} ::= ${terminal.ebnf}`];
    return terminal.words.length > 1 ? [`${name.padEnd(11)} ::= ${terminal.words.map(literal).join(' | ')}`] : [];
  });
  const head =
    '/* The policy language. Made from the parser by `npx vitest run test/grammar/diagrams.test.ts -u`; do not edit. */';
  return `${[head, '', ...rules, '', ...terminals, LEXICAL].join('\n')}\n`;
}

// ---------------------------------------------------------------- railroad

/** A drawing whose rail enters at the left and leaves at the right, `up` below its top edge. */
interface Drawing {
  readonly width: number;
  readonly up: number;
  readonly down: number;
  draw(x: number, y: number): string;
}
const GAP = 14;
const line = (d: string): string => `<path d="${d}"/>`;
const escaped = (text: string): string => text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');

function box(text: string, kind: 'word' | 'rule' | 'token'): Drawing {
  const width = text.length * 8 + 20;
  return {
    width,
    up: 13,
    down: 13,
    draw: (x, y) => {
      const rect = `<rect class="${kind}" x="${x}" y="${y - 13}" width="${width}" height="26" rx="${kind === 'rule' ? 0 : 13}"/>`;
      return `${rect}<text x="${x + width / 2}" y="${y + 5}">${escaped(text)}</text>`;
    },
  };
}

function sequence(parts: readonly Drawing[]): Drawing {
  const width = parts.reduce((sum, part) => sum + part.width, GAP * (parts.length - 1));
  return {
    width,
    up: Math.max(...parts.map((part) => part.up)),
    down: Math.max(...parts.map((part) => part.down)),
    draw: (x, y) => {
      let at = x;
      return parts
        .map((part, i) => {
          const rail = i === 0 ? '' : line(`M${at} ${y}h${GAP}`);
          at += i === 0 ? 0 : GAP;
          const drawn = rail + part.draw(at, y);
          at += part.width;
          return drawn;
        })
        .join('');
    },
  };
}

const SKIP: Drawing = { width: 0, up: 4, down: 4, draw: () => '' };

function choice(parts: readonly Drawing[]): Drawing {
  const inner = Math.max(...parts.map((part) => part.width));
  const offsets: number[] = [];
  let at = 0;
  parts.forEach((part, i) => {
    at += i === 0 ? 0 : part.up + 8;
    offsets.push(at);
    at += part.down;
  });
  const branch = (part: Drawing, i: number, x: number, y: number): string => {
    const to = y + offsets[i]!;
    const start = x + GAP * 2;
    const end = start + part.width;
    const bend = i === 0 ? `M${x} ${y}H${start}` : `M${x} ${y}h${GAP}V${to}H${start}`;
    const back = `M${end} ${to}H${x + inner + GAP * 3}V${y}h${GAP}`;
    return line(bend) + part.draw(start, to) + line(i === 0 ? `M${end} ${y}H${x + inner + GAP * 4}` : back);
  };
  return {
    width: inner + GAP * 4,
    up: parts[0]!.up,
    down: at,
    draw: (x, y) => parts.map((part, i) => branch(part, i, x, y)).join(''),
  };
}

function loop(part: Drawing): Drawing {
  const below = part.down + 10;
  return {
    width: part.width + GAP * 2,
    up: part.up,
    down: below + 4,
    draw: (x, y) => {
      const end = x + GAP + part.width;
      const back = line(`M${end} ${y}h${GAP / 2}V${y + below}H${x + GAP / 2}V${y}h${GAP / 2}`);
      return line(`M${x} ${y}h${GAP}`) + part.draw(x + GAP, y) + line(`M${end} ${y}h${GAP}`) + back;
    },
  };
}

function drawingOf(node: ISerializedGast): Drawing {
  switch (node.type) {
    case 'Terminal':
      return terminalDrawing(nameOf(node));
    case 'NonTerminal':
      return box(nameOf(node), 'rule');
    case 'Alternation':
      return choice(partsOf(node).map((each) => sequence(partsOf(each).map(drawingOf))));
    case 'Option':
      return choice([SKIP, sequence(partsOf(node).map(drawingOf))]);
    case 'Repetition':
      return choice([SKIP, loop(sequence(partsOf(node).map(drawingOf)))]);
    default:
      throw new Error(`the grammar uses ${node.type}, which the diagrams do not know`);
  }
}

function terminalDrawing(name: string): Drawing {
  const terminal = TERMINALS.get(name);
  if (terminal === undefined || 'ebnf' in terminal) return box(name, 'token');
  const words = terminal.words.map((word) => box(word, 'word'));
  return words.length === 1 ? words[0]! : choice(words);
}

function figure(rule: ISerializedGast): string {
  const drawing = sequence(partsOf(rule).map(drawingOf));
  const [width, height] = [drawing.width + 60, drawing.up + drawing.down + 20];
  const y = drawing.up + 10;
  const rails = line(`M10 ${y - 6}v12M10 ${y}h20`) + line(`M${width - 30} ${y}h20m0 -6v12`);
  const svg = `<svg width="${width}" height="${height}" viewBox="0 0 ${width} ${height}">${rails}${drawing.draw(30, y)}</svg>`;
  return `<h2 id="${nameOf(rule)}">${nameOf(rule)}</h2>\n${svg}`;
}

const STYLE = `body{font:16px system-ui,sans-serif;margin:2rem 1rem;background:#fff;color:#222}
svg{display:block;max-width:100%;height:auto}path{fill:none;stroke:#555;stroke-width:1.5}
text{font:13px ui-monospace,monospace;text-anchor:middle}rect{stroke:#555}.word{fill:#e3f2df}.token{fill:#fdf0d0}.rule{fill:#dfe9f7}`;

export function railroad(): string {
  const head = [
    '<!doctype html>',
    '<html lang="en">',
    '<meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width">',
    '<title>The policy language</title>',
    `<style>${STYLE}</style>`,
    '<h1>The policy language</h1>',
  ].join('\n');
  const note =
    '<p>Made from the parser. Rules have corners; words and tokens are round, and <code>policy.ebnf</code> spells the tokens.</p>';
  return `${[head, note, ...serializedGrammar().map(figure)].join('\n')}\n`;
}
