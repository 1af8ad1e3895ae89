import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { type ShownProblem, shownProblemOf } from '../data/problem-words.ts';
import { Dialog } from '../parts/dialog.tsx';
import { ProblemNote } from '../parts/problem-note.tsx';
import { wording } from '../wording.ts';
import { hasEnded, signIn } from './session-state.ts';

function SignInForm(): JSX.Element {
  const [problem, setProblem] = useState<ShownProblem>();
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const given = new FormData(event.currentTarget as HTMLFormElement);
    setBusy(true);
    setProblem(undefined);
    await signIn(String(given.get('email')), String(given.get('password'))).catch((error) =>
      setProblem(shownProblemOf(error)),
    );
    setBusy(false);
  };
  return (
    <form class="sign-in" onSubmit={(event) => void submit(event)}>
      <label>
        {wording.email}
        <input name="email" type="email" autocomplete="username" required />
      </label>
      <label>
        {wording.password}
        <input name="password" type="password" autocomplete="current-password" required />
      </label>
      {problem !== undefined && <ProblemNote problem={problem} />}
      <button type="submit" class="primary" disabled={isBusy}>
        {wording.signIn}
      </button>
    </form>
  );
}

export function SignInPage(): JSX.Element {
  return (
    <main class="sign-in-page" id="content">
      <h1>{wording.studio}</h1>
      <p>{wording.signInFirst}</p>
      <SignInForm />
    </main>
  );
}

/** Over the open page, which keeps its forms. */
export function SessionEnded(): JSX.Element {
  return (
    <Dialog title={wording.signIn} onClose={() => (hasEnded.value = false)}>
      <p>{wording.sessionEnded}</p>
      <SignInForm />
    </Dialog>
  );
}
