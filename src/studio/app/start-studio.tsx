/** The entry of the bundle. */
import { render } from 'preact';
import { isPaletteOpen } from './command-palette.tsx';
import { Studio } from './frame.tsx';
import { watchKeys } from './key-list.tsx';
import { watchAddress } from './page-address.ts';
import { applyPreferences } from './preferences.ts';
import { loadSession } from './session-state.ts';

applyPreferences();
watchAddress();
watchKeys(() => (isPaletteOpen.value = true));
const root = document.getElementById('studio')!;
root.replaceChildren();
render(<Studio />, root);
void loadSession();
// A page that the browser kept for the way back is as old as its session may be.
addEventListener('pageshow', ({ persisted: isKept }) => {
  if (isKept) location.reload();
});
