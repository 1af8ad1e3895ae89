/** The bytes that the user stores, beside the quota. */
import type { JSX } from 'preact';
import { transport } from '../../data/api-service.ts';
import { wording } from '../../en.ts';
import { Answered, useAnswer } from '../../parts/answer.tsx';

interface FileUsage {
  readonly used: number;
  /** `null`: no limit. */
  readonly quota: number | null;
  readonly max_size: number;
}

const fetchUsage = async (): Promise<FileUsage> =>
  (await transport.json<{ readonly data: FileUsage }>('/api/_uploads')).data;

/** `round`: asked again when it changes. */
export function FileUsageLine({ round }: { readonly round: number }): JSX.Element {
  const answer = useAnswer(String(round), fetchUsage);
  return (
    <Answered answer={answer}>
      {({ used, quota, max_size: most }) => (
        <div class="file-usage">
          <p class="hint" role="status">
            {quota === null
              ? `${shownSize(used)} ${wording.storedByYou}; ${wording.noQuota}`
              : `${shownSize(used)} ${wording.storedByYou}, ${wording.ofQuota} ${shownSize(quota)}`}
            {`; ${wording.mostOfFile} ${shownSize(most)}`}
          </p>
          {quota !== null && <progress aria-label={wording.quota} value={Math.min(used, quota)} max={quota} />}
        </div>
      )}
    </Answered>
  );
}

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];

export function shownSize(size: number): string {
  const step = Math.min(UNITS.length - 1, Math.floor(Math.log2(Math.max(1, size)) / 10));
  const shown = size / 1024 ** step;
  return `${shown.toLocaleString(undefined, { maximumFractionDigits: 1 })} ${UNITS[step]}`;
}
