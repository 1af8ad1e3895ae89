import type { JSX } from 'preact';

interface OptionListProps {
  readonly id: string;
  readonly label: string | undefined;
  readonly options: readonly { readonly key: string; readonly text: string }[];
  /** The option that the combobox points at. */
  readonly at: number;
  readonly isHidden?: boolean;
  readonly onChoose: (index: number) => void;
}

/** The list of a combobox. Its options have the ids `ID-0`, `ID-1`, …; the focus stays in the combobox. */
export function OptionList({ id, label, options, at, isHidden = false, onChoose }: OptionListProps): JSX.Element {
  return (
    <div id={id} role="listbox" aria-label={label} hidden={isHidden}>
      {options.map(({ key, text }, i) => (
        // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are those of the combobox
        <div
          key={key}
          id={`${id}-${i}`}
          role="option"
          tabIndex={-1}
          aria-selected={i === at}
          onMouseDown={(event) => event.preventDefault()}
          onClick={() => onChoose(i)}
        >
          <bdi>{text}</bdi>
        </div>
      ))}
    </div>
  );
}
