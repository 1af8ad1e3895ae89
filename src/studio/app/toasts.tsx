/** Short messages about what was done; an undo beside them where there is one. */
import { signal } from '@preact/signals';
import type { JSX } from 'preact';
import { wording } from '../wording.ts';

interface Toast {
  readonly id: number;
  readonly text: string;
  readonly undo?: () => Promise<void>;
}

const TOAST_MS = 8_000;
const toasts = signal<readonly Toast[]>([]);
let toastCount = 0;

export function showToast(text: string, undo?: () => Promise<void>): void {
  const toast: Toast = { id: ++toastCount, text, ...(undo === undefined ? {} : { undo }) };
  toasts.value = [...toasts.value, toast];
  setTimeout(() => dismiss(toast), TOAST_MS);
}

const dismiss = (toast: Toast): void => {
  toasts.value = toasts.value.filter(({ id }) => id !== toast.id);
};

/** Undoes the newest change whose message is still there. */
export async function undoNewest(): Promise<void> {
  const newest = toasts.value.findLast(({ undo }) => undo !== undefined);
  if (newest === undefined) return;
  dismiss(newest);
  await newest.undo?.();
}

export function Toasts(): JSX.Element {
  return (
    <div class="toasts" role="status">
      {toasts.value.map((toast) => (
        <p key={toast.id}>
          {toast.text}
          {toast.undo !== undefined && (
            <button
              type="button"
              onClick={() => {
                dismiss(toast);
                void toast.undo?.();
              }}
            >
              {wording.undo}
            </button>
          )}
          <button type="button" onClick={() => dismiss(toast)}>
            {wording.close}
          </button>
        </p>
      ))}
    </div>
  );
}
