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

  it('a history remembers slow values for their caller alone, and for all once they are slow for three', () => {
    const history = new StatementHistory();
    const caller = (id: string) => ({ id, isKept: false });
    for (const ms of [1, 1, 1]) history.noteAnswer(TEXT, ms, { caller: caller('ann') });
    for (let i = 0; i < 5; i++) history.noteAnswer(TEXT, 200, { caller: caller('eve') });
    const speeds = () => ['ann', 'eve', 'bob'].map((id) => history.speedOf(TEXT, caller(id)));
    expect(speeds()).toEqual(['quick', 'slow', 'quick']);
    for (const id of ['bob', 'ann']) for (let i = 0; i < 5; i++) history.noteAnswer(TEXT, 200, { caller: caller(id) });
    expect([...speeds(), history.speedOf(TEXT, caller('new'))]).toEqual(['slow', 'slow', 'slow', 'slow']);
  });

  it('a history takes no statement for slow while those of others take as much longer', () => {
    const history = new StatementHistory();
    const caller = (id: string) => ({ id, isKept: false });
    const others = ['a', 'b', 'c', 'd', 'e'];
    for (const id of others) for (let i = 0; i < 5; i++) history.noteAnswer(id, 1, { caller: caller(id) });
    for (const id of others) history.noteAnswer(id, 40, { caller: caller(id) });
    for (let i = 0; i < 3; i++) history.noteAnswer(TEXT, 80, { caller: caller('ann') });
    expect(history.speedOf(TEXT, caller('ann'))).toBe('quick');
  });

  it('a history tries a statement alone again after a failure', () => {
    const history = new StatementHistory();
    for (const ms of [1, 1, 1]) history.noteAnswer(TEXT, ms);
    history.noteAnswer(TEXT, 1, { hasFailed: true });
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

  it('a history forgets long texts for newer ones, so that a flood of them keeps no memory', () => {
    const history = new StatementHistory();
    history.nameOf(TEXT);
    const long = (i: number): string => `${i}${' '.repeat(65_536)}`;
    for (let i = 0; i < 200; i++) {
      history.nameOf(long(i));
      history.nameOf(TEXT);
    }
    expect([history.nameOf(long(0)), history.nameOf(long(199)) !== undefined]).toEqual([undefined, true]);
    expect(history.nameOf(TEXT)).toBeDefined();
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
