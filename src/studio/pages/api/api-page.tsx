/** The reference of this schema at the left, and one operation with a console beside it. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { address, pathTo } from '../../app/page-address.ts';
import { wording } from '../../en.ts';
import { Answered, useAnswer } from '../../parts/answer.tsx';
import { type ApiOperation, type ApiReference, fetchReference, matchingOperations } from './operation-list.ts';
import { OperationView } from './operation-view.tsx';
import { RequestConsole } from './request-console.tsx';

export function ApiPage(): JSX.Element {
  const answer = useAnswer('reference', fetchReference);
  return (
    <main id="content" class="page" tabIndex={-1}>
      <h1>{wording.apiPage}</h1>
      <p class="hint">
        {wording.apiHint}{' '}
        <a href="/docs" target="_blank" rel="noopener">
          {wording.reference}
        </a>{' '}
        <a href="/openapi.json" target="_blank" rel="noopener">
          /openapi.json
        </a>
      </p>
      <Answered answer={answer}>{(reference) => <ApiReferenceView reference={reference} />}</Answered>
    </main>
  );
}

function ApiReferenceView({ reference }: { readonly reference: ApiReference }): JSX.Element {
  const { subject } = address.value;
  const operation = reference.operations.find(({ operationId }) => operationId === subject);
  return (
    <div class="reference">
      <OperationList
        key={subject === undefined ? '' : 'chosen'}
        operations={reference.operations}
        current={operation}
      />
      <div class="operation">
        {operation === undefined ? (
          <p class="empty">{subject === undefined ? wording.chooseOperation : wording.notFound}</p>
        ) : (
          <>
            <OperationView operation={operation} reference={reference} />
            <RequestConsole key={operation.operationId} operation={operation} />
          </>
        )}
      </div>
    </div>
  );
}

interface OperationListProps {
  readonly operations: readonly ApiOperation[];
  readonly current: ApiOperation | undefined;
}

function OperationList({ operations, current }: OperationListProps): JSX.Element {
  const [text, setText] = useState('');
  const found = matchingOperations(operations, text);
  const groups = [...Map.groupBy(found, ({ tags }) => tags?.[0] ?? '')];
  return (
    <details class="operations" open={current === undefined || matchMedia('(min-width: 800px)').matches}>
      <summary>{wording.operations}</summary>
      <input
        aria-keyshortcuts="/"
        type="search"
        aria-label={wording.searchOperations}
        placeholder={wording.searchOperations}
        value={text}
        onInput={(event) => setText(event.currentTarget.value)}
      />
      {found.length === 0 && <p>{wording.nothingFound}</p>}
      <nav aria-label={wording.operations}>
        {groups.map(([name, entries]) => (
          <details key={name} open={text !== '' || name === current?.tags?.[0]}>
            <summary>{name}</summary>
            <ul>
              {entries.map(({ operationId, method, path }) => (
                <li key={operationId}>
                  <a
                    href={pathTo('api', operationId)}
                    aria-current={operationId === current?.operationId ? 'page' : undefined}
                  >
                    <code>{method}</code> {path}
                  </a>
                </li>
              ))}
            </ul>
          </details>
        ))}
      </nav>
    </details>
  );
}
