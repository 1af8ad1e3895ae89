/** The entry of the bundle. */
import '../schema/jitless.ts';
import { render } from 'preact';
import { Playground } from './playground-page.tsx';
import { words } from './words.ts';

document.title = words.title;

const root = document.getElementById('studio')!;
root.replaceChildren();
render(<Playground />, root);
