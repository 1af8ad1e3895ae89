import type { ComponentChildren, JSX } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { noteProblem } from '../app/session-state.ts';
import { greyReason } from '../app/viewed-caller.ts';
import type { ShownProblem } from '../data/problem-words.ts';
import { greyed } from './greyed.ts';
import { forgetInputs, keepInputs, restoreInputs } from './kept-inputs.ts';
import { ProblemNote } from './problem-note.tsx';

interface CreateFormProps {
  readonly title: string;
  /** The key that leads to its first control. */
  readonly shortcut: string;
  /** The word on the button that creates. */
  readonly action: string;
  /** Creates what the form describes, which is emptied then. */
  readonly onCreate: (given: FormData) => Promise<void>;
  readonly children: ComponentChildren;
}

/** A form that creates one thing, below the list of them. The tab keeps its draft under the title. */
export function CreateForm({ title, shortcut, action, onCreate, children }: CreateFormProps): JSX.Element {
  const [problem, setProblem] = useState<ShownProblem>();
  const shownForm = useRef<HTMLFormElement>(null);
  useLayoutEffect(() => {
    restoreInputs(title, shownForm.current!);
  }, []);
  const create = async (form: HTMLFormElement): Promise<void> => {
    setProblem(undefined);
    try {
      await onCreate(new FormData(form));
      forgetInputs(title);
      form.reset();
    } catch (error) {
      setProblem(noteProblem(error));
    }
  };
  return (
    <section aria-label={title}>
      <h2>{title}</h2>
      <form
        ref={shownForm}
        class="account-form"
        aria-label={title}
        aria-keyshortcuts={shortcut}
        onInput={(event) => keepInputs(title, event.currentTarget)}
        onSubmit={(event) => {
          event.preventDefault();
          void create(event.currentTarget);
        }}
      >
        {children}
        {problem !== undefined && <ProblemNote problem={problem} />}
        <button type="submit" class="primary" aria-keyshortcuts="Control+Enter" {...greyed(greyReason.value)}>
          {action}
        </button>
      </form>
    </section>
  );
}
