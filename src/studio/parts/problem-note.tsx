import type { JSX } from 'preact';
import type { ShownProblem } from '../data/problem-words.ts';
import { wording } from '../en.ts';
import { copyText } from './copy-text.ts';

interface ProblemNoteProps {
  readonly problem: ShownProblem;
  readonly onRetry?: () => void;
}

/** An error with the id of its request, which the log of the service has too. */
export function ProblemNote({ problem: { text, others, requestId }, onRetry }: ProblemNoteProps): JSX.Element {
  return (
    <div class="problem" role="alert">
      <p>{text}</p>
      {others.length > 0 && (
        <ul>
          {others.map((detail) => (
            <li key={detail}>{detail}</li>
          ))}
        </ul>
      )}
      <p class="problem-tail">
        {onRetry !== undefined && (
          <button type="button" aria-keyshortcuts="y" onClick={onRetry}>
            {wording.retry}
          </button>
        )}
        {requestId !== undefined && (
          <small>
            {wording.requestId} <code>{requestId}</code>{' '}
            <button
              type="button"
              class="link"
              aria-label={`${wording.copy}: ${wording.requestId} ${requestId}`}
              aria-keyshortcuts="Shift+i"
              onClick={() => void copyText(requestId)}
            >
              {wording.copy}
            </button>
          </small>
        )}
      </p>
    </div>
  );
}
