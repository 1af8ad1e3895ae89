// @module-tag long
/**
 * S2, S3, L12: no regular expression backtracks on outside text. Every regular expression of src/ and grammar/ is found
 * in the sources and run against inputs made to slow it down; a new one is covered without a word here.
 */
import Router from '@koa/router';
import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import * as tokens from '../../grammar/tokens.ts';
import { safeName } from '../../src/files/receive/file-names.ts';
import { headerParameters } from '../../src/files/receive/header-parameters.ts';
import { boundaryOf } from '../../src/files/receive/multipart.ts';
import { readJsonBody } from '../../src/http/body.ts';
import { routes } from '../../src/routes/index.ts';
import { type Construction, findExpressions, findIn, type Literal } from './find-expressions.ts';
import { slowness } from './growth.ts';

interface Exemption {
  readonly file: string;
  readonly source: string;
  readonly reason: string;
}

/** Slower than linear on hostile text, and never given any. */
const NEVER_MEET_OUTSIDE_TEXT: readonly Exemption[] = [
  {
    file: 'src/client/transport.ts',
    source: String.raw`\/+$`,
    reason: 'the base URL that the program of a client gives',
  },
  {
    file: 'src/http/answer/public-files.ts',
    source: String.raw`<script\b(?![^>]*\bsrc\s*=)[^>]*>([\s\S]*?)<\/script\s*>`,
    reason: 'a page of the folder that the operator serves',
  },
  { file: 'src/config.ts', source: String.raw`\/+$`, reason: 'the base URL, a setting of the operator' },
  { file: 'src/database/pg-internals.ts', source: String.raw`\d+$`, reason: 'the command tag, made by PostgreSQL' },
  {
    file: 'src/schema/file/format-policies.ts',
    source: String.raw`"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|\s+`,
    reason: 'bylaw.yaml, in `bylaw fmt`',
  },
  { file: 'src/schema/file/format-policies.ts', source: String.raw`\s*$`, reason: 'bylaw.yaml, in `bylaw fmt`' },
  {
    file: 'src/schema/rules/prove-statements.ts',
    source: String.raw`^\s*(?:(?<who>[^\s].*?)\s+)?(?<relative>who\s+)?can\s+`,
    reason: 'a statement of bylaw.yaml',
  },
  {
    file: 'src/schema/rules/prove-statements.ts',
    source: String.raw`\s+(?<target>\w+)(?:\.(?<member>\w+))?`,
    reason: 'a statement of bylaw.yaml',
  },
  {
    file: 'src/workbench/lsp/hover-text.ts',
    source: String.raw`[A-Za-z_]\w*(?=\()`,
    reason: 'a policy that its author edits',
  },
  { file: 'src/workbench/lsp/navigate.ts', source: String.raw`\w*$`, reason: 'bylaw.yaml, as its author edits it' },
  { file: 'src/schema/file/source.ts', source: String.raw`![^\s]*[ \t]*$`, reason: 'a line of bylaw.yaml' },
];

