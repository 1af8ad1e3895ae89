/** The way to the service's own page of the sign-in, which knows second factors, passkeys and providers, and back. */
import type { JSX } from 'preact';
import { wording } from '../en.ts';
import { Dialog } from '../parts/dialog.tsx';
import { isOwnMachine } from './preferences.ts';
import { hasEnded } from './session-state.ts';

/** Characters of an address that the sign-in returns to. */
const MOST_RETURNED = 2_048;

function signInPath(): string {
  const { pathname, search } = location;
  const whole = pathname + search;
  const target = whole.length <= MOST_RETURNED ? whole : pathname;
  return `/auth/sign-in?${new URLSearchParams({ redirect_to: target })}`;
}

const SignInLink = (): JSX.Element => (
  <a class="button primary" aria-keyshortcuts="Control+Enter" href={signInPath()}>
    {wording.signIn}
  </a>
);

export function SignInPage(): JSX.Element {
  return (
    <main class="sign-in-page" id="content">
      <h1>{wording.studio}</h1>
      <p>{wording.signInFirst}</p>
      <p>
        <SignInLink />
      </p>
      {isOwnMachine && <p class="hint">{wording.noAdminYet}</p>}
    </main>
  );
}

/** Over the open page, whose drafts the tab keeps. */
export function SessionEnded(): JSX.Element {
  return (
    <Dialog title={wording.signIn} onClose={() => (hasEnded.value = false)}>
      <p>{wording.sessionEnded}</p>
      <SignInLink />
    </Dialog>
  );
}
