import { showToast } from '../app/toasts.tsx';
import { wording } from '../en.ts';

/** A message says how it went: a page of plain HTTP at another machine has no clipboard. */
export async function copyText(text: string, done = wording.copied): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    showToast(done);
  } catch {
    showToast(wording.notCopied);
  }
}
