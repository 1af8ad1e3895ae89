/** Uploads with their progress; a refusal stays beside its name. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { noteProblem } from '../app/session-state.ts';
import { service } from '../data/api-service.ts';
import type { ShownProblem } from '../data/problem-words.ts';
import { wording } from '../en.ts';
import { FileDrop } from './file-drop.tsx';
import { ProblemNote } from './problem-note.tsx';

interface Sending {
  readonly name: string;
  /** From 0 to 1. */
  readonly share: number;
  readonly problem?: ShownProblem;
}

interface UploadedFile {
  readonly id: string;
  readonly name: string;
}
interface FileUploadProps {
  /** The control takes one file. */
  readonly isSingle?: boolean;
  readonly isDisabled?: boolean;
  readonly onUploaded: (file: UploadedFile) => void;
}

/** The uploads under way and those that failed, and a way to begin one. */
function useUploads(onUploaded: FileUploadProps['onUploaded']) {
  const [sending, setSending] = useState<Readonly<Record<number, Sending>>>({});
  const note = (key: number, change: Partial<Sending> & Pick<Sending, 'name'>): void =>
    setSending((before) => ({ ...before, [key]: { share: 0, ...before[key], ...change } }));
  const send = async (file: File, key: number): Promise<void> => {
    const { name } = file;
    note(key, { name });
    try {
      const stored = await service.upload(file, {
        onProgress: ({ sent, total }) => note(key, { name, share: sent / Math.max(1, total) }),
      });
      setSending(({ [key]: _, ...others }) => others);
      onUploaded(stored as unknown as UploadedFile);
    } catch (error) {
      note(key, { name, problem: noteProblem(error) });
    }
  };
  return [sending, send] as const;
}

export function FileUpload({ isSingle = false, isDisabled = false, onUploaded }: FileUploadProps): JSX.Element {
  const [sending, send] = useUploads(onUploaded);
  return (
    <>
      <FileDrop
        words={isSingle ? wording.dropFile : wording.dropFiles}
        isWriting
        {...{ isSingle, isDisabled }}
        onFiles={(files) => {
          for (const [i, file] of files.entries()) void send(file, Date.now() * 100 + i);
        }}
      />
      <ul class="uploads">
        {Object.entries(sending).map(([key, { name, share, problem }]) => (
          <li key={key}>
            <bdi>{name}</bdi>{' '}
            {problem === undefined ? (
              <progress aria-label={name} value={share} max={1} />
            ) : (
              <ProblemNote problem={problem} />
            )}
          </li>
        ))}
      </ul>
    </>
  );
}
