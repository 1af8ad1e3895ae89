/** A question to the service that a page asks while it is open: loading, a problem, or the answer. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { noteProblem } from '../app/session-state.ts';
import type { ShownProblem } from '../data/problem-words.ts';
import { wording } from '../en.ts';
import { ProblemNote } from './problem-note.tsx';

/** Undefined until the first answer; then the newest one, also while a newer question is under way. */
export type ShownAnswer<T> = { readonly value: T } | { readonly problem: ShownProblem } | undefined;

interface AskingOptions {
  /** Waits for the end of typing. */
  readonly afterMs?: number;
  /** The answer before stays while this is false. */
  readonly isAsked?: boolean;
}

/** Asks once for each key. The answer to an older question is dropped. */
export function useAnswer<T>(
  key: string,
  ask: () => Promise<T>,
  { afterMs = 0, isAsked = true }: AskingOptions = {},
): ShownAnswer<T> {
  const [answer, setAnswer] = useState<ShownAnswer<T>>();
  useEffect(() => {
    if (!isAsked) return;
    let isCurrent = true;
    const timer = setTimeout(() => {
      ask().then(
        (value) => isCurrent && setAnswer({ value }),
        (error) => isCurrent && setAnswer({ problem: noteProblem(error) }),
      );
    }, afterMs);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [key, isAsked]);
  return answer;
}

interface AnsweredProps<T> {
  readonly answer: ShownAnswer<T>;
  /** Default: true. */
  readonly isAsked?: boolean;
  readonly children: (value: T) => JSX.Element | null;
}

export function Answered<T>({ answer, isAsked = true, children }: AnsweredProps<T>): JSX.Element | null {
  if (answer === undefined) return isAsked ? <p class="loading">{wording.loading}</p> : null;
  return 'problem' in answer ? <ProblemNote problem={answer.problem} /> : children(answer.value);
}
