/** The form of a key, and its secret, which is shown once. */
import type { JSX } from 'preact';
import { schema } from '../../app/session-state.ts';
import { wording } from '../../en.ts';
import { copyText } from '../../parts/copy-text.ts';
import { CreateForm } from '../../parts/create-form.tsx';
import { Dialog } from '../../parts/dialog.tsx';
import { RoleChoice } from '../users/role-choice.tsx';
import { createApiKey, type KeyDraft, type KeyWithSecret } from './key-requests.ts';

const KEY_ACTIONS = ['list', 'read', 'create', 'update', 'delete'];

const typedNames = (text: string): readonly string[] =>
  text
    .split(',')
    .map((name) => name.trim())
    .filter(Boolean);

/** Only administrators have the list of roles; others name their own. */
const roleNames = (given: FormData): readonly string[] =>
  schema.value?.roles === undefined ? typedNames(String(given.get('roles'))) : given.getAll('roles').map(String);

/** Null: any. */
function listedIn(given: FormData, name: string): readonly string[] | null {
  const names = typedNames(String(given.get(name)));
  return names.length === 0 ? null : names;
}

function newKeyIn(given: FormData): KeyDraft {
  const actions = given.getAll('actions').map(String);
  const collection = String(given.get('collection'));
  const end = String(given.get('expires_at'));
  return {
    name: String(given.get('name')).trim(),
    roles: roleNames(given),
    limit: actions.length === KEY_ACTIONS.length && collection === '*' ? null : { [collection]: actions },
    expires_at: end === '' ? null : new Date(end).toISOString(),
    publishable: given.has('publishable'),
    addresses: listedIn(given, 'addresses'),
    origins: listedIn(given, 'origins'),
  };
}

export function NewKeyForm({ onIssued }: { readonly onIssued: (key: KeyWithSecret) => void }): JSX.Element {
  const create = async (given: FormData): Promise<void> => onIssued(await createApiKey(newKeyIn(given)));
  return (
    <CreateForm title={wording.newKey} shortcut="n" action={wording.addKey} onCreate={create}>
      <label>
        {wording.name}
        <input name="name" required maxLength={100} autocomplete="off" />
      </label>
      {schema.value?.roles === undefined ? (
        <label>
          {wording.roles}
          <input name="roles" defaultValue={schema.value?.me.roles.join(', ')} />
        </label>
      ) : (
        <RoleChoice chosen={[]} />
      )}
      <label>
        {wording.limitedTo}
        <select name="collection">
          <option value="*">{wording.everyCollection}</option>
          {(schema.value?.collections ?? []).map(({ name }) => (
            <option key={name}>{name}</option>
          ))}
        </select>
      </label>
      <fieldset class="choices">
        <legend>{wording.actions}</legend>
        {KEY_ACTIONS.map((action) => (
          <label key={action} class="check">
            <input
              name="actions"
              type="checkbox"
              value={action}
              defaultChecked={action === 'list' || action === 'read'}
            />{' '}
            {action}
          </label>
        ))}
      </fieldset>
      <label>
        {wording.expires}
        <input name="expires_at" type="datetime-local" />
      </label>
      <label>
        {wording.addresses}
        <input name="addresses" placeholder={wording.addressesHint} />
      </label>
      <label>
        {wording.origins}
        <input name="origins" placeholder={wording.originsHint} />
      </label>
      <label class="check">
        <input name="publishable" type="checkbox" /> {wording.publishable}
      </label>
    </CreateForm>
  );
}

interface SecretDialogProps {
  readonly issued: KeyWithSecret;
  readonly onClose: () => void;
}

export function SecretDialog({ issued: { data, secret }, onClose }: SecretDialogProps): JSX.Element {
  return (
    <Dialog title={`${wording.secretOf} ${data.name}`} onClose={onClose}>
      <p>{wording.secretHint}</p>
      <pre tabIndex={0} class="secret">
        {secret}
      </pre>
      <div class="actions">
        <button type="button" class="primary" aria-keyshortcuts="c" onClick={() => void copyText(secret)}>
          {wording.copy}
        </button>
        <button type="button" aria-keyshortcuts="Escape" onClick={onClose}>
          {wording.close}
        </button>
      </div>
    </Dialog>
  );
}
