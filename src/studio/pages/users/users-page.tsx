/** The accounts: find one by its email, make one, open one. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { address, changeQuery, pathTo } from '../../app/page-address.ts';
import { showToast } from '../../app/toasts.tsx';
import { wording } from '../../en.ts';
import { Answered, useAnswer } from '../../parts/answer.tsx';
import { CreateForm } from '../../parts/create-form.tsx';
import { ScrollTable } from '../../parts/scroll-table.tsx';
import { InvitationList } from './invitations.tsx';
import { RoleChoice } from './role-choice.tsx';
import { UserPanel } from './user-panel.tsx';
import { accountOf, actOn, addAccount, findAccounts, type ShownAccount } from './user-requests.ts';

export function UsersPage(): JSX.Element {
  const { subject, query } = address.value;
  const text = query.get('email') ?? '';
  const [version, setVersion] = useState(0);
  const change = (): void => setVersion(version + 1);
  return (
    <main id="content" class="page" tabIndex={-1}>
      <h1>{wording.users}</h1>
      <AccountSearch text={text} />
      <FoundAccountTable key={text} text={text} version={version} chosen={subject} />
      {subject !== undefined && <ChosenAccount key={subject} id={subject} version={version} onChange={change} />}
      <NewAccount onMade={change} />
      <InvitationList />
    </main>
  );
}

interface FoundAccountTableProps {
  readonly text: string;
  readonly version: number;
  readonly chosen: string | undefined;
}

function FoundAccountTable({ text, version, chosen }: FoundAccountTableProps): JSX.Element {
  const [pages, setPages] = useState(1);
  const answer = useAnswer(`${version} ${pages}`, () => findAccounts(text, pages));
  return (
    <Answered answer={answer}>
      {({ accounts, hasMore }) => (
        <>
          <AccountTable accounts={accounts} chosen={chosen} />
          {hasMore && (
            <button type="button" aria-keyshortcuts="l" onClick={() => setPages(pages + 1)}>
              {wording.moreUsers}
            </button>
          )}
        </>
      )}
    </Answered>
  );
}

interface ChosenAccountProps {
  readonly id: string;
  readonly version: number;
  readonly onChange: () => void;
}

function ChosenAccount({ id, version, onChange }: ChosenAccountProps): JSX.Element {
  const answer = useAnswer(String(version), () => accountOf(id));
  return (
    <Answered answer={answer}>
      {(account) =>
        account === undefined ? (
          <p class="empty">{wording.noUser}</p>
        ) : (
          <UserPanel account={account} onChange={onChange} />
        )
      }
    </Answered>
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
        <input key={text} name="search" type="search" aria-keyshortcuts="/" defaultValue={text} />
      </label>
      <button type="submit" aria-keyshortcuts="Enter">
        {wording.applyFilter}
      </button>
    </form>
  );
}

interface AccountTableProps {
  readonly accounts: readonly ShownAccount[];
  readonly chosen: string | undefined;
}

function AccountTable({ accounts, chosen }: AccountTableProps): JSX.Element {
  if (accounts.length === 0) return <p class="empty">{wording.noUsers}</p>;
  return (
    <ScrollTable
      label={wording.users}
      class="accounts"
      titles={[wording.email, wording.state, wording.verified, wording.roles]}
    >
      {accounts.map(({ id, email, email_verified: isVerified, disabled: isDisabled, roles }) => (
        <tr key={id} class={id === chosen ? 'chosen' : undefined}>
          <td>
            <a href={pathTo('users', id)} aria-current={id === chosen ? 'true' : undefined}>
              <bdi>{email}</bdi>
            </a>
          </td>
          <td>{isDisabled ? wording.isDisabled : wording.isEnabled}</td>
          <td>{isVerified ? wording.yes : wording.no}</td>
          <td>{roles.join(', ')}</td>
        </tr>
      ))}
    </ScrollTable>
  );
}

/** Without a password: the user sets one by the mail. */
function NewAccount({ onMade }: { readonly onMade: () => void }): JSX.Element {
  const create = async (given: FormData): Promise<void> => {
    const id = await addAccount(String(given.get('email')).trim(), given.getAll('roles').map(String));
    if (given.get('invite') !== null) await actOn(id, 'password-reset');
    showToast(wording.created);
    onMade();
  };
  return (
    <CreateForm title={wording.newUser} shortcut="n" action={wording.addUser} onCreate={create}>
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
