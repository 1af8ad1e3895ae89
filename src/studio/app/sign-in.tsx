import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { SecondFactorNeeded } from '../../client/client.ts';
import { type ShownProblem, shownProblemOf } from '../data/problem-words.ts';
import { Dialog } from '../parts/dialog.tsx';
import { ProblemNote } from '../parts/problem-note.tsx';
import { wording } from '../wording.ts';
import { isOwnMachine } from './preferences.ts';
import { finishSignIn, hasEnded, signIn } from './session-state.ts';

function SignInForm(): JSX.Element {
  const [problem, setProblem] = useState<ShownProblem>();
  const [challenge, setChallenge] = useState<string>();
  const [isBusy, setBusy] = useState(false);
  const submit = async (event: SubmitEvent): Promise<void> => {
    event.preventDefault();
    const given = new FormData(event.currentTarget as HTMLFormElement);
    setBusy(true);
    setProblem(undefined);
    const step =
      challenge === undefined
        ? signIn(String(given.get('email')), String(given.get('password')))
        : finishSignIn(challenge, String(given.get('code')).trim());
    await step.catch((error) => {
      if (error instanceof SecondFactorNeeded) setChallenge(error.challenge);
      else setProblem(shownProblemOf(error));
    });
    setBusy(false);
  };
  return (
    <form class="sign-in" onSubmit={(event) => void submit(event)}>
      {challenge === undefined ? (
        <>
          <label>
            {wording.email}
            <input name="email" type="email" autocomplete="username" required />
          </label>
          <label>
            {wording.password}
            <input name="password" type="password" autocomplete="current-password" required />
          </label>
        </>
      ) : (
        <label>
          {wording.secondFactor}
          <input name="code" autocomplete="one-time-code" required />
        </label>
      )}
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
      {isOwnMachine && <p class="hint">{wording.noAdminYet}</p>}
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
