/** The frame of every page: navigation, the user, settings, and the page itself. */
import { useSignal } from '@preact/signals';
import type { JSX } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { callerName } from '../data/caller-names.ts';
import { wording } from '../en.ts';
import { ProblemNote } from '../parts/problem-note.tsx';
import { CommandPalette, isPaletteOpen } from './command-palette.tsx';
import { areKeysShown, StudioKeys } from './key-list.tsx';
import { address, changedPath, pathTo, ROOT, VIEWED_KEY } from './page-address.ts';
import { openPages, PAGES } from './page-list.ts';
import { density, isEditingOn, isOwnMachine, theme } from './preferences.ts';
import { hasEnded, loadSession, schema, session, signOut } from './session-state.ts';
import { SessionEnded, SignInPage } from './sign-in.tsx';
import { Toasts } from './toasts.tsx';
import { viewedCaller } from './viewed-caller.ts';

export function Studio(): JSX.Element {
  const state = session.value;
  if (state.kind === 'loading') return <p class="loading">{wording.loading}</p>;
  if (state.kind === 'signed-out') return <SignInPage />;
  if (state.kind === 'failed') {
    return (
      <main class="sign-in-page">
        <ProblemNote problem={state.problem} onRetry={() => void loadSession()} />
      </main>
    );
  }
  return (
    <>
      <a class="skip" href="#content">
        {wording.skip}
      </a>
      <Header />
      <ViewBar />
      <OpenPage />
      <Toasts />
      {isPaletteOpen.value && <CommandPalette />}
      {areKeysShown.value && <StudioKeys />}
      {hasEnded.value && <SessionEnded />}
    </>
  );
}

function OpenPage(): JSX.Element {
  const { page } = address.value;
  const found = page === '' ? PAGES[0] : openPages().find(({ name }) => name === page);
  useEffect(() => {
    document.title = found === undefined ? wording.studio : `${found.title} – ${wording.studio}`;
  }, [found]);
  if (found !== undefined) return <found.component key={found.name} />;
  return (
    <main id="content" class="empty">
      <h1>{wording.notFound}</h1>
    </main>
  );
}

function Header(): JSX.Element {
  const current = address.value.page || PAGES[0]!.name;
  const navigation = useRef<HTMLElement>(null);
  // Narrow windows show a part of the navigation.
  useEffect(
    () => navigation.current?.querySelector('[aria-current]')?.scrollIntoView({ inline: 'center', block: 'nearest' }),
    [current],
  );
  return (
    <header class="top">
      <a class="brand" href={ROOT}>
        bylaw
      </a>
      <nav ref={navigation} aria-label={wording.pages}>
        {openPages().map(({ name, title }) => (
          <a key={name} href={pathTo(name)} aria-current={name === current ? 'page' : undefined}>
            {title}
          </a>
        ))}
      </nav>
      <button type="button" class="palette-opener" onClick={() => (isPaletteOpen.value = true)}>
        {wording.go} <kbd>Ctrl K</kbd>
      </button>
      <UserMenu />
    </header>
  );
}

/** Says on every page that it shows what another caller sees. */
function ViewBar(): JSX.Element | null {
  const caller = viewedCaller.value;
  if (caller === '') return null;
  const { page } = address.value;
  const isAsked = (PAGES.find(({ name }) => name === page) ?? PAGES[0]!).asksAsViewed === true;
  return (
    <p class="as-bar" role="status">
      {isAsked ? wording.youSeeAs : wording.notAsAnother} <strong dir="auto">{callerName(caller)}</strong>.{' '}
      {wording.nothingWritten}{' '}
      <a href={changedPath({ [VIEWED_KEY]: undefined })} aria-keyshortcuts="q">
        {wording.endAs}
      </a>
    </p>
  );
}

function UserMenu(): JSX.Element {
  const isOpen = useSignal(false);
  return (
    <details
      class="settings"
      open={isOpen.value}
      onToggle={(event) => (isOpen.value = event.currentTarget.open)}
      onKeyDown={(event) => {
        if (event.key !== 'Escape') return;
        isOpen.value = false;
        event.currentTarget.querySelector('summary')?.focus();
      }}
    >
      <summary aria-label={`${wording.account}: ${schema.value?.me.email}`} aria-keyshortcuts=",">
        <span class="user">{schema.value?.me.email}</span>
      </summary>
      <div class="menu">
        <PreferenceChoice label={wording.theme} shortcut="Shift+l" choices={wording.themes} value={theme} />
        <PreferenceChoice label={wording.density} shortcut="Shift+m" choices={wording.densities} value={density} />
        {!isOwnMachine && (
          <label>
            <input
              type="checkbox"
              aria-keyshortcuts="Shift+e"
              checked={isEditingOn.value}
              onChange={(event) => (isEditingOn.value = event.currentTarget.checked)}
            />
            {wording.editing}
          </label>
        )}
        <button type="button" onClick={() => (areKeysShown.value = true)}>
          {wording.keys} <kbd>?</kbd>
        </button>
        <button type="button" aria-keyshortcuts="Shift+o" onClick={() => void signOut()}>
          {wording.signOut}
        </button>
      </div>
    </details>
  );
}

interface PreferenceChoiceProps<T extends string> {
  readonly label: string;
  readonly shortcut: string;
  readonly choices: Readonly<Record<T, string>>;
  readonly value: { value: T };
}

function PreferenceChoice<T extends string>(props: PreferenceChoiceProps<T>): JSX.Element {
  const { label, shortcut, choices, value } = props;
  return (
    <label>
      {label}
      <select
        aria-keyshortcuts={shortcut}
        value={value.value}
        onChange={(event) => (value.value = event.currentTarget.value as T)}
      >
        {Object.entries<string>(choices).map(([name, text]) => (
          <option key={name} value={name}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}
