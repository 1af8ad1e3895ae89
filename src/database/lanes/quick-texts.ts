/**
 * Remembers the statements that have always been quick, by their text: several of them may be sent together, where the answer
 * to the first comes with that to the last.
 */

/** Milliseconds that a quick statement takes at most, alone; and that several take together. */
const QUICK_MS = 2;
const QUICK_TOGETHER_MS = 10;
/** Quick answers in a row, alone, before a statement is sent together with others. */
const TRIALS = 3;
const MOST_TEXTS = 2_000;

export class QuickTexts {
  /** The quick answers in a row; who has been here longest is first. */
  readonly #trials = new Map<string, number>();

  has(text: string): boolean {
    return (this.#trials.get(text) ?? 0) >= TRIALS;
  }

  /** One took so many milliseconds, alone. */
  note(text: string, took: number): void {
    const trials = this.#trials.get(text) ?? 0;
    // A machine that is busy makes a quick one slow now and then.
    if (trials >= TRIALS && took <= QUICK_TOGETHER_MS) return;
    this.#set(text, took <= QUICK_MS ? trials + 1 : 0);
  }

  /** It was one of several that took so many milliseconds together: where that is long, each is tried alone again. */
  noteTogether(text: string, took: number): void {
    if (took > QUICK_TOGETHER_MS) this.forget(text);
  }

  forget(text: string): void {
    this.#set(text, 0);
  }

  #set(text: string, trials: number): void {
    this.#trials.set(text, trials);
    if (this.#trials.size > MOST_TEXTS) this.#trials.delete(this.#trials.keys().next().value!);
  }
}
