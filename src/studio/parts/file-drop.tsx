import type { JSX } from 'preact';
import { greyReason } from '../app/viewed-caller.ts';

interface FileDropProps {
  readonly words: string;
  /** The control takes one file. */
  readonly isSingle?: boolean;
  /** The files are written to the service. */
  readonly isWriting?: boolean;
  readonly isDisabled?: boolean;
  /** Endings of names, such as `.yaml`. */
  readonly accept?: string;
  readonly onFiles: (files: readonly File[]) => void;
}

/** Takes files that are dropped or chosen. */
export function FileDrop(props: FileDropProps): JSX.Element {
  const { words, isSingle = false, isWriting = false, isDisabled = false, accept, onFiles } = props;
  const reason = isWriting ? greyReason.value : undefined;
  const isOff = isDisabled || reason !== undefined;
  const take = (list: FileList | null | undefined): void => {
    if (!isOff) onFiles([...(list ?? [])].slice(0, isSingle ? 1 : undefined));
  };
  return (
    <label
      class="file-drop"
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => {
        event.preventDefault();
        take(event.dataTransfer?.files);
      }}
    >
      {words}
      {reason !== undefined && <span class="hint">{reason}</span>}
      <input
        type="file"
        aria-keyshortcuts="u"
        multiple={!isSingle}
        accept={accept}
        disabled={isOff}
        onChange={(event) => {
          take(event.currentTarget.files);
          event.currentTarget.value = '';
        }}
      />
    </label>
  );
}
