/** Short messages about what was done; an undo beside them where there is one. */
import { signal } from '@preact/signals';
import type { JSX } from 'preact';
import { wording } from '../en.ts';

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly undo?: () => Promise<void>;
}

const TOAST_MS = 8_000;
const toasts = signal<readonly Toast[]>([]);
/** The changes that the page can undo, the newest last. They outlive their messages. */
const undoable: Toast[] = [];
const MOST_UNDOABLE = 100;
let toastCount = 0;

export function showToast(text: string, undo?: () => Promise<void>): void {
  const toast: Toast = { id: ++toastCount, text, ...(undo === undefined ? {} : { undo }) };
  toasts.value = [...toasts.value, toast];
  if (undo !== undefined) undoable.push(toast);
  if (undoable.length > MOST_UNDOABLE) undoable.shift();
  setTimeout(() => dismiss(toast), TOAST_MS);
}

const dismiss = (toast: Toast): void => {
  toasts.value = toasts.value.filter(({ id }) => id !== toast.id);
};

/** Undoes the newest change of the page. */
export async function undoNewest(): Promise<void> {
  const newest = undoable.at(-1);
  if (newest !== undefined) await undoChange(newest);
}

async function undoChange(toast: Toast): Promise<void> {
  undoable.splice(undoable.indexOf(toast), 1);
  dismiss(toast);
  await toast.undo?.();
}

export function Toasts(): JSX.Element {
  return (
    <div class="toasts" role="status">
      {toasts.value.map((toast) => (
        <p key={toast.id}>
          {toast.text}
          {toast.undo !== undefined && (
            <button type="button" onClick={() => void undoChange(toast)}>
              {wording.undo} <kbd>Ctrl Z</kbd>
            </button>
          )}
          <button type="button" aria-keyshortcuts="z" onClick={() => dismiss(toast)}>
            {wording.close}
          </button>
        </p>
      ))}
    </div>
  );
}
