/** A statement history decides the lane, the name and the company of a statement by its text. */
import { afterEach, describe, expect, it, vi } from 'vitest';
import { StatementHistory } from '../../../src/database/lanes/statements.ts';

const TEXT = 'SELECT';

describe('a statement history', () => {
  afterEach(() => vi.useRealTimers());

  const speedAfter = (...took: readonly number[]): string => {
    const history = new StatementHistory();
    for (const ms of took) history.noteAnswer(TEXT, ms);
    return history.speedOf(TEXT);
  };

  it('a history takes a statement for quick after three quick answers in a row', () => {
    expect([speedAfter(), speedAfter(1, 1), speedAfter(1, 1, 1)]).toEqual(['unknown', 'unknown', 'quick']);
    expect([speedAfter(1, 1, 13, 1), speedAfter(1, 1, 13, 1, 1, 1)]).toEqual(['unknown', 'quick']);
  });

  it('a history keeps a quick statement quick through one pause of a busy machine, not through several', () => {
    expect([speedAfter(1, 1, 1, 30), speedAfter(1, 1, 1, 30, 30), speedAfter(1, 1, 1, 40, 1)]).toEqual([
      'quick',
      'unknown',
      'unknown',
    ]);
  });

  it('a history takes a statement for slow by its average, and for quick again after a while', () => {
    expect([speedAfter(50), speedAfter(100), speedAfter(50, 50, 50)]).toEqual(['unknown', 'slow', 'slow']);
    expect([speedAfter(100, 1), speedAfter(400, 1, 1, 1, 1, 1, 1, 1)]).toEqual(['unknown', 'quick']);
  });

  it('a history tries a statement alone again after a failure', () => {
    const history = new StatementHistory();
    for (const ms of [1, 1, 1]) history.noteAnswer(TEXT, ms);
    history.noteAnswer(TEXT, 1, true);
    expect(history.speedOf(TEXT)).toBe('unknown');
  });

  it('a history names a text with its second use, and anew after a change of its result', () => {
    const history = new StatementHistory();
    const [first, second, third] = [1, 2, 3].map(() => history.nameOf(TEXT));
    expect([first, third]).toEqual([undefined, second]);
    history.renew(TEXT, second!);
    const renewed = history.nameOf(TEXT);
    expect(renewed).toBe(`${second}_1`);
    // A connection that was late to find out changes nothing.
    history.renew(TEXT, second!);
    expect(history.nameOf(TEXT)).toBe(renewed);
  });

  it('a history penalises a statement that failed in a batch for half a second', () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    const history = new StatementHistory();
    history.penalise(TEXT);
    vi.advanceTimersByTime(499);
    expect([history.isPenalised(TEXT), history.isPenalised('another')]).toEqual([true, false]);
    vi.advanceTimersByTime(1);
    expect(history.isPenalised(TEXT)).toBe(false);
  });

  it('a history forgets texts that it has not seen for long', () => {
    const history = new StatementHistory();
    const note = (text: string): void => {
      for (const ms of [1, 1, 1]) history.noteAnswer(text, ms);
    };
    note('first');
    for (let i = 0; i < 3_000; i++) note(String(i));
    expect([history.speedOf('first'), history.speedOf('2999')]).toEqual(['unknown', 'quick']);
  });
});
