/** The files that the user may list, the newest first, with previews of images. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { pathTo } from '../../app/page-address.ts';
import { noteProblem, schema } from '../../app/session-state.ts';
import { showToast } from '../../app/toasts.tsx';
import { viewedCaller } from '../../app/viewed-caller.ts';
import { service, transport } from '../../data/api-service.ts';
import type { ShownProblem } from '../../data/problem-words.ts';
import { wording } from '../../en.ts';
import { copyText } from '../../parts/copy-text.ts';
import { FileUpload } from '../../parts/file-upload.tsx';
import { ProblemNote } from '../../parts/problem-note.tsx';
import type { StudioRecord } from '../data/record-query.ts';
import { recordsSeenBy } from '../data/viewed-records.ts';
import { FileUsageLine, shownSize } from './file-usage.tsx';

interface StoredFile {
  readonly id: string;
  readonly name: string;
  readonly content_type: string;
  readonly size: number;
}

const FILES_OF_A_PAGE = 60;
/** A width that every schema allows, unless it names others. */
const PREVIEW_WIDTH = 256;

const contentPath = (id: string): string => `/api/files/${encodeURIComponent(id)}/content`;
const hasPreview = ({ content_type: type }: StoredFile): boolean => /^image\/(?:jpeg|png|webp|gif|avif)$/.test(type);

export function FilesPage(): JSX.Element {
  const [files, setFiles] = useState<readonly StoredFile[]>();
  const [cursor, setCursor] = useState<string>();
  const [problem, setProblem] = useState<ShownProblem>();
  const [uploads, setUploads] = useState(0);
  const collection = schema.value?.collections.find(({ kind }) => kind === 'files');
  const mayList = collection?.can.list === true;
  const viewed = viewedCaller.value;
  const load = async (before: readonly StoredFile[], from?: string): Promise<void> => {
    setProblem(undefined);
    try {
      const query = { sort: ['-id'] as never, limit: FILES_OF_A_PAGE, ...(from === undefined ? {} : { cursor: from }) };
      const { data, page } = await service.collection('files').query(query);
      const found = data as readonly StudioRecord[];
      const listed =
        viewed === '' ? found : await recordsSeenBy(viewed, { collection: collection!, action: 'list' }, found);
      setFiles([...before, ...(listed as unknown as readonly StoredFile[])]);
      setCursor(page.next_cursor ?? undefined);
    } catch (error) {
      setProblem(noteProblem(error));
    }
  };
  useEffect(() => {
    if (mayList) void load([]);
  }, [viewed]);
  return (
    <main id="content" class="page" tabIndex={-1}>
      <h1>{wording.files}</h1>
      <FileUpload
        onUploaded={() => {
          setUploads((before) => before + 1);
          if (mayList) void load([]);
        }}
      />
      <FileUsageLine round={uploads} />
      {problem !== undefined && <ProblemNote problem={problem} onRetry={() => void load([])} />}
      {!mayList && <p class="empty">{wording.notListable}</p>}
      {mayList && files === undefined && problem === undefined && <p class="loading">{wording.loading}</p>}
      {files?.length === 0 && <p class="empty">{wording.noFiles}</p>}
      <ul class="file-grid">
        {files?.map((file) => (
          <li key={file.id}>
            <FileCard file={file} />
          </li>
        ))}
      </ul>
      {cursor !== undefined && (
        <button type="button" aria-keyshortcuts="l" onClick={() => void load(files ?? [], cursor)}>
          {wording.moreFiles}
        </button>
      )}
    </main>
  );
}

function FileCard({ file }: { readonly file: StoredFile }): JSX.Element {
  const { id, name, content_type: type, size } = file;
  const [hasFailed, setFailed] = useState(false);
  const link = async (): Promise<void> => {
    try {
      const path = `/api/files/${encodeURIComponent(id)}/link`;
      const { url } = await transport.json<{ readonly url: string }>(path, { method: 'POST' });
      await copyText(url, wording.linkCopied);
    } catch (error) {
      showToast(noteProblem(error).text);
    }
  };
  return (
    <>
      <a class="preview" href={contentPath(id)} target="_blank" rel="noopener noreferrer">
        {hasPreview(file) && !hasFailed ? (
          <img
            src={`${contentPath(id)}?width=${PREVIEW_WIDTH}`}
            alt={name}
            loading="lazy"
            onError={() => setFailed(true)}
          />
        ) : (
          <span>{type}</span>
        )}
      </a>
      <p>
        <a href={pathTo('data', 'files', { record: id })}>
          <bdi>{name}</bdi>
        </a>
      </p>
      <p class="hint">{`${type}, ${shownSize(size)}`}</p>
      <button
        type="button"
        class="link"
        aria-label={`${wording.copyFileLink}: ${name}`}
        aria-keyshortcuts="c"
        onClick={() => void link()}
      >
        {wording.copyFileLink}
      </button>
    </>
  );
}
