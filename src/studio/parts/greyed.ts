import { showToast } from '../app/toasts.tsx';

/**
 * The attributes of a button that is greyed for a reason. It keeps its place in the order of the Tab key, and shows the reason
 * to a tap and to a key as well: a disabled button has it for a mouse alone.
 */
export const greyed = (reason: string | undefined) =>
  reason === undefined
    ? {}
    : {
        'aria-disabled': true as const,
        title: reason,
        onClickCapture: (event: Event): void => {
          event.preventDefault();
          event.stopImmediatePropagation();
          showToast(reason);
        },
      };
