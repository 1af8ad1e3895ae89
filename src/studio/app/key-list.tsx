/** The keys of the studio, and the list that `?` shows. */
import { signal } from '@preact/signals';
import type { JSX } from 'preact';
import { Dialog } from '../parts/dialog.tsx';
import { wording } from '../wording.ts';
import { goTo, pathTo } from './page-address.ts';
import { pageKeys } from './page-keys.ts';
import { openPages } from './page-list.ts';
import { undoNewest } from './toasts.tsx';

export const areKeysShown = signal(false);

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && (target.isContentEditable || /^(?:INPUT|SELECT|TEXTAREA)$/.test(target.tagName));

let isAfterG = false;

export function watchKeys(openPalette: () => void): void {
  addEventListener('keydown', (event) => {
    const isCommand = event.ctrlKey || event.metaKey;
    if (isCommand && event.key.toLowerCase() === 'k') {
      event.preventDefault();
      openPalette();
      return;
    }
    if (isTyping(event.target) || event.altKey || document.querySelector('dialog[open]') !== null) return;
    if (isCommand) {
      if (event.key.toLowerCase() === 'z') void undoNewest();
      return;
    }
    const run = actionOf(event.key);
    isAfterG = event.key === 'g';
    if (run === undefined) return;
    event.preventDefault();
    run();
  });
}

function actionOf(key: string): (() => void) | undefined {
  if (isAfterG) {
    const page = openPages().find((each) => each.key === key);
    return page && (() => goTo(pathTo(page.name)));
  }
  if (key === '?') return () => (areKeysShown.value = true);
  return pageKeys.get(key);
}

export function StudioKeys(): JSX.Element {
  const rows: readonly (readonly [string, string])[] = [
    ['Ctrl K', wording.palette],
    ['Ctrl Z', wording.undoKey],
    ['?', wording.keys],
    ...openPages().map(({ key, title }) => [`g ${key}`, title] as const),
    ...Object.entries({ ...wording.pageKeys, ...wording.gridKeys }),
  ];
  return (
    <Dialog title={wording.keys} onClose={() => (areKeysShown.value = false)}>
      <table>
        <tbody>
          {rows.map(([key, text]) => (
            <tr key={key}>
              <th scope="row">
                <kbd>{key}</kbd>
              </th>
              <td>{text}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <button type="button" onClick={() => (areKeysShown.value = false)}>
        {wording.close}
      </button>
    </Dialog>
  );
}
