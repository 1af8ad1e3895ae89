/** The tables of grammar/README.md, from the table of operators and from the words of the language. */
import { WARNING_DOCS } from '../../src/policy/check/warnings/warning-list.ts';
import { OPERATORS } from '../../src/policy/operators.ts';
import { CONNECTIVES, FUNCTIONS, type LanguageWord, ROOT_DOCS, VARIABLE } from '../../src/policy/words.ts';
import { markdownTable } from './markdown.ts';

const code = (text: string): string => `\`${text}\``;
const codes = (texts: readonly string[], between: string): string => texts.map(code).join(between);

const rowOf = (form: string, { doc, nullMeaning, examples }: Omit<LanguageWord, 'form'>): readonly string[] => [
  code(form),
  doc,
  nullMeaning,
  codes(examples, ' · '),
];

const wordsTable = (head: string, words: readonly LanguageWord[]): string =>
  markdownTable(
    [head, 'means', 'where something is absent', 'for example'],
    words.map((word) => rowOf(word.form, word)),
  );

/** docs/warnings.md */
export const warningsTable = (): string =>
  markdownTable(
    ['code', 'for example', 'what it means', 'what to write'],
    Object.entries(WARNING_DOCS).map(([name, { example, effect, instead }]) => [
      code(name),
      code(example),
      effect,
      instead,
    ]),
  );

/** Keyed by the name of the part. */
export const LANGUAGE_PARTS: Readonly<Record<string, () => string>> = {
  names: () =>
    markdownTable(
      ['name', 'is'],
      [...Object.values(ROOT_DOCS), VARIABLE].map(({ forms, doc }) => [codes(forms, ', '), doc]),
    ),
  operators: () =>
    markdownTable(
      ['operator', 'true when', 'where something is absent', 'for example'],
      Object.values(OPERATORS).map((operator) => rowOf(operator.symbol, operator)),
    ),
  words: () => wordsTable('word', Object.values(CONNECTIVES)),
  functions: () => wordsTable('function', Object.values(FUNCTIONS)),
};
