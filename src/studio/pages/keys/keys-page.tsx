/** API keys with their last use and limits; rotate and revoke ask first. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { noteProblem } from '../../app/session-state.ts';
import { showToast } from '../../app/toasts.tsx';
import { greyReason } from '../../app/viewed-caller.ts';
import type { ShownProblem } from '../../data/problem-words.ts';
import { wording } from '../../en.ts';
import { ConfirmDialog } from '../../parts/confirm-dialog.tsx';
import { greyed } from '../../parts/greyed.ts';
import { ProblemNote } from '../../parts/problem-note.tsx';
import { ScrollTable } from '../../parts/scroll-table.tsx';
import { fetchKeys, type KeyWithSecret, type ListedKey, revokeApiKey, rotateApiKey } from './key-requests.ts';
import { NewKeyForm, SecretDialog } from './new-key.tsx';

interface KeyInQuestion {
  readonly key: ListedKey;
  readonly what: 'rotate' | 'revoke';
}

export function KeysPage(): JSX.Element {
  const [keys, setKeys] = useState<readonly ListedKey[]>();
  const [problem, setProblem] = useState<ShownProblem>();
  const [asked, setAsked] = useState<KeyInQuestion>();
  const [issued, setIssued] = useState<KeyWithSecret>();
  const load = (): void => {
    fetchKeys().then(setKeys, (error) => setProblem(noteProblem(error)));
  };
  useEffect(load, []);
  const show = (key: KeyWithSecret): void => {
    setIssued(key);
    load();
  };
  const run = async ({ key, what }: KeyInQuestion): Promise<void> => {
    setAsked(undefined);
    setProblem(undefined);
    try {
      if (what === 'rotate') return show(await rotateApiKey(key.id));
      await revokeApiKey(key.id);
      showToast(wording.revoked);
      load();
    } catch (error) {
      setProblem(noteProblem(error));
    }
  };
  return (
    <main id="content" class="page" tabIndex={-1}>
      <h1>{wording.apiKeys}</h1>
      {problem !== undefined && <ProblemNote problem={problem} onRetry={load} />}
      {keys === undefined && problem === undefined && <p class="loading">{wording.loading}</p>}
      {keys?.length === 0 && <p class="empty">{wording.noKeys}</p>}
      {keys !== undefined && keys.length > 0 && <KeyTable keys={keys} onAsk={setAsked} />}
      <NewKeyForm onIssued={show} />
      {asked !== undefined && (
        <ConfirmDialog
          title={`${wording[asked.what]}: ${asked.key.name}`}
          action={wording[asked.what]}
          onConfirm={() => void run(asked)}
          onClose={() => setAsked(undefined)}
        >
          <p>{asked.what === 'rotate' ? wording.rotateHint : wording.revokeHint}</p>
        </ConfirmDialog>
      )}
      {issued !== undefined && <SecretDialog issued={issued} onClose={() => setIssued(undefined)} />}
    </main>
  );
}

interface KeyTableProps {
  readonly keys: readonly ListedKey[];
  readonly onAsk: (asked: KeyInQuestion) => void;
}

const shownTime = (at: string | null, otherwise: string): string =>
  at === null ? otherwise : new Date(at).toLocaleString();

function shownLimit({ limit, publishable, addresses, origins }: ListedKey): string {
  const actions = Object.entries(limit ?? {}).map(([name, each]) => `${name}: ${each.join(', ')}`);
  return [
    limit === null ? wording.noLimit : actions.join('; '),
    ...(publishable === true ? [wording.publishableWord] : []),
    ...(addresses ?? []),
    ...(origins ?? []),
  ].join(' · ');
}

function KeyTable({ keys, onAsk }: KeyTableProps): JSX.Element {
  const off = greyed(greyReason.value);
  return (
    <ScrollTable
      label={wording.apiKeys}
      class="api-keys"
      titles={[wording.name, wording.roles, wording.limit, wording.lastUsed, wording.expires, wording.actions]}
    >
      {keys.map((key) => (
        <tr key={key.id}>
          <td>
            <bdi>{key.name}</bdi> <code>{`${key.prefix}…`}</code>
          </td>
          <td>{key.roles.join(', ')}</td>
          <td>{shownLimit(key)}</td>
          <td>{shownTime(key.last_used_at, wording.never)}</td>
          <td>{shownTime(key.expires_at, wording.never)}</td>
          <td>
            <div class="row-actions">
              <button type="button" aria-keyshortcuts="t" {...off} onClick={() => onAsk({ key, what: 'rotate' })}>
                {wording.rotate}
              </button>
              <button
                type="button"
                class="danger"
                aria-keyshortcuts="d"
                {...off}
                onClick={() => onAsk({ key, what: 'revoke' })}
              >
                {wording.revoke}
              </button>
            </div>
          </td>
        </tr>
      ))}
    </ScrollTable>
  );
}
