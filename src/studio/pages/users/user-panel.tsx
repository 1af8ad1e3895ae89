/** The roles and sessions of one account, and the actions of an administrator on it. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { pathTo } from '../../app/page-address.ts';
import { noteProblem } from '../../app/session-state.ts';
import { showToast } from '../../app/toasts.tsx';
import { greyReason } from '../../app/viewed-caller.ts';
import type { ShownProblem } from '../../data/problem-words.ts';
import { wording } from '../../en.ts';
import { ConfirmDialog } from '../../parts/confirm-dialog.tsx';
import { greyed } from '../../parts/greyed.ts';
import { ProblemNote } from '../../parts/problem-note.tsx';
import { ScrollTable } from '../../parts/scroll-table.tsx';
import { RoleChoice } from './role-choice.tsx';
import { type AccountSession, actOn, endSessionsOf, type ShownAccount, sessionsOf, setRoles } from './user-requests.ts';

interface UserPanelProps {
  readonly account: ShownAccount;
  readonly onChange: () => void;
}

/** Does the work, shows its problem or the message, and reports the change. */
type RunAction = (work: Promise<unknown>, message: string) => Promise<void>;

export function UserPanel({ account, onChange }: UserPanelProps): JSX.Element {
  const { id, email, roles, disabled: isDisabled, second_factor: hasFactor } = account;
  const [problem, setProblem] = useState<ShownProblem>();
  const [version, setVersion] = useState(0);
  const run: RunAction = async (work, message) => {
    setProblem(undefined);
    try {
      await work;
      showToast(message);
      setVersion(version + 1);
      onChange();
    } catch (error) {
      setProblem(noteProblem(error));
    }
  };
  return (
    <section class="panel" aria-label={email}>
      <h2>
        <bdi>{email}</bdi>
      </h2>
      <p>
        <a href={pathTo('data', 'users', { record: id })}>{wording.openRecord}</a>{' '}
        <a href={pathTo('audit', undefined, { user: id })}>{wording.audit}</a>
      </p>
      <p class="state">
        {isDisabled ? wording.isDisabledHint : wording.isEnabled}
        {hasFactor && ` · ${wording.hasSecondFactor}`}
      </p>
      {problem !== undefined && <ProblemNote problem={problem} />}
      <RoleForm chosen={roles} onRoles={(chosen) => void run(setRoles(id, chosen), wording.saved)} />
      <SessionTable key={version} id={id} />
      <AccountActions account={account} onRun={run} />
    </section>
  );
}

interface AccountActionsProps {
  readonly account: ShownAccount;
  readonly onRun: RunAction;
}

function AccountActions({ account, onRun }: AccountActionsProps): JSX.Element {
  const { id, disabled: isDisabled, second_factor: hasFactor } = account;
  const [asked, setAsked] = useState<keyof typeof CONFIRMED_ACTIONS>();
  const button = (word: string, key: string, act: () => void, name?: 'danger'): JSX.Element => (
    <button type="button" class={name} aria-keyshortcuts={key} {...greyed(greyReason.value)} onClick={act}>
      {word}
    </button>
  );
  const asking = (action: keyof typeof CONFIRMED_ACTIONS): JSX.Element =>
    button(CONFIRMED_ACTIONS[action].word, CONFIRMED_ACTIONS[action].key, () => setAsked(action), 'danger');
  const confirm = (action: keyof typeof CONFIRMED_ACTIONS): void => {
    setAsked(undefined);
    void onRun(actOn(id, action), CONFIRMED_ACTIONS[action].done);
  };
  return (
    <div class="actions">
      {button(wording.endSessions, 'Shift+x', () => void onRun(endSessionsOf(id), wording.sessionsEnded))}
      {button(wording.sendReset, 'm', () => void onRun(actOn(id, 'password-reset'), wording.resetSent))}
      {hasFactor && asking('second-factor/reset')}
      {isDisabled
        ? button(wording.enable, 'd', () => void onRun(actOn(id, 'enable'), wording.enabled))
        : asking('disable')}
      {asked !== undefined && (
        <ConfirmDialog
          title={CONFIRMED_ACTIONS[asked].title}
          action={CONFIRMED_ACTIONS[asked].word}
          onConfirm={() => confirm(asked)}
          onClose={() => setAsked(undefined)}
        >
          <p>{CONFIRMED_ACTIONS[asked].hint}</p>
        </ConfirmDialog>
      )}
    </div>
  );
}

interface RoleFormProps {
  readonly chosen: readonly string[];
  readonly onRoles: (chosen: readonly string[]) => void;
}

function RoleForm({ chosen, onRoles }: RoleFormProps): JSX.Element {
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault();
        onRoles(new FormData(event.currentTarget).getAll('roles').map(String));
      }}
    >
      <RoleChoice chosen={chosen} />
      <button type="submit" aria-keyshortcuts="s" {...greyed(greyReason.value)}>
        {wording.saveRoles}
      </button>
    </form>
  );
}

/** The actions that ask first. */
const CONFIRMED_ACTIONS = {
  disable: {
    word: wording.disable,
    key: 'd',
    title: wording.disableTitle,
    hint: wording.disableHint,
    done: wording.disabledNow,
  },
  'second-factor/reset': {
    word: wording.resetFactor,
    key: 'f',
    title: wording.resetFactorTitle,
    hint: wording.resetFactorHint,
    done: wording.factorReset,
  },
} as const;

function SessionTable({ id }: { readonly id: string }): JSX.Element {
  const [sessions, setSessions] = useState<readonly AccountSession[]>();
  const [problem, setProblem] = useState<ShownProblem>();
  useEffect(() => {
    sessionsOf(id).then(setSessions, (error) => setProblem(noteProblem(error)));
  }, [id]);
  if (problem !== undefined) return <ProblemNote problem={problem} />;
  if (sessions === undefined) return <p class="loading">{wording.loading}</p>;
  if (sessions.length === 0) return <p class="hint">{wording.noSessions}</p>;
  return (
    <ScrollTable label={wording.sessions} titles={[wording.begun, wording.lastUsed, wording.from, wording.browser]}>
      {sessions.map((session) => (
        <tr key={session.id}>
          <td>{new Date(session.created_at).toLocaleString()}</td>
          <td>{new Date(session.last_used_at).toLocaleString()}</td>
          <td>{session.ip}</td>
          <td>{session.user_agent}</td>
        </tr>
      ))}
    </ScrollTable>
  );
}
