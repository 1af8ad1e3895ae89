/** Short messages about what was done; an undo beside them where there is one. */
import { signal } from '@preact/signals';
import type { JSX } from 'preact';
import { wording } from '../en.ts';

/** → false if it can be tried again. */
type Undo = () => Promise<boolean>;

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly undo?: Undo;
}

const TOAST_MS = 8_000;
const toasts = signal<readonly Toast[]>([]);
/** The changes that the page can undo, the newest last. They outlive their messages. */
const undoable = new Set<Toast>();
const MOST_UNDOABLE = 100;
let toastCount = 0;

export function showToast(text: string, undo?: Undo): void {
  const toast: Toast = { id: ++toastCount, text, ...(undo === undefined ? {} : { undo }) };
  toasts.value = [...toasts.value, toast];
  if (undo !== undefined) undoable.add(toast);
  if (undoable.size > MOST_UNDOABLE) undoable.delete([...undoable][0]!);
  setTimeout(() => dismiss(toast), TOAST_MS);
}

const dismiss = (toast: Toast): void => {
  toasts.value = toasts.value.filter(({ id }) => id !== toast.id);
};

/** Undoes the newest change of the page. */
export const undoNewest = (): Promise<void> => undoInTurn(() => [...undoable].at(-1));

let undoing = Promise.resolve();
/** Undos run one after another: an older change of a record is undone after the newer ones. */
const undoInTurn = (chosen: () => Toast | undefined): Promise<void> => {
  undoing = undoing.then(() => undoChange(chosen()));
  return undoing;
};

async function undoChange(toast: Toast | undefined): Promise<void> {
  if (toast === undefined || !undoable.has(toast)) return;
  dismiss(toast);
  if (await toast.undo!()) undoable.delete(toast);
}

export function Toasts(): JSX.Element {
  return (
    <div class="toasts" role="status">
      {toasts.value.map((toast) => (
        <p key={toast.id}>
          {toast.text}
          {toast.undo !== undefined && (
            <button type="button" onClick={() => void undoInTurn(() => toast)}>
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
