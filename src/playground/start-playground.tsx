/** The entry of the bundle. */
import '../schema/jitless.ts';
import { render } from 'preact';
import { words } from './page-words.ts';
import { Playground } from './playground-page.tsx';

document.title = words.title;

const playgroundRoot = document.getElementById('studio')!;
playgroundRoot.replaceChildren();
render(<Playground />, playgroundRoot);
