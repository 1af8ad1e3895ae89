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

  it('takes a statement for quick after three quick answers in a row', () => {
    expect([speedAfter(), speedAfter(1, 1), speedAfter(1, 1, 1)]).toEqual(['unknown', 'unknown', 'quick']);
    expect([speedAfter(1, 1, 13, 1), speedAfter(1, 1, 13, 1, 1, 1)]).toEqual(['unknown', 'quick']);
  });

  it('keeps a quick statement quick through one pause of a busy machine, not through several', () => {
    expect([speedAfter(1, 1, 1, 30), speedAfter(1, 1, 1, 30, 30), speedAfter(1, 1, 1, 40, 1)]).toEqual([
      'quick',
      'unknown',
      'unknown',
    ]);
  });

  it('takes a statement for slow by its average, and for quick again after a while', () => {
    expect([speedAfter(50), speedAfter(100), speedAfter(50, 50, 50)]).toEqual(['unknown', 'slow', 'slow']);
    expect([speedAfter(100, 1), speedAfter(400, 1, 1, 1, 1, 1, 1, 1)]).toEqual(['unknown', 'quick']);
  });

  it('tries a statement alone again after a failure', () => {
    const history = new StatementHistory();
    for (const ms of [1, 1, 1]) history.noteAnswer(TEXT, ms);
    history.noteFailure(TEXT);
    expect(history.speedOf(TEXT)).toBe('unknown');
  });

  it('names a text with its second use, and anew after a change of its result', () => {
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

  it('doubles the penalty of a statement that fails again soon, up to two seconds', () => {
    vi.useFakeTimers({ toFake: ['performance'] });
    const history = new StatementHistory();
    const penalties = [];
    for (let i = 0; i < 8; i++) {
      history.penalise(TEXT);
      let ms = 0;
      for (; history.isPenalised(TEXT); ms++) vi.advanceTimersByTime(1);
      penalties.push(ms);
    }
    expect(penalties).toEqual([50, 100, 200, 400, 800, 1_600, 2_000, 2_000]);
    vi.advanceTimersByTime(2_001);
    history.penalise(TEXT);
    vi.advanceTimersByTime(51);
    expect([history.isPenalised(TEXT), history.isPenalised('another')]).toEqual([false, false]);
  });

  it('forgets texts that it has not seen for long', () => {
    const history = new StatementHistory();
    const note = (text: string): void => {
      for (const ms of [1, 1, 1]) history.noteAnswer(text, ms);
    };
    note('first');
    for (let i = 0; i < 3_000; i++) note(String(i));
    expect([history.speedOf('first'), history.speedOf('2999')]).toEqual(['unknown', 'quick']);
  });
});