/** Expressions that the program puts together, and why they are linear. */
const CONSTRUCTIONS: readonly (Pick<Construction, 'file' | 'text'> & { readonly reason: string })[] = [
  { file: 'grammar/tokens.ts', text: "new RegExp(source, 'i')", reason: 'the tokens, each tried below' },
  { file: 'grammar/tokens.ts', text: 'new RegExp(COMMENT)', reason: 'the token Comment, tried below' },
  {
    file: 'grammar/tokens.ts',
    text: `new RegExp(\`^(?:\${COMPARISONS[op]})$\`, 'i')`,
    reason: 'reads one token, with the patterns that are tried as the token Comparison',
  },
  {
    file: 'grammar/tokens.ts',
    text: `new RegExp(\`count(?=(?:\${GAP})?\\\\()\`)`,
    reason: 'the token Count, tried below',
  },
  {
    file: 'grammar/tokens.ts',
    text: `new RegExp(\`ancestors(?=(?:\${GAP})?\\\\()\`)`,
    reason: 'the token Ancestors, tried below',
  },
  {
    file: 'grammar/tokens.ts',
    text: `new RegExp(\`[A-Za-z_][A-Za-z0-9_]*(?=(?:\${GAP})?\\\\()\`)`,
    reason: 'the token of a call, tried below',
  },
  {
    file: 'src/policy/check/warnings/warnings.ts',
    text: `new RegExp(\`\\\\b\${name}\\\\b\`)`,
    reason: 'one of three fixed letters',
  },
  {
    file: 'src/schema/rules/prove-statements.ts',
    text: "new RegExp(STATEMENT_PARTS, 'd')",
    reason: 'reads a statement of bylaw.yaml',
  },
  {
    file: 'src/auth/factors/recovery-codes.ts',
    text: 'new RegExp(`^[${ALPHABET}]{${LENGTH}}$`)',
    reason: 'ten characters of an alphabet',
  },
  {
    file: 'src/routes/system/read-status.ts',
    text: "new RegExp(`^${name} (\\\\S+)$`, 'm')",
    reason: 'reads a line of the metrics, by a fixed name',
  },
  {
    file: 'src/records/transfer/date-format.ts',
    text: "new RegExp(`${Object.keys(PARTS).join('|')}|.`, 'gsu')",
    reason: 'nine fixed words, none of which repeats anything',
  },
  {
    file: 'src/records/transfer/date-format.ts',
    text: "new RegExp(`^${parts.map(patternOf).join('')}$`, 'su')",
    reason: 'groups of at most four digits and escaped letters, each of which is there once',
  },
];

const { literals, constructions } = findExpressions(['src', 'grammar']);
const isExempt = ({ file, expression }: Literal): boolean =>
  NEVER_MEET_OUTSIDE_TEXT.some((exempt) => exempt.file === file && exempt.source === expression.source);
/** Milliseconds for an expression that is known to be slow, of which only the search is tested. */
const SHORT_PATIENCE = 100;
/** Once is enough: a busy processor can hide growth, and cannot make it. */
const isSlow = (expression: RegExp): boolean =>
  [1, 2, 3].some(() => slowness(expression, SHORT_PATIENCE) !== undefined);
const titled = (all: readonly Literal[]) => all.map((each) => [`${each.file}:${each.line}`, each] as const);

/** chevrotain matches tokens at the current place only. */
const asRun = ({ file, expression }: Literal): RegExp =>
  file === 'grammar/tokens.ts' ? new RegExp(expression.source, `${expression.flags}y`) : expression;

describe('regular expressions take linear time on hostile text', () => {
  test.each(titled(literals.filter((literal) => !isExempt(literal))))('%s', (_, literal) => {
    expect(slowness(asRun(literal))).toBeUndefined();
  });

  const made = Object.entries(tokens).flatMap(([name, token]) => {
    const pattern = (token as { PATTERN?: unknown }).PATTERN;
    return pattern instanceof RegExp ? [[name, new RegExp(pattern.source, `${pattern.flags}y`)] as const] : [];
  });
  test.each(made)('token %s', (_, expression) => {
    expect(slowness(expression)).toBeUndefined();
  });

  const paths = [...new Set(routes.map(({ path }) => path))];
  test.each(paths)('path %s', (path) => {
    const router = new Router({ sensitive: true, strict: true });
    router.register(path, ['GET'], () => {});
    expect(slowness((router.stack[0] as unknown as { regexp: RegExp }).regexp)).toBeUndefined();
  });

  test('the email of zod', () => {
    expect(slowness(z.regexes.email)).toBeUndefined();
  });
});

describe('the list of exemptions is honest', () => {
  test('each exemption occurs in the sources, and is slower than linear', () => {
    const stale = NEVER_MEET_OUTSIDE_TEXT.filter(({ file, source }) => {
      const literal = literals.find((each) => each.file === file && each.expression.source === source);
      return literal === undefined || !isSlow(literal.expression);
    });
    expect(stale).toEqual([]);
  });
  test('the list names every construction', () => {
    const places = (all: readonly Pick<Construction, 'file' | 'text'>[]) =>
      all.map(({ file, text }) => `${file}: ${text}`).sort();
    expect(places(constructions)).toEqual(places(CONSTRUCTIONS));
  });
});

