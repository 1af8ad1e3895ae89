import type { ComponentChildren, JSX } from 'preact';
import { TableHead } from './table-head.tsx';

interface ScrollTableProps {
  readonly label: string;
  readonly class?: string;
  readonly titles: readonly string[];
  /** The rows. */
  readonly children: ComponentChildren;
}

/** A table that scrolls in its own region, which the keyboard reaches, so that the page keeps its width. */
export function ScrollTable({ label, class: name, titles, children }: ScrollTableProps): JSX.Element {
  return (
    <div class="scroll" role="region" tabIndex={0} aria-label={label}>
      <table class={name}>
        <TableHead titles={titles} />
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}
