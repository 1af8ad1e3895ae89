/** Finds the places whose English breaks the rules: odd words, sentences and titles without a subject. */
import { Visitor } from 'oxc-parser';
import type { Comment, SourceFile } from './source.ts';

export interface Place {
  readonly path: string;
  readonly line: number;
  readonly text: string;
}

/** The places of each kind, by the name of the kind. */
export interface Prose {
  readonly oddWords: readonly Place[];
  /** "is no", "are no". */
  readonly isNo: readonly Place[];
  readonly commentSentences: readonly Place[];
  readonly titles: readonly Place[];
}

/** The most places of each kind. A limit only falls: lower it to the present count after each clean-up. */
export const LIMITS: Readonly<Record<keyof Prose, number>> = {
  oddWords: 45,
  isNo: 12,
  commentSentences: 0,
  titles: 15,
};

const TITLE_OF_KIND: Readonly<Record<keyof Prose, string>> = {
  oddWords: 'odd words (told, said, whoever, nobody, stands…)',
  isNo: '"is no", "are no"',
  commentSentences: 'comment sentences without a subject (Is, Of, What…)',
  titles: 'test titles without a subject (Is, Of, What…)',
};
export const KINDS = Object.keys(LIMITS) as readonly (keyof Prose)[];

const ODD_WORD = /\b(?:told|tells?|said|whoever|whatever|nobody|somebody|stands?|hangs? on)\b/i;
const IS_NO = /\b(?:is|are) no\b/i;
const FORBIDDEN = ['is', 'are', 'of', 'by', 'what', 'whether', 'those', 'where', 'who', 'beside', 'one'];
const FORBIDDEN_BEGINNING = new RegExp(`^(?:${FORBIDDEN.join('|')})\\b(?!-)`, 'i');

/** Words of the source and of comments in the tests; sentences of both; titles of the tests. */
export function readProse(source: readonly SourceFile[], tests: readonly SourceFile[]): Prose {
  return {
    oddWords: [...source.flatMap((file) => linesWith(ODD_WORD, file)), ...tests.flatMap(oddComments)],
    isNo: source.flatMap((file) => linesWith(IS_NO, file)),
    commentSentences: [...source, ...tests].flatMap(forbiddenSentences),
    titles: tests.flatMap(forbiddenTitles),
  };
}

const linesWith = (word: RegExp, { path, lines }: SourceFile): readonly Place[] =>
  lines.flatMap((text, i) => (word.test(text) ? [{ path, line: i + 1, text: text.trim() }] : []));

const lineAt = (text: string, offset: number): number => text.slice(0, offset).split('\n').length;

const oddComments = (file: SourceFile): readonly Place[] =>
  sentencesInComments(file).filter(({ text }) => ODD_WORD.test(text));

const forbiddenSentences = (file: SourceFile): readonly Place[] =>
  sentencesInComments(file).filter(({ text }) => FORBIDDEN_BEGINNING.test(text));

function sentencesInComments(file: SourceFile): readonly Place[] {
  return blocksOf(file).flatMap((block) =>
    sentencesOf(file.text.slice(block.start, block.end)).map((text) => ({
      path: file.path,
      line: lineAt(file.text, block.start),
      text,
    })),
  );
}

/** Comments, where `//` lines that follow each other are one. */
function blocksOf({ text, comments }: SourceFile): readonly Comment[] {
  const blocks: Comment[] = [];
  for (const comment of comments) {
    const last = blocks.at(-1);
    const isContinued =
      last !== undefined &&
      text.startsWith('//', comment.start) &&
      text.startsWith('//', last.start) &&
      /^\s*$/.test(text.slice(last.end, comment.start)) &&
      text.slice(last.end, comment.start).split('\n').length === 2;
    if (isContinued) blocks.splice(-1, 1, { start: last.start, end: comment.end });
    else blocks.push(comment);
  }
  return blocks;
}

/** A sentence begins a comment, a paragraph or an item, or follows a full stop with a capital. */
const sentencesOf = (comment: string): readonly string[] =>
  comment
    .split('\n')
    .map((line) => line.replace(/^\s*(?:\/\/|\/\*\*?|\*\/|\*(?!\/))?\s?/, '').replace(/\s*\*\/$/, ''))
    .join('\n')
    .split(/\n\s*\n|\n\s*- /)
    .flatMap((paragraph) => paragraph.replace(/\s+/g, ' ').split(/(?<=[.!?:]\)?) (?=[A-Z])/))
    .map((sentence) => sentence.trim().replace(/^(?:- |INVARIANT: )/, ''));

/** The titles of suites and tests: the text in front of a function, in a call. */
function forbiddenTitles({ path, text, program }: SourceFile): readonly Place[] {
  const places: Place[] = [];
  new Visitor({
    CallExpression: ({ arguments: [title, ...rest] }) => {
      const hasFunction = rest.some(({ type }) => /Function/.test(type));
      if (!title || !hasFunction || !/^['"`]/.test(text[title.start]!)) return;
      const words = text.slice(title.start + 1, title.end - 1);
      if (FORBIDDEN_BEGINNING.test(words)) places.push({ path, line: lineAt(text, title.start), text: words });
    },
  }).visit(program);
  return places;
}

export function listOfPlaces(kind: keyof Prose, places: readonly Place[]): string {
  const lines = places.map(({ path, line, text }) => `  ${path}:${line}: ${text}\n`);
  return `${TITLE_OF_KIND[kind]}: ${places.length}\n${lines.join('')}`;
}
