/** The accounts: find one by its email, make one, open one. */
import type { JSX } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { address, changeQuery, pathTo } from '../../app/page-address.ts';
import { noteProblem } from '../../app/session-state.ts';
import { showToast } from '../../app/toasts.tsx';
import type { ShownProblem } from '../../data/problem-words.ts';
import { CreateForm } from '../../parts/create-form.tsx';
import { ProblemNote } from '../../parts/problem-note.tsx';
import { ScrollTable } from '../../parts/scroll-table.tsx';
import { wording } from '../../wording.ts';
import { Invitations } from './invitations.tsx';
import { RoleChoice } from './role-choice.tsx';
import { UserPanel } from './user-panel.tsx';
import { type Account, actOn, addAccount, findAccounts } from './user-requests.ts';

type AccountsState = { readonly accounts: readonly Account[] } | { readonly problem: ShownProblem } | undefined;

export function UsersPage(): JSX.Element {
  const { subject, query } = address.value;
  const text = query.get('email') ?? '';
  const [state, setState] = useState<AccountsState>();
  const [version, setVersion] = useState(0);
  useEffect(() => {
    let isCurrent = true;
    findAccounts(text).then(
      (accounts) => isCurrent && setState({ accounts }),
      (error) => isCurrent && setState({ problem: noteProblem(error) }),
    );
    return () => {
      isCurrent = false;
    };
  }, [text, version]);
  const chosen =
    state !== undefined && 'accounts' in state ? state.accounts.find(({ id }) => id === subject) : undefined;
  return (
    <main id="content" class="page" tabIndex={-1}>
      <h1>{wording.users}</h1>
      <AccountSearch text={text} />
      {state === undefined && <p class="loading">{wording.loading}</p>}
      {state !== undefined && 'problem' in state && <ProblemNote problem={state.problem} />}
      {state !== undefined && 'accounts' in state && <AccountTable accounts={state.accounts} chosen={subject} />}
      {chosen !== undefined && <UserPanel key={chosen.id} account={chosen} onChange={() => setVersion(version + 1)} />}
      <NewAccount onMade={() => setVersion(version + 1)} />
      <Invitations />
    </main>
  );
}

function AccountSearch({ text }: { readonly text: string }): JSX.Element {
  return (
    <form
      class="question"
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        changeQuery({ email: String(new FormData(event.currentTarget).get('search')).trim() });
      }}
    >
      <label>
        {wording.emailBegins}
        <input key={text} name="search" type="search" defaultValue={text} />
      </label>
      <button type="submit">{wording.applyFilter}</button>
    </form>
  );
}

interface AccountTableProps {
  readonly accounts: readonly Account[];
  readonly chosen: string | undefined;
}

function AccountTable({ accounts, chosen }: AccountTableProps): JSX.Element {
  if (accounts.length === 0) return <p class="empty">{wording.noUsers}</p>;
  return (
    <ScrollTable label={wording.users} class="accounts" titles={[wording.email, wording.verified, wording.roles]}>
      {accounts.map(({ id, email, email_verified: isVerified, roles }) => (
        <tr key={id} class={id === chosen ? 'chosen' : undefined}>
          <td>
            <a href={pathTo('users', id)} aria-current={id === chosen ? 'true' : undefined}>
              <bdi>{email}</bdi>
            </a>
          </td>
          <td>{isVerified === true ? wording.yes : wording.no}</td>
          <td>{roles?.join(', ')}</td>
        </tr>
      ))}
    </ScrollTable>
  );
}

/** Without a password: the user sets one by the mail. */
function NewAccount({ onMade }: { readonly onMade: () => void }): JSX.Element {
  const create = async (given: FormData): Promise<void> => {
    const made = await addAccount(String(given.get('email')).trim(), given.getAll('roles').map(String));
    if (given.get('invite') !== null) await actOn(made.id, 'password-reset');
    showToast(wording.created);
    onMade();
  };
  return (
    <CreateForm title={wording.newUser} action={wording.addUser} onCreate={create}>
      <label>
        {wording.email}
        <input name="email" type="email" required autocomplete="off" />
      </label>
      <RoleChoice chosen={[]} />
      <label class="check">
        <input name="invite" type="checkbox" defaultChecked /> {wording.invite}
      </label>
    </CreateForm>
  );
}
