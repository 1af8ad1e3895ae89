import { describe, expect, it } from 'vitest';
import { examine } from '../../src/policy/check/checker.ts';
import { fold, likePattern } from '../../src/policy/fold.ts';
import { folded } from '../oracle/interpret.ts';
import { SAMPLE as catalog } from './sample-catalog.ts';

const found = (text: string) =>
  examine(text, { catalog, collection: 'documents', action: 'read' }).issues.map(({ code, span }) => [
    code,
    text.slice(span.start, span.end),
  ]);

describe('matches', () => {
  it('folding follows the definition for every character, and is idempotent', { tags: ['long'] }, () => {
    for (let point = 1; point <= 0x10ffff; point++) {
      if (point >= 0xd800 && point <= 0xdfff) continue;
      const text = String.fromCodePoint(point);
      const once = fold(text);
      if (once !== folded(text) || fold(once) !== once)
        expect([point, once, fold(once)]).toEqual([point, folded(text), once]);
    }
    expect(fold('ΟΔΥΣΣΕΥΣ İstanbul ﬁ Ａ Ångström')).toBe('οδυσσευσ istanbul fi a angstrom');
  });

  it('folding takes a time in proportion to the length of a run of marks', () => {
    const began = performance.now();
    // Normalizing sorts them: 400,000 took a minute, and take a tenth of a second without.
    expect(fold(`a${'\u0315\u0300'.repeat(200_000)}b`)).toBe('ab');
    expect(performance.now() - began).toBeLessThan(5_000);
    const marks = ['\u0315', '\u0300', 'e', 'ﾞ', '\u0e33', 'Σ', '가', '\u1161', '\ufdfa'];
    const texts = marks.flatMap((a) => marks.flatMap((b) => marks.map((c) => a + b + c)));
    for (const text of texts) expect([text, fold(text)]).toEqual([text, folded(text)]);
  });

  it('a needle has no wildcards', () => {
    expect(likePattern('50%_\\É')).toBe('%50\\%\\_\\\\e%');
  });

  it.each<[string, string, string]>([
    ['@record.status matches "x"', 'search_expected', '@record.status'],
    ['@record.score matches "x"', 'search_expected', '@record.score'],
    ['"x" matches @record.title', 'search_expected', '"x"'],
    ['@request.auth.email matches "x"', 'search_expected', '@request.auth.email'],
    ['@record.title matches @record.status', 'needle_expected', '@record.status'],
    ['@record.title matches 5', 'type_mismatch', '5'],
    ['@record.title matches ["x"]', 'list_misplaced', '["x"]'],
    ['@record.title matches null', 'null_compared', 'null'],
    ['@record.title matches "\u0301\ufe0f"', 'needle_blank', '"\u0301\ufe0f"'],
  ])('the checker reports %s', (text, code, marked) => {
    expect(found(text)).toEqual([[code, marked]]);
  });
});