describe('the search finds slow expressions', () => {
  test.each([
    ['S2', /;\s*filename=(?:"((?:\\.|[^"\\])*(?:\\[^"]*)*)"|([^\s;"]+))/i],
    ['S3', /^\s*count\s*=\s*"?([^";]*?)"?\s*(?:;|$)/i],
    ['L12', /[. ]+$/],
    ['nested repetition', /^(a+)+$/],
    ['overlapping choices', /^(?:[a-z]|[a-m])*$/],
    ['two of the same', /^\d*\d*$/],
    ['behind a start', /<!--.*-->/s],
    ['many matches', /x(?=.*y)/g],
  ])('%s', (_, expression) => {
    expect(slowness(expression, SHORT_PATIENCE)).toEqual({ attack: expect.anything(), reason: expect.any(String) });
  });
  test('the search finds expressions in every place of a source', () => {
    const text =
      'const a = [/x/g, s.split(/y/), `${t.replace(/z/u, "/no/")}`];\nnew RegExp(a); s.match("b+"); s.match(/c/) / 2 / 3;';
    const found = findIn('a.ts', text);
    expect(found.literals.map(({ line, expression }) => [line, String(expression)])).toEqual([
      [1, '/x/g'],
      [1, '/y/'],
      [1, '/z/u'],
      [2, '/c/'],
    ]);
    expect(found.constructions.map((each) => each.text)).toEqual(['new RegExp(a)', 's.match("b+")']);
  });
});

describe('scans written by hand take linear time', () => {
  const times = (text: string, length: number): string => text.repeat(length / text.length);
  const json = (text: string) => readJsonBody(Buffer.from(text));
  test.each<readonly [string, (length: number) => unknown]>([
    ['parameters: backslashes', (n) => headerParameters(`form-data; name="file"; filename="${times('\\', n)}`)],
    ['parameters: escaped quotation marks', (n) => headerParameters(`form-data; name="${times('\\"', n)}`)],
    ['parameters: semicolons', (n) => headerParameters(times(';', n))],
    ['parameters: semicolons and equals signs', (n) => headerParameters(times('; =', n * 3))],
    ['parameters: quotation marks', (n) => headerParameters(times(';a="" ', n * 6))],
    ['parameters: spaces', (n) => headerParameters(`;${times(' ', n)}=${times(' ', n)}"`)],
    ['a boundary', (n) => expect(() => boundaryOf(`multipart/form-data; boundary="${times('\\', n)}`)).toThrow()],
    ['a name: dots', (n) => safeName(`${times('.', n)}x`)],
    ['a name: dots and spaces', (n) => safeName(`x${times(' .', n)}\0`)],
    ['a JSON body: escapes', (n) => json(`["${times('\\\\', n)}"]`)],
    ['a JSON body: quotation marks', (n) => json(`["${times('\\"', n)}"]`)],
    ['a JSON body: strings', (n) => json(`[${times('"", ', n)}1]`)],
    ['a JSON body that is not JSON', (n) => expect(() => json(times('"\\', n))).toThrow()],
  ])('%s', (_, run) => {
    const timeOf = (length: number): number => {
      const times = Array.from({ length: 5 }, () => {
        const start = performance.now();
        run(length);
        return performance.now() - start;
      });
      return Math.min(...times);
    };
    // A single quiet moment is enough: quadratic work grows sixteenfold in each.
    let growth = Number.POSITIVE_INFINITY;
    for (let attempt = 0; attempt < 10 && growth >= 9; attempt++)
      growth = timeOf(64_000) / Math.max(timeOf(16_000), 0.2);
    expect(growth).toBeLessThan(9);
  });
});
