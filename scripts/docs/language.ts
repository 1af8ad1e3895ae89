/** The tables of grammar/README.md, from the table of operators and from the words of the language. */
import { WARNING_DOCS } from '../../src/policy/check/warnings/warning-list.ts';
import { OPERATORS } from '../../src/policy/operators.ts';
import { CONNECTIVES, FUNCTIONS, type LanguageWord, ROOT_DOCS, VARIABLE } from '../../src/policy/words.ts';
import { markdownTable } from './markdown.ts';
import { CONNECTIVE_NOTES, FUNCTION_NOTES, OPERATOR_NOTES, type WordNotes } from './word-notes.ts';

const code = (text: string): string => `\`${text}\``;
const codes = (texts: readonly string[], between: string): string => texts.map(code).join(between);

const rowOf = (form: string, doc: string, { nullMeaning, examples }: WordNotes): readonly string[] => [
  code(form),
  doc,
  nullMeaning,
  codes(examples, ' · '),
];

const wordsTable = <Word extends string>(
  head: string,
  words: Readonly<Record<Word, LanguageWord>>,
  notes: Readonly<Record<Word, WordNotes>>,
): string =>
  markdownTable(
    [head, 'means', 'where something is absent', 'for example'],
    Object.keys(words).map((word) => rowOf(words[word as Word].form, words[word as Word].doc, notes[word as Word])),
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
      Object.values(OPERATORS).map(({ symbol, doc }) => rowOf(symbol, doc, OPERATOR_NOTES[symbol])),
    ),
  words: () => wordsTable('word', CONNECTIVES, CONNECTIVE_NOTES),
  functions: () => wordsTable('function', FUNCTIONS, FUNCTION_NOTES),
};
