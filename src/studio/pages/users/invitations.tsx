/** The open invitations, and a form for one more. */
import type { JSX } from 'preact';
import { useState } from 'preact/hooks';
import { noteProblem } from '../../app/session-state.ts';
import { showToast } from '../../app/toasts.tsx';
import { greyReason } from '../../app/viewed-caller.ts';
import { wording } from '../../en.ts';
import { Answered, useAnswer } from '../../parts/answer.tsx';
import { CreateForm } from '../../parts/create-form.tsx';
import { greyed } from '../../parts/greyed.ts';
import { ScrollTable } from '../../parts/scroll-table.tsx';
import { RoleChoice } from './role-choice.tsx';
import { fetchInvitations, type Invitation, invite, removeInvitation } from './user-requests.ts';

export function InvitationList(): JSX.Element {
  const [version, setVersion] = useState(0);
  const answer = useAnswer(String(version), fetchInvitations);
  const create = async (given: FormData): Promise<void> => {
    await invite(String(given.get('email')).trim(), given.getAll('roles').map(String));
    showToast(wording.invited);
    setVersion(version + 1);
  };
  return (
    <>
      <h2>{wording.invitations}</h2>
      <Answered answer={answer}>
        {(invitations) => <InvitationTable invitations={invitations} onChange={() => setVersion(version + 1)} />}
      </Answered>
      <CreateForm title={wording.newInvitation} shortcut="v" action={wording.sendInvitation} onCreate={create}>
        <label>
          {wording.email}
          <input name="email" type="email" required autocomplete="off" />
        </label>
        <RoleChoice chosen={[]} />
      </CreateForm>
    </>
  );
}

interface InvitationTableProps {
  readonly invitations: readonly Invitation[];
  readonly onChange: () => void;
}

function InvitationTable({ invitations, onChange }: InvitationTableProps): JSX.Element {
  if (invitations.length === 0) return <p class="hint">{wording.noInvitations}</p>;
  const remove = (id: string): void => {
    removeInvitation(id).then(onChange, (error) => showToast(noteProblem(error).text));
  };
  return (
    <ScrollTable
      label={wording.invitations}
      class="invitations"
      titles={[wording.email, wording.roles, wording.expires, wording.actions]}
    >
      {invitations.map(({ id, email, roles, expires_at: end }) => (
        <tr key={id}>
          <td>
            <bdi>{email}</bdi>
          </td>
          <td>{roles.join(', ')}</td>
          <td>{new Date(end).toLocaleString()}</td>
          <td>
            <button
              type="button"
              aria-label={`${wording.removeTerm}: ${email}`}
              aria-keyshortcuts="r"
              {...greyed(greyReason.value)}
              onClick={() => remove(id)}
            >
              {wording.removeTerm}
            </button>
          </td>
        </tr>
      ))}
    </ScrollTable>
  );
}
