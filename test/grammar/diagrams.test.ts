import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parse, serializedGrammar } from '../../grammar/parser.ts';
import { lexer } from '../../grammar/tokens.ts';
import { ebnf, railroad, TERMINALS } from '../../scripts/diagrams.ts';

describe('the grammar on paper', () => {
  it('the diagrams match the grammar of the parser', async () => {
    await expect(ebnf()).toMatchFileSnapshot('../../grammar/policy.ebnf');
    await expect(railroad()).toMatchFileSnapshot('../../grammar/railroad.html');
  });

  it('the page of diagrams loads no other resource', () => {
    expect(railroad()).not.toMatch(/<script|<link|src=|https?:|@import|url\(/);
  });

  it('the notation names every token of the parser', () => {
    const used = JSON.stringify(serializedGrammar()).matchAll(/"type":"Terminal","name":"(\w+)"/g);
    expect([...new Set([...used].map((match) => match[1]!))].sort()).toEqual([...TERMINALS.keys()].sort());
  });

  const fixed = [...TERMINALS].flatMap(([name, terminal]) =>
    'words' in terminal ? terminal.words.map((word) => [word, name] as const) : [],
  );
  it.each(fixed)('the lexer reads %s as %s', (word, name) => {
    // A name like any other, but before a parenthesis.
    const { tokens, errors } = lexer.tokenize(name === 'Count' || name === 'Ancestors' ? `${word}(` : word);
    expect([tokens.slice(0, 1).map((token) => [token.tokenType.name, token.image]), errors]).toEqual([
      [[name, word]],
      [],
    ]);
    expect(
      parse(`@record.a ${word}`).issues.filter(({ code }) => code === 'word_case' || code === 'operator_foreign'),
    ).toEqual([]);
  });

  const open = [...TERMINALS].flatMap(([name, terminal]) =>
    'pattern' in terminal ? [[name, terminal.pattern] as const] : [],
  );
  it.each(open)('the lexer reads every text that the notation of %s allows', (name, pattern) => {
    const isCall = name === 'CallName';
    const whole = (text: string): string => {
      if (isCall) return `${text}(@record.a)`;
      if (name === 'Param') return `a = ${text}`;
      return name === 'Duration' ? `@record.a < @now + ${text}` : `@record.a = ${text}`;
    };
    fc.assert(
      fc.property(fc.stringMatching(pattern), (text) => {
        const { tokens, errors } = lexer.tokenize(isCall ? `${text}(` : text);
        const read = tokens.slice(0, 1).map((token) => [token.tokenType.name, token.image]);
        expect([read, tokens.length, errors]).toEqual([[[name, text]], isCall ? 2 : 1, []]);
        expect(parse(whole(text), name === 'Param' ? 'filter' : 'policy').issues).toEqual([]);
      }),
      { seed: 7, numRuns: 300 },
    );
  });
});
