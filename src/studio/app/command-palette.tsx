/** Ctrl+K: pages, collections, records by their id, and actions. A combobox with a list (WAI-ARIA). */
import { signal } from '@preact/signals';
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { wording } from '../en.ts';
import { Dialog } from '../parts/dialog.tsx';
import { OptionList } from '../parts/option-list.tsx';
import { areKeysShown } from './key-list.tsx';
import { address, goTo, pathTo } from './page-address.ts';
import { isActionOn, pageActions, runAction, shownShortcut } from './page-keys.ts';
import { openPages } from './page-list.ts';
import { collectionsWithId, hasText } from './palette-names.ts';
import { type Theme, theme } from './preferences.ts';
import { schema, signOut } from './session-state.ts';
import { undoNewest } from './toasts.tsx';

export const isPaletteOpen = signal(false);

interface Goal {
  readonly title: string;
  readonly run: () => void;
}

const goal = (title: string, path: string): Goal => ({ title, run: () => goTo(path) });

/** The actions of the open page and of the studio, each with its key if it has one. */
function actions(): readonly Goal[] {
  const ofPage = pageActions()
    .filter(isActionOn)
    .map((action) => ({ title: `${action.title} (${shownShortcut(action.key)})`, run: () => runAction(action) }));
  const themes = Object.entries(wording.themes).map(([name, title]) => ({
    title: `${wording.theme}: ${title}`,
    run: () => (theme.value = name as Theme),
  }));
  return [
    ...ofPage,
    { title: `${wording.undoKey} (Ctrl Z)`, run: () => void undoNewest() },
    { title: `${wording.keys} (?)`, run: () => (areKeysShown.value = true) },
    ...themes,
    { title: wording.signOut, run: () => void signOut() },
  ];
}

function goalsOf(text: string, ofPage: readonly Goal[]): readonly Goal[] {
  const collections = schema.value?.collections ?? [];
  const named = [
    ...openPages().map(({ name, title }) => goal(title, pathTo(name))),
    ...collections.map(({ name }) => goal(name, pathTo('data', name))),
    ...ofPage,
  ];
  const records = collectionsWithId(collections, text, address.value.subject).map((name) =>
    goal(`${name} ${text}`, pathTo('data', name, { record: text })),
  );
  return [...named.filter(({ title }) => hasText(title, text)), ...records];
}

const closePalette = (): void => {
  isPaletteOpen.value = false;
};

export function CommandPalette(): JSX.Element {
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  // As the page had them before the palette opened over it.
  const [ofPage] = useState(actions);
  const goals = goalsOf(text.trim(), ofPage);
  const follow = (chosen: Goal | undefined): void => {
    if (chosen === undefined) return;
    closePalette();
    // The dialog returns the focus first.
    setTimeout(chosen.run);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === 'Enter') follow(goals[at]);
    else if (event.key === 'ArrowDown') setAt(Math.min(at + 1, goals.length - 1));
    else if (event.key === 'ArrowUp') setAt(Math.max(at - 1, 0));
    else return;
    event.preventDefault();
  };
  return (
    <Dialog title={wording.go} onClose={closePalette} class="palette">
      <input
        // biome-ignore lint/a11y/noRedundantRoles: an input has this role only with a `list`
        role="combobox"
        list={undefined}
        aria-label={wording.palette}
        placeholder={wording.palette}
        aria-expanded="true"
        aria-controls="goals"
        aria-activedescendant={goals.length > 0 ? `goals-${at}` : undefined}
        value={text}
        onInput={(event) => {
          setText(event.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={onKeyDown}
      />
      <OptionList
        id="goals"
        label={wording.go}
        options={goals.map(({ title }) => ({ key: title, text: title }))}
        at={at}
        onChoose={(i) => follow(goals[i])}
      />
      {goals.length === 0 && <p>{wording.nothingFound}</p>}
    </Dialog>
  );
}
