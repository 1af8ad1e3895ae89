import type { ComponentChildren, JSX } from 'preact';
import { wording } from '../en.ts';
import { Dialog } from './dialog.tsx';

interface ConfirmDialogProps {
  readonly title: string;
  /** The word on the button that confirms. */
  readonly action: string;
  readonly onConfirm: () => void;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
}

/** Asks before an action that cannot be undone. */
export function ConfirmDialog({ title, action, onConfirm, onClose, children }: ConfirmDialogProps): JSX.Element {
  return (
    <Dialog title={title} onClose={onClose}>
      {children}
      <div class="actions">
        <button type="button" class="danger" aria-keyshortcuts="Control+Enter" onClick={onConfirm}>
          {action}
        </button>
        <button type="button" aria-keyshortcuts="Escape" onClick={onClose}>
          {wording.cancel}
        </button>
      </div>
    </Dialog>
  );
}
