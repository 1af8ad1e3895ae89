import type { JSX } from 'preact';

/** A text of the service; what it has between backticks is code. */
export function ProseText({ text }: { readonly text: string }): JSX.Element {
  return <>{text.split('`').map((part, i) => (i % 2 === 0 ? part : <code key={i}>{part}</code>))}</>;
}
