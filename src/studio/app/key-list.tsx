/** The keys of the studio, and the list that `?` shows. */
import { signal } from '@preact/signals';
import type { JSX } from 'preact';
import { wording } from '../en.ts';
import { Dialog } from '../parts/dialog.tsx';
import { goTo, pathTo } from './page-address.ts';
import { isTyping, openDialog, pageActions, pressPageKey, shortcutOf, shownShortcut } from './page-keys.ts';
import { openPages } from './page-list.ts';
import { undoNewest } from './toasts.tsx';

export const areKeysShown = signal(false);

let isAfterG = false;

export function watchKeys(openPalette: () => void): void {
  // Before an editor, which has a key of its own for Ctrl+Enter.
  const options = { capture: true };
  const onKeyDown = (event: KeyboardEvent): void => {
    const isCommand = event.ctrlKey || event.metaKey;
    if (isCommand && event.key.toLowerCase() === 'k') {
      event.preventDefault();
      openPalette();
      return;
    }
    if (event.altKey || (isTyping(event.target) && !isCommand)) return;
    if (openDialog() !== null) {
      if (!event.repeat && pressPageKey(shortcutOf(event))) event.preventDefault();
      return;
    }
    if (isCommand && event.key.toLowerCase() === 'z') {
      if (!isTyping(event.target)) void undoNewest();
      return;
    }
    const wasAfterG = isAfterG;
    isAfterG = event.key === 'g' && !isCommand;
    if (!event.repeat && isDone(event, wasAfterG)) event.preventDefault();
  };
  addEventListener('keydown', onKeyDown, options);
}

/** Does what the key is for; false: nothing. */
function isDone(event: KeyboardEvent, wasAfterG: boolean): boolean {
  const page = wasAfterG ? openPages().find(({ key }) => key === event.key) : undefined;
  if (page !== undefined) goTo(pathTo(page.name));
  else if (event.key === '?') areKeysShown.value = true;
  else return !wasAfterG && pressPageKey(shortcutOf(event));
  return true;
}

export function StudioKeys(): JSX.Element {
  const rows: readonly (readonly [string, string])[] = [
    ['Ctrl K', wording.palette],
    ['Ctrl Z', wording.undoKey],
    ['?', wording.keys],
    ...openPages().map(({ key, title }) => [`g ${key}`, title] as const),
    ...pageActions().map(({ key, title }) => [shownShortcut(key), title] as const),
    ...Object.entries(wording.gridKeys),
  ];
  return (
    <Dialog title={wording.keys} onClose={() => (areKeysShown.value = false)}>
      <table>
        <tbody>
          {rows.map(([key, text]) => (
            <tr key={`${key} ${text}`}>
              <th scope="row">
                <kbd>{key}</kbd>
              </th>
              <td>{text}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <button type="button" aria-keyshortcuts="Escape" onClick={() => (areKeysShown.value = false)}>
        {wording.close}
      </button>
    </Dialog>
  );
}
